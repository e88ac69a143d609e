// SPDX-License-Identifier: Apache-2.0
#include "base/io.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

ssize_t io_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *done)
{
	return io_pread_until(fd, buf, len, offset, done, NULL);
}

ssize_t io_pread_until(int fd, void *buf, size_t len, uint64_t offset, size_t *done,
		       int (*stop)(void))
{
	size_t got = 0;
	ssize_t n = 1;

	while (got < len && n != 0) {
		n = pread(fd, (char *)buf + got, len - got, (off_t)(offset + got));
		if (n < 0 && errno == EINTR && !(stop && stop()))
			continue;
		if (n < 0)
			break;
		got += (size_t)n;
	}
	if (done)
		*done = got;
	return n < 0 ? -1 : (ssize_t)got;
}

int io_pwrite(int fd, const void *buf, size_t len, uint64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, buf, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		buf = (const char *)buf + n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

char *io_read_file(int dirfd, const char *path, size_t max, size_t *length, struct err *err)
{
	autoclose int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	autofree char *text = malloc(max + 2);
	ssize_t n;

	if (!text) {
		err_nomem(err);
		return NULL;
	}
	n = fd < 0 ? -1 : io_pread(fd, text, max + 1, 0, NULL);
	if (n < 0) {
		err_errno(err, ERR_FAILED, "cannot read %s", path);
		return NULL;
	}
	if ((size_t)n > max) {
		err_set(err, ERR_FAILED, "%s is longer than %zu bytes", path, max);
		return NULL;
	}
	text[n] = '\0';
	if (length)
		*length = (size_t)n;
	return steal(&text);
}

/* Written while sources are opened, one after the other; read later. */
static pthread_mutex_t protected_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	dev_t dev;
	ino_t ino;
} * protected_files;
static size_t protected_count;

void io_protect(const struct stat *st)
{
	void *grown;

	pthread_mutex_lock(&protected_lock);
	grown = reallocarray(protected_files, protected_count + 1, sizeof *protected_files);
	if (!grown)
		abort(); /* going on would put the source at risk */
	protected_files = grown;
	protected_files[protected_count].dev = st->st_dev;
	protected_files[protected_count++].ino = st->st_ino;
	pthread_mutex_unlock(&protected_lock);
}

bool io_is_protected(const struct stat *st)
{
	bool found = false;

	pthread_mutex_lock(&protected_lock);
	for (size_t i = 0; i < protected_count && !found; i++)
		found = protected_files[i].dev == st->st_dev &&
			protected_files[i].ino == st->st_ino;
	pthread_mutex_unlock(&protected_lock);
	return found;
}

char *io_directory(const char *path, const char **last)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	*last = slash ? slash + 1 : path;
	if (!slash)
		return strdup(".");
	while (len > 1 && path[len - 1] == '/')
		len--;
	return strndup(path, MAX(len, 1));
}

bool io_is_same_place(const char *a, const char *b)
{
	const char *last_a, *last_b;
	autofree char *dir_a = io_directory(a, &last_a), *dir_b = io_directory(b, &last_b);
	struct stat st_a, st_b;

	return dir_a && dir_b && str_equal(last_a, last_b) && stat(dir_a, &st_a) == 0 &&
	       stat(dir_b, &st_b) == 0 && st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

int io_open_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= 2);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}
