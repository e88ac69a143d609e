/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUB_H
#define CCSNAP_SYSTEM_GRUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* GRUB's images, made by grub-mkimage (or grub2-mkimage) from the tree's own
 * modules, or the host's.  Each finds the filesystem by UUID and runs the
 * grub.cfg on it.  Nothing is written to disk.
 */
struct boot;
struct edit;
struct err;

struct grub_modules {
	int fd;	      /* of the directory; -1: there is none */
	bool of_tree; /* the tree's own, not the host's */
	bool has_blscfg;
};

struct grub {
	struct grub_modules bios, efi;
};

/* Looks for usr/lib/grub/PLATFORM and the like: in the tree, then on the host.
 * What is not found is no error.  Neither is a missing grub-mkimage: can_make is
 * false then.
 */
int grub_find(struct edit *e, const struct boot *boot, struct grub *out, bool *can_make,
	      struct err *err);
void grub_free(struct grub *grub);

struct grub_image {
	uint8_t *bytes; /* malloc */
	size_t len;
};

/* uuid: of the filesystem with the grub directory; prefix: where that is on it
 * ("/boot/grub", "/grub").
 */
struct grub_config {
	const char *uuid, *prefix;
};

int grub_make_efi(const struct grub *grub, const struct boot *boot, const struct grub_config *cfg,
		  struct grub_image *out, struct err *err);

/* core: for the BIOS boot partition, which begins at sector lba (of 512 bytes) of
 * the disk; boot: the first 440 bytes of the disk.
 */
int grub_make_bios(const struct grub *grub, const struct boot *boot, const struct grub_config *cfg,
		   uint64_t lba, uint8_t boot_code[440], struct grub_image *core, struct err *err);

#endif
