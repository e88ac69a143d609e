/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_FSTAB_TEXT_H
#define CCSNAP_SYSTEM_FSTAB_TEXT_H

#include "system/text.h"

#include <stdbool.h>

/* fstab(5) and crypttab(5) as text.  Pure. */
struct names;

/* What has to be known of the tree; paths and points begin with "/". */
struct fstab_facts {
	const struct names *names;
	bool (*exists)(const void *ctx, const char *path);
	bool (*has_content)(const void *ctx, const char *directory);

	/* Is /dev/mapper/NAME made from a file that is in the image? */
	bool (*is_mapped_file)(const void *ctx, const char *device);
	const void *ctx;
};

/* The fields of a line as they stand there, in slices of it; len 0: not there, which
 * for systemd is "auto" and "defaults".
 */
enum { FSTAB_FIELDS = 4 };

struct fstab_fields {
	union {
		struct slice at[FSTAB_FIELDS];
		struct {
			struct slice device, point, type, options;
		};
	};
};

/* False for a comment, and for what has less than two fields. */
bool fstab_split(struct slice line, struct fstab_fields *out);

/* A field with its "\040"s decoded; false when it is too long. */
bool fstab_decode(struct slice field, char *dst, size_t cap);

/* As fstab_decode, without surplus slashes, as mount(8) would have it. */
bool fstab_decode_point(struct slice field, char *dst, size_t cap);

/* Append what the file becomes to *out, and what was done, in words, to *why. */
void fstab_rewrite(struct slice text, const struct fstab_facts *facts, struct text *out,
		   struct text *why);
void crypttab_rewrite(struct slice text, const struct fstab_facts *facts, struct text *out,
		      struct text *why);

/* The device of crypttab's entry of that name, decoded; false when there is none. */
bool crypttab_find(struct slice text, const char *name, char *device, size_t cap);

/* Does an entry name a container that is opened at boot: a device, with a key that
 * somebody has?
 */
bool crypttab_has_container(struct slice text);

#endif
