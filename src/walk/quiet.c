// SPDX-License-Identifier: Apache-2.0
#include "walk/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#define FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* A lease (Samba, NFS server) is given back within moments as a rule. */
#define LEASE_TRIES   50
#define LEASE_WAIT_NS (20 * 1000 * 1000)

/* O_NOATIME is for the owner and root. */
static int open_once(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name, FLAGS | O_NOATIME | flags);

	return fd < 0 && errno == EPERM ? openat(dirfd, name, FLAGS | flags) : fd;
}

int quiet_open(int dirfd, const char *name, int flags)
{
	const struct timespec wait = { .tv_nsec = LEASE_WAIT_NS };
	int fd = open_once(dirfd, name, flags);

	for (int i = 0; fd < 0 && errno == EWOULDBLOCK && i < LEASE_TRIES; i++) {
		nanosleep(&wait, NULL);
		fd = open_once(dirfd, name, flags);
	}
	return fd;
}
