// SPDX-License-Identifier: Apache-2.0
#include "source/held.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOOPS_MAX = 8 }; /* a loop device on a file on a loop device ... */

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Opening a device that hangs or asks questions is not for us: what it is is
 * looked at before it is opened, and again after.
 */
static int check_kind(const struct stat *st, struct err *err)
{
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode))
		return 0;
	if (S_ISDIR(st->st_mode))
		return err_set(err, ERR_REFUSED, "a directory, and no disk");
	return err_set(err, ERR_REFUSED, "neither a regular file nor a block device");
}

/* Open the same device again, this time for us alone. */
static int claim_device(struct held *held, struct err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", held->fd);
	fd = open(path, OPEN_FLAGS | O_EXCL);
	if (fd < 0 && errno != EBUSY)
		return err_errno(err, ERR_REFUSED, "cannot open it exclusively");
	held->claim = fd < 0 ? CLAIM_DENIED : CLAIM_HELD;
	if (fd >= 0) {
		close(held->fd);
		held->fd = fd;
	}
	return 0;
}

static int measure(struct held *held, struct err *err)
{
	if (fstat(held->fd, &held->st) < 0)
		return err_errno(err, ERR_FAILED, "cannot tell its size");
	held->size = (uint64_t)held->st.st_size;
	if (S_ISBLK(held->st.st_mode) && ioctl(held->fd, BLKGETSIZE64, &held->size) < 0)
		return err_errno(err, ERR_FAILED, "cannot tell its size");
	return 0;
}

ssize_t held_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *done)
{
	return io_pread_until(fd, buf, len, offset, done, interrupt_pending);
}

/* With the file that a loop device stands for: it is the source, too. */
static void protect(const struct stat *st)
{
	struct stat below, at = *st;

	io_protect(st);
	for (int depth = 0; depth < LOOPS_MAX && inuse_loop_backing(&at, &below); depth++) {
		io_protect(&below);
		at = below;
	}
}

static int take(struct held *held, const char *path, enum source_intent intent, struct err *err)
{
	if (stat(path, &held->st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open");
	if (check_kind(&held->st, err) < 0)
		return -1;
	protect(&held->st); /* also when it is refused */
	held->fd = open(path, OPEN_FLAGS);
	if (held->fd < 0 || fstat(held->fd, &held->st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open");
	if (check_kind(&held->st, err) < 0)
		return -1;
	protect(&held->st);
	if (intent == SOURCE_CAPTURE) {
		if (S_ISBLK(held->st.st_mode) && claim_device(held, err) < 0)
			return -1;
		/* Lock, then look: the other way round, a QEMU that starts in
		 * between would be missed.
		 */
		if (inuse_lock(held->fd, err) < 0)
			return -1;
	}
	if (inuse_check(held->fd, &held->st, held->claim, err) < 0)
		return -1;
	if (intent == SOURCE_CAPTURE)
		held->synced = fdatasync(held->fd) == 0;
	held->written = inuse_count_written(&held->st);
	return measure(held, err); /* syncing may have moved the times */
}

int held_open(struct held *held, const char *path, enum source_intent intent, struct err *err)
{
	*held = (struct held){ .fd = -1, .name = strdup(path) };
	if (!held->name) {
		err_nomem(err);
		return -1;
	}
	if (take(held, path, intent, err) == 0)
		return 0;
	err_context(err, "%s", path);
	held_close(held);
	return -1;
}

static int is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static int say_changed(struct err *err)
{
	return err_set(err, ERR_FAILED,
		       "changed while it was read; capture it when nothing writes to it");
}

/* What was written but has not reached the device yet is not counted, so it is
 * flushed first, as it was in the beginning.
 */
static int is_written(const struct held *held)
{
	return held->synced && fdatasync(held->fd) == 0 &&
	       inuse_count_written(&held->st) != held->written;
}

int held_check(const struct held *held, struct err *err)
{
	struct stat now;

	if (fstat(held->fd, &now) < 0)
		return err_errno(err, ERR_FAILED, "cannot tell whether it changed");
	if (S_ISREG(now.st_mode) &&
	    (now.st_size != held->st.st_size || !is_same_time(&now.st_mtim, &held->st.st_mtim) ||
	     !is_same_time(&now.st_ctim, &held->st.st_ctim)))
		return say_changed(err);
	if (S_ISBLK(now.st_mode) && is_written(held))
		return say_changed(err);
	if (inuse_check(held->fd, &now, held->claim, err) < 0) {
		err->kind = ERR_FAILED; /* too late for a refusal */
		return -1;
	}
	return 0;
}

void held_close(struct held *held)
{
	if (held->fd >= 0)
		close(held->fd);
	free(held->name);
	*held = (struct held){ .fd = -1 };
}
