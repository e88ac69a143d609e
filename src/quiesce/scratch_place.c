// SPDX-License-Identifier: Apache-2.0
#include "quiesce/scratch_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/str.h"
#include "quiesce/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define LONGEST_IN_PLACE "/" SCRATCH_PREFIX "123456/socket"

/* A cache directory is on a disk, and scratch files may grow; but its path may be too long. */
char *scratch_default_place(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	autofree char *cache = own_folder("XDG_CACHE_HOME", ".cache", "scratch");

	if (cache && strlen(cache) + strlen(LONGEST_IN_PLACE) <= SOCKET_PATH_MAX)
		return steal(&cache);
	if (runtime && runtime[0] == '/')
		return str_format("%s/ccsnap/scratch", runtime);
	return steal(&cache);
}

/* Would an entry be closed to others if the folder around it were not? */
static bool is_closed(int dirfd, const char *name)
{
	struct stat st;

	if (str_equal(name, ".") || str_equal(name, "..") || str_equal(name, "scratch"))
		return true;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISLNK(st.st_mode) || (st.st_mode & 077) == 0;
}

static bool is_all_closed(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!entries) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((entry = readdir(entries)))
		if (!is_closed(fd, entry->d_name))
			return false;
	return true;
}

void scratch_let_pass(const char *folder)
{
	autoclose int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0011) == 0011)
		return;
	if (!is_all_closed(fd))
		return; /* the try with QEMU's rights tells the user */
	if (fchmod(fd, (st.st_mode & 07777) | 0011) == 0)
		log_note("others may pass through %s now (chmod go+x), so that QEMU can reach its "
			 "scratch file",
			 folder);
}

static int make_default(const char *place, const struct qemu_user *user, struct err *err)
{
	const char *last;
	autofree char *above = strdup(place);

	if (!above)
		return err_nomem(err);
	if (folder_make(place, qemu_user_is_us(user) ? 0700 : 0711, err) < 0)
		return -1;
	last = strrchr(above, '/');
	above[last - above] = '\0';
	if (qemu_user_is_us(user))
		return 0;
	scratch_let_pass(above);
	scratch_let_pass(place);
	return 0;
}

static char *default_place(const struct qemu_user *user, struct err *err)
{
	autofree char *place = scratch_default_place();

	if (!place) {
		err_set(err, ERR_REFUSED,
			"there is no place for a scratch file; use --scratch-dir");
		return NULL;
	}
	return make_default(place, user, err) < 0 ? NULL : steal(&place);
}

char *scratch_place(const char *wanted, const struct qemu_user *user, struct err *err)
{
	autofree char *place = wanted ? strdup(wanted) : default_place(user, err);
	autofree char *real = place ? realpath(place, NULL) : NULL;
	struct stat st;

	if (!place)
		return NULL;
	if (!real || stat(real, &st) < 0) {
		err_errno(err, ERR_REFUSED, "cannot use %s for a scratch file", place);
		return NULL;
	}
	if (!S_ISDIR(st.st_mode)) {
		err_set(err, ERR_REFUSED, "%s is no directory; use another --scratch-dir", place);
		return NULL;
	}
	return steal(&real);
}

static bool is_text(const char *path)
{
	for (size_t n; *path; path += n) {
		n = str_utf8_len(path);
		if (n == 0 || str_is_control(path))
			return false;
	}
	return true;
}

int scratch_check_name(const char *path, struct err *err)
{
	if (!is_text(path))
		return err_set(err, ERR_REFUSED,
			       "the path %s cannot stand in an XML text; use another --scratch-dir",
			       path);
	if (strlen(path) > SOCKET_PATH_MAX)
		return err_set(err, ERR_REFUSED,
			       "a socket's path has at most %d bytes, and %s has %zu; use a "
			       "--scratch-dir with a shorter path",
			       SOCKET_PATH_MAX, path, strlen(path));
	return 0;
}

uint64_t scratch_room(const char *dir)
{
	struct statvfs fs;

	return statvfs(dir, &fs) < 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}
