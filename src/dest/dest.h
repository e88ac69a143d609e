/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_DEST_H
#define CCSNAP_DEST_H

#include "base/cleanup.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an image goes.  The order of calls is tidy, check, reserve, publish; a
 * dry run only checks.  close at any point undoes what was not published.
 */
struct dest;
struct err;

/* Beside each image NAME+suffix in a store. */
#define DEST_MANIFEST_SUFFIX ".manifest.json"
#define DEST_REPORT_SUFFIX   ".report.json"

/* What is known of an image at a destination: also its manifest. */
struct image_info {
	char *id;	   /* a UUID; changes with the content */
	char *name;	   /* as the user gave it */
	char *file;	   /* file name (folder) or URL */
	char *format;	   /* "qcow2", "raw" */
	char *compression; /* "zstd", "zlib", "none" */
	char *created_at;  /* RFC 3339 */
	uint64_t size;	   /* of the file */
	uint64_t virtual_size;
	struct digests digests;
	char **properties; /* "KEY=VALUE", ends with NULL; may be NULL */
};

void image_info_free(struct image_info *info);

struct image_list {
	struct image_info *at;
	size_t len, cap;
};

void image_list_free(struct image_list *list);

struct dest_ops {
	const char *name;

	/* Finish or remove what runs that were killed left there, so that also a
	 * run that is then refused does it.  What cannot be done stays undone.
	 */
	void (*tidy)(struct dest *dest);

	/* What would stand in the way?  Before anything is read; changes
	 * nothing.  need is the expected size of the file.
	 */
	int (*check)(struct dest *dest, uint64_t need, struct err *err);

	/* A file to build the image in, and the name taken against other runs
	 * (ERR_BUSY).  The descriptor stays the destination's.
	 */
	int (*reserve)(struct dest *dest, int *fd, struct err *err);

	/* All or nothing; info->id and ->file are filled in here. */
	int (*publish)(struct dest *dest, struct image_info *info, struct err *err);

	/* Put a report beside the published image; NULL: there is no such
	 * place.
	 */
	int (*attach_report)(struct dest *dest, const char *json, struct err *err);

	int (*list)(struct dest *dest, struct image_list *out, struct err *err);
	void (*close)(struct dest *dest);
};

struct dest {
	const struct dest_ops *ops;
	char *name; /* for messages: the path or URL of the image to be */

	/* Room there, as check() found it, whether it then refused or not;
	 * UINT64_MAX where there is no limit.
	 */
	uint64_t free_bytes;
	bool free_known;
};

struct dest_config {
	const char *where;	/* "folder:PATH", "file:PATH" */
	const char *image_name; /* NULL for list */
	const char *suffix;	/* of the image's format, with the dot */
	bool overwrite;
	unsigned lock_wait_seconds;
};

struct dest_kind {
	const char *scheme; /* up to the colon */
	struct dest *(*open)(const struct dest_config *cfg, const char *rest, struct err *err);
};

/* Ends with a NULL scheme. */
extern const struct dest_kind dest_kinds[];

struct dest *dest_open(const struct dest_config *cfg, struct err *err);
void dest_close(struct dest *dest); /* NULL is fine */

/* "folder:/var/lib/ccsnap/images" for root, otherwise the user's own
 * (malloc); NULL when out of memory or without a home.
 */
char *dest_default(void);

CLEANUP_TYPE(struct dest, dest, dest_close)
#define autodest CLEANUP(dest_cleanup)

#endif
