/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_GPT_H
#define CCSNAP_TREE_GPT_H

#include <stddef.h>
#include <stdint.h>

/* A GUID partition table (UEFI specification 2.10, chapter 5) with a protective
 * MBR, primary and backup.  Pure.
 */
struct gpt_partition {
	unsigned number;	 /* 1 to 128: the slot */
	const char *type;	 /* GUID as text */
	uint8_t guid[16];	 /* as RFC 4122 writes it, big-endian */
	const char *name;	 /* ASCII, up to 36 */
	uint64_t offset, length; /* bytes, multiples of the sector size */
};

extern const char gpt_type_bios_boot[], gpt_type_esp[], gpt_type_linux[], gpt_type_xbootldr[],
	gpt_type_root_x86_64[], gpt_type_root_arm64[];

struct gpt_config {
	uint64_t disk_size;   /* bytes, a multiple of the sector size */
	unsigned sector_size; /* 512 or 4096 */
	uint8_t disk_guid[16];
	const struct gpt_partition *partitions;
	size_t count;
	const uint8_t *boot_code; /* 440 bytes, or NULL */
};

/* Bytes of the table at the disk's beginning and at its end. */
size_t gpt_head_size(unsigned sector_size);
size_t gpt_tail_size(unsigned sector_size);

void gpt_encode(const struct gpt_config *cfg, uint8_t *head, uint8_t *tail);

#endif
