/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_XATTR_H
#define CCSNAP_EXT4_XATTR_H

#include "ext4/model.h"
#include "ext4/volmap.h"

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

#define XATTR_ACL_ACCESS  "system.posix_acl_access"
#define XATTR_ACL_DEFAULT "system.posix_acl_default"

struct xattr_image {
	uint8_t inode[XATTR_INODE_BYTES];
	bool has_block;
	uint8_t block[MODEL_BLOCK]; /* h_refcount 1, h_checksum 0: see xattr_block_seal */

	/* Large values of the set, where they are in the block, too. */
	struct volmap_loan lent[VOLMAP_LOANS_MAX];
	size_t lent_count;

	/* Bits that the file's mode must not keep.  With an ACL, a mode's group
	 * bits are the ACL's mask; once it is lost they are the owning group's
	 * rights, which may be fewer.
	 */
	uint32_t mode_cut;
};

/* dropped(ctx, name, why) is called for each attribute that cannot be stored:
 * one that no kernel handler shows, or too large.  Of too many, those that matter
 * least go first: user.*, trusted.*, others, and only then capabilities, SELinux
 * labels and ACLs; of equal ones the largest.
 */
int xattr_encode(const struct model_xattr_set *set, struct xattr_image *out,
		 void (*dropped)(void *ctx, const char *name, const char *why), void *ctx,
		 struct err *err);

/* The final reference count, and the checksum, which is over the block's place. */
void xattr_block_seal(uint8_t block[MODEL_BLOCK], uint32_t refcount, uint64_t place,
		      uint32_t fs_seed);

#endif
