// SPDX-License-Identifier: Apache-2.0
#include "quiesce/scratch_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "quiesce/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

const char *const scratch_names[] = { "socket", "scratch", NULL };

bool scratch_is_ours(const struct stat *st)
{
	if (!S_ISDIR(st->st_mode) || (st->st_mode & 077))
		return false;
	return st->st_uid == geteuid() || (geteuid() == 0 && st->st_gid == getegid());
}

/* A descriptor of it, -1 with errno; EPERM: not ours. */
static int open_ours(int dirfd, const char *path)
{
	autoclose int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!scratch_is_ours(&st)) {
		errno = EPERM;
		return -1;
	}
	return steal_fd(&fd);
}

static int remove_names(int dirfd, const char *dir, struct err *err)
{
	for (const char *const *name = scratch_names; *name; name++)
		if (unlinkat(dirfd, *name, 0) < 0 && errno != ENOENT)
			return err_errno(err, ERR_FAILED, "cannot remove %s/%s", dir, *name);
	return 0;
}

static bool has_our_name(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return dir[0] == '/' && str_starts(slash + 1, SCRATCH_PREFIX);
}

int scratch_clear(const char *dir, struct err *err)
{
	autoclose int fd = -1;

	if (!has_our_name(dir))
		return err_set(err, ERR_FAILED, "%s is no scratch directory, and left alone", dir);
	fd = open_ours(AT_FDCWD, dir);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, ERR_FAILED,
				 "%s is not, or no longer, a directory of ours, and left alone",
				 dir);
	if (remove_names(fd, dir, err) < 0)
		return -1;
	if (rmdir(dir) == 0 || errno == ENOENT)
		return 0;
	err_errno(err, ERR_FAILED, "cannot remove %s", dir);
	return errno == ENOTEMPTY ? err_hint(err, "look what is in it, and remove it by hand") : -1;
}

int scratch_lock(const char *dir)
{
	autoclose int fd = open_ours(AT_FDCWD, dir);

	if (fd < 0)
		return -1;
	flock(fd, LOCK_EX);	   /* who sweeps holds it for a moment only */
	if (access(dir, F_OK) < 0) /* and has removed it */
		return -1;
	return steal_fd(&fd);
}

static void sweep_one(int place, const char *name, const char *const *names)
{
	autoclose int fd = open_ours(place, name);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return;
	for (; *names; names++)
		unlinkat(fd, *names, 0);
	unlinkat(place, name, AT_REMOVEDIR);
}

/* A name that we give: others, too, make directories that start like ours. */
static bool is_given_name(const char *name, const char *prefix, const char *letters)
{
	size_t at = strlen(prefix);

	return str_starts(name, prefix) && strlen(name) == at + SCRATCH_TAG_LEN &&
	       strspn(name + at, letters) == SCRATCH_TAG_LEN;
}

void scratch_sweep(const char *place, const char *prefix, const char *letters,
		   const char *const *names)
{
	autodir DIR *entries = opendir(place);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (is_given_name(entry->d_name, prefix, letters))
			sweep_one(dirfd(entries), entry->d_name, names);
}
