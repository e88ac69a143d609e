/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_QUIESCE_INNER_H
#define CCSNAP_QUIESCE_INNER_H

#include "base/err.h"
#include "quiesce/contact.h"
#include "quiesce/quiesce.h"
#include "quiesce/record.h"

/* The story of quiesce.h is told in quiesce.c, its instant in instant.c; whether the guest can be
 * frozen is found out in readiness.c.  How its disk is shown as it was is the method's business:
 * backup_job.c, snapshot_job.c.
 */
struct guard;
struct scratch;

struct quiesce_ops {
	const char *name; /* the method */

	/* Can it, with this domain, now?  1 with err telling why when another method has to be
	 * taken.
	 */
	int (*prepare)(struct quiesce *q, struct err *err);

	/* Just before begin, while nothing is frozen yet: leave nothing but the instant itself to
	 * that.
	 */
	int (*get_ready)(struct quiesce *q, struct err *err);

	/* Begin, between freeze and thaw: nothing slow, nothing that needs the guest.  1 as
	 * above.
	 */
	int (*begin)(struct quiesce *q, struct err *err);

	/* After begin: where to read; may wait for what takes time. */
	int (*view)(struct quiesce *q, struct quiesce_view *out, struct err *err);

	/* Does the point in time still hold?  -1 with the reason in the user's words. */
	int (*check)(struct quiesce *q, struct err *err);

	/* Undo all that began.  Works after a failure of any of the others, and twice. */
	int (*release)(struct quiesce *q, struct err *err);

	/* What release could not undo stays, with its files. */
	void (*close)(struct quiesce *q);
};

extern const struct quiesce_ops backup_ops, snapshot_ops;

struct quiesce {
	struct quiesce_config cfg;
	struct quiesce_outcome outcome;
	struct contact contact; /* of this thread */
	struct guard *guard;

	const struct quiesce_ops *const *methods; /* those that are left; the first is taken */
	const struct quiesce_ops *ops;		  /* of that one; NULL: none yet, or none left */
	struct scratch *scratch;
	void *state;	       /* of the method */
	uint64_t scratch_used; /* as the method saw it last */

	bool wants_freeze; /* and the agent can */
	bool can_trim;
	bool is_over; /* nothing is left to undo */
	bool was_released;
};

/* --- readiness.c --- */

/* Ask the agent what it can; ERR_REFUSED when a freeze is required and cannot be. */
int quiesce_look_at_agent(struct quiesce *q, struct err *err);

/* Is it still up to us to freeze it?  1, 0, or -1 when a freeze is required. */
int quiesce_may_freeze(struct quiesce *q, struct err *err);

/* It will not be frozen.  Who requires that gets nothing else: -1 with kind. */
int quiesce_do_without(struct quiesce *q, enum err_kind kind, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* As was wished for; a failure is warned of. */
void quiesce_trim(struct quiesce *q);

/* How long libvirt waits for the agent is back as it was; d is the domain, as it is reached now. */
int quiesce_reset_patience(const struct quiesce *q, struct domain *d, struct err *err);
void quiesce_end_patience(const struct quiesce *q); /* when it fails now, release does it */

/* --- note.c --- */

/* What stands in the record already, with whose it is: to be changed and written. */
struct record_note quiesce_note(const struct quiesce *q);

/* What is true from now on. */
int quiesce_note_frozen(const struct quiesce *q, struct err *err);
int quiesce_note_thawed(const struct quiesce *q, struct err *err);
int quiesce_note_patience(const struct quiesce *q, struct err *err); /* the agent's is ours */
int quiesce_forget_patience(const struct quiesce *q, struct err *err);
int quiesce_note_gone(const struct quiesce *q, struct err *err); /* neither, with its domain */

/* --- instant.c --- */

/* Freeze, begin, thaw, by the first of the methods that can. */
int quiesce_take_instant(struct quiesce *q, struct err *err);

/* The first method that can: 0; -1 with why none can, or why one that can has failed. */
int quiesce_take_method(struct quiesce *q, struct err *err);

#endif
