// SPDX-License-Identifier: Apache-2.0
#include "ext4/dir.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext2fs.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
	BLOCK = 4096,
	TAIL = 12,	     /* a false entry at the end that holds the checksum */
	LEAF = BLOCK - TAIL, /* for entries */
	DOTS = 24,	     /* "." and "..", at the shortest */
	HEAD = 8,	     /* of an entry, before its name */

	/* Where the index begins in its root and in an inner node, and how
	 * many slots fit; 8 bytes behind them hold the checksum.
	 */
	SLOT = 8,
	ROOT_BASE = 32,
	ROOT_SLOTS = (BLOCK - ROOT_BASE - 8) / SLOT,
	NODE_BASE = 8,
	NODE_SLOTS = (BLOCK - NODE_BASE - 8) / SLOT,
	LEAVES_MAX = ROOT_SLOTS * NODE_SLOTS,
};

/* struct dx_root_info */
enum { ROOT_VERSION = 28, ROOT_INFO_LENGTH = 29, ROOT_LEVELS = 30 };

static size_t record_length(size_t name_length)
{
	return round_up(HEAD + name_length, 4);
}

static uint8_t file_type(uint32_t mode)
{
	static const uint8_t types[16] = {
		[S_IFREG >> 12] = EXT2_FT_REG_FILE, [S_IFDIR >> 12] = EXT2_FT_DIR,
		[S_IFCHR >> 12] = EXT2_FT_CHRDEV,   [S_IFBLK >> 12] = EXT2_FT_BLKDEV,
		[S_IFIFO >> 12] = EXT2_FT_FIFO,	    [S_IFSOCK >> 12] = EXT2_FT_SOCK,
		[S_IFLNK >> 12] = EXT2_FT_SYMLINK,
	};

	return types[mode >> 12 & 15];
}

static void put_entry(uint8_t *at, const struct dir_entry *entry, size_t length)
{
	put_le32(at, entry->ino);
	put_le16(at + 4, (uint16_t)length);
	at[6] = entry->len;
	at[7] = file_type(entry->mode);
	memcpy(at + HEAD, entry->name, entry->len);
}

static void put_dots(uint8_t *block, const struct dir_config *cfg, size_t second_length)
{
	const struct dir_entry self = { ".", 1, cfg->ino, S_IFDIR };
	const struct dir_entry parent = { "..", 2, cfg->parent_ino, S_IFDIR };

	put_entry(block, &self, DOTS / 2);
	put_entry(block + DOTS / 2, &parent, second_length);
}

/* The last entry reaches up to the tail. */
static void seal_entries(uint8_t *block, size_t last, uint32_t seed)
{
	uint8_t *tail = block + LEAF;

	put_le16(block + last + 4, (uint16_t)(LEAF - last));
	put_le16(tail + 4, TAIL);
	put_le16(tail + 6, EXT2_DIR_NAME_LEN_CSUM);
	put_le32(tail + 8, ext2fs_crc32c_le(seed, block, LEAF));
}

static int blocks_alloc(struct dir_blocks *out, size_t count, struct err *err)
{
	out->bytes = calloc(count, BLOCK);
	if (!out->bytes)
		return err_nomem(err);
	out->count = (uint32_t)count;
	return 0;
}

void dir_blocks_free(struct dir_blocks *blocks)
{
	free(blocks->bytes);
	*blocks = (struct dir_blocks){ 0 };
}

static int linear_encode(const struct dir_config *cfg, struct dir_blocks *out, struct err *err)
{
	size_t last = DOTS / 2, at = DOTS;

	if (blocks_alloc(out, MAX(cfg->min_blocks, 1u), err))
		return -1;
	put_dots(out->bytes, cfg, DOTS / 2);
	for (size_t i = 0; i < cfg->count; i++) {
		last = at;
		at += record_length(cfg->entries[i].len);
		put_entry(out->bytes + last, &cfg->entries[i], at - last);
	}
	seal_entries(out->bytes, last, cfg->checksum_seed);
	for (size_t i = 1; i < out->count; i++)
		seal_entries(out->bytes + i * BLOCK, 0, cfg->checksum_seed);
	return 0;
}

struct hashed {
	uint32_t hash, minor;
	const struct dir_entry *entry;
};

static int hashed_compare(const void *left, const void *right)
{
	const struct hashed *a = left, *b = right;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* The greatest hash is the kernel's mark for the end of a directory; it puts
 * a name that has it one step lower (__ext4fs_dirhash), libext2fs does not.
 */
#define HASH_END 0xfffffffeu

static int hash_name(const struct dir_config *cfg, struct hashed *one, struct err *err)
{
	uint32_t seed[4];

	for (size_t i = 0; i < 4; i++)
		seed[i] = le32toh(cfg->hash_seed[i]);
	if (ext2fs_dirhash2(EXT2_HASH_HALF_MD4, one->entry->name, one->entry->len, NULL, 0, seed,
			    &one->hash, &one->minor))
		return err_set(err, ERR_FAILED, "cannot compute the hash of a name");
	if (one->hash == HASH_END)
		one->hash -= 2;
	return 0;
}

static struct hashed *hash_entries(const struct dir_config *cfg, struct err *err)
{
	autofree struct hashed *list = calloc(cfg->count, sizeof *list);

	if (!list) {
		err_nomem(err);
		return NULL;
	}
	for (size_t i = 0; i < cfg->count; i++) {
		list[i].entry = &cfg->entries[i];
		if (hash_name(cfg, &list[i], err))
			return NULL;
	}
	qsort(list, cfg->count, sizeof *list, hashed_compare);
	return steal(&list);
}

/* A hash tree: block 0 is its root, then come the inner nodes (if the root
 * has not enough slots for all leaves), then the leaves.
 */
struct htree {
	const struct dir_config *cfg;
	const struct hashed *list;
	size_t leaves, nodes;
	uint8_t *blocks;
};

/* The first entry that does not fit in the leaf which begins with entry first. */
static size_t leaf_end(const struct htree *tree, size_t first)
{
	size_t at = 0, i = first;

	for (; i < tree->cfg->count; i++) {
		at += record_length(tree->list[i].entry->len);
		if (at > LEAF)
			break;
	}
	return i;
}

static size_t nodes_for(uint64_t leaves)
{
	return leaves <= ROOT_SLOTS ? 0 : div_up(leaves, NODE_SLOTS);
}

static void put_leaf(const struct htree *tree, size_t number, size_t first, size_t end)
{
	uint8_t *block = tree->blocks + (1 + tree->nodes + number) * BLOCK;
	size_t at = 0, last = 0;

	for (size_t i = first; i < end; i++) {
		last = at;
		at += record_length(tree->list[i].entry->len);
		put_entry(block + last, tree->list[i].entry, at - last);
	}
	seal_entries(block, last, tree->cfg->checksum_seed);
}

/* The lowest bit says: look here, too, for names with the hash that the leaf
 * before this one ends with.
 */
static uint32_t leaf_key(const struct htree *tree, size_t first)
{
	const uint32_t hash = tree->list[first].hash;

	return first > 0 && tree->list[first - 1].hash == hash ? hash | 1 : hash;
}

/* Slot 0 has no key: its place is that of the two counters. */
static void put_slot(uint8_t *base, size_t slot, uint32_t key, size_t block)
{
	if (slot > 0)
		put_le32(base + slot * SLOT, key);
	put_le32(base + slot * SLOT + 4, (uint32_t)block);
}

static void index_leaf(const struct htree *tree, size_t number, uint32_t key)
{
	const size_t block = 1 + tree->nodes + number;
	const size_t node = number / NODE_SLOTS, slot = number % NODE_SLOTS;
	uint8_t *root = tree->blocks + ROOT_BASE;

	if (tree->nodes == 0) {
		put_slot(root, number, key, block);
		return;
	}
	put_slot(tree->blocks + (1 + node) * BLOCK + NODE_BASE, slot, key, block);
	if (slot == 0)
		put_slot(root, node, key, 1 + node);
}

/* The sum is over the slots in use and over the tail with zeros in it. */
static void seal_index(uint8_t *block, size_t base, size_t limit, size_t count, uint32_t seed)
{
	static const uint8_t zeros[8];
	uint32_t sum;

	put_le16(block + base, (uint16_t)limit);
	put_le16(block + base + 2, (uint16_t)count);
	sum = ext2fs_crc32c_le(seed, block, base + count * SLOT);
	sum = ext2fs_crc32c_le(sum, zeros, sizeof zeros);
	put_le32(block + base + limit * SLOT + 4, sum);
}

static void put_root(const struct htree *tree)
{
	uint8_t *block = tree->blocks;

	put_dots(block, tree->cfg, BLOCK - DOTS / 2);
	block[ROOT_VERSION] = EXT2_HASH_HALF_MD4;
	block[ROOT_INFO_LENGTH] = 8;
	block[ROOT_LEVELS] = tree->nodes > 0;
	seal_index(block, ROOT_BASE, ROOT_SLOTS, tree->nodes ? tree->nodes : tree->leaves,
		   tree->cfg->checksum_seed);
}

/* An inner node looks like one unused entry to those who cannot read it. */
static void put_nodes(const struct htree *tree)
{
	for (size_t i = 0; i < tree->nodes; i++) {
		uint8_t *block = tree->blocks + (1 + i) * BLOCK;

		put_le16(block + 4, BLOCK);
		seal_index(block, NODE_BASE, NODE_SLOTS,
			   MIN((size_t)NODE_SLOTS, tree->leaves - i * NODE_SLOTS),
			   tree->cfg->checksum_seed);
	}
}

static void htree_fill(const struct htree *tree)
{
	for (size_t first = 0, end, number = 0; first < tree->cfg->count; first = end, number++) {
		end = leaf_end(tree, first);
		put_leaf(tree, number, first, end);
		index_leaf(tree, number, leaf_key(tree, first));
	}
	put_nodes(tree);
	put_root(tree);
}

static int htree_encode(const struct dir_config *cfg, struct dir_blocks *out, struct err *err)
{
	autofree struct hashed *list = hash_entries(cfg, err);
	struct htree tree = { .cfg = cfg, .list = list };

	if (!list)
		return -1;
	for (size_t first = 0; first < cfg->count; first = leaf_end(&tree, first))
		tree.leaves++;
	if (tree.leaves > LEAVES_MAX)
		return err_set(err, ERR_REFUSED,
			       "directory too large for ext4: %zu names; exclude it or divide it",
			       cfg->count);
	tree.nodes = nodes_for(tree.leaves);
	if (blocks_alloc(out, 1 + tree.nodes + tree.leaves, err))
		return -1;
	tree.blocks = out->bytes;
	htree_fill(&tree);
	out->indexed = true;
	return 0;
}

struct records {
	uint64_t total;
	size_t largest;
};

static struct records measure(const struct dir_entry *entries, size_t count)
{
	struct records sum = { 0, 0 };

	for (size_t i = 0; i < count; i++) {
		const size_t length = record_length(entries[i].len);

		sum.total += length;
		sum.largest = MAX(sum.largest, length);
	}
	return sum;
}

static bool is_linear(const struct records *records)
{
	return records->total <= LEAF - DOTS;
}

int dir_encode(const struct dir_config *cfg, struct dir_blocks *out, struct err *err)
{
	const struct records records = measure(cfg->entries, cfg->count);

	*out = (struct dir_blocks){ 0 };
	return is_linear(&records) ? linear_encode(cfg, out, err) : htree_encode(cfg, out, err);
}

/* A leaf ends where the next entry does not fit, so all but the last lack
 * less than the largest entry, whatever the order.
 */
uint64_t dir_blocks_max(const struct dir_entry *entries, size_t count)
{
	const struct records records = measure(entries, count);
	uint64_t leaves;

	if (is_linear(&records))
		return 1;
	leaves = 1 + records.total / (LEAF + 4 - records.largest);
	return 1 + leaves + nodes_for(leaves);
}
