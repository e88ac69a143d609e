// SPDX-License-Identifier: Apache-2.0
#include "ext4/ext4.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "ext4/build.h"
#include "ext4/create.h"
#include "source/extent.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

/* Inodes are written past libext2fs, which keeps those that it has read. */
static int read_layout(const struct ext4 *fs, uint32_t node, struct layout *layout, struct err *err)
{
	ext2fs_flush_icache(fs->fs);
	return layout_read(layout, fs->fs, fs->model->nodes[node].ino, err);
}

static int check_file(const struct ext4 *fs, uint32_t node, struct err *err)
{
	if (!order_has(&fs->order, node))
		return err_set(err, ERR_FAILED, "the filesystem has no such file any more");
	assert(!S_ISDIR(fs->model->nodes[node].mode));
	return node_check(fs->model, node, err);
}

/* --- replacing ------------------------------------------------------------------------- */

/* Before anything is given up, so that a full filesystem stays as it is. */
static int check_room(const struct ext4 *fs, uint32_t node, const struct layout *old,
		      struct err *err)
{
	const struct model *model = fs->model;
	const uint64_t ranges = fs->alloc.len - fs->alloc.head + old->len + old->tree_len;
	const uint64_t wanted =
		layout_tree_max(model, node, ranges) + 1 + data_blocks(model, &model->nodes[node]);

	if (wanted <= fs->alloc.free + old->data_blocks + old->tree_len)
		return 0;
	return alloc_full(err);
}

static int revise_data(struct ext4 *fs, uint32_t node, struct layout *layout, struct err *err)
{
	if (layout_fits(layout, fs->model, node))
		return layout_forget(layout, fs->map, err);
	if (check_room(fs, node, layout, err) < 0 ||
	    layout_give(layout, &fs->alloc, fs->map, err) < 0)
		return -1;
	return layout_take_file(layout, &fs->alloc, fs->model, node, err);
}

static int revise_attributes(struct ext4 *fs, uint32_t set, struct layout *layout, struct err *err)
{
	const uint64_t old = layout->xattr_block;
	const struct xattr_image *image = &fs->attributes.image;
	bool wanted;

	if (set && attributes_load(fs, set, err) < 0)
		return -1;
	wanted = set && image->has_block;
	if (old && wanted && share_holds(fs->map, old, image))
		return 0;
	layout->xattr_block = 0;
	if (old && share_give(&fs->alloc, fs->map, old, fs->seed, err) < 0)
		return -1;
	if (!wanted)
		return 0;
	return share_take_own(&fs->alloc, fs->map, image, fs->seed, &layout->xattr_block, err);
}

/* Only what was not told of the node as it was before. */
static int account_again(struct ext4 *fs, uint32_t node, const uint8_t before[INODE_SIZE],
			 struct err *err)
{
	uint8_t after[INODE_SIZE];
	const bool lossy = fs->lossy.len > 0;

	fs->lossy.len = 0;
	inode_load(fs, fs->model->nodes[node].ino, after);
	if (!lossy || memcmp(before, after, INODE_SIZE) == 0)
		return 0;
	return loss_account(fs, node, err);
}

static int replace(struct ext4 *fs, uint32_t node, struct err *err)
{
	autolayout struct layout layout = { 0 };
	autoruns struct runs runs = { 0 };

	if (read_layout(fs, node, &layout, err) < 0 || revise_data(fs, node, &layout, err) < 0 ||
	    revise_attributes(fs, fs->model->nodes[node].xattrs, &layout, err) < 0 ||
	    place_file(fs, node, &layout, &runs, err) < 0 || inodes_flush(fs, err) < 0)
		return -1;
	return runs_replace(&fs->runs, node, &runs, err);
}

int ext4_replace(struct ext4 *fs, uint32_t node, struct err *err)
{
	uint8_t before[INODE_SIZE];

	if (check_file(fs, node, err) < 0)
		return -1;
	inode_load(fs, fs->model->nodes[node].ino, before);
	return replace(fs, node, err) < 0 ? -1 : account_again(fs, node, before, err);
}

/* --- removing -------------------------------------------------------------------------- */

static int unlink_name(struct ext4 *fs, uint32_t dir, const char *name, uint32_t node,
		       struct err *err)
{
	const struct model_node *nodes = fs->model->nodes;
	const errcode_t code = ext2fs_unlink(fs->fs, nodes[dir].ino, name, nodes[node].ino, 0);

	if (code == EXT2_ET_DIR_NO_SPACE)
		return 0; /* not there */
	if (code)
		return ext2_failed(err, fs->fs, code, "taking away a name");
	fs->order.links[node]--;
	return 0;
}

static int unlink_in(struct ext4 *fs, uint32_t dir, uint32_t node, struct err *err)
{
	const struct model *model = fs->model;
	const struct model_node *d = &model->nodes[dir];

	for (uint32_t i = 0; i < d->count; i++) {
		const struct model_entry *entry = &model->entries[d->first + i];

		if (entry->node == node &&
		    unlink_name(fs, dir, model_string(model, entry->name), node, err) < 0)
			return -1;
	}
	return 0;
}

/* Its first name, and when there are more, wherever they are. */
static int unlink_all(struct ext4 *fs, uint32_t node, struct err *err)
{
	const struct model *model = fs->model;
	const uint32_t parent = model->nodes[node].parent;

	if (order_has(&fs->order, parent) && S_ISDIR(model->nodes[parent].mode) &&
	    unlink_in(fs, parent, node, err) < 0)
		return -1;
	for (uint32_t dir = 0; dir < fs->order.node_count && fs->order.links[node] > 0; dir++)
		if (order_has(&fs->order, dir) && S_ISDIR(model->nodes[dir].mode) &&
		    unlink_in(fs, dir, node, err) < 0)
			return -1;
	if (fs->order.links[node] > 0)
		return err_set(err, ERR_FAILED, "%u names of a removed file were not found",
			       fs->order.links[node]);
	return 0;
}

static int zero_inode(struct ext4 *fs, uint32_t ino, struct err *err)
{
	uint8_t zeros[INODE_SIZE] = { 0 };
	const errcode_t code =
		ext2fs_write_inode_full(fs->fs, ino, (struct ext2_inode *)zeros, sizeof zeros);

	if (code)
		return ext2_failed(err, fs->fs, code, "taking away an inode");
	ext2fs_inode_alloc_stats2(fs->fs, ino, -1, 0);
	return 0;
}

int ext4_remove(struct ext4 *fs, uint32_t node, struct err *err)
{
	autolayout struct layout layout = { 0 };
	const struct runs none = { 0 };

	if (!order_has(&fs->order, node))
		return err_set(err, ERR_FAILED, "the filesystem has no such file any more");
	assert(!S_ISDIR(fs->model->nodes[node].mode));
	if (read_layout(fs, node, &layout, err) < 0 || unlink_all(fs, node, err) < 0 ||
	    layout_give(&layout, &fs->alloc, fs->map, err) < 0)
		return -1;
	if (layout.xattr_block &&
	    share_give(&fs->alloc, fs->map, layout.xattr_block, fs->seed, err) < 0)
		return -1;
	if (zero_inode(fs, fs->model->nodes[node].ino, err) < 0)
		return -1;
	return runs_replace(&fs->runs, node, &none, err);
}

/* --- the rest -------------------------------------------------------------------------- */

int ext4_commit(struct ext4 *fs, uint64_t base, struct extent_list *changed, struct err *err)
{
	errcode_t code;

	alloc_commit(&fs->alloc);
	ext2fs_flush_icache(fs->fs);
	ext2fs_mark_super_dirty(fs->fs);
	code = ext2fs_flush2(fs->fs, EXT2_FLAG_FLUSH_NO_SYNC);
	if (code)
		return ext2_failed(err, fs->fs, code, "writing its tables");
	return volmap_take_changes(fs->map, base, changed, err);
}

int ext4_locate(const struct ext4 *fs, uint32_t node, uint64_t base, struct extent_list *out,
		struct err *err)
{
	autolayout struct layout layout = { 0 };
	int result = order_has(&fs->order, node) ? read_layout(fs, node, &layout, err) : 0;

	for (size_t i = 0; i < layout.len && result == 0; i++)
		result = extent_list_add(out, base + layout.extents[i].physical * MODEL_BLOCK,
					 (uint64_t)layout.extents[i].count * MODEL_BLOCK, false,
					 err);
	return result;
}
