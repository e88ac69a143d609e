/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_RECOVER_H
#define CCSNAP_RECOVER_H

#include <stdbool.h>

/* Undo what a dead run left with a domain: thaw, end its job, merge its overlay, remove its
 * files, put back the agent's patience.  Only what its record names, and of jobs only one whose
 * scratch file or socket is the recorded one: everybody else's are named and left alone.
 */
struct domain;
struct err;
struct record;
struct record_note;
struct virt;

/* What is not ours but stands in the way (malloc, one line; NULL: nothing): a job.  For a message
 * of refusal; -1 when it cannot be told.  r NULL: nothing is ours.
 */
int recover_others(struct domain *d, const struct record *r, char **what, struct err *err);

/* The domain has to be that of the record's URI; NULL: libvirt knows none of its UUID there, which
 * leaves only files to remove, but never an overlay.  Calls tell (may be NULL) with each thing
 * done, in words.  0 when nothing is left and the record is clear; -1 with what could not be
 * undone, and the command for it.
 */
int recover_run(struct domain *d, struct record *r, void (*tell)(void *ctx, const char *done),
		void *ctx, struct err *err);

/* Elsewhere the same UUID is another domain. */
bool recover_is_at(const struct record_note *note, const struct virt *v);

/* The same for whatever domain has that UUID at the record's URI: over v when it leads there, else
 * (and with NULL) over a connection of its own.
 */
int recover_uuid(struct virt *v, const char *uuid, struct record *r,
		 void (*tell)(void *ctx, const char *done), void *ctx, struct err *err);

#endif
