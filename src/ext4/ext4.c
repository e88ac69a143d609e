// SPDX-License-Identifier: Apache-2.0
#include "ext4/ext4.h"

#include "base/err.h"
#include "base/size.h"
#include "ext4/build.h"
#include "ext4/create.h"
#include "source/extent.h"

#include <stdlib.h>
#include <string.h>

/* --- building ------------------------------------------------------------------------ */

/* What one try has made; the order and the configuration stay. */
static void forget_try(struct ext4 *fs)
{
	struct created made = { .fs = fs->fs, .map = fs->map };

	runs_free(&fs->runs);
	shares_free(&fs->shares);
	alloc_free(&fs->alloc);
	created_free(&made);
	fs->fs = NULL;
	fs->map = NULL;
	fs->inodes.block = 0;
	fs->lossy.len = 0;
}

void ext4_close(struct ext4 *fs)
{
	if (!fs)
		return;
	forget_try(fs);
	entry_list_free(&fs->entries);
	free(fs->lossy.at);
	order_free(&fs->order);
	free(fs);
}

static struct ext4 *start(const struct ext4_config *cfg, struct err *err)
{
	struct ext4 *fs = calloc(1, sizeof *fs);

	if (!fs) {
		err_nomem(err);
		return NULL;
	}
	fs->model = cfg->model;
	fs->account = cfg->account;
	fs->time = cfg->time;
	fs->seed = checksum_seed_fs(cfg->uuid);
	return fs;
}

/* Blocks that are missing, 0 when all is well. */
static int64_t build_once(struct ext4 *fs, const struct ext4_config *cfg, uint64_t need,
			  struct err *err)
{
	uint64_t free_bytes;

	if (fit(fs, cfg, need, err) < 0 || shares_init(&fs->shares, fs->model->set_count, err) < 0)
		return -1;
	if (place_all(fs, err) < 0)
		return fs->alloc.free == 0 ? (int64_t)(need / 16) + 1 : -1;
	free_bytes = ext4_free_bytes(fs);
	if (free_bytes >= cfg->free_bytes)
		return 0;
	return (int64_t)((cfg->free_bytes - free_bytes) / MODEL_BLOCK) + 1;
}

/* The need is an upper bound; should it fall short all the same, then once more
 * with what was missing.
 */
static int build(struct ext4 *fs, const struct ext4_config *cfg, struct err *err)
{
	uint64_t need;
	int64_t missing;

	if (order_init(&fs->order, cfg->model, cfg->root, err) < 0 ||
	    need_blocks(&fs->order, &need, err) < 0)
		return -1;
	missing = build_once(fs, cfg, need, err);
	if (missing > 0) {
		forget_try(fs);
		need += (uint64_t)missing;
		missing = build_once(fs, cfg, need, err);
	}
	if (missing > 0)
		return err_set(err, ERR_FAILED, "cannot keep the free space that was asked for");
	return missing < 0 ? -1 : 0;
}

/* The map's first changes are everything, which nobody needs to be told. */
static int finish(struct ext4 *fs, struct err *err)
{
	struct extent_list all = { 0 };
	int result = ext4_commit(fs, 0, &all, err);

	extent_list_free(&all);
	for (size_t i = 0; i < fs->lossy.len && result == 0; i++)
		result = loss_account(fs, fs->lossy.at[i], err);
	fs->lossy.len = 0;
	shares_free(&fs->shares);
	free(fs->order.nodes);
	fs->order.nodes = NULL;
	return result;
}

struct ext4 *ext4_build(const struct ext4_config *cfg, struct err *err)
{
	struct ext4 *fs = start(cfg, err);

	if (fs && (build(fs, cfg, err) < 0 || finish(fs, err) < 0)) {
		ext4_close(fs);
		return NULL;
	}
	return fs;
}

uint64_t ext4_size(const struct ext4 *fs)
{
	return fs->size;
}

uint64_t ext4_free_bytes(const struct ext4 *fs)
{
	const uint64_t withheld = blocks_withheld(fs->fs);

	return fs->alloc.free > withheld ? (fs->alloc.free - withheld) * MODEL_BLOCK : 0;
}

/* --- reading -------------------------------------------------------------------------- */

/* The first block at or behind this one that the map does not hold. */
static uint64_t meta_end(const struct ext4 *fs, uint64_t block, uint64_t limit)
{
	while (block < limit && volmap_has(fs->map, block))
		block++;
	return block;
}

/* The piece at offset, which is in block, up to the block end. */
static struct ext4_piece piece_up_to(enum ext4_piece_kind kind, uint64_t offset, uint64_t end,
				     uint64_t length)
{
	return (struct ext4_piece){
		.kind = kind,
		.length = MIN(length, end * MODEL_BLOCK - offset),
	};
}

struct ext4_piece ext4_piece(const struct ext4 *fs, uint64_t offset, uint64_t length)
{
	const uint64_t block = offset / MODEL_BLOCK;
	const uint64_t limit = (offset + length - 1) / MODEL_BLOCK + 1;
	const struct run *run = runs_find(&fs->runs, block);
	struct ext4_piece piece;
	uint64_t next;

	if (volmap_has(fs->map, block))
		return piece_up_to(EXT4_META, offset, meta_end(fs, block, limit), length);
	if (run && run->place <= block) {
		piece = piece_up_to(EXT4_DATA, offset, run->place + run->count, length);
		piece.node = run->node;
		piece.offset = ((uint64_t)run->logical + (block - run->place)) * MODEL_BLOCK +
			       offset % MODEL_BLOCK;
		return piece;
	}
	next = volmap_next(fs->map, block, run ? MIN(limit, run->place) : limit);
	return piece_up_to(EXT4_ZERO, offset, next, length);
}

void ext4_copy_meta(const struct ext4 *fs, uint8_t *dst, size_t len, uint64_t offset)
{
	while (len > 0) {
		const size_t skip = offset % MODEL_BLOCK, part = MIN(len, MODEL_BLOCK - skip);
		uint8_t block[MODEL_BLOCK];

		volmap_get(fs->map, offset / MODEL_BLOCK, block);
		memcpy(dst, block + skip, part);
		dst += part;
		offset += part;
		len -= part;
	}
}
