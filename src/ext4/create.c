// SPDX-License-Identifier: Apache-2.0
#include "ext4/create.h"

#include "base/err.h"
#include "base/size.h"
#include "ext4/inode.h"
#include "ext4/memio.h"
#include "ext4/volmap.h"

#include <errno.h>
#include <string.h>

/* GRUB 2.02 and kernel 4.15 can read all of these; metadata_csum_seed and
 * orphan_file, which newer tools would add, they cannot.  The words never depend
 * on content, so that "same tree, same bytes" needs no thought.
 */
#define COMPAT                                                                                     \
	(EXT3_FEATURE_COMPAT_HAS_JOURNAL | EXT2_FEATURE_COMPAT_EXT_ATTR |                          \
	 EXT2_FEATURE_COMPAT_RESIZE_INODE | EXT2_FEATURE_COMPAT_DIR_INDEX)
#define INCOMPAT                                                                                   \
	(EXT2_FEATURE_INCOMPAT_FILETYPE | EXT3_FEATURE_INCOMPAT_EXTENTS |                          \
	 EXT4_FEATURE_INCOMPAT_64BIT | EXT4_FEATURE_INCOMPAT_FLEX_BG)
#define RO_COMPAT                                                                                  \
	(EXT2_FEATURE_RO_COMPAT_SPARSE_SUPER | EXT2_FEATURE_RO_COMPAT_LARGE_FILE |                 \
	 EXT4_FEATURE_RO_COMPAT_HUGE_FILE | EXT4_FEATURE_RO_COMPAT_DIR_NLINK |                     \
	 EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE | EXT4_FEATURE_RO_COMPAT_METADATA_CSUM)

#define GROUPS_PER_FLEX_LOG  4
#define RESERVED_PERCENT     1
#define INO_RESERVED_LAST    10
#define JOURNAL_BLOCKS_LEAST 1024 /* JBD2_MIN_JOURNAL_BLOCKS */

int ext2_failed(struct err *err, ext2_filsys fs, errcode_t code, const char *what)
{
	const struct err *cause = fs ? memio_error(fs->io) : NULL;

	if (cause) {
		*err = *cause;
		return -1;
	}
	if (code == EXT2_ET_NO_MEMORY || code == ENOMEM)
		return err_nomem(err);
	return err_set(err, ERR_FAILED, "cannot lay out the filesystem: %s: %s", what,
		       error_message(code));
}

void created_free(struct created *c)
{
	if (c->fs)
		ext2fs_free(c->fs);
	volmap_free(c->map);
	*c = (struct created){ 0 };
}

static void fill_parameters(const struct create_config *cfg, struct ext2_super_block *param)
{
	*param = (struct ext2_super_block){
		.s_rev_level = EXT2_DYNAMIC_REV,
		.s_log_block_size = 2,
		.s_log_cluster_size = 2,
		.s_inode_size = 256,
		.s_inodes_count = cfg->inodes,
		.s_feature_compat = COMPAT,
		.s_feature_incompat = INCOMPAT,
		.s_feature_ro_compat = RO_COMPAT,
		.s_log_groups_per_flex = GROUPS_PER_FLEX_LOG,
	};
	ext2fs_blocks_count_set(param, cfg->blocks);
}

/* Derived, so that it is as reproducible as the UUID. */
static void derive_hash_seed(const uint8_t *uuid, __u32 seed[4])
{
	const uint32_t fs_seed = checksum_seed_fs(uuid);

	for (uint32_t i = 0; i < 4; i++)
		seed[i] = checksum_seed_inode(fs_seed, i + 1) | 1;
}

/* What ext2fs_initialize leaves out, or takes from the clock, the environment or
 * the build machine's char.
 */
static void fill_super(const struct create_config *cfg, ext2_filsys fs)
{
	struct ext2_super_block *sb = fs->super;

	fs->now = (time_t)cfg->time;
	sb->s_mkfs_time = sb->s_lastcheck = sb->s_wtime = cfg->time;
	sb->s_mkfs_time_hi = sb->s_lastcheck_hi = sb->s_wtime_hi = 0;
	memcpy(sb->s_uuid, cfg->uuid, sizeof sb->s_uuid);
	derive_hash_seed(cfg->uuid, sb->s_hash_seed);
	sb->s_def_hash_version = EXT2_HASH_HALF_MD4;
	sb->s_flags = EXT2_FLAGS_SIGNED_HASH;
	sb->s_checksum_type = EXT2_CRC32C_CHKSUM;
	sb->s_max_mnt_count = -1;
	sb->s_checkinterval = 0;
	sb->s_default_mount_opts = EXT2_DEFM_XATTR_USER | EXT2_DEFM_ACL;
	sb->s_errors = EXT2_ERRORS_CONTINUE;
	sb->s_creator_os = EXT2_OS_LINUX;
	sb->s_kbytes_written = 1;
	ext2fs_r_blocks_count_set(sb, ext2fs_blocks_count(sb) * RESERVED_PERCENT / 100);
	memset(sb->s_volume_name, 0, sizeof sb->s_volume_name);
	if (cfg->label)
		memcpy(sb->s_volume_name, cfg->label,
		       strnlen(cfg->label, sizeof sb->s_volume_name));
}

/* Tables that were never written read as zeros, so no lazy initialisation is
 * left for the kernel.
 */
static void mark_tables_zeroed(ext2_filsys fs)
{
	for (dgrp_t group = 0; group < fs->group_desc_count; group++) {
		ext2fs_bg_flags_set(fs, group, EXT2_BG_INODE_ZEROED);
		ext2fs_group_desc_csum_set(fs, group);
	}
}

static errcode_t make_reserved_inodes(ext2_filsys fs)
{
	uint8_t zeros[256] = { 0 };
	errcode_t code = 0;

	for (ext2_ino_t ino = 1; ino <= INO_RESERVED_LAST && !code; ino++) {
		code = ext2fs_write_inode_full(fs, ino, (struct ext2_inode *)zeros, sizeof zeros);
		ext2fs_inode_alloc_stats2(fs, ino, +1, ino == EXT2_ROOT_INO);
	}
	return code;
}

/* Beginning at the first free block it stays one extent; its blocks need no
 * zeroing, since nothing old can be in a new image.
 */
static errcode_t add_journal(ext2_filsys fs, blk64_t overhead)
{
	const int usual = ext2fs_default_journal_size(ext2fs_blocks_count(fs->super));
	struct ext2fs_journal_params params = {
		.num_journal_blocks = (blk_t)MAX(usual, JOURNAL_BLOCKS_LEAST),
	};

	fs->super->s_overhead_clusters = (__u32)(overhead + params.num_journal_blocks);
	return ext2fs_add_journal_inode3(fs, &params, 0,
					 EXT2_MKJOURNAL_NO_MNT_CHECK | EXT2_MKJOURNAL_LAZYINIT);
}

/* The order matters: group checksums need the UUID, the resize inode and the
 * journal need the tables.
 */
static errcode_t fill(const struct create_config *cfg, ext2_filsys fs)
{
	blk64_t overhead = 0;
	errcode_t code;

	fill_super(cfg, fs);
	ext2fs_init_csum_seed(fs);
	fs->flags |= EXT2_FLAG_IGNORE_CSUM_ERRORS;
	code = ext2fs_allocate_tables(fs);
	if (code)
		return code;
	code = ext2fs_count_used_clusters(fs, fs->super->s_first_data_block,
					  ext2fs_blocks_count(fs->super) - 1, &overhead);
	if (code)
		return code;
	mark_tables_zeroed(fs);
	code = make_reserved_inodes(fs);
	if (code)
		return code;
	code = ext2fs_create_resize_inode(fs);
	return code ? code : add_journal(fs, overhead);
}

/* The library takes features away without a word where it sees no use for them. */
static int check_features(const struct ext2_super_block *sb, struct err *err)
{
	if (sb->s_feature_compat == COMPAT && sb->s_feature_incompat == INCOMPAT &&
	    sb->s_feature_ro_compat == RO_COMPAT && sb->s_inode_size == 256)
		return 0;
	return err_set(err, ERR_FAILED,
		       "libext2fs made a filesystem with other features than asked for "
		       "(%#x %#x %#x); ask for another size",
		       sb->s_feature_compat, sb->s_feature_incompat, sb->s_feature_ro_compat);
}

/* Fewer blocks a group would make room for more inodes; the usual number is
 * what every reader was tried with.
 */
static bool has_odd_groups(const struct ext2_super_block *sb)
{
	return sb->s_blocks_per_group != EXT4_BLOCKS_PER_GROUP;
}

static bool means_too_small(errcode_t code)
{
	return code == EXT2_ET_TOOSMALL || code == EXT2_ET_BLOCK_ALLOC_FAIL ||
	       code == EXT2_ET_JOURNAL_TOO_SMALL || code == EXT2_ET_TOO_MANY_INODES;
}

static enum create_outcome outcome_of(ext2_filsys fs, errcode_t code, struct err *err)
{
	if (means_too_small(code))
		return CREATE_TOO_SMALL;
	ext2_failed(err, fs, code, "making the empty one");
	return CREATE_FAILED;
}

enum create_outcome create_filesystem(const struct create_config *cfg, struct created *out,
				      struct err *err)
{
	struct created made = { .map = volmap_new(cfg->blocks, err) };
	struct ext2_super_block param;
	enum create_outcome outcome = CREATE_DONE;
	errcode_t code;

	if (!made.map)
		return CREATE_FAILED;
	initialize_ext2_error_table();
	fill_parameters(cfg, &param);
	code = ext2fs_initialize("memory", EXT2_FLAG_64BITS, &param, memio_manager, &made.fs);
	if (code) {
		made.fs = NULL;
		outcome = outcome_of(NULL, code, err);
	} else if (has_odd_groups(made.fs->super)) {
		outcome = CREATE_TOO_SMALL;
	} else {
		memio_attach(made.fs->io, made.map);
		code = fill(cfg, made.fs);
		if (code)
			outcome = outcome_of(made.fs, code, err);
		else if (check_features(made.fs->super, err) < 0)
			outcome = CREATE_FAILED;
	}
	if (outcome != CREATE_DONE)
		created_free(&made);
	*out = made;
	return outcome;
}
