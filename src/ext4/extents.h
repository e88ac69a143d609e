/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_EXTENTS_H
#define CCSNAP_EXT4_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

/* The extent tree of an inode: built bottom-up, full nodes.  On-disk form:
 * Linux Documentation/filesystems/ext4/ifork.rst.  Pure: the caller gives the
 * blocks for the tree's nodes and stores what comes out.
 */
struct err;

struct placed_extent {
	uint32_t logical, count; /* blocks of the file; count 1 to 32768 */
	uint64_t physical;	 /* below 2^48 */
};

#define EXTENTS_IN_INODE  4
#define EXTENT_LENGTH_MAX 32768u

/* How many blocks the tree needs besides the inode. */
uint64_t extents_tree_blocks(uint64_t extents);

/* root: the inode's 60 bytes.  blocks[extents_tree_blocks(count)]: where the
 * nodes go, and nodes (as many times 4096 bytes) what goes there, checksums
 * in.  extents ascend by logical block and do not overlap.
 */
void extents_encode(const struct placed_extent *extents, size_t count, const uint64_t *blocks,
		    uint32_t checksum_seed, uint8_t root[60], uint8_t *nodes);

#endif
