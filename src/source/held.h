/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HELD_H
#define CCSNAP_HELD_H

#include "source/inuse.h"

#include <stdint.h>
#include <sys/stat.h>

/* A regular file or block device that we read, that nobody else writes, and
 * that can be asked in the end whether it stayed as it was.
 */
struct err;

struct held {
	int fd;
	char *name;
	uint64_t size;	/* in bytes, exactly */
	struct stat st; /* as it was when opened */
	enum inuse_claim claim;

	/* All of it had reached the disk when it was opened: only then is the
	 * kernel's word on where its holes are to be believed.
	 */
	int synced;

	/* A block device: sectors written until then, by the kernel's count. */
	uint64_t written;
};

/* Are these the same file or device? */
static inline int is_same_file(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode))
		return S_ISBLK(b->st_mode) && a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Anything but a regular file or block device, one that cannot be opened, and
 * one in use is refused (ERR_REFUSED); the message begins with its name.  For
 * SOURCE_CAPTURE it is flushed, locked and claimed where possible.  From then
 * on no output of ours may replace it (io_protect).
 */
int held_open(struct held *held, const char *path, enum source_intent intent, struct err *err);

/* As io_pread, but a pending interrupt ends it with EINTR. */
ssize_t held_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *done);

/* Is it still as it was, and still not in use?  Of a block device that is
 * known only as far as writes went through this very device: not what was
 * written to a partition through its disk, to what lies below a device mapper
 * or loop device, by another machine, or is under way; nor where the counters
 * are switched off (queue/iostats).
 */
int held_check(const struct held *held, struct err *err);

void held_close(struct held *held);

#endif
