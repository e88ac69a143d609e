/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ERRAND_H
#define CCSNAP_ERRAND_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdatomic.h>

/* A call of libvirt that nothing would end: before there is a keep-alive, or one for which
 * libvirtd waits for a QEMU that hangs.  It is done in a thread that is left behind when it takes
 * too long.
 *
 * Embedded first in what the call needs and brings back, all of which has to be its own.
 */
enum errand_wait {
	ERRAND_CUT_SHORT, /* it is left behind soon after a signal, too */
	ERRAND_IN_FULL,	  /* it undoes something, or what became of it has to be known */
};

struct errand {
	/* Fills err and returns -1 when it fails. */
	int (*run)(struct errand *e, struct err *err);
	void (*free)(struct errand *e);
	enum errand_wait wait;
	unsigned seconds;   /* 0: ERRAND_SECONDS */
	enum err_kind kind; /* of the error when it takes too long */
	const char *advice; /* for that */
	atomic_bool is_over;
};

/* More than the 30 that libvirtd itself waits for another job, and then says so. */
enum { ERRAND_SECONDS = 35 };

/* Returns what run returned.  When it was given up, -1 ("WHAT: no answer ..."), *e is NULL, and
 * whenever the call ends after all, its thread frees it.
 */
int errand_run(struct errand **e, const char *what, struct err *err);

static inline void errand_cleanup(struct errand **e)
{
	if (*e)
		(*e)->free(*e);
}
#define autoerrand CLEANUP(errand_cleanup)

#endif
