/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ROOMWATCH_H
#define CCSNAP_ROOMWATCH_H

#include <stdbool.h>

/* Where there is no more room for a scratch file or an overlay to grow, QEMU stops the guest.  So a
 * thread looks how much is left, and whether the guest was stopped already, and gives the
 * capture up before the guest: by undoing what makes the file grow, or by ending what keeps that
 * from being undone.
 */
struct contact;
struct domain;
struct err;
struct roomwatch;
struct scratch;

struct roomwatch_config {
	struct domain *domain;
	const struct scratch *scratch;

	/* In the thread, until it does not fail, or the watch is stopped; with the thread's own
	 * contact.
	 */
	int (*give_up)(void *ctx, struct contact *c, struct err *err);
	void *ctx;
};

/* All of cfg has to outlive it. */
struct roomwatch *roomwatch_start(const struct roomwatch_config *cfg, struct err *err);

/* Has the capture been given up, or is it about to be? */
bool roomwatch_has_acted(struct roomwatch *w);

/* Waits for what it is just doing: nothing of it goes on behind this. */
void roomwatch_stop(struct roomwatch *w); /* NULL is fine */

#endif
