/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_DIR_H
#define CCSNAP_EXT4_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The blocks of a directory: one linear block, or a hash tree (htree) as soon as
 * a second is needed, since the kernel makes an index only at that step.
 * On-disk form: Linux Documentation/filesystems/ext4/directory.rst.  Pure: no
 * filesystem is touched.
 */
struct err;

struct dir_entry {
	const char *name; /* len bytes, 1 to 255 */
	uint8_t len;
	uint32_t ino;
	uint32_t mode; /* only the type counts */
};

struct dir_config {
	uint32_t ino, parent_ino;
	const struct dir_entry *entries; /* without "." and ".."; sorted by bytes */
	size_t count;
	uint32_t hash_seed[4];	/* s_hash_seed, as on disk */
	uint32_t checksum_seed; /* checksum_seed_inode */
	uint32_t min_blocks;	/* pad with empty blocks (lost+found); linear only */
};

struct dir_blocks {
	uint8_t *bytes; /* count blocks of 4096 (malloc); the checksums are in */
	uint32_t count;
	bool indexed; /* the inode needs EXT4_INDEX_FL */
};

int dir_encode(const struct dir_config *cfg, struct dir_blocks *out, struct err *err);
void dir_blocks_free(struct dir_blocks *blocks);

/* How many blocks that will be at the most, and exactly when it is 1.  mode of
 * the entries is not looked at, nor are the inode numbers.
 */
uint64_t dir_blocks_max(const struct dir_entry *entries, size_t count);

#endif
