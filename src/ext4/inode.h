/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_INODE_H
#define CCSNAP_EXT4_INODE_H

#include "ext4/model.h"

#include <stdbool.h>
#include <stdint.h>

/* An inode of 256 bytes.  On-disk form: Linux
 * Documentation/filesystems/ext4/inodes.rst.  Pure.
 */
#define INODE_SIZE 256u

/* Seeds of metadata_csum (Linux Documentation/filesystems/ext4/checksums.rst): of
 * crc32c from the filesystem's UUID; for what belongs to an inode also from its
 * number and generation, which is always 0 here.
 */
uint32_t checksum_seed_fs(const uint8_t uuid[16]);
uint32_t checksum_seed_inode(uint32_t fs_seed, uint32_t ino);

struct inode_config {
	const struct model_node *node;
	uint64_t size; /* bytes; of a directory its blocks */
	uint32_t links;
	uint64_t blocks; /* of 4096 bytes, with those of tree and attributes */
	const uint8_t
		*i_block; /* 60 bytes: extents, a short link's target; NULL: none or a device */
	bool extents;	  /* i_block is an extent tree */
	bool indexed;
	uint64_t xattr_block;	     /* 0: none */
	const uint8_t *xattrs;	     /* XATTR_INODE_BYTES, or NULL */
	uint32_t mode_cut;	     /* bits of the node's mode that it does not get */
	uint32_t ino, checksum_seed; /* of this inode */
};

/* True when the times are exact, false when one was clamped. */
bool inode_encode(const struct inode_config *cfg, uint8_t out[INODE_SIZE]);

#endif
