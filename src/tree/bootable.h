/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_BOOTABLE_H
#define CCSNAP_TREE_BOOTABLE_H

#include "system/boot.h"
#include "system/grub.h"
#include "tree/tree.h"

/* What makes a tree's disk boot: whether it can, and the parts that are not in
 * its root filesystem.
 */
struct edit;
struct names;
struct walk_totals;

struct bootable {
	struct boot boot;
	struct grub grub;
	bool bios, uefi; /* how the image will boot; neither: a data disk */
	bool makes_efi;	 /* the source's ESP has no loader of its own */

	uint8_t boot_code[440];
	struct grub_image core;
	int esp_fd; /* -1: not made */
	uint64_t esp_size;
};

struct bootable_config {
	struct edit *edit;
	const struct walk_totals *walked;
	const struct names *names; /* for bootable_make */
	const char *source;	   /* for messages */
	enum tree_boot wanted;
	unsigned sector_size;
};

void bootable_init(struct bootable *b);
void bootable_free(struct bootable *b);

/* ERR_REFUSED when it must boot and cannot; a warning when it should. */
int bootable_decide(struct bootable *b, const struct bootable_config *cfg, struct err *err);

/* The sizes without the bytes: for a dry run, which starts no program. */
void bootable_imagine(struct bootable *b);
int bootable_make(struct bootable *b, const struct bootable_config *cfg, struct err *err);

#endif
