// SPDX-License-Identifier: Apache-2.0
#include "dest/folder_inner.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

#include <fcntl.h>
#include <sys/stat.h>

static int say_difference(const char *name, const struct image_info *info,
			  const struct digests *found, struct err *err)
{
	uint64_t start, end;

	digests_difference(found, &info->digests, info->size, &start, &end);
	return err_set(err, ERR_FAILED,
		       "%s is not what its manifest says: it begins to differ at offset %llu or "
		       "up to %llu bytes behind",
		       name, (unsigned long long)start, (unsigned long long)(end - start));
}

/* What was listed is a regular file; what has taken its place may be anything. */
static int open_image(int dirfd, const char *name, const struct image_info *info, struct err *err)
{
	autoclose int fd = openat(dirfd, info->file,
				  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot open %s", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != info->size)
		return err_set(err, ERR_FAILED, "%s was replaced meanwhile; try again", name);
	return steal_fd(&fd);
}

int folder_fetch(struct dest *dest, struct image_info *info, int fd, struct err *err)
{
	const struct folder *f = (const struct folder *)dest; /* list() has opened it */
	autofree char *name = str_format("%s/%s", f->path, info->file);
	autoclose int in = name ? open_image(f->dirfd, name, info, err) : -1;
	struct digests found;

	if (!name)
		return err_nomem(err);
	if (in < 0 || hash_copy(in, fd, name, info->size, &found, dest->progress,
				dest->progress_ctx, err) < 0)
		return -1;
	if (!digests_equal(&found, &info->digests))
		return say_difference(name, info, &found, err);
	info->digests = found;
	dest->receipt.verified = true;
	dest->receipt.verified_by = "sha512";
	return 0;
}
