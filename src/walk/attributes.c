// SPDX-License-Identifier: Apache-2.0
#include "walk/attributes.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

/* An inode can have more than this on some filesystems; in ext4 it is a block. */
#define VALUES_MAX (1u << 20)
#define COUNT_MAX  8192u

struct attributes_scratch {
	char names[XATTR_LIST_MAX + 1];
	char values[VALUES_MAX + XATTR_SIZE_MAX];
	size_t used;
	struct model_xattr list[COUNT_MAX];
	size_t count;
};

/* An inode: an open one, or one by its path. */
struct target {
	int fd;
	const char *path; /* NULL: fd */
};

static ssize_t list_names(const struct target *t, char *names, size_t size)
{
	return t->path ? llistxattr(t->path, names, size) : flistxattr(t->fd, names, size);
}

static ssize_t get_value(const struct target *t, const char *name, void *value, size_t size)
{
	return t->path ? lgetxattr(t->path, name, value, size)
		       : fgetxattr(t->fd, name, value, size);
}

static void add_one(struct attributes *a, const struct target *t, const char *name)
{
	struct attributes_scratch *s = a->scratch;
	ssize_t size;

	if (s->count == COUNT_MAX || s->used > VALUES_MAX) {
		a->lost(a->ctx, name, "too many attributes");
		return;
	}
	size = get_value(t, name, s->values + s->used, XATTR_SIZE_MAX);
	if (size < 0) {
		/* ENODATA: taken away since they were listed. */
		if (errno != ENODATA)
			a->lost(a->ctx, name, strerror(errno));
		return;
	}
	s->list[s->count++] = (struct model_xattr){ name, s->values + s->used, (size_t)size };
	s->used += (size_t)size;
}

static int read_xattrs(struct attributes *a, const struct target *t, struct model *model,
		       uint32_t *set, struct err *err)
{
	struct attributes_scratch *s = a->scratch;
	ssize_t len;

	*set = 0;
	if (!s)
		s = a->scratch = malloc(sizeof *s);
	if (!s)
		return err_nomem(err);
	len = list_names(t, s->names, XATTR_LIST_MAX);
	if (len < 0 && errno != EOPNOTSUPP)
		a->lost(a->ctx, "extended attributes", strerror(errno));
	if (len <= 0)
		return 0;
	s->names[len] = '\0';
	s->used = s->count = 0;
	for (const char *name = s->names; name < s->names + len; name += strlen(name) + 1)
		add_one(a, t, name);
	return s->count ? model_xattrs(model, s->list, s->count, set, err) : 0;
}

/* What ext4 has as well, and no more than that: how a filesystem stores a file
 * (extents, no copy on write, DAX, ...) is its own affair.
 */
#define FLAGS_CARRIED                                                                              \
	((uint32_t)(FS_SECRM_FL | FS_UNRM_FL | FS_COMPR_FL | FS_SYNC_FL | FS_IMMUTABLE_FL |        \
		    FS_APPEND_FL | FS_NODUMP_FL | FS_NOATIME_FL | FS_JOURNAL_DATA_FL |             \
		    FS_NOTAIL_FL | FS_DIRSYNC_FL | FS_TOPDIR_FL))

/* What changes what a file means, and is not carried. */
static const struct {
	uint32_t flag;
	const char *which, *why;
} missed[] = {
	{ FS_ENCRYPT_FL, "encryption", "the image holds it as it reads, in the clear" },
	{ FS_VERITY_FL, "fs-verity", "not carried" },
	{ FS_CASEFOLD_FL, "casefold", "not carried: names differ by case in the image" },
};

static bool has_no_flags(int error)
{
	return error == ENOTTY || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

static void read_flags(struct attributes *a, int fd, uint32_t *flags)
{
	/* The kernel writes an int, whatever the number says. */
	int value = 0;

	*flags = 0;
	if (ioctl(fd, FS_IOC_GETFLAGS, &value) < 0) {
		if (!has_no_flags(errno))
			a->lost(a->ctx, "chattr flags", strerror(errno));
		return;
	}
	*flags = (uint32_t)value & FLAGS_CARRIED;
	for (size_t i = 0; i < sizeof missed / sizeof *missed; i++)
		if ((uint32_t)value & missed[i].flag)
			a->lost(a->ctx, missed[i].which, missed[i].why);
}

int attributes_read(struct attributes *a, int fd, struct model *model, uint32_t *xattrs,
		    uint32_t *flags, struct err *err)
{
	const struct target t = { .fd = fd };

	read_flags(a, fd, flags);
	return read_xattrs(a, &t, model, xattrs, err);
}

int attributes_read_at(struct attributes *a, int dirfd, const char *name, struct model *model,
		       uint32_t *xattrs, struct err *err)
{
	/* No call of older kernels takes a descriptor and a name. */
	autofree char *path = str_format("/proc/self/fd/%d/%s", dirfd, name);
	const struct target t = { .path = path };

	return path ? read_xattrs(a, &t, model, xattrs, err) : err_nomem(err);
}

void attributes_free(struct attributes *a)
{
	free(a->scratch);
	a->scratch = NULL;
}
