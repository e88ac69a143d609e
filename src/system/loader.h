/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_LOADER_H
#define CCSNAP_SYSTEM_LOADER_H

#include <stdint.h>

/* The boot loader that a source's EFI system partition has on the fallback path.
 * GRUB's own image knows only the filesystem and the UUID that it was made for, so
 * it may be of no use in the image; one that is signed finds its configuration by
 * path and UUID search, and nobody else could make one.
 */
struct edit;
struct err;

enum loader_kind {
	LOADER_NONE,	 /* none, or no program */
	LOADER_UNKNOWN,	 /* may depend on the disk that it came from */
	LOADER_PORTABLE, /* signed, or systemd-boot */
};

/* EFI/BOOT/name in the directory node esp (MODEL_NONE: none), in any case. */
int loader_look(const struct edit *e, uint32_t esp, const char *name, enum loader_kind *kind,
		struct err *err);

#endif
