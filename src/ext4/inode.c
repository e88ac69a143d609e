// SPDX-License-Identifier: Apache-2.0
#include "ext4/inode.h"

#include "base/bytes.h"
#include "ext4/xattr.h"

#include <assert.h>
#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext2fs.h>
#include <sys/stat.h>

#define LINKS_MAX 65000u /* EXT4_LINK_MAX; a directory with more has the count 1 */

/* 32 bits that are signed, and two more above them: 1901 to 2446. */
#define TIME_MIN (-(INT64_C(1) << 31))
#define TIME_MAX ((INT64_C(1) << 34) + TIME_MIN - 1)
#define NSEC_MAX 999999999u

#define INODE_BEFORE_XATTRS sizeof(struct ext2_inode_large)
#define INODE_EXTRA	    (INODE_BEFORE_XATTRS - EXT2_GOOD_OLD_INODE_SIZE)

_Static_assert(INODE_EXTRA == 32, "i_extra_isize that the layout of attributes assumes");
_Static_assert(INODE_BEFORE_XATTRS + XATTR_INODE_BYTES == INODE_SIZE, "attributes fill the rest");

/* What chattr can set; the other bits say how ext4 stores a file.  By type as
 * the kernel has it (EXT4_REG_FLMASK, EXT4_OTHER_FLMASK): e2fsck takes offence at others.
 */
#define FLAGS_OTHER (EXT2_NODUMP_FL | EXT2_NOATIME_FL)
#define FLAGS_FILE                                                                                 \
	(FLAGS_OTHER | EXT2_SECRM_FL | EXT2_UNRM_FL | EXT2_COMPR_FL | EXT2_SYNC_FL |               \
	 EXT2_IMMUTABLE_FL | EXT2_APPEND_FL | EXT3_JOURNAL_DATA_FL | EXT2_NOTAIL_FL)
#define FLAGS_DIRECTORY (FLAGS_FILE | EXT2_DIRSYNC_FL | EXT2_TOPDIR_FL)

uint32_t checksum_seed_fs(const uint8_t uuid[16])
{
	return ext2fs_crc32c_le(~0u, uuid, 16);
}

uint32_t checksum_seed_inode(uint32_t fs_seed, uint32_t ino)
{
	const uint32_t number_and_generation[2] = { htole32(ino), 0 };

	return ext2fs_crc32c_le(fs_seed, (const unsigned char *)number_and_generation,
				sizeof number_and_generation);
}

struct disk_time {
	uint32_t seconds, extra;
};

static bool encode_time(const struct model_node *node, struct disk_time *out)
{
	int64_t sec = node->mtime_sec;
	uint32_t nsec = node->mtime_nsec;

	if (sec < TIME_MIN || sec > TIME_MAX) {
		sec = sec < TIME_MIN ? TIME_MIN : TIME_MAX;
		nsec = 0;
	} else if (nsec > NSEC_MAX) {
		nsec = NSEC_MAX;
	}
	out->seconds = (uint32_t)sec;
	out->extra = (uint32_t)((sec - (int32_t)sec) >> 32 & 3) | nsec << 2;
	return sec == node->mtime_sec && nsec == node->mtime_nsec;
}

/* There is no other time than that of the last change: access times are not
 * carried, and when an inode was made says nothing about the source.
 */
static void put_times(struct ext2_inode_large *inode, const struct disk_time *time)
{
	const uint32_t seconds = htole32(time->seconds), extra = htole32(time->extra);

	inode->i_atime = inode->i_ctime = inode->i_mtime = inode->i_crtime = seconds;
	inode->i_atime_extra = inode->i_ctime_extra = inode->i_mtime_extra = extra;
	inode->i_crtime_extra = extra;
}

static void put_owner(struct ext2_inode_large *inode, const struct inode_config *cfg)
{
	const struct model_node *node = cfg->node;

	inode->i_mode = htole16((uint16_t)(node->mode & ~cfg->mode_cut));
	inode->i_uid = htole16((uint16_t)node->uid);
	inode->i_gid = htole16((uint16_t)node->gid);
	inode->osd2.linux2.l_i_uid_high = htole16((uint16_t)(node->uid >> 16));
	inode->osd2.linux2.l_i_gid_high = htole16((uint16_t)(node->gid >> 16));
}

static void put_sizes(struct ext2_inode_large *inode, const struct inode_config *cfg)
{
	const uint64_t sectors = cfg->blocks * (MODEL_BLOCK / 512);

	assert(sectors >> 48 == 0 && cfg->xattr_block >> 48 == 0);
	inode->i_size = htole32((uint32_t)cfg->size);
	inode->i_size_high = htole32((uint32_t)(cfg->size >> 32));
	inode->i_blocks = htole32((uint32_t)sectors);
	inode->osd2.linux2.l_i_blocks_hi = htole16((uint16_t)(sectors >> 32));
	inode->i_file_acl = htole32((uint32_t)cfg->xattr_block);
	inode->osd2.linux2.l_i_file_acl_high = htole16((uint16_t)(cfg->xattr_block >> 32));
}

static uint16_t link_count(const struct inode_config *cfg)
{
	if (S_ISDIR(cfg->node->mode) && cfg->links > LINKS_MAX)
		return 1;
	assert(cfg->links <= LINKS_MAX);
	return (uint16_t)cfg->links;
}

static uint32_t inode_flags(const struct inode_config *cfg)
{
	const uint32_t mode = cfg->node->mode;
	const uint32_t mask = S_ISDIR(mode)   ? FLAGS_DIRECTORY
			      : S_ISREG(mode) ? FLAGS_FILE
					      : FLAGS_OTHER;

	return (cfg->node->flags & mask) | (cfg->extents ? EXT4_EXTENTS_FL : 0) |
	       (cfg->indexed ? EXT2_INDEX_FL : 0);
}

/* Two encodings, told apart by which word is not 0 (the kernel's
 * old_encode_dev and new_encode_dev).
 */
static void put_device(struct ext2_inode_large *inode, uint32_t major, uint32_t minor)
{
	if (major < 256 && minor < 256)
		inode->i_block[0] = htole32(major << 8 | minor);
	else
		inode->i_block[1] =
			htole32((minor & 0xff) | (major & 0xfff) << 8 | (minor & ~0xffu) << 12);
}

static void put_i_block(struct ext2_inode_large *inode, const struct inode_config *cfg)
{
	const struct model_node *node = cfg->node;

	if (cfg->i_block)
		memcpy(inode->i_block, cfg->i_block, sizeof inode->i_block);
	else if (S_ISCHR(node->mode) || S_ISBLK(node->mode))
		put_device(inode, node->rdev_major, node->rdev_minor);
}

/* Over the whole inode, with zeros where the sum's two halves go. */
static void seal(uint8_t inode[INODE_SIZE], uint32_t seed)
{
	const uint32_t sum = ext2fs_crc32c_le(seed, inode, INODE_SIZE);

	put_le16(inode + offsetof(struct ext2_inode_large, osd2.linux2.l_i_checksum_lo),
		 (uint16_t)sum);
	put_le16(inode + offsetof(struct ext2_inode_large, i_checksum_hi), (uint16_t)(sum >> 16));
}

bool inode_encode(const struct inode_config *cfg, uint8_t out[INODE_SIZE])
{
	struct ext2_inode_large inode = { 0 };
	struct disk_time time;
	const bool exact = encode_time(cfg->node, &time);

	put_owner(&inode, cfg);
	put_times(&inode, &time);
	put_sizes(&inode, cfg);
	put_i_block(&inode, cfg);
	inode.i_links_count = htole16(link_count(cfg));
	inode.i_flags = htole32(inode_flags(cfg));
	inode.i_extra_isize = htole16(INODE_EXTRA);

	memset(out, 0, INODE_SIZE);
	memcpy(out, &inode, sizeof inode);
	if (cfg->xattrs)
		memcpy(out + INODE_BEFORE_XATTRS, cfg->xattrs, XATTR_INODE_BYTES);
	seal(out, cfg->checksum_seed);
	return exact;
}
