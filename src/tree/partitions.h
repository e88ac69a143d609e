/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_PARTITIONS_H
#define CCSNAP_TREE_PARTITIONS_H

#include <stddef.h>
#include <stdint.h>

/* Where everything lies on the disk:
 *
 *   GPT | BIOS boot | ESP | /boot | root | backup GPT
 *
 * The root comes last, so that it can grow, and is partition 1, so that
 * configuration that says /dev/vda1 finds it; BIOS boot is 14, the ESP 15, /boot
 * 16.  A part that is not wanted takes no room.
 */
struct err;
struct ext4;
struct names;

enum region_kind { REGION_MEMORY, REGION_FILE, REGION_EXT4 };

struct region {
	uint64_t offset, length;
	enum region_kind kind;
	const uint8_t *bytes; /* MEMORY */
	int fd;		      /* FILE: at its offset 0 */
	struct ext4 *fs;
};

struct partitions {
	struct region at[8]; /* ascending, none empty; zeros in between */
	size_t count;
	uint64_t disk_size;
	uint8_t *head, *tail; /* the partition table; owned */
};

struct partitions_config {
	unsigned sector_size;
	const struct names *names;
	const char *root_type;	  /* GPT's */
	const uint8_t *boot_code; /* 440 bytes; NULL without BIOS boot */
	const uint8_t *core;
	size_t core_len;
	int esp_fd;	   /* -1: zeros, for a dry run */
	uint64_t esp_size; /* 0: none */
	struct ext4 *boot; /* NULL: none */
	struct ext4 *root;
};

/* Sector (of 512 bytes) of the BIOS boot partition. */
#define PARTITIONS_BIOS_BOOT_LBA 2048u

/* What the disk has besides the root filesystem. */
uint64_t partitions_around(const struct partitions_config *cfg);

int partitions_make(const struct partitions_config *cfg, struct partitions *out, struct err *err);
void partitions_free(struct partitions *parts);

#endif
