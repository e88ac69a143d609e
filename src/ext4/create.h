/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_CREATE_H
#define CCSNAP_EXT4_CREATE_H

#include <ext2fs/ext2fs.h>
#include <stdint.h>

/* The filesystem before anything is in it: superblocks, groups, journal,
 * resize inode.  Its features are fixed here, whatever the library or its
 * configuration would choose, and no byte depends on the clock or the
 * environment.
 */
struct err;
struct volmap;

#define EXT4_BLOCKS_PER_GROUP 32768u
#define EXT4_BLOCKS_MAX	      (UINT64_C(1) << 32)
#define EXT4_INO_LOST_FOUND   11u

struct create_config {
	uint64_t blocks;
	uint32_t inodes; /* at least */
	const uint8_t *uuid;
	const char *label; /* NULL: none */
	uint32_t time;
};

struct created {
	ext2_filsys fs; /* ext2fs_free, before the map */
	struct volmap *map;
};

enum create_outcome { CREATE_FAILED = -1, CREATE_DONE, CREATE_TOO_SMALL };

/* May have a few blocks less than asked for: a last group too small for its
 * own tables is left off.  Only inodes 1 to 10 are in use, the root's still empty.
 */
enum create_outcome create_filesystem(const struct create_config *cfg, struct created *out,
				      struct err *err);
void created_free(struct created *c);

/* -1, with the cause if it is known (fs may be NULL), else libext2fs' words for
 * the code.
 */
int ext2_failed(struct err *err, ext2_filsys fs, errcode_t code, const char *what);

#endif
