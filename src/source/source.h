/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SOURCE_H
#define CCSNAP_SOURCE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every source is a virtual disk: a size, a list of extents, and a read_at
 * that any thread may call.  A source is never written.
 */
struct err;
struct extent_list;
struct source;

struct source_ops {
	const char *name;

	/* Describe [offset, offset+length): ascending, no gaps, no overlap.
	 * Called from one thread at a time, while others are in read_at.
	 */
	int (*extents)(struct source *src, uint64_t offset, uint64_t length,
		       struct extent_list *out, struct err *err);

	/* Read exactly len bytes, all inside the disk.  Called from many
	 * threads at once.  The message of a failure names the first offset
	 * that could not be read.
	 */
	int (*read_at)(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err);

	/* Make read_at and extents, now under way or called later, fail soon;
	 * NULL when the source cannot.
	 */
	void (*abort)(struct source *src);

	/* After the last byte: does what was read still stand, and was it one
	 * point in time?  NULL when the source cannot change.
	 */
	int (*check)(struct source *src, struct err *err);

	/* After a pass: append to again what has to be read once more, since
	 * it changed under the reader; nothing when all has come to rest, and
	 * nothing for ever after some rounds.  Nobody else is in the source.  NULL
	 * when a change is an error (check).
	 */
	int (*settle)(struct source *src, struct extent_list *again, struct err *err);

	void (*close)(struct source *src);
};

struct source {
	const struct source_ops *ops;
	char *name;    /* for messages; owned by the source */
	uint64_t size; /* of the virtual disk in bytes: a multiple of 512 */

	size_t read_size;     /* what is best read at once; 0: as little as one likes */
	uint64_t padding;     /* zeros that we put behind an odd source's end */
	unsigned sector_size; /* logical, as the disk's user sees it: 512 or 4096 */

	/* Threads of an earlier run are still inside read_at and could not be
	 * called back: source_close then leaves all as it is.
	 */
	bool stuck;

	struct patience *opener; /* source_open's; a helper process lives as long as it does */
};

/* Look: for a dry run or an estimate only.  It leaves the source as it is, so it
 * takes no lock and flushes nothing, and then believes in holes all the same:
 * what was written just before may be missing.  Whatever is to be true of every
 * byte takes SOURCE_CAPTURE.
 */
enum source_intent { SOURCE_LOOK, SOURCE_CAPTURE };

struct source_config {
	const char *path;
	const char *format; /* a name in source_formats; never probed */
	enum source_intent intent;
	bool allow_backing;	   /* the file may name other files */
	unsigned connections;	   /* how many threads will read */
	unsigned stall_seconds;	   /* how long opening may take, as base/patience.h; 0: for ever */
	uint64_t bytes_per_second; /* to read at most; 0: no limit */
};

struct source_format {
	const char *name;
	struct source *(*open)(const struct source_config *cfg, struct err *err);
};

/* Ends with a NULL name. */
extern const struct source_format source_formats[];

const struct source_format *source_format_find(const char *name);

/* The source is refused (ERR_REFUSED) when something else holds it for
 * writing, and held against writers where the system has a way to.
 */
struct source *source_open(const struct source_config *cfg, struct err *err);

/* A disk that somebody's NBD server shows, and that keeps still as long as it does: its holes
 * are believed.
 */
struct source_export {
	const char *name;   /* for messages */
	const char *socket; /* path of a unix socket, not of a link to one */
	const char *export_name;
	unsigned connections;	   /* how many threads will read */
	unsigned sector_size;	   /* 0: as its partition table tells */
	uint64_t bytes_per_second; /* 0: no limit */
	unsigned stall_seconds;	   /* how long an answer may take; 0: for ever */
};

struct source *source_open_export(const struct source_export *cfg, struct err *err);

int source_extents(struct source *src, uint64_t offset, uint64_t length, struct extent_list *out,
		   struct err *err);
int source_read_at(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err);
void source_abort(struct source *src);
int source_check(struct source *src, struct err *err);
int source_settle(struct source *src, struct extent_list *again, struct err *err);
void source_close(struct source *src); /* NULL is fine */

CLEANUP_TYPE(struct source, source, source_close)
#define autosource CLEANUP(source_cleanup)

#endif
