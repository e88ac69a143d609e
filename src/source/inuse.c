// SPDX-License-Identifier: Apache-2.0
#include "source/inuse.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mountinfo.h"
#include "base/size.h"
#include "base/str.h"
#include "source/held.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* QEMU's image locks (block/file-posix.c): who holds a permission has byte
 * 100 + bit locked, who does not share it with others has 200 + bit.
 */
enum {
	LOCK_HELD = 100,
	LOCK_UNSHARED = 200,
	BIT_READ = 0,
	BIT_WRITE = 1,
	BIT_RESIZE = 3,
};

enum {
	PROC_MAX = 16 * 1024 * 1024, /* bytes of one file in /proc */
	LOOPS_MAX = 8,		     /* a loop device on a file on a loop device ... */
};

/* What a message calls the device in question, e.g. "its partition sdb1". */
struct subject {
	char text[NAME_MAX + 64];
};

struct inspection {
	int read_only_mount; /* seen: explains why it is held */
	int depth;	     /* of loop devices */
};

static int inspect_device(dev_t dev, const struct subject *subject, struct inspection *seen,
			  struct err *err);

static int lock_byte(int fd, int command, short type, off_t byte, short *holder)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	if (fcntl(fd, command, &lock) < 0)
		return -1;
	*holder = lock.l_type;
	return 0;
}

int inuse_lock(int fd, struct err *err)
{
	static const off_t bytes[] = {
		LOCK_HELD + BIT_READ,
		LOCK_UNSHARED + BIT_WRITE,
		LOCK_UNSHARED + BIT_RESIZE,
	};
	short unused;

	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		if (lock_byte(fd, F_OFD_SETLK, F_RDLCK, bytes[i], &unused) == 0)
			continue;
		if (errno == EAGAIN || errno == EACCES)
			return err_set(err, ERR_REFUSED,
				       "locked by another program; close it there");
		return 0; /* no locks there: QEMU goes on without, and so do we */
	}
	return 0;
}

static int check_locks(int fd, struct err *err)
{
	static const off_t writing[] = { LOCK_HELD + BIT_WRITE, LOCK_HELD + BIT_RESIZE };
	short holder = F_UNLCK;

	for (size_t i = 0; i < sizeof writing / sizeof *writing; i++) {
		if (lock_byte(fd, F_OFD_GETLK, F_WRLCK, writing[i], &holder) < 0)
			return 0;
		if (holder != F_UNLCK)
			return err_set(err, ERR_REFUSED,
				       "open for writing by a running QEMU or another ccsnap; end "
				       "that, or detach the disk there, first");
	}
	if (lock_byte(fd, F_OFD_GETLK, F_WRLCK, LOCK_UNSHARED + BIT_READ, &holder) == 0 &&
	    holder != F_UNLCK)
		return err_set(err, ERR_REFUSED,
			       "held by a running QEMU that shares it with "
			       "nobody; shut it down first");
	return 0;
}

static int is_mount_of(const struct mountinfo_line *mount, dev_t dev)
{
	struct stat st;

	if (makedev(mount->major, mount->minor) == dev)
		return 1;
	/* btrfs has a device number of its own: look at what was mounted */
	return mount->major == 0 && mount->device[0] == '/' && stat(mount->device, &st) == 0 &&
	       S_ISBLK(st.st_mode) && st.st_rdev == dev;
}

static int is_read_write(const struct mountinfo_line *mount)
{
	return str_starts(mount->options, "rw") &&
	       (mount->options[2] == ',' || mount->options[2] == '\0');
}

static int inspect_mounts(dev_t dev, const struct subject *subject, struct inspection *seen,
			  struct err *err)
{
	automountinfo struct mountinfo info = { 0 };

	if (mountinfo_read("/proc/self/mountinfo", &info, err) < 0)
		return -1;
	for (size_t i = 0; i < info.count; i++) {
		const struct mountinfo_line *mount = &info.lines[i];

		if (!is_mount_of(mount, dev))
			continue;
		if (is_read_write(mount))
			return err_set(err, ERR_REFUSED,
				       "%s is mounted read-write on %s; unmount it or remount it "
				       "read-only first",
				       subject->text, mount->point);
		seen->read_only_mount = 1;
	}
	return 0;
}

static int inspect_swap(const struct stat *file, const struct subject *subject, struct err *err)
{
	struct err ignored;
	autofree char *text = io_read_file(AT_FDCWD, "/proc/swaps", PROC_MAX, NULL, &ignored);
	char *rest = text, *line;
	struct stat st;

	while (text && (line = strsep(&rest, "\n"))) {
		char *path = strsep(&line, " \t");

		if (mountinfo_unescape(path) == 0 && path[0] == '/' && stat(path, &st) == 0 &&
		    is_same_file(file, &st))
			return err_set(err, ERR_REFUSED, "%s is in use as swap; swapoff %s first",
				       subject->text, path);
	}
	return 0;
}

/* A small file of sysfs without its newline; "" when it is not there. */
static void read_attribute(int dir, const char *path, char *buf, size_t cap)
{
	autoclose int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : io_pread(fd, buf, cap - 1, 0, NULL);

	buf[n > 0 ? n : 0] = '\0';
	if (n > 0 && buf[n - 1] == '\n')
		buf[n - 1] = '\0';
}

static int read_device_number(int dir, const char *path, dev_t *dev)
{
	unsigned dev_major, dev_minor;
	char text[32];

	read_attribute(dir, path, text, sizeof text);
	if (sscanf(text, "%u:%u", &dev_major, &dev_minor) != 2)
		return -1;
	*dev = makedev(dev_major, dev_minor);
	return 0;
}

static int open_sysfs(dev_t dev)
{
	char path[64];

	snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(dev), minor(dev));
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static DIR *open_dir_at(int dir, const char *path)
{
	autoclose int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *opened = fd < 0 ? NULL : fdopendir(fd);

	if (opened)
		steal_fd(&fd);
	return opened;
}

static int inspect_holders(int sysfs, const struct subject *subject, struct err *err)
{
	autodir DIR *holders = open_dir_at(sysfs, "holders");
	const struct dirent *entry;
	char path[NAME_MAX + 32], name[NAME_MAX];

	while (holders && (entry = readdir(holders))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "holders/%s/dm/name", entry->d_name);
		read_attribute(sysfs, path, name, sizeof name);
		return err_set(err, ERR_REFUSED,
			       "%s is held by the device %s%s%s%s; capture that one, or take it "
			       "down first",
			       subject->text, entry->d_name, *name ? " (" : "", name,
			       *name ? ")" : "");
	}
	return 0;
}

/* Loop devices on this file or device: harmless unless written through. */
static int inspect_loops(const struct stat *file, struct inspection *seen, struct err *err)
{
	autodir DIR *block = open_dir_at(AT_FDCWD, "/sys/block");
	const struct dirent *entry;
	char path[NAME_MAX + 32], backing[PATH_MAX];
	struct subject subject;
	struct stat st;
	dev_t dev;

	while (block && seen->depth < LOOPS_MAX && (entry = readdir(block))) {
		if (!str_starts(entry->d_name, "loop"))
			continue;
		snprintf(path, sizeof path, "%s/loop/backing_file", entry->d_name);
		read_attribute(dirfd(block), path, backing, sizeof backing);
		if (backing[0] != '/' || stat(backing, &st) < 0 || !is_same_file(file, &st))
			continue;
		snprintf(path, sizeof path, "%s/dev", entry->d_name);
		if (read_device_number(dirfd(block), path, &dev) < 0)
			continue;
		snprintf(subject.text, sizeof subject.text, "the loop device %s on it",
			 entry->d_name);
		seen->depth++;
		if (inspect_device(dev, &subject, seen, err) < 0)
			return -1;
		seen->depth--;
	}
	return 0;
}

/* One device by itself, without what it is part of or divided into. */
static int inspect_one(dev_t dev, const struct subject *subject, struct inspection *seen,
		       struct err *err)
{
	const struct stat as_file = { .st_mode = S_IFBLK, .st_rdev = dev };
	autoclose int sysfs = open_sysfs(dev);

	if (inspect_mounts(dev, subject, seen, err) < 0 ||
	    inspect_swap(&as_file, subject, err) < 0 || inspect_loops(&as_file, seen, err) < 0)
		return -1;
	return sysfs < 0 ? 0 : inspect_holders(sysfs, subject, err);
}

static int inspect_partitions(int sysfs, struct inspection *seen, struct err *err)
{
	autodir DIR *disk = open_dir_at(sysfs, ".");
	const struct dirent *entry;
	char path[NAME_MAX + 32];
	struct subject subject;
	dev_t dev;

	while (disk && (entry = readdir(disk))) {
		snprintf(path, sizeof path, "%s/partition", entry->d_name);
		if (entry->d_name[0] == '.' || faccessat(sysfs, path, F_OK, 0) < 0)
			continue;
		snprintf(path, sizeof path, "%s/dev", entry->d_name);
		if (read_device_number(sysfs, path, &dev) < 0)
			continue;
		snprintf(subject.text, sizeof subject.text, "its partition %s", entry->d_name);
		if (inspect_one(dev, &subject, seen, err) < 0)
			return -1;
	}
	return 0;
}

/* With its partitions, or, if it is one, with the disk that it is part of. */
static int inspect_device(dev_t dev, const struct subject *subject, struct inspection *seen,
			  struct err *err)
{
	static const struct subject whole = { "the disk that it is a partition of" };
	autoclose int sysfs = open_sysfs(dev);
	dev_t disk;

	if (inspect_one(dev, subject, seen, err) < 0)
		return -1;
	if (sysfs < 0)
		return 0;
	if (faccessat(sysfs, "partition", F_OK, 0) < 0)
		return inspect_partitions(sysfs, seen, err);
	return read_device_number(sysfs, "../dev", &disk) < 0
		       ? 0
		       : inspect_one(disk, &whole, seen, err);
}

static int inspect(const struct stat *st, struct inspection *seen, struct err *err)
{
	static const struct subject itself = { "it" };

	if (S_ISBLK(st->st_mode))
		return inspect_device(st->st_rdev, &itself, seen, err);
	return inspect_swap(st, &itself, err) < 0 ? -1 : inspect_loops(st, seen, err);
}

static int say_claimed(struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "held by something else (mounted in a container, part of a pool or "
		       "array, or being captured already); release it there first");
}

int inuse_check(int fd, const struct stat *st, enum inuse_claim claim, struct err *err)
{
	struct inspection seen = { 0 };

	if (check_locks(fd, err) < 0 || inspect(st, &seen, err) < 0)
		return -1;
	return claim == CLAIM_DENIED && !seen.read_only_mount ? say_claimed(err) : 0;
}

int inuse_take(int fd, const struct stat *st, enum inuse_claim claim, struct err *err)
{
	/* every byte that a QEMU locks, whatever it does with it */
	struct flock all = { .l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = LOCK_HELD,
			     .l_len = 2 * (LOCK_UNSHARED - LOCK_HELD) };
	struct inspection seen = { 0 };

	if (fcntl(fd, F_OFD_SETLK, &all) < 0 && (errno == EAGAIN || errno == EACCES))
		return err_set(err, ERR_REFUSED,
			       "in use by a running QEMU, or being captured; end that first");
	if (inspect(st, &seen, err) < 0)
		return -1;
	if (seen.read_only_mount)
		return err_set(err, ERR_REFUSED,
			       "it, or a part of it, is mounted read-only; unmount it first");
	return claim == CLAIM_DENIED ? say_claimed(err) : 0;
}

uint64_t inuse_count_written(const struct stat *st)
{
	autoclose int sysfs = S_ISBLK(st->st_mode) ? open_sysfs(st->st_rdev) : -1;
	uint64_t written = 0, discarded = 0;
	char text[512] = "";

	if (sysfs >= 0)
		read_attribute(sysfs, "stat", text, sizeof text);
	/* Documentation/block/stat.rst.  Sectors, since a mere flush counts as
	 * a write as well; discards are there from Linux 4.18 on.
	 */
	sscanf(text, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %*s %*s %*s %*s %*s %*s %" SCNu64,
	       &written, &discarded);
	return written + discarded;
}

int inuse_loop_backing(const struct stat *st, struct stat *backing)
{
	autoclose int sysfs = S_ISBLK(st->st_mode) ? open_sysfs(st->st_rdev) : -1;
	char path[PATH_MAX] = "";

	if (sysfs < 0)
		return 0;
	read_attribute(sysfs, "loop/backing_file", path, sizeof path);
	if (*path == '\0')
		read_attribute(sysfs, "../loop/backing_file", path, sizeof path);
	return path[0] == '/' && stat(path, backing) == 0;
}
