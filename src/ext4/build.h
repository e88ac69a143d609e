/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_BUILD_H
#define CCSNAP_EXT4_BUILD_H

#include "ext4/alloc.h"
#include "ext4/inode.h"
#include "ext4/layout.h"
#include "ext4/order.h"
#include "ext4/runs.h"
#include "ext4/shares.h"
#include "ext4/volmap.h"
#include "ext4/xattr.h"

#include <ext2fs/ext2fs.h>
#include <stdbool.h>
#include <stdint.h>

/* What the files of struct ext4 (ext4/ext4.h) share.
 *
 *   order   which nodes, their inode numbers, what cannot be      order.c
 *   need    how many blocks they take                             fit.c
 *   fit     the smallest empty filesystem with room for them      fit.c, create.c
 *   place   blocks for each, their metadata into the map          place.c
 *   revise  one of them changes or goes                           revise.c
 */
struct account;
struct err;

/* One block of inodes on its way into the map. */
struct inode_buffer {
	uint64_t block; /* 0: none */
	uint8_t bytes[MODEL_BLOCK];
};

/* The attributes of the last set; neighbours in a tree mostly have the same. */
struct set_image {
	bool valid;
	uint32_t set, dropped;
	struct xattr_image image;
};

struct node_list {
	uint32_t *at;
	size_t len, cap;
};

struct ext4 {
	struct model *model;
	struct account *account;
	uint32_t time, seed; /* seed: of the checksums */
	uint64_t size;	     /* of the partition in bytes */

	struct order order;
	ext2_filsys fs;
	struct volmap *map;
	struct alloc alloc;
	struct runs runs;
	struct shares shares; /* while building */

	struct inode_buffer inodes;
	struct set_image attributes;
	struct entry_list entries;
	struct node_list lossy; /* nodes that are not as they were found */
};

/* Of a lost+found that is made here, as mke2fs has it. */
#define LOST_FOUND_BLOCKS 4u

/* At most so many blocks are needed for what the order holds. */
int need_blocks(const struct order *o, uint64_t *blocks, struct err *err);

/* fs->fs, map, alloc, size: empty, with room for need blocks and what the
 * configuration asks for.
 */
struct ext4_config;
int fit(struct ext4 *fs, const struct ext4_config *cfg, uint64_t need, struct err *err);

/* All nodes. */
int place_all(struct ext4 *fs, struct err *err);

/* One node's bytes, extent tree and inode at the places of the layout; the
 * runs of a file that is read from outside are appended to runs.
 */
int place_file(struct ext4 *fs, uint32_t node, const struct layout *layout, struct runs *runs,
	       struct err *err);

/* fs->attributes becomes that of the set. */
int attributes_load(struct ext4 *fs, uint32_t set, struct err *err);

/* Inodes as they are in the map. */
void inode_load(const struct ext4 *fs, uint32_t ino, uint8_t bytes[INODE_SIZE]);
int inodes_flush(struct ext4 *fs, struct err *err);

/* Enter in the account what of the node the inode does not hold. */
bool inode_is_lossy(const struct model_node *n, const uint8_t inode[INODE_SIZE]);
int loss_account(struct ext4 *fs, uint32_t node, struct err *err);

/* Blocks that an ordinary user of the running system cannot have. */
uint64_t blocks_withheld(ext2_filsys fs);

#endif
