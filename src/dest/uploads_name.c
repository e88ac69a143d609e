// SPDX-License-Identifier: Apache-2.0
#include "dest/uploads_inner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define POLL_MS 50

struct lock_name {
	char text[sizeof "name-.lock" + sizeof(struct uuid_text)];
};

static struct lock_name lock_name(const char *key)
{
	struct lock_name name;
	struct uuid_text text;
	uint8_t uuid[16];

	uuid_derive(key, strlen(key), "ccsnap upload name", uuid);
	uuid_format(uuid, text.text);
	snprintf(name.text, sizeof name.text, "name-%s.lock", text.text);
	return name;
}

enum lock { LOCK_ERROR = -1, LOCK_HELD, LOCK_OURS, LOCK_REMOVED };

static enum lock lock_once(const struct uploads *u, const char *name, int *out, struct err *err)
{
	autoclose int fd = openat(u->dirfd, name,
				  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return err_errno(err, ERR_FAILED, "cannot create %s/%s", u->folder, name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK || errno == EINTR)
			return LOCK_HELD;
		log_debug("%s has no file locks: runs for one name do not see each other",
			  u->folder);
	}
	/* who held it removed it before we had it: now it keeps out nobody */
	if (fstat(fd, &st) == 0 && st.st_nlink == 0)
		return LOCK_REMOVED;
	*out = steal_fd(&fd);
	return LOCK_OURS;
}

static enum lock try_lock(const struct uploads *u, const char *name, int *out, struct err *err)
{
	enum lock lock;

	do
		lock = lock_once(u, name, out, err);
	while (lock == LOCK_REMOVED);
	return lock;
}

static int wait_a_little(struct err *err)
{
	clock_sleep_ms(POLL_MS);
	return interrupt_check(err);
}

int uploads_lock_name(struct uploads *u, const char *key, unsigned wait_seconds, int *fd,
		      struct err *err)
{
	struct lock_name name = lock_name(key);
	uint64_t start = clock_ns();
	enum lock lock;

	while ((lock = try_lock(u, name.text, fd, err)) == LOCK_HELD) {
		if (clock_seconds_since(start) >= wait_seconds)
			return err_set(err, ERR_BUSY,
				       "another run sends an image of that name; wait for it with "
				       "--lock-wait");
		if (wait_a_little(err) < 0)
			return -1;
	}
	return lock == LOCK_OURS ? 0 : -1;
}

/* Removed while it is held, so that nobody else's is. */
void uploads_unlock_name(struct uploads *u, const char *key, int *fd)
{
	if (*fd < 0)
		return;
	unlinkat(u->dirfd, lock_name(key).text, 0);
	close(*fd);
	*fd = -1;
}
