// SPDX-License-Identifier: Apache-2.0
#include "ext4/build.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "ext4/create.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define I_BLOCK_SIZE 60u

/* One inode with all that belongs to it. */
struct item {
	const struct model_node *node;
	uint32_t ino, links;
	uint64_t size;
	const uint8_t *bytes; /* of its blocks, NULL when they are read from outside */
	bool indexed;
	const struct layout *layout;
};

/* --- inodes ---------------------------------------------------------------------- */

static uint64_t inode_offset(const struct ext4 *fs, uint32_t ino)
{
	const uint32_t per_group = fs->fs->super->s_inodes_per_group;
	const dgrp_t group = (ino - 1) / per_group;

	return ext2fs_inode_table_loc(fs->fs, group) * MODEL_BLOCK +
	       (uint64_t)((ino - 1) % per_group) * INODE_SIZE;
}

int inodes_flush(struct ext4 *fs, struct err *err)
{
	const uint64_t block = fs->inodes.block;

	fs->inodes.block = 0;
	return block ? volmap_put(fs->map, block, fs->inodes.bytes, err) : 0;
}

static int inode_store(struct ext4 *fs, uint32_t ino, const uint8_t bytes[INODE_SIZE],
		       struct err *err)
{
	const uint64_t offset = inode_offset(fs, ino), block = offset / MODEL_BLOCK;

	if (fs->inodes.block != block) {
		if (inodes_flush(fs, err) < 0)
			return -1;
		volmap_get(fs->map, block, fs->inodes.bytes);
		fs->inodes.block = block;
	}
	memcpy(fs->inodes.bytes + offset % MODEL_BLOCK, bytes, INODE_SIZE);
	return 0;
}

void inode_load(const struct ext4 *fs, uint32_t ino, uint8_t bytes[INODE_SIZE])
{
	const uint64_t offset = inode_offset(fs, ino);
	uint8_t block[MODEL_BLOCK];

	volmap_get(fs->map, offset / MODEL_BLOCK, block);
	memcpy(bytes, block + offset % MODEL_BLOCK, INODE_SIZE);
}

/* --- attributes ------------------------------------------------------------------ */

static void count_dropped(void *ctx, const char *name, const char *why)
{
	struct set_image *image = ctx;

	(void)name;
	(void)why;
	image->dropped++;
}

int attributes_load(struct ext4 *fs, uint32_t set, struct err *err)
{
	struct set_image *a = &fs->attributes;

	if (a->valid && a->set == set)
		return 0;
	a->valid = false;
	a->set = set;
	a->dropped = 0;
	if (xattr_encode(&fs->model->sets[set], &a->image, count_dropped, a, err) < 0)
		return -1;
	a->valid = true;
	return 0;
}

static int take_attributes(struct ext4 *fs, uint32_t set, struct layout *layout, struct err *err)
{
	if (set == 0)
		return 0;
	if (attributes_load(fs, set, err) < 0)
		return -1;
	if (!fs->attributes.image.has_block)
		return 0;
	return shares_take(&fs->shares, &fs->alloc, fs->map, set, &fs->attributes.image,
			   &layout->xattr_block, err);
}

/* --- bytes and trees --------------------------------------------------------------- */

/* Zeros are stored, too: after the first emission the disk may hold another
 * file's old bytes there, and only what is stored is told as a change.
 */
static int put_block(struct volmap *map, uint64_t place, const uint8_t *bytes, struct err *err)
{
	if (volmap_put(map, place, bytes, err) < 0)
		return -1;
	return volmap_has(map, place) || volmap_edit(map, place, err) ? 0 : -1;
}

/* The last block's end is zero. */
static int put_bytes(struct ext4 *fs, const struct item *item, struct err *err)
{
	for (size_t i = 0; i < item->layout->len; i++) {
		const struct placed_extent *e = &item->layout->extents[i];

		for (uint32_t k = 0; k < e->count; k++) {
			const uint64_t offset = ((uint64_t)e->logical + k) * MODEL_BLOCK;
			uint8_t block[MODEL_BLOCK] = { 0 };

			memcpy(block, item->bytes + offset, MIN(MODEL_BLOCK, item->size - offset));
			if (put_block(fs->map, e->physical + k, block, err) < 0)
				return -1;
		}
	}
	return 0;
}

static int put_tree(struct ext4 *fs, const struct item *item, uint8_t root[I_BLOCK_SIZE],
		    struct err *err)
{
	const struct layout *layout = item->layout;
	autofree uint8_t *nodes = malloc((layout->tree_len + 1) * MODEL_BLOCK);

	if (!nodes)
		return err_nomem(err);
	extents_encode(layout->extents, layout->len, layout->tree,
		       checksum_seed_inode(fs->seed, item->ino), root, nodes);
	for (size_t i = 0; i < layout->tree_len; i++)
		if (volmap_put(fs->map, layout->tree[i], nodes + i * MODEL_BLOCK, err) < 0)
			return -1;
	return 0;
}

static int add_runs(const struct layout *layout, uint32_t node, struct runs *runs, struct err *err)
{
	for (size_t i = 0; i < layout->len; i++) {
		const struct placed_extent *e = &layout->extents[i];

		if (runs_add(runs,
			     &(struct run){ .place = e->physical,
					    .count = e->count,
					    .node = node,
					    .logical = e->logical },
			     err) < 0)
			return -1;
	}
	return 0;
}

/* --- one item ---------------------------------------------------------------------- */

static bool is_short_link(const struct item *item)
{
	return S_ISLNK(item->node->mode) && item->size <= SHORT_LINK_MAX;
}

static bool has_extents(const struct item *item)
{
	const uint32_t mode = item->node->mode;

	return S_ISREG(mode) || S_ISDIR(mode) || (S_ISLNK(mode) && !is_short_link(item));
}

static int note_loss(struct ext4 *fs, const struct model_node *n, struct err *err)
{
	struct node_list *list = &fs->lossy;

	if (n < fs->model->nodes || n >= fs->model->nodes + fs->model->node_count)
		return 0; /* made here */
	if (!array_room(list->at, list->cap, list->len + 1))
		return err_nomem(err);
	list->at[list->len++] = (uint32_t)(n - fs->model->nodes);
	return 0;
}

static int put_inode(struct ext4 *fs, const struct item *item, const uint8_t *i_block,
		     struct err *err)
{
	const struct layout *layout = item->layout;
	const uint32_t set = item->node->xattrs;
	const struct inode_config cfg = {
		.node = item->node,
		.size = item->size,
		.links = item->links,
		.blocks = layout->data_blocks + layout->tree_len + (layout->xattr_block != 0),
		.i_block = i_block,
		.extents = has_extents(item),
		.indexed = item->indexed,
		.xattr_block = layout->xattr_block,
		.xattrs = set ? fs->attributes.image.inode : NULL,
		.mode_cut = set ? fs->attributes.image.mode_cut : 0,
		.ino = item->ino,
		.checksum_seed = checksum_seed_inode(fs->seed, item->ino),
	};
	uint8_t inode[INODE_SIZE];
	const bool exact = inode_encode(&cfg, inode);

	if ((!exact || inode_is_lossy(item->node, inode) || (set && fs->attributes.dropped)) &&
	    note_loss(fs, item->node, err) < 0)
		return -1;
	return inode_store(fs, item->ino, inode, err);
}

/* Its attributes have been loaded. */
static int put_item(struct ext4 *fs, const struct item *item, struct err *err)
{
	uint8_t i_block[I_BLOCK_SIZE] = { 0 };

	if (item->bytes && !is_short_link(item) && put_bytes(fs, item, err) < 0)
		return -1;
	if (!has_extents(item) && !is_short_link(item))
		return put_inode(fs, item, NULL, err);
	if (is_short_link(item))
		memcpy(i_block, item->bytes, item->size);
	else if (put_tree(fs, item, i_block, err) < 0)
		return -1;
	return put_inode(fs, item, i_block, err);
}

/* --- directories --------------------------------------------------------------------- */

static int take_and_put_directory(struct ext4 *fs, struct item *item,
				  const struct dir_blocks *blocks, struct err *err)
{
	const struct model_segment all = { 0, blocks->count };
	autolayout struct layout layout = { 0 };

	if (layout_take(&layout, &fs->alloc, all, err) < 0 ||
	    layout_take_tree(&layout, &fs->alloc, err) < 0 ||
	    take_attributes(fs, item->node->xattrs, &layout, err) < 0)
		return -1;
	item->layout = &layout;
	item->bytes = blocks->bytes;
	item->size = (uint64_t)blocks->count * MODEL_BLOCK;
	item->indexed = blocks->indexed;
	return put_item(fs, item, err);
}

static int put_directory(struct ext4 *fs, const struct model_node *n, uint32_t ino,
			 uint32_t parent_ino, struct err *err)
{
	struct dir_config cfg = {
		.ino = ino,
		.parent_ino = parent_ino,
		.entries = fs->entries.at,
		.count = fs->entries.len,
		.checksum_seed = checksum_seed_inode(fs->seed, ino),
		.min_blocks = ino == EXT4_INO_LOST_FOUND ? LOST_FOUND_BLOCKS : 1,
	};
	struct item item = {
		.node = n,
		.ino = ino,
		.links = 2 + fs->entries.directories,
	};
	struct dir_blocks blocks;
	int result;

	for (unsigned i = 0; i < 4; i++)
		cfg.hash_seed[i] = htole32(fs->fs->super->s_hash_seed[i]);
	if (dir_encode(&cfg, &blocks, err) < 0)
		return -1;
	result = take_and_put_directory(fs, &item, &blocks, err);
	dir_blocks_free(&blocks);
	if (ino != EXT2_ROOT_INO)
		ext2fs_inode_alloc_stats2(fs->fs, ino, +1, 1);
	return result;
}

static int place_lost_found(struct ext4 *fs, struct err *err)
{
	const struct model_node made = { .mode = S_IFDIR | 0700, .mtime_sec = fs->time };

	fs->entries.len = fs->entries.directories = 0;
	return put_directory(fs, &made, EXT4_INO_LOST_FOUND, EXT2_ROOT_INO, err);
}

static int place_directory(struct ext4 *fs, uint32_t dir, struct err *err)
{
	const struct model *model = fs->model;
	const struct model_node *n = &model->nodes[dir];
	const bool root = dir == fs->order.root;

	if (entry_list_fill(&fs->entries, &fs->order, dir, err) < 0 ||
	    put_directory(fs, n, n->ino, root ? EXT2_ROOT_INO : model->nodes[n->parent].ino, err) <
		    0) {
		autofree char *path = model_path(model, dir);

		return err_context(err, "%s", path ? path : "?");
	}
	return root && fs->order.make_lost_found ? place_lost_found(fs, err) : 0;
}

/* --- files ---------------------------------------------------------------------------- */

int place_file(struct ext4 *fs, uint32_t node, const struct layout *layout, struct runs *runs,
	       struct err *err)
{
	const struct model_node *n = &fs->model->nodes[node];
	const struct item item = {
		.node = n,
		.ino = n->ino,
		.links = fs->order.links[node],
		.size = S_ISREG(n->mode) || S_ISLNK(n->mode) ? n->size : 0,
		.bytes = (const uint8_t *)n->content,
		.layout = layout,
	};

	if (!n->content && add_runs(layout, node, runs, err) < 0)
		return -1;
	return put_item(fs, &item, err);
}

static int place_new_file(struct ext4 *fs, uint32_t node, struct err *err)
{
	const struct model_node *n = &fs->model->nodes[node];
	autolayout struct layout layout = { 0 };
	int result = layout_take_file(&layout, &fs->alloc, fs->model, node, err);

	if (result == 0)
		result = take_attributes(fs, n->xattrs, &layout, err);
	if (result == 0)
		result = place_file(fs, node, &layout, &fs->runs, err);
	ext2fs_inode_alloc_stats2(fs->fs, n->ino, +1, 0);
	return result;
}

/* --- all ------------------------------------------------------------------------------- */

#define NODES_BETWEEN_LOOKS 1024u

/* Directories first: they lie together then, and reading a tree's names is a
 * short way on the disk.
 */
int place_all(struct ext4 *fs, struct err *err)
{
	const struct order *o = &fs->order;

	for (unsigned pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < o->count; i++) {
			const uint32_t node = o->nodes[i];
			const bool is_dir = S_ISDIR(fs->model->nodes[node].mode);

			if (i % NODES_BETWEEN_LOOKS == 0 && interrupt_check(err) < 0)
				return -1;
			if (is_dir && pass == 0 && place_directory(fs, node, err) < 0)
				return -1;
			if (!is_dir && pass == 1 && place_new_file(fs, node, err) < 0)
				return -1;
		}
	}
	if (inodes_flush(fs, err) < 0)
		return -1;
	return shares_seal(&fs->shares, fs->map, fs->seed, err);
}
