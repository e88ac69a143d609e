/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_UNDO_H
#define CCSNAP_UNDO_H

#include <stdbool.h>

/* What undoes the two ways to hold a disk still, in the run that began it and after its
 * death.  Each works however far the beginning came, and twice.
 */
struct backup_job;
struct domain;
struct err;
struct record;
struct record_note;

/* By its scratch file or its socket, which nobody else's has. */
bool undo_job_is_ours(const struct backup_job *job, const char *scratch, const char *socket);

/* In a line (malloc) what job runs that is not ours; NULL with *err untouched: none.  -1: cannot
 * be told.
 */
int undo_find_others(struct domain *d, const char *scratch, const char *socket, char **what,
		     struct err *err);

/* Is it certain that nothing is still being begun?  The daemon goes on with a call whose
 * caller has died.
 */
enum undo_doubt { UNDO_SETTLED, UNDO_UNSETTLED };

/* End the job if it is ours, and let the guest go on if it was stopped for lack of room on
 * our account: 1 when there was one, 0, -1.
 */
int undo_job(struct domain *d, const char *scratch, const char *socket, enum undo_doubt doubt,
	     struct err *err);

struct undo_overlay {
	const char *target, *path;
	int run_id; /* of the start of the domain for all the time since it was made; -1: unknown */
};

/* Merge the overlay, let the guest go on, and remove the file: 1 when there was something to do,
 * 0, -1.  A file that no disk has may hold what a guest wrote last, unless the domain is known to
 * have run ever since it was made: it is kept, and named.
 */
int undo_overlay(struct domain *d, const struct undo_overlay *overlay, enum undo_doubt doubt,
		 struct err *err);

/* The same when there is no such domain any more: 0 when there is no such file either, else -1. */
int undo_overlay_of_nobody(const char *path, struct err *err);

/* The record without what a method wrote into it; the rest stays. */
int undo_forget(struct record *r, struct err *err);

#endif
