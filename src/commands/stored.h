/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_STORED_H
#define CCSNAP_STORED_H

#include "base/cleanup.h"
#include "dest/dest.h"

/* One image of a store or service that is to be brought here. */
struct err;
struct options;
struct progress;
struct source;

struct stored {
	char *where;
	struct dest *store;
	struct image_info info;
	struct progress *progress; /* borrowed; may be NULL */
	int aside;		   /* a file without a name that holds it; -1 */
};

#define STORED_NONE                                                                                \
	{                                                                                          \
		.aside = -1                                                                        \
	}

/* The one image with that id or name (opt->args[0]) in the store that the options
 * name; ERR_REFUSED for what is not whole.
 */
int stored_find(struct stored *s, const struct options *opt, struct progress *progress,
		struct err *err);
void stored_free(struct stored *s);

/* For messages: its name, or its id without one. */
const char *stored_name(const struct stored *s);

/* Its bytes into fd, an empty file of ours; they are what is stored. */
int stored_fetch(struct stored *s, int fd, struct err *err);
const char *stored_proof(const struct stored *s); /* by what; NULL: nothing */

/* The same into a file without a name in --work-dir, and that as a disk.  Its format is
 * the one that the store tells, never one that its bytes suggest.
 */
int stored_fetch_aside(struct stored *s, const struct options *opt, struct err *err);
struct source *stored_open(const struct stored *s, const struct options *opt, struct err *err);

#define autostored CLEANUP(stored_free)

#endif
