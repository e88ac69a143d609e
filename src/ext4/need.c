// SPDX-License-Identifier: Apache-2.0
#include "ext4/build.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <stdlib.h>
#include <sys/stat.h>

static void ignore(void *ctx, const char *name, const char *why)
{
	(void)ctx;
	(void)name;
	(void)why;
}

static uint64_t file_blocks(const struct model *model, uint32_t node)
{
	const struct model_node *n = &model->nodes[node];
	uint64_t blocks = layout_tree_max(model, node, 0);

	for (uint32_t i = 0; i < data_segments(n); i++)
		blocks += data_segment(model, n, i).count;
	return blocks;
}

/* The blocks of a directory lie together, so one extent is enough for most;
 * each border between free ranges can add one, which the caller counts.
 */
static int directory_blocks(const struct order *o, uint32_t dir, struct entry_list *list,
			    uint64_t *sum, struct err *err)
{
	uint64_t blocks;

	if (entry_list_fill(list, o, dir, err) < 0)
		return -1;
	blocks = dir_blocks_max(list->at, list->len);
	*sum += blocks + extents_tree_blocks(blocks / EXTENT_LENGTH_MAX + 1);
	return 0;
}

static int nodes_need(const struct order *o, uint32_t *uses, uint64_t *sum, struct err *err)
{
	struct entry_list list = { 0 };
	int result = 0;

	for (uint32_t i = 0; i < o->count && result == 0; i++) {
		const uint32_t node = o->nodes[i];
		const struct model_node *n = &o->model->nodes[node];

		if (n->xattrs)
			uses[n->xattrs]++;
		if (S_ISDIR(n->mode))
			result = directory_blocks(o, node, &list, sum, err);
		else
			*sum += file_blocks(o->model, node);
	}
	entry_list_free(&list);
	return result;
}

static int sets_need(const struct model *model, const uint32_t *uses, uint64_t *sum,
		     struct err *err)
{
	for (uint32_t set = 1; set < model->set_count; set++) {
		struct xattr_image image;

		if (uses[set] == 0)
			continue;
		if (xattr_encode(&model->sets[set], &image, ignore, NULL, err) < 0)
			return -1;
		if (image.has_block)
			*sum += (uses[set] + (uint64_t)XATTR_BLOCK_SHARES - 1) / XATTR_BLOCK_SHARES;
	}
	return 0;
}

#define LOST_FOUND_BLOCKS 4u

int need_blocks(const struct order *o, uint64_t *blocks, struct err *err)
{
	autofree uint32_t *uses = calloc((size_t)o->model->set_count + 1, sizeof *uses);

	*blocks = LOST_FOUND_BLOCKS;
	if (!uses)
		return err_nomem(err);
	if (nodes_need(o, uses, blocks, err) < 0)
		return -1;
	return sets_need(o->model, uses, blocks, err);
}
