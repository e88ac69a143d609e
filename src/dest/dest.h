/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_DEST_H
#define CCSNAP_DEST_H

#include "base/cleanup.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where an image goes, and where it comes back from.  The order of calls is tidy,
 * check, reserve, publish; a dry run only checks.  close at any point undoes what
 * was not published.
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

	/* What only a service says; NULL or false elsewhere. */
	char *status; /* "active" is whole; NULL is, too */
	char **tags;  /* ends with NULL; may be NULL */
	bool is_protected;
	char *hash_algo, *hash_value; /* of the file */
};

void image_info_free(struct image_info *info);

struct image_list {
	struct image_info *at;
	size_t len, cap;
};

void image_list_free(struct image_list *list);

/* Moves info into the list, and leaves it empty. */
int image_list_add(struct image_list *list, struct image_info *info, struct err *err);

/* The value of a property, NULL without it; borrowed. */
const char *image_property(const struct image_info *info, const char *key);

/* What ccsnap notes of every image that it makes, among its properties. */
#define PROPERTY_PREFIX	 "ccsnap_"
#define PROPERTY_VERSION "ccsnap_version"
#define PROPERTY_SERIES	 "ccsnap_series"
#define PROPERTY_SOURCE	 "ccsnap_source" /* a UUID: this machine and this path on it */
#define PROPERTY_SHA256	 "ccsnap_sha256" /* of the image's file */

/* Which images; NULL: whichever.  All that is given must hold. */
struct image_filter {
	const char *id, *name, *tag, *series;
};

bool image_matches(const struct image_info *info, const struct image_filter *filter);

/* How a publish went, also when it failed. */
struct receipt {
	char *image_id;		 /* NULL until there is one */
	unsigned attempts;	 /* at sending the bytes, or at publishing the file */
	uint64_t sent_bytes;	 /* over all attempts */
	bool verified;		 /* what is there is what was made */
	const char *verified_by; /* "sha512" and its like, "size", "file"; NULL: by nothing */

	bool is_kept; /* the file at dest->path is whole, whatever became of the rest */

	/* What became of the image that a failure left there. */
	enum { CLEANUP_NOTHING, CLEANUP_DONE, CLEANUP_FAILED, CLEANUP_KEPT } cleanup;
};

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

	/* Instead of reserve, and before check: fd holds the finished image, and
	 * stays the caller's.  NULL: it must be copied into what reserve gives.
	 */
	void (*adopt)(struct dest *dest, int fd);

	/* All or nothing; info->id and ->file are filled in here, dest->receipt
	 * also on failure.  What is there afterwards is proven to be what was
	 * made, as far as receipt.verified says.
	 */
	int (*publish)(struct dest *dest, struct image_info *info, struct err *err);

	/* Put a report beside the published image; NULL: there is no such
	 * place.
	 */
	int (*attach_report)(struct dest *dest, const char *json, struct err *err);

	/* Oldest first.  Where it always fails, remove and fetch are NULL. */
	int (*list)(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		    struct err *err);

	/* An image that list() told of, with all that belongs to it.  That it is
	 * gone already is fine; a protected one is not removed (ERR_REFUSED).
	 */
	int (*remove)(struct dest *dest, const struct image_info *info, struct err *err);

	/* The bytes of such an image into fd, an empty file of ours, and their
	 * digests into info; -1 unless they are proven to be what is stored, by
	 * what receipt.verified_by then says.
	 */
	int (*fetch)(struct dest *dest, struct image_info *info, int fd, struct err *err);

	void (*close)(struct dest *dest);
};

struct dest {
	const struct dest_ops *ops;
	char *name; /* for messages: the path or URL of the image to be */
	char *path; /* of the local file that the image becomes, NULL: none stays here */
	struct receipt receipt;

	/* Told how many bytes of the image are through, by publish and fetch;
	 * NULL: nobody.  The opener sets it.
	 */
	void (*progress)(void *ctx, uint64_t done);
	void *progress_ctx;

	/* That the image will have, "KEY=VALUE", for check(); NULL: none.  Set by
	 * the opener, too.
	 */
	char *const *properties;

	/* Room there, as check() found it, whether it then refused or not;
	 * UINT64_MAX where there is no limit.
	 */
	uint64_t free_bytes;
	bool free_known;
};

struct dest_config {		/* strings outlive the dest */
	const char *where;	/* as in dest_kinds */
	const char *image_name; /* NULL unless an image is to go there */
	const char *suffix;	/* of the image's format, with the dot */
	const char *format;	/* "qcow2", "raw" */
	bool overwrite;
	unsigned lock_wait_seconds;

	/* For a destination that is not in our filesystem. */
	const char *work_dir;	/* where the image is built; NULL: TMPDIR, or /var/tmp */
	const char *keep_path;	/* a file that the image stays in, too; NULL: none */
	const char *cloud;	/* --os-cloud; NULL: not given */
	char *const *tags;	/* may be NULL */
	const char *visibility; /* NULL: the service's default */
	bool make_protected;
	bool keep_failed;
	const char *upload_method;				/* "auto", "direct", "import" */
	uint64_t limit_rate;					/* bytes a second; 0: none */
	unsigned connect_seconds, stall_seconds, total_seconds; /* see http.h */
};

struct dest_kind {
	const char *scheme; /* where is this, or begins with this and a colon */
	const char *form;   /* "folder:PATH"; a [ behind the scheme: it may stand alone */

	/* rest is what follows the colon; NULL without a colon. */
	struct dest *(*open)(const struct dest_config *cfg, const char *rest, struct err *err);
	bool is_remote; /* built in work_dir, then sent */
	bool has_list;	/* and images come back from there */
};

/* Ends with a NULL scheme. */
extern const struct dest_kind dest_kinds[];

/* The kind that where names, and what follows its colon (NULL: no colon); NULL
 * when there is none.
 */
const struct dest_kind *dest_kind_find(const char *where, const char **rest);

/* As it may be shown, whatever it is: without a password or query in a URL (malloc). */
char *dest_for_messages(const char *where);

struct dest *dest_open(const struct dest_config *cfg, struct err *err);
void dest_close(struct dest *dest); /* NULL is fine */

/* check(), whose every failure is ERR_REFUSED: nothing was done yet. */
int dest_check(struct dest *dest, uint64_t need, struct err *err);

/* The one image there with that id or name; several of one name are an error
 * that tells their ids.
 */
int dest_find(struct dest *dest, const char *id_or_name, struct image_info *out, struct err *err);

/* "folder:/var/lib/ccsnap/images" for root, otherwise the user's own
 * (malloc); NULL when out of memory or without a home.
 */
char *dest_default(void);

CLEANUP_TYPE(struct dest, dest, dest_close)
#define autodest CLEANUP(dest_cleanup)

#endif
