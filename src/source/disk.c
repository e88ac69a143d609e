// SPDX-License-Identifier: Apache-2.0
#include "source/formats.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/pace.h"
#include "base/size.h"
#include "source/extent.h"
#include "source/held.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A regular file or block device that holds the disk as it is. */

enum { SECTOR = 512, PAGE = 4096 };

struct disk {
	struct source source;
	struct held held;
	int believe_holes;
	struct pace pace;
	atomic_bool is_aborted;
};

static struct disk *disk_of(struct source *src)
{
	return (struct disk *)src;
}

static int say_shrunk(const struct disk *disk, uint64_t end, struct err *err)
{
	return err_set(err, ERR_FAILED,
		       "ended at offset %llu (it was %llu bytes at the start): it shrank while "
		       "being read",
		       (unsigned long long)end, (unsigned long long)disk->held.size);
}

/* Sizes as the file is now: what lies behind its end is no hole. */
static int check_not_shrunk(const struct disk *disk, struct err *err)
{
	struct stat st;

	if (fstat(disk->held.fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot tell its size");
	return (uint64_t)st.st_size < disk->held.size ? say_shrunk(disk, (uint64_t)st.st_size, err)
						      : 0;
}

/* Where data begins at or behind at, and where it ends; [*start, *end) lies
 * inside [at, limit) and is empty only at limit.  The file may change while we
 * ask, so whatever comes back is clipped.
 */
static int find_data(const struct disk *disk, uint64_t at, uint64_t limit, uint64_t *start,
		     uint64_t *end, struct err *err)
{
	off_t data = lseek(disk->held.fd, (off_t)at, SEEK_DATA), hole;

	*start = *end = limit;
	if (data < 0 && errno == ENXIO)
		return check_not_shrunk(disk, err);
	if (data < 0 || (uint64_t)data < at) {
		*start = at; /* it cannot tell: all is data */
		return 0;
	}
	if ((uint64_t)data >= limit)
		return 0;
	*start = MAX(round_down((uint64_t)data, PAGE), at);
	hole = lseek(disk->held.fd, data, SEEK_HOLE);
	if (hole > data)
		*end = MIN(round_up((uint64_t)hole, PAGE), limit);
	return 0;
}

static int disk_extents(struct source *src, uint64_t offset, uint64_t length,
			struct extent_list *out, struct err *err)
{
	const struct disk *disk = disk_of(src);
	uint64_t at = offset, limit = offset + length;

	if (!disk->believe_holes)
		return extent_list_add(out, offset, length, false, err);
	while (at < limit) {
		uint64_t start, end;

		if (find_data(disk, at, limit, &start, &end, err) < 0 ||
		    extent_list_add(out, at, start - at, true, err) < 0 ||
		    extent_list_add(out, start, end - start, false, err) < 0)
			return -1;
		at = end;
	}
	return 0;
}

/* A read at offset failed: go on in small steps, which end at the first sector
 * that cannot be had, and name it.  Returns only when a step fails, or with 0
 * when all of it could be read after all.
 */
static int find_bad_sector(const struct disk *disk, uint8_t *buf, size_t len, uint64_t offset,
			   struct err *err)
{
	size_t at = 0;

	while (at < len) {
		size_t step = (size_t)MIN(len - at, SECTOR - (offset + at) % SECTOR), done;
		ssize_t n = held_pread(disk->held.fd, buf + at, step, offset + at, &done);

		if (n < 0 && interrupt_check(err) < 0)
			return -1;
		if (n < 0)
			return err_errno(err, ERR_FAILED, "cannot read at offset %llu",
					 (unsigned long long)(offset + at + done));
		if ((size_t)n < step)
			return say_shrunk(disk, offset + at + (uint64_t)n, err);
		at += step;
	}
	return 0;
}

static int is_aborted(const void *disk)
{
	return atomic_load(&((const struct disk *)disk)->is_aborted);
}

static int disk_read_at(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err)
{
	struct disk *disk = disk_of(src);
	size_t there = offset < disk->held.size ? (size_t)MIN(len, disk->held.size - offset) : 0;
	size_t done = 0;
	ssize_t n;

	if (pace_wait(&disk->pace, there, is_aborted, disk) < 0 || is_aborted(disk))
		return interrupt_check(err) < 0 ? -1
						: err_set(err, ERR_FAILED, "reading was given up");
	n = held_pread(disk->held.fd, buf, there, offset, &done);

	memset((uint8_t *)buf + there, 0, len - there);
	if (n < 0 && interrupt_check(err) < 0)
		return -1;
	if (n < 0)
		return find_bad_sector(disk, (uint8_t *)buf + done, there - done, offset + done,
				       err);
	return done < there ? say_shrunk(disk, offset + done, err) : 0;
}

static void disk_abort(struct source *src)
{
	atomic_store(&disk_of(src)->is_aborted, true);
}

static int disk_check(struct source *src, struct err *err)
{
	return held_check(&disk_of(src)->held, err);
}

static void disk_close(struct source *src)
{
	struct disk *disk = disk_of(src);

	held_close(&disk->held);
	free(src->name);
	free(disk);
}

static const struct source_ops disk_ops = {
	.name = "disk",
	.extents = disk_extents,
	.read_at = disk_read_at,
	.abort = disk_abort,
	.check = disk_check,
	.close = disk_close,
};

#define SAY(format) "say --source-format=" format " (upload, verify: --format)"

static const struct magic {
	uint64_t offset;
	const char *bytes;
	size_t len;
	const char *format;
	const char *advice;
} magics[] = {
	{ 0, "QFI\xfb", 4, "qcow2", SAY("qcow2") },
	{ 0, "KDMV", 4, "vmdk", SAY("vmdk") },
	{ 0, "COWD", 4, "vmdk", SAY("vmdk") },
	{ 0, "# Disk DescriptorFile", 21, "vmdk", SAY("vmdk") },
	{ 64, "\x7f\x10\xda\xbe", 4, "vdi", SAY("vdi") },
	{ 0, "vhdxfile", 8, "vhdx", SAY("vhdx") },
	{ 0, "conectix", 8, "vhd", "convert it with qemu-img convert -f vpc first" },
	{ 0, "QED", 4, "qed", "convert it with qemu-img convert -f qed first" },
};

/* The guest owns the first bytes of its disk: they may earn a warning, but
 * never decide how the disk is read.
 */
static void warn_about_magic(const struct disk *disk)
{
	uint8_t head[SECTOR] = { 0 };
	ssize_t n = held_pread(disk->held.fd, head, sizeof head, 0, NULL);

	if (n < 0)
		return; /* whoever reads it in earnest will say so */
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
		const struct magic *magic = &magics[i];

		if (memcmp(head + magic->offset, magic->bytes, magic->len) == 0)
			log_warn("%s begins like a %s image, but is read as a raw disk; if it is "
				 "one, %s",
				 disk->source.name, magic->format, magic->advice);
	}
}

static int disk_measure(struct disk *disk, struct err *err)
{
	struct source *src = &disk->source;
	int sector_size = 0;

	if (disk->held.size > INT64_MAX - SECTOR)
		return err_set(err, ERR_REFUSED, "%s: impossibly large", src->name);
	src->size = round_up(disk->held.size, SECTOR);
	src->padding = src->size - disk->held.size;
	if (S_ISBLK(disk->held.st.st_mode)) {
		if (ioctl(disk->held.fd, BLKSSZGET, &sector_size) < 0)
			return err_errno(err, ERR_FAILED, "%s: cannot tell its sector size",
					 src->name);
		src->sector_size = (unsigned)sector_size;
	}
	return 0;
}

struct source *disk_open(const struct source_config *cfg, struct err *err)
{
	struct disk *disk = calloc(1, sizeof *disk);

	if (!disk || !(disk->source.name = strdup(cfg->path))) {
		free(disk);
		err_nomem(err);
		return NULL;
	}
	disk->source.ops = &disk_ops;
	pace_init(&disk->pace, cfg->bytes_per_second);
	if (held_open(&disk->held, cfg->path, cfg->intent, err) < 0 ||
	    disk_measure(disk, err) < 0) {
		disk_close(&disk->source);
		return NULL;
	}
	/* The extents of a file just written can lag behind its content until
	 * it is flushed; a block device has none to tell.
	 */
	disk->believe_holes =
		S_ISREG(disk->held.st.st_mode) && (cfg->intent == SOURCE_LOOK || disk->held.synced);
	warn_about_magic(disk);
	return &disk->source;
}
