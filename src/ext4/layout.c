// SPDX-License-Identifier: Apache-2.0
#include "ext4/layout.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "ext4/create.h"
#include "ext4/order.h"
#include "ext4/volmap.h"

#include <ext2fs/ext2fs.h>
#include <stdlib.h>

void layout_free(struct layout *l)
{
	free(l->extents);
	free(l->tree);
	*l = (struct layout){ 0 };
}

static int add_extent(struct layout *l, const struct placed_extent *extent, struct err *err)
{
	if (!array_room(l->extents, l->cap, l->len + 1))
		return err_nomem(err);
	l->extents[l->len++] = *extent;
	return 0;
}

/* One extent grows as long as it may, so that what lies together takes the
 * fewest.
 */
static int add_blocks(struct layout *l, uint32_t logical, uint64_t physical, uint32_t count,
		      struct err *err)
{
	l->data_blocks += count;
	while (count > 0) {
		struct placed_extent *last = l->len ? &l->extents[l->len - 1] : NULL;
		uint32_t part = MIN(count, EXTENT_LENGTH_MAX);

		if (last && last->count < EXTENT_LENGTH_MAX &&
		    (uint64_t)last->logical + last->count == logical &&
		    last->physical + last->count == physical) {
			part = MIN(count, EXTENT_LENGTH_MAX - last->count);
			last->count += part;
		} else if (add_extent(l, &(struct placed_extent){ logical, part, physical }, err) <
			   0) {
			return -1;
		}
		logical += part;
		physical += part;
		count -= part;
	}
	return 0;
}

int layout_take(struct layout *l, struct alloc *a, struct model_segment segment, struct err *err)
{
	while (segment.count > 0) {
		const struct alloc_range got = alloc_take(a, segment.count);

		if (got.count == 0)
			return alloc_full(err);
		if (add_blocks(l, segment.block, got.start, (uint32_t)got.count, err) < 0)
			return -1;
		segment.block += (uint32_t)got.count;
		segment.count -= (uint32_t)got.count;
	}
	return 0;
}

int layout_take_tree(struct layout *l, struct alloc *a, struct err *err)
{
	const uint64_t count = extents_tree_blocks(l->len);

	if (count == 0)
		return 0;
	l->tree = calloc(count, sizeof *l->tree);
	if (!l->tree)
		return err_nomem(err);
	for (; l->tree_len < count; l->tree_len++)
		if (alloc_take_block(a, &l->tree[l->tree_len], err) < 0)
			return -1;
	return 0;
}

int layout_take_file(struct layout *l, struct alloc *a, const struct model *model, uint32_t node,
		     struct err *err)
{
	const struct model_node *n = &model->nodes[node];

	for (uint32_t i = 0; i < data_segments(n); i++)
		if (layout_take(l, a, data_segment(model, n, i), err) < 0)
			return -1;
	return layout_take_tree(l, a, err);
}

/* --- what is there -------------------------------------------------------------- */

static int add_tree_node(struct layout *l, uint64_t place, struct err *err)
{
	uint64_t *tree = reallocarray(l->tree, l->tree_len + 1, sizeof *tree);

	if (!tree)
		return err_nomem(err);
	l->tree = tree;
	l->tree[l->tree_len++] = place;
	return 0;
}

static int read_one(struct layout *l, const struct ext2fs_extent *e, struct err *err)
{
	if (e->e_flags & EXT2_EXTENT_FLAGS_SECOND_VISIT)
		return 0;
	if (e->e_flags & EXT2_EXTENT_FLAGS_LEAF)
		return add_blocks(l, (uint32_t)e->e_lblk, e->e_pblk, e->e_len, err);
	return add_tree_node(l, e->e_pblk, err);
}

static int read_extents(struct layout *l, ext2_filsys fs, uint32_t ino, struct err *err)
{
	ext2_extent_handle_t handle;
	struct ext2fs_extent extent;
	errcode_t code = ext2fs_extent_open(fs, ino, &handle);
	int result = 0;

	if (code)
		return ext2_failed(err, fs, code, "reading an inode");
	code = ext2fs_extent_get(handle, EXT2_EXTENT_ROOT, &extent);
	while (!code && result == 0) {
		result = read_one(l, &extent, err);
		code = ext2fs_extent_get(handle, EXT2_EXTENT_NEXT, &extent);
	}
	ext2fs_extent_free(handle);
	if (result == 0 && code != EXT2_ET_EXTENT_NO_NEXT && code != EXT2_ET_NO_CURRENT_NODE)
		return ext2_failed(err, fs, code, "reading an inode");
	return result;
}

int layout_read(struct layout *l, ext2_filsys fs, uint32_t ino, struct err *err)
{
	struct ext2_inode inode;
	errcode_t code = ext2fs_read_inode(fs, ino, &inode);

	if (code)
		return ext2_failed(err, fs, code, "reading an inode");
	l->xattr_block = ext2fs_file_acl_block(fs, &inode);
	if (!(inode.i_flags & EXT4_EXTENTS_FL) || ext2fs_is_fast_symlink(&inode))
		return 0;
	return read_extents(l, fs, ino, err);
}

bool layout_fits(const struct layout *l, const struct model *model, uint32_t node)
{
	const struct model_node *n = &model->nodes[node];
	size_t k = 0;

	for (uint32_t i = 0; i < data_segments(n); i++) {
		struct model_segment s = data_segment(model, n, i);

		for (; s.count > 0; k++) {
			if (k == l->len || l->extents[k].logical != s.block ||
			    l->extents[k].count > s.count)
				return false;
			s.block += l->extents[k].count;
			s.count -= l->extents[k].count;
		}
	}
	return k == l->len;
}

uint64_t layout_tree_max(const struct model *model, uint32_t node, uint64_t pieces)
{
	const struct model_node *n = &model->nodes[node];

	for (uint32_t i = 0; i < data_segments(n); i++)
		pieces += div_up(data_segment(model, n, i).count, EXTENT_LENGTH_MAX);
	return extents_tree_blocks(pieces);
}

/* --- giving back ---------------------------------------------------------------- */

static int forget_range(struct volmap *map, uint64_t start, uint64_t count, struct err *err)
{
	static const uint8_t zeros[MODEL_BLOCK];
	const uint64_t end = start + count;

	for (uint64_t at = start; (at = volmap_next(map, at, end)) < end; at++)
		if (volmap_put(map, at, zeros, err) < 0)
			return -1;
	return 0;
}

int layout_forget(const struct layout *l, struct volmap *map, struct err *err)
{
	for (size_t i = 0; i < l->len; i++)
		if (forget_range(map, l->extents[i].physical, l->extents[i].count, err) < 0)
			return -1;
	return 0;
}

int layout_give(struct layout *l, struct alloc *a, struct volmap *map, struct err *err)
{
	if (layout_forget(l, map, err) < 0)
		return -1;
	for (size_t i = 0; i < l->len; i++)
		if (alloc_give(a,
			       (struct alloc_range){ l->extents[i].physical, l->extents[i].count },
			       err) < 0)
			return -1;
	for (size_t i = 0; i < l->tree_len; i++)
		if (forget_range(map, l->tree[i], 1, err) < 0 ||
		    alloc_give(a, (struct alloc_range){ l->tree[i], 1 }, err) < 0)
			return -1;
	l->len = l->tree_len = 0;
	l->data_blocks = 0;
	free(steal(&l->tree));
	return 0;
}
