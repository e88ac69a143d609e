/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_RECORD_H
#define CCSNAP_RECORD_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

/* What a run has done to a domain and not undone yet: one file a domain, in
 * /var/lib/ccsnap/domains for root, else in $XDG_STATE_HOME/ccsnap/domains, named by the
 * domain's UUID, locked (flock) as long as the run or its guard lives.  Who gets the lock
 * and finds something written there knows that it is the work of the dead.
 *
 * 0600, an INI file.  It is written before what it tells of is done, and cleared after that
 * is undone.
 */
struct err;
struct record;

/* NULL: nothing of that kind. */
struct record_note {
	char *uri;     /* of the connection, as the user gave it or as the default is */
	char *name;    /* of the domain, for messages */
	int run_id;    /* domain_run_id: a freeze ends with it; -1: unknown */
	bool frozen;   /* a freeze was, or was about to be, asked for */
	bool patience; /* the agent's response time is ours */
	char *target;  /* of the disk */
	char *scratch_dir, *scratch, *socket; /* of a backup job: what is to go with it */
	char *overlay;			      /* of a snapshot */
};

/* Take the lock of that domain, waiting at most so long: ERR_BUSY.  Makes the folder. */
struct record *record_open(const char *uuid, unsigned wait_seconds, struct err *err);

/* The same for a descriptor of it that the guard was given; takes it over. */
struct record *record_adopt(int fd, struct err *err);

/* For a note to write: its strings are not const, and are copied. */
static inline char *record_lend(const char *text)
{
	return (char *)(uintptr_t)text;
}

int record_fd(const struct record *r);
const struct record_note *record_note(const struct record *r);

/* What is true from now on (copied); when it returns, another process reads it. */
int record_write(struct record *r, const struct record_note *note, struct err *err);

/* Nothing is left to undo. */
int record_clear(struct record *r, struct err *err);
bool record_is_clear(const struct record *r);

void record_close(struct record *r); /* what stands in it stays; NULL is fine */

/* Look, without a lock, what is written for that domain: 1 with *out (record_note_free), 0, -1.
 * *is_held: a run or guard lives that it belongs to.
 */
int record_look(const char *uuid, struct record_note *out, bool *is_held, struct err *err);

/* Call each with the UUID of every domain for which something is written. */
int record_each(int (*each)(void *ctx, const char *uuid, struct err *err), void *ctx,
		struct err *err);

void record_note_free(struct record_note *note);

CLEANUP_TYPE(struct record, record, record_close)
#define autorecord CLEANUP(record_cleanup)

#endif
