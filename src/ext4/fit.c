// SPDX-License-Identifier: Apache-2.0
#include "ext4/build.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "ext4/create.h"
#include "ext4/ext4.h"

#include <stdlib.h>
#include <sys/stat.h>

#define BYTES_PER_INODE	 (16 * KIB)
#define BLOCKS_PER_INODE (BYTES_PER_INODE / MODEL_BLOCK)
#define INODES_PER_GROUP EXT4_BLOCKS_PER_GROUP /* at most: one block of bitmap */
#define BYTES_MAX	 (EXT4_BLOCKS_MAX * MODEL_BLOCK)
#define TRIES		 64

/* At the end of each free range one file's data is cut in two: a leaf more and,
 * rarely, an index block above it.
 */
#define BLOCKS_PER_BORDER 3

/* What the kernel keeps back for its own needs (ext4_calculate_resv_clusters). */
#define KERNEL_RESERVE_SHARE 50
#define KERNEL_RESERVE_MAX   4096

/* --- what is needed -------------------------------------------------------------- */

static void ignore(void *ctx, const char *name, const char *why)
{
	(void)ctx;
	(void)name;
	(void)why;
}

static uint64_t file_blocks(const struct model *model, uint32_t node)
{
	return data_blocks(model, &model->nodes[node]) + layout_tree_max(model, node, 0);
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
			*sum += div_up(uses[set], XATTR_BLOCK_SHARES);
	}
	return 0;
}

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

/* --- a size for it --------------------------------------------------------------- */

uint64_t blocks_withheld(ext2_filsys fs)
{
	return ext2fs_r_blocks_count(fs->super) +
	       MIN(ext2fs_blocks_count(fs->super) / KERNEL_RESERVE_SHARE, KERNEL_RESERVE_MAX);
}

static uint64_t inodes_wanted(const struct ext4 *fs, uint64_t blocks)
{
	const uint64_t used = fs->order.last_ino;

	return MAX(2 * used, blocks / BLOCKS_PER_INODE);
}

/* A lower bound to begin with: tables of inodes take 1/64, the reserve 1/100;
 * and a group has no more inodes than blocks.
 */
static uint64_t first_guess(const struct ext4 *fs, const struct ext4_config *cfg, uint64_t need)
{
	const uint64_t content = need + cfg->free_bytes / MODEL_BLOCK;
	const uint64_t inodes = 2 * (uint64_t)fs->order.last_ino;
	const uint64_t groups = inodes > INODES_PER_GROUP ? round_up(inodes, INODES_PER_GROUP) : 0;
	const uint64_t guess = MAX(content + content / 38, groups);

	return MAX(guess, cfg->min_size / MODEL_BLOCK);
}

static int too_large(struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "the filesystem would be larger than %s, where ext4 ends here; "
		       "ask for less free space or exclude more",
		       size_format(BYTES_MAX).text);
}

static int check_config(const struct ext4_config *cfg, uint64_t need, struct err *err)
{
	if (cfg->free_bytes > BYTES_MAX || cfg->min_size > BYTES_MAX || cfg->step > BYTES_MAX ||
	    need > EXT4_BLOCKS_MAX)
		return too_large(err);
	return 0;
}

static uint64_t round_size(const struct ext4_config *cfg, uint64_t bytes)
{
	return round_up(bytes, cfg->step ? cfg->step : MODEL_BLOCK);
}

static void take_created(struct ext4 *fs, struct created *made)
{
	fs->fs = made->fs;
	fs->map = made->map;
}

static void forget_created(struct ext4 *fs)
{
	struct created made = { .fs = fs->fs, .map = fs->map };

	alloc_free(&fs->alloc);
	created_free(&made);
	fs->fs = NULL;
	fs->map = NULL;
}

/* How many blocks are missing; -1 on error. */
static int64_t try_size(struct ext4 *fs, const struct ext4_config *cfg, uint64_t blocks,
			uint64_t need, struct err *err)
{
	const struct create_config create = {
		.blocks = blocks,
		.inodes = (uint32_t)MIN(inodes_wanted(fs, blocks), UINT32_MAX),
		.uuid = cfg->uuid,
		.label = cfg->label,
		.time = cfg->time,
	};
	struct created made;
	enum create_outcome outcome = create_filesystem(&create, &made, err);
	uint64_t wanted;
	int64_t missing;

	if (outcome == CREATE_FAILED)
		return -1;
	if (outcome == CREATE_TOO_SMALL)
		return (int64_t)(blocks / 16) + 1;
	take_created(fs, &made);
	if (alloc_init(&fs->alloc, fs->fs, err) < 0) {
		forget_created(fs);
		return -1;
	}
	wanted = need + BLOCKS_PER_BORDER * fs->alloc.len + blocks_withheld(fs->fs) +
		 div_up(cfg->free_bytes, MODEL_BLOCK);
	if (fs->alloc.free >= wanted && fs->fs->super->s_inodes_count >= create.inodes)
		return 0;
	missing = wanted > fs->alloc.free ? (int64_t)(wanted - fs->alloc.free) : 1;
	forget_created(fs);
	return missing;
}

/* The library itself says how much of a size it leaves: from below, larger and
 * larger until all fits.  The growing part of a step gets over a last group that
 * is left off because it is too small.
 */
int fit(struct ext4 *fs, const struct ext4_config *cfg, uint64_t need, struct err *err)
{
	uint64_t bytes, blocks;

	if (check_config(cfg, need, err) < 0)
		return -1;
	bytes = round_size(cfg, first_guess(fs, cfg, need) * MODEL_BLOCK);
	for (unsigned i = 0; i < TRIES; i++) {
		int64_t missing;

		if (bytes > BYTES_MAX)
			return too_large(err);
		if (interrupt_check(err) < 0)
			return -1;
		missing = try_size(fs, cfg, bytes / MODEL_BLOCK, need, err);
		if (missing < 0)
			return -1;
		if (missing == 0) {
			blocks = ext2fs_blocks_count(fs->fs->super);
			fs->size = round_size(cfg, MAX(blocks * MODEL_BLOCK, cfg->min_size));
			return 0;
		}
		bytes +=
			((uint64_t)missing + (uint64_t)missing / 32 + (UINT64_C(8) << MIN(i, 12))) *
			MODEL_BLOCK;
		bytes = round_size(cfg, bytes);
	}
	return err_set(err, ERR_FAILED, "cannot lay out the filesystem: no size is large enough");
}
