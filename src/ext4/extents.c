// SPDX-License-Identifier: Apache-2.0
#include "ext4/extents.h"

#include "base/bytes.h"
#include "base/size.h"

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext2fs.h>
#include <ext2fs/ext3_extents.h>

enum {
	NODE_SIZE = 4096,
	HEADER_SIZE = sizeof(struct ext3_extent_header),
	ENTRY_SIZE = sizeof(struct ext3_extent),
	CHECKSUM_SIZE = sizeof(struct ext3_extent_tail),
	PER_NODE = (NODE_SIZE - HEADER_SIZE - CHECKSUM_SIZE) / ENTRY_SIZE,
	CHECKSUM_AT = HEADER_SIZE + PER_NODE * ENTRY_SIZE,
};

_Static_assert(sizeof(struct ext3_extent_idx) == ENTRY_SIZE, "both kinds have one size");
_Static_assert(HEADER_SIZE + EXTENTS_IN_INODE * ENTRY_SIZE == 60, "the root fills i_block");

/* What the nodes one level higher stand for: extents, or the nodes below. */
struct level {
	const struct placed_extent *extents; /* NULL: nodes */
	const uint8_t *nodes;
	const uint64_t *blocks;
	size_t count;
	uint16_t depth;
};

uint64_t extents_tree_blocks(uint64_t extents)
{
	uint64_t blocks = 0;

	for (uint64_t n = extents; n > EXTENTS_IN_INODE; blocks += n)
		n = div_up(n, PER_NODE);
	return blocks;
}

static void put_extent(uint8_t *at, const struct placed_extent *extent)
{
	const struct ext3_extent disk = {
		.ee_block = htole32(extent->logical),
		.ee_len = htole16((uint16_t)extent->count),
		.ee_start_hi = htole16((uint16_t)(extent->physical >> 32)),
		.ee_start = htole32((uint32_t)extent->physical),
	};

	memcpy(at, &disk, sizeof disk);
}

/* A node's key is that of its first entry; both kinds begin with it. */
static void put_index(uint8_t *at, const uint8_t *node, uint64_t block)
{
	const struct ext3_extent_idx disk = {
		.ei_block = htole32(get_le32(node + HEADER_SIZE)),
		.ei_leaf = htole32((uint32_t)block),
		.ei_leaf_hi = htole16((uint16_t)(block >> 32)),
	};

	memcpy(at, &disk, sizeof disk);
}

/* The entries [first, first + count) of the level. */
static void put_node(uint8_t *node, const struct level *level, size_t first, size_t count,
		     uint16_t max)
{
	const struct ext3_extent_header header = {
		.eh_magic = htole16(EXT3_EXT_MAGIC),
		.eh_entries = htole16((uint16_t)count),
		.eh_max = htole16(max),
		.eh_depth = htole16(level->depth),
	};
	uint8_t *at = node + HEADER_SIZE;

	memcpy(node, &header, sizeof header);
	for (size_t i = first; i < first + count; i++, at += ENTRY_SIZE) {
		if (level->extents)
			put_extent(at, &level->extents[i]);
		else
			put_index(at, level->nodes + i * NODE_SIZE, level->blocks[i]);
	}
}

static void seal_node(uint8_t *node, uint32_t seed)
{
	put_le32(node + CHECKSUM_AT, ext2fs_crc32c_le(seed, node, CHECKSUM_AT));
}

static size_t put_level(uint8_t *nodes, const struct level *level, uint32_t seed)
{
	size_t count = 0;

	for (size_t first = 0; first < level->count; first += PER_NODE, count++) {
		uint8_t *node = nodes + count * NODE_SIZE;

		memset(node, 0, NODE_SIZE);
		put_node(node, level, first, MIN((size_t)PER_NODE, level->count - first), PER_NODE);
		seal_node(node, seed);
	}
	return count;
}

void extents_encode(const struct placed_extent *extents, size_t count, const uint64_t *blocks,
		    uint32_t checksum_seed, uint8_t root[60], uint8_t *nodes)
{
	static const struct placed_extent none;
	struct level level = { .extents = count ? extents : &none, .count = count };

	while (level.count > EXTENTS_IN_INODE) {
		const size_t made = put_level(nodes, &level, checksum_seed);

		level = (struct level){ .nodes = nodes,
					.blocks = blocks,
					.count = made,
					.depth = (uint16_t)(level.depth + 1) };
		nodes += made * NODE_SIZE;
		blocks += made;
	}
	memset(root, 0, 60);
	put_node(root, &level, 0, level.count, EXTENTS_IN_INODE);
}
