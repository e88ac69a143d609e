/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_BOOT_PATHS_H
#define CCSNAP_SYSTEM_BOOT_PATHS_H

#include "system/text.h"

#include <stdbool.h>

/* Paths in boot configuration count from the top of a filesystem, which may be
 * another one than it was: a subvolume, a /boot of its own, a partition by its
 * number.  Pure.
 */
enum boot_volume {
	BOOT_VOLUME_KERNELS, /* the one with /boot: the root or one of its own */
	BOOT_VOLUME_ROOT,
	BOOT_VOLUME_ESP,
	BOOT_VOLUMES, /* none of them */
};

struct boot_paths {
	const char *subvolume; /* "/@"; NULL or "": none */

	/* path begins with "/".  NULL: nobody knows. */
	bool (*exists)(const void *ctx, enum boot_volume volume, const char *path);
	const void *ctx;
	enum boot_volume volume; /* of paths that say nothing of it */
};

/* Append text with the subvolume gone from the front of all paths in it; true
 * when there were any.
 */
bool boot_paths_strip(struct slice text, const char *subvolume, struct text *out);

/* Does "hd0,gpt2" or "lvmid/..." name a disk of the source's by something that is no
 * name of a filesystem?
 */
bool boot_device_is_numbered(const char *device);

/* Does the word begin with such a device: "(hd0,gpt2)/boot/x"? */
bool boot_path_is_numbered(struct slice word);

/* The volume that a word, without regard to what device it names, leads to something
 * on; BOOT_VOLUMES when it does on none, or has a variable in its path.
 */
enum boot_volume boot_path_volume(struct slice word, const struct boot_paths *paths);

/* Append a word that is a path ("($root)'/boot/grub'") as it leads to something: with
 * "/boot" put in front, or with what is in front taken away; a numbered device becomes
 * ($root).  As it is when it leads to something as it is, or nowhere.  True when it was
 * changed.
 */
bool boot_path_rewrite(struct slice word, const struct boot_paths *paths, struct text *out);

#endif
