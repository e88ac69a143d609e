// SPDX-License-Identifier: Apache-2.0
#include "ext4/build.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "ext4/create.h"
#include "ext4/ext4.h"

#define BYTES_PER_INODE	 (16 * KIB)
#define BLOCKS_PER_INODE (BYTES_PER_INODE / EXT4_BLOCK)
#define INODES_PER_GROUP EXT4_BLOCKS_PER_GROUP /* at most: one block of bitmap */
#define BYTES_MAX	 (EXT4_BLOCKS_MAX * EXT4_BLOCK)
#define TRIES		 64

/* At the end of each free range one file's data is cut in two: a leaf more and,
 * rarely, an index block above it.
 */
#define BLOCKS_PER_BORDER 3

/* What the kernel keeps back for its own needs (ext4_calculate_resv_clusters). */
#define KERNEL_RESERVE_SHARE 50
#define KERNEL_RESERVE_MAX   4096

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
	const uint64_t content = need + cfg->free_bytes / EXT4_BLOCK;
	const uint64_t inodes = 2 * (uint64_t)fs->order.last_ino;
	const uint64_t groups = inodes > INODES_PER_GROUP ? round_up(inodes, INODES_PER_GROUP) : 0;
	const uint64_t guess = MAX(content + content / 38, groups);

	return MAX(guess, cfg->min_size / EXT4_BLOCK);
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

static uint64_t step_of(const struct ext4_config *cfg)
{
	return cfg->step ? cfg->step : EXT4_BLOCK;
}

static uint64_t round_size(const struct ext4_config *cfg, uint64_t bytes)
{
	const uint64_t rest = bytes % step_of(cfg);

	return rest ? bytes + step_of(cfg) - rest : bytes;
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
		 (cfg->free_bytes + EXT4_BLOCK - 1) / EXT4_BLOCK;
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
	bytes = round_size(cfg, first_guess(fs, cfg, need) * EXT4_BLOCK);
	for (unsigned i = 0; i < TRIES; i++) {
		int64_t missing;

		if (bytes > BYTES_MAX)
			return too_large(err);
		if (interrupt_check(err) < 0)
			return -1;
		missing = try_size(fs, cfg, bytes / EXT4_BLOCK, need, err);
		if (missing < 0)
			return -1;
		if (missing == 0) {
			blocks = ext2fs_blocks_count(fs->fs->super);
			fs->size = round_size(cfg, MAX(blocks * EXT4_BLOCK, cfg->min_size));
			return 0;
		}
		bytes +=
			((uint64_t)missing + (uint64_t)missing / 32 + (UINT64_C(8) << MIN(i, 12))) *
			EXT4_BLOCK;
		bytes = round_size(cfg, bytes);
	}
	return err_set(err, ERR_FAILED, "cannot lay out the filesystem: no size is large enough");
}
