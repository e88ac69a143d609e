// SPDX-License-Identifier: Apache-2.0
#include "ext4/build.h"

#include "base/account.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

/* What chattr can set on a filesystem that has it all (FS_FL_USER_MODIFIABLE). */
#define FLAGS_A_USER_SETS 0x000380ffu

static uint32_t stored_flags(const uint8_t inode[INODE_SIZE])
{
	return get_le32(inode + offsetof(struct ext2_inode_large, i_flags));
}

static uint32_t stored_mode(const uint8_t inode[INODE_SIZE])
{
	return get_le16(inode + offsetof(struct ext2_inode_large, i_mode));
}

static int64_t stored_seconds(const uint8_t inode[INODE_SIZE])
{
	const uint32_t low = get_le32(inode + offsetof(struct ext2_inode_large, i_mtime)),
		       extra = get_le32(inode + offsetof(struct ext2_inode_large, i_mtime_extra));

	return (int64_t)(int32_t)low + ((int64_t)(extra & 3) << 32);
}

static uint32_t lost_flags(const struct model_node *n, const uint8_t inode[INODE_SIZE])
{
	return n->flags & FLAGS_A_USER_SETS & ~stored_flags(inode);
}

bool inode_is_lossy(const struct model_node *n, const uint8_t inode[INODE_SIZE])
{
	return stored_seconds(inode) != n->mtime_sec || lost_flags(n, inode) != 0;
}

struct loss {
	struct account *account;
	const char *path;
	uint32_t found, stored; /* modes */
};

/* What the loss of an ACL means beyond what it says. */
static const char *consequence(const struct loss *loss, const char *name)
{
	if (str_equal(name, XATTR_ACL_DEFAULT))
		return "; new files in it may get more rights";
	if (str_equal(name, XATTR_ACL_ACCESS) && loss->stored != loss->found)
		return "; rights of the group and of others are cut, so that nobody gets more";
	return "";
}

static void account_attribute(void *ctx, const char *name, const char *why)
{
	const struct loss *loss = ctx;

	account_add(loss->account, ACCOUNT_ATTRIBUTE, loss->path, "%s: %s%s", name, why,
		    consequence(loss, name));
}

int loss_account(struct ext4 *fs, uint32_t node, struct err *err)
{
	const struct model_node *n = &fs->model->nodes[node];
	autofree char *path = model_path(fs->model, node);
	struct loss loss = { .account = fs->account, .path = path, .found = n->mode & 0xffff };
	struct xattr_image image;
	uint8_t inode[INODE_SIZE];

	if (!path)
		return err_nomem(err);
	if (!fs->account)
		return 0;
	inode_load(fs, n->ino, inode);
	if (stored_seconds(inode) != n->mtime_sec)
		account_add(fs->account, ACCOUNT_ATTRIBUTE, path,
			    "its time: ext4 holds those from 1901 to 2446 only");
	if (lost_flags(n, inode))
		account_add(fs->account, ACCOUNT_ATTRIBUTE, path,
			    "chattr flags %#x: ext4 has none such", lost_flags(n, inode));
	if (n->xattrs == 0)
		return 0;
	loss.stored = stored_mode(inode);
	return xattr_encode(&fs->model->sets[n->xattrs], &image, account_attribute, &loss, err);
}
