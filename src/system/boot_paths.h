/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_BOOT_PATHS_H
#define CCSNAP_SYSTEM_BOOT_PATHS_H

#include "system/text.h"

#include <stdbool.h>

/* Paths in boot configuration count from the top of a filesystem, which may be
 * another one than it was: a subvolume, a /boot of its own.  Pure.
 */
struct boot_paths {
	const char *subvolume; /* "/@"; NULL or "": none */

	/* On the volume with the kernels; path begins with "/".  NULL: nobody knows. */
	bool (*exists)(const void *ctx, const char *path);
	const void *ctx;
};

/* Append text with the subvolume gone from the front of all paths in it; true
 * when there were any.
 */
bool boot_paths_strip(struct slice text, const char *subvolume, struct text *out);

/* Append a word that is a path ("($root)'/boot/grub'"), with "/boot" put in front or
 * taken away when only so it leads to something; true when it was changed.
 */
bool boot_paths_rewrite(struct slice word, const struct boot_paths *paths, struct text *out);

#endif
