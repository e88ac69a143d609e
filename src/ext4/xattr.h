/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_XATTR_H
#define CCSNAP_EXT4_XATTR_H

#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Extended attributes on disk: as many as fit in the inode, the rest in one
 * block that inodes with equal ones share.  On-disk form: Linux
 * Documentation/filesystems/ext4/attributes.rst.  Pure.
 */
struct err;

/* Behind the 160 bytes of a 256-byte inode with i_extra_isize 32. */
#define XATTR_INODE_BYTES  96u
#define XATTR_BLOCK_SHARES 1024u /* more inodes take another block */

struct xattr_image {
	uint8_t inode[XATTR_INODE_BYTES];
	bool has_block;
	uint8_t block[4096]; /* h_refcount 1, h_checksum 0: see xattr_block_seal */
};

/* dropped(ctx, name, why) is called for each attribute that cannot be stored:
 * one that no kernel handler shows, or too large.  Of too many, the largest are
 * dropped.
 */
int xattr_encode(const struct model_xattr_set *set, struct xattr_image *out,
		 void (*dropped)(void *ctx, const char *name, const char *why), void *ctx,
		 struct err *err);

/* The final reference count, and the checksum, which is over the block's place. */
void xattr_block_seal(uint8_t block[4096], uint32_t refcount, uint64_t place, uint32_t fs_seed);

#endif
