/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_QUIESCE_H
#define CCSNAP_QUIESCE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make a running domain hold still for one instant, and show its disk as it was then while
 * it works on.  The order of `hold` is its safety:
 *
 *	everything is ready (scratch, XML, guard) - trim - record "frozen" - arm the guard -
 *	freeze - begin the job - ask the guard whether it had to step in - thaw - disarm
 *
 * The domain is never left frozen, with a job, or on an overlay: release undoes all, the
 * guard (guard.h) does it when we die, and the next run does what neither could (recover.h).
 */
struct domain;
struct err;
struct hardware;
struct quiesce;
struct record;
struct virt_disk;

enum quiesce_wish {
	QUIESCE_AUTO,	 /* freeze if that is possible, else say so */
	QUIESCE_REQUIRE, /* freeze or refuse */
	QUIESCE_OFF,
};

/* As in the command line and the report; ends with NULL. */
extern const char *const quiesce_wish_names[];

struct quiesce_config {
	struct domain *domain;
	const struct hardware *hardware; /* of now */
	const struct virt_disk *disk;	 /* one of its disks */
	struct record *record;		 /* held; no leftovers in it */
	enum quiesce_wish wish;
	unsigned freeze_seconds; /* the deadline for all between freeze and thaw */
	bool wants_trim;
	const char *scratch_dir; /* NULL: the default of scratch.h */
	uint64_t scratch_bytes;	 /* so much has to be free there */
	bool allow_backing;

	/* When the view will not hold until release: make what reads it fail soon.  Called in
	 * another thread, at most once, between hold's beginning and release; NULL is fine.
	 */
	void (*end_reading)(void *reader);
	void *reader;
};

/* What truly happened. */
struct quiesce_outcome {
	const char *method; /* "backup-job", "snapshot"; NULL: nothing yet */
	bool quiesced;	    /* frozen at the point in time, and not thawed before it */
	unsigned filesystems;
	double frozen_ms;      /* from asking to freeze to thawed; negative: never frozen */
	const char *thawed_by; /* "ccsnap", "guard"; NULL: nobody had to */
	bool trimmed;
	char why_not[300]; /* why it was not quiesced, in words; "": it was, or nobody asked */
};

/* Where the point in time can be read. */
struct quiesce_view {
	const char *socket, *export_name; /* of an NBD server, or */
	const char *path, *format;	  /* of a file or block device that keeps still */
};

/* Probes the agent.  ERR_REFUSED when a freeze is required and cannot be; nothing is changed
 * yet.
 */
struct quiesce *quiesce_open(const struct quiesce_config *cfg, struct err *err);

/* The whole instant.  After 0 the view is good until release.  Never ERR_REFUSED: something was
 * done.
 */
int quiesce_hold(struct quiesce *q, struct quiesce_view *out, struct err *err);

/* Is it still good?  Asked after the last byte was read, and when reading failed. */
int quiesce_check(struct quiesce *q, struct err *err);

/* After hold, whatever became of it; also by close.  What could not be undone is in err,
 * with the command that does it by hand.
 */
int quiesce_release(struct quiesce *q, struct err *err);

const struct quiesce_outcome *quiesce_outcome(const struct quiesce *q);
uint64_t quiesce_scratch_used(const struct quiesce *q); /* bytes, of the job; 0: unknown */

/* What release could not undo is left to the guard, which goes on with it.  NULL is fine. */
void quiesce_close(struct quiesce *q);

CLEANUP_TYPE(struct quiesce, quiesce, quiesce_close)
#define autoquiesce CLEANUP(quiesce_cleanup)

#endif
