// SPDX-License-Identifier: Apache-2.0
#include "commands/target.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "commands/local_image.h"
#include "source/extent.h"
#include "source/inuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define OPEN_FLAGS (O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* Zeroing happens in the kernel, where no signal ends it: a piece at a time. */
#define ZERO_STEP (64 * MIB)

/* Less than this is sooner written than zeroed by the device. */
#define ZERO_MIN MIB

/* So much may wait in the page cache, for which the final sync has to wait then. */
#define UNSYNCED_MAX (64 * MIB)

struct target {
	struct source source; /* the way to read it back */
	int fd;
	struct stat st;
	uint64_t size;
	unsigned sector_size;
	enum inuse_claim claim;
	uint64_t flushing, flushed; /* sent on its way up to there; arrived up to there */
	bool is_written;	    /* what it held is no longer whole */
};

/* --- reading it back --- */

static int target_read_at(struct source *src, void *buf, size_t len, uint64_t offset,
			  struct err *err)
{
	const struct target *t = (const struct target *)src;
	size_t done;
	ssize_t n = io_pread_until(t->fd, buf, len, offset, &done, interrupt_pending);

	if (n < 0 && interrupt_check(err) < 0)
		return -1;
	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read back at offset %llu",
				 (unsigned long long)(offset + done));
	if (done < len)
		return err_set(err, ERR_FAILED, "ended at offset %llu",
			       (unsigned long long)(offset + done));
	return 0;
}

/* The next data, [*start, *end), at or behind at; empty only at limit.  Only a file
 * knows of holes, and tells the truth once it is synced.
 */
static void find_data(const struct target *t, uint64_t at, uint64_t limit, uint64_t *start,
		      uint64_t *end)
{
	off_t data = S_ISREG(t->st.st_mode) ? lseek(t->fd, (off_t)at, SEEK_DATA) : -1, hole;

	*start = *end = limit;
	if (S_ISREG(t->st.st_mode) && data < 0 && errno == ENXIO)
		return;
	hole = data < (off_t)at ? -1 : lseek(t->fd, data, SEEK_HOLE);
	if (hole <= data) { /* it cannot tell: all is data */
		*start = at;
		return;
	}
	*start = MIN((uint64_t)data, limit);
	*end = MIN((uint64_t)hole, limit);
}

static int target_extents(struct source *src, uint64_t offset, uint64_t length,
			  struct extent_list *out, struct err *err)
{
	const struct target *t = (const struct target *)src;
	uint64_t at = offset, limit = offset + length;

	while (at < limit) {
		uint64_t start, end;

		find_data(t, at, limit, &start, &end);
		if (extent_list_add(out, at, start - at, true, err) < 0 ||
		    extent_list_add(out, start, end - start, false, err) < 0)
			return -1;
		at = end;
	}
	return 0;
}

static const struct source_ops target_source_ops = {
	.name = "target",
	.extents = target_extents,
	.read_at = target_read_at,
};

struct source *target_source(struct target *t)
{
	return &t->source;
}

/* --- writing --- */

/* Send [from, to) on its way and, if how says so, wait until it has arrived.  That it
 * did not is told only once, so that it must not be lost here.
 */
static int flush(struct target *t, uint64_t from, uint64_t to, unsigned how, struct err *err)
{
	if (sync_file_range(t->fd, (off_t)from, (off_t)(to - from), how) == 0 || errno == EINVAL ||
	    errno == ESPIPE || errno == ENOSYS)
		return 0;
	return err_errno(err, ERR_FAILED, "%s: cannot write before offset %llu", t->source.name,
			 (unsigned long long)to);
}

/* What was written is sent at once, and what was sent before has to have arrived then:
 * no signal has to wait for a whole page cache.
 */
static int pace(struct target *t, uint64_t end, struct err *err)
{
	if (end < t->flushing + UNSYNCED_MAX)
		return 0;
	if (flush(t, t->flushing, end, SYNC_FILE_RANGE_WRITE, err) < 0 ||
	    flush(t, t->flushed, t->flushing,
		  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER,
		  err) < 0)
		return -1;
	t->flushed = t->flushing;
	t->flushing = end;
	return 0;
}

int target_write(struct target *t, const void *buf, size_t len, uint64_t offset, struct err *err)
{
	int rc = io_pwrite(t->fd, buf, len, offset);

	/* those are said before the first byte */
	t->is_written |= rc == 0 || (errno != EPERM && errno != EROFS && errno != EBADF);
	if (rc < 0)
		return err_errno(err, ERR_FAILED, "%s: cannot write at offset %llu", t->source.name,
				 (unsigned long long)offset);
	return pace(t, offset + len, err);
}

static int write_zeros(struct target *t, uint64_t len, uint64_t offset, struct err *err)
{
	static uint8_t zeros[MIB]; /* never written; not const, so that it takes no room */

	for (uint64_t done = 0, n; done < len; done += n) {
		n = MIN(len - done, sizeof zeros);
		if (interrupt_check(err) < 0 ||
		    target_write(t, zeros, (size_t)n, offset + done, err) < 0)
			return -1;
	}
	return 0;
}

/* By the device or filesystem itself.  False: it cannot. */
static bool zero_at_once(const struct target *t, uint64_t len, uint64_t offset)
{
	uint64_t range[2] = { offset, len };

	if (S_ISBLK(t->st.st_mode))
		return len >= ZERO_MIN && ioctl(t->fd, BLKZEROOUT, range) == 0;
	return fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			 (off_t)len) == 0;
}

int target_zero(struct target *t, uint64_t len, uint64_t offset, struct err *err)
{
	for (uint64_t done = 0, n; done < len; done += n) {
		n = MIN(len - done, ZERO_STEP);
		if (interrupt_check(err) < 0)
			return -1;
		if (zero_at_once(t, n, offset + done))
			t->is_written = true;
		else if (write_zeros(t, n, offset + done, err) < 0)
			return -1;
	}
	return 0;
}

int target_sync(struct target *t, struct err *err)
{
	if (fsync(t->fd) < 0)
		return err_errno(err, ERR_FAILED, "%s: cannot write all of it", t->source.name);
	if (S_ISBLK(t->st.st_mode) && ioctl(t->fd, BLKFLSBUF, 0) < 0)
		log_debug("%s: its buffers stay: %s", t->source.name, strerror(errno));
	posix_fadvise(t->fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

void target_announce(struct target *t)
{
	if (S_ISBLK(t->st.st_mode) && ioctl(t->fd, BLKRRPART) < 0)
		log_debug("%s: its partitions were not read: %s", t->source.name, strerror(errno));
}

/* --- what it is --- */

const char *target_name(const struct target *t)
{
	return t->source.name;
}

uint64_t target_size(const struct target *t)
{
	return t->size;
}

bool target_is_written(const struct target *t)
{
	return t->is_written;
}

unsigned target_sector_size(const struct target *t)
{
	return t->sector_size;
}

static int open_sysfs(const struct target *t)
{
	char path[64];

	snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(t->st.st_rdev),
		 minor(t->st.st_rdev));
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* "" when it does not say. */
static void read_model(int sysfs, char *model, size_t cap)
{
	static const char *const places[] = { "device/model", "../device/model",
					      "loop/backing_file" };

	model[0] = '\0';
	for (size_t i = 0; i < sizeof places / sizeof *places && !*model; i++) {
		autoclose int fd = openat(sysfs, places[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : io_pread(fd, model, cap - 1, 0, NULL);

		for (n = MAX(n, 0); n > 0 && strchr(" \n", model[n - 1]);)
			n--;
		model[n] = '\0';
	}
}

static unsigned count_partitions(int sysfs)
{
	int copy = openat(sysfs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autodir DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	char path[NAME_MAX + 16];
	unsigned count = 0;

	while (entries && (entry = readdir(entries))) {
		snprintf(path, sizeof path, "%s/partition", entry->d_name);
		count += entry->d_name[0] != '.' && faccessat(sysfs, path, F_OK, 0) == 0;
	}
	return count;
}

struct target_text target_describe(const struct target *t)
{
	autoclose int sysfs = S_ISBLK(t->st.st_mode) ? open_sysfs(t) : -1;
	unsigned partitions = sysfs < 0 ? 0 : count_partitions(sysfs);
	char model[128] = "", parts[64] = "";
	struct target_text out;

	if (sysfs >= 0)
		read_model(sysfs, model, sizeof model);
	if (partitions)
		snprintf(parts, sizeof parts, ", %u partition%s", partitions,
			 partitions == 1 ? "" : "s");
	snprintf(out.text, sizeof out.text, "the %s %.200s (%s%s%s%s)",
		 S_ISBLK(t->st.st_mode) ? "disk" : "file", t->source.name, model,
		 *model ? ", " : "", size_format(t->size).text, parts);
	return out;
}

/* --- opening --- */

static int check_kind(const struct stat *st, struct err *err)
{
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode))
		return 0;
	return err_set(err, ERR_REFUSED, "neither a block device nor a regular file");
}

/* A device that somebody else has is opened without being claimed, so that it can be
 * said who has it.
 */
static int open_target(struct target *t, const char *path, struct err *err)
{
	int exclusive;

	if (stat(path, &t->st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open");
	if (check_kind(&t->st, err) < 0)
		return -1;
	exclusive = S_ISBLK(t->st.st_mode) ? O_EXCL : 0;
	t->fd = open(path, O_RDWR | exclusive | OPEN_FLAGS);
	if (exclusive)
		t->claim = t->fd < 0 ? CLAIM_DENIED : CLAIM_HELD;
	if (t->fd < 0 && exclusive && errno == EBUSY)
		t->fd = open(path, O_RDONLY | OPEN_FLAGS);
	if (t->fd < 0 || fstat(t->fd, &t->st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open");
	return check_kind(&t->st, err);
}

/* The kernel opens such a device for writing all the same. */
static int check_writable(const struct target *t, struct err *err)
{
	int read_only = 0;

	if (!S_ISBLK(t->st.st_mode) || ioctl(t->fd, BLKROGET, &read_only) < 0 || !read_only)
		return 0;
	return err_set(err, ERR_REFUSED, "the device is read-only");
}

/* An image of a store is no disk to put another one on: its manifest would lie then. */
static int check_store(const struct target *t, const char *path, struct err *err)
{
	autofree char *real = realpath(path, NULL);
	struct local_image image;
	struct err ignored;
	bool is_stored;

	if (!S_ISREG(t->st.st_mode) || !real)
		return 0;
	is_stored = local_image_load(&image, real, NULL, "raw", &ignored) == 0 &&
		    image.has_manifest && str_equal(image.info.file, strrchr(real, '/') + 1);
	local_image_free(&image);
	if (!is_stored)
		return 0;
	return err_set(err, ERR_REFUSED, "an image of a store: it has a manifest beside it");
}

static int measure(struct target *t, struct err *err)
{
	int sector_size = 0;

	t->size = (uint64_t)t->st.st_size;
	if (S_ISBLK(t->st.st_mode) &&
	    (ioctl(t->fd, BLKGETSIZE64, &t->size) < 0 || ioctl(t->fd, BLKSSZGET, &sector_size) < 0))
		return err_errno(err, ERR_FAILED, "cannot tell its size");
	t->sector_size = (unsigned)sector_size;
	t->source.size = round_down(t->size, 512);
	return 0;
}

struct target *target_open(const char *path, struct err *err)
{
	autotarget struct target *t = calloc(1, sizeof *t);

	if (t)
		t->fd = -1;
	if (!t || !(t->source.name = strdup(path))) {
		err_nomem(err);
		return NULL;
	}
	t->source.ops = &target_source_ops;
	if (open_target(t, path, err) < 0 || check_store(t, path, err) < 0 ||
	    inuse_take(t->fd, &t->st, t->claim, err) < 0 || check_writable(t, err) < 0 ||
	    measure(t, err) < 0) {
		err_context(err, "%s", path);
		return NULL;
	}
	return steal(&t);
}

void target_close(struct target *t)
{
	if (!t || t->source.stuck) /* a thread that was left behind keeps it */
		return;
	if (t->fd >= 0)
		close(t->fd);
	free(t->source.name);
	free(t);
}
