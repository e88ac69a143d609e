// SPDX-License-Identifier: Apache-2.0
#include "walk/beneath.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#define READ_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* A lease (Samba, NFS server) is given back within moments as a rule. */
#define LEASE_TRIES   50
#define LEASE_WAIT_MS 20

/* O_NOATIME is for the owner and root. */
static int open_once(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name, READ_FLAGS | O_NOATIME | flags);

	return fd < 0 && errno == EPERM ? openat(dirfd, name, READ_FLAGS | flags) : fd;
}

int quiet_open(int dirfd, const char *name, int flags)
{
	int fd = open_once(dirfd, name, flags);

	for (int i = 0; fd < 0 && errno == EWOULDBLOCK && i < LEASE_TRIES; i++) {
		clock_sleep_ms(LEASE_WAIT_MS);
		fd = open_once(dirfd, name, flags);
	}
	return fd;
}

/* --- paths --------------------------------------------------------------------- */

#define OPEN_FLAGS (READ_FLAGS | O_DIRECTORY)
#define PASS_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* One component, or with openat2 a whole path without ".." in it. */
static int try_open(const struct beneath *b, int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	if (b->has_openat2)
		return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how);
	return openat(dirfd, path, flags);
}

static int open_quietly(const struct beneath *b, int dirfd, const char *path, int flags)
{
	int fd = try_open(b, dirfd, path, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM)
		fd = try_open(b, dirfd, path, flags);
	return fd;
}

struct beneath beneath_probe(int dirfd)
{
	struct beneath probe = { .has_openat2 = true };
	autoclose int fd = try_open(&probe, dirfd, ".", PASS_FLAGS);

	probe.has_openat2 = fd >= 0;
	return probe;
}

/* Cut off as much of *path as the kernel takes at once. */
static char *next_piece(const struct beneath *b, char **path)
{
	char *piece = *path, *end = strchr(piece, '/');

	while (b->has_openat2 && end) {
		char *next = strchr(end + 1, '/');

		if (!next || next - piece >= PATH_MAX)
			break;
		end = next;
	}
	if (end) {
		*end = '\0';
		*path = end + 1;
	} else {
		*path = piece + strlen(piece);
	}
	return *piece ? piece : NULL;
}

/* Something else than a directory on the way. */
static int stale(void)
{
	if (errno == ELOOP || errno == ENOTDIR || errno == EXDEV)
		errno = ESTALE;
	return -1;
}

int beneath_open(const struct beneath *b, int from, char *path)
{
	autoclose int at = -1;
	char *piece;

	if (!*path)
		return open_quietly(b, from, ".", OPEN_FLAGS);
	while ((piece = next_piece(b, &path))) {
		int dir = at < 0 ? from : at;
		/* On the way, permission to pass is enough. */
		int fd = *path ? try_open(b, dir, piece, PASS_FLAGS)
			       : open_quietly(b, dir, piece, OPEN_FLAGS);

		if (fd < 0)
			return stale();
		if (at >= 0)
			close(at);
		at = fd;
	}
	return steal_fd(&at);
}
