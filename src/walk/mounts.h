/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_MOUNTS_H
#define CCSNAP_WALK_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mounts at and below a tree, and which of them are part of the system
 * (DESIGN section 5).  Told apart by mount id, not by device.
 */
struct err;
struct mounts;

enum mount_role {
	MOUNT_SOURCE, /* the one that the source's root lies on */
	MOUNT_FOLD,   /* followed: becomes part of the root filesystem */
	MOUNT_BOOT,   /* /boot: a partition of its own */
	MOUNT_ESP,    /* a vfat at /boot/efi, /efi or /boot */
	MOUNT_SKIP,   /* stays an empty directory */
};

struct mount {
	uint64_t id;
	uint32_t major, minor;
	char *fstype, *device; /* as mountinfo has them, escapes decoded */
	char *fs_root;	       /* what of that filesystem is mounted: "/", "/@home" */
	char *point;	       /* relative to the source, "" for its root */
	char *options;	       /* of the superblock, "subvol=/@,..." */
	enum mount_role role;
	const char *why; /* of MOUNT_SKIP, in words */
	bool included;	 /* by --include-mount */
};

struct mounts_config {
	const char *source; /* absolute path without links */
	uint64_t source_id; /* mount id of its root (statx) */
	const char *const
		*include; /* --include-mount, paths as an exclude's; ends with NULL; may be NULL */
	bool one_file_system;
	const char *mountinfo; /* "/proc/self/mountinfo", or a file for tests */
};

/* ERR_USAGE when an included mount is no mount below the source; ERR_REFUSED
 * when /boot is a mount that the table would not follow: the image would lack it.
 */
struct mounts *mounts_read(const struct mounts_config *cfg, struct err *err);
void mounts_free(struct mounts *m); /* NULL is fine */

/* NULL for an id that was not there when we looked, or hidden by another mount. */
const struct mount *mounts_find(const struct mounts *m, uint64_t id);

/* The source's own first, then in the order of paths, without those below a skipped
 * one; NULL behind the last.
 */
const struct mount *mounts_at(const struct mounts *m, size_t i);

/* Swap files in use: their device and inode (/proc/swaps, or a file for tests). */
struct mount_swap {
	uint64_t dev, ino;
	char *path;
};
int mounts_read_swaps(const char *swaps, struct mount_swap **out, size_t *count, struct err *err);
void mounts_free_swaps(struct mount_swap *swaps, size_t count);

#endif
