/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_BENEATH_H
#define CCSNAP_WALK_BENEATH_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* What lies below a directory is looked at and opened without a trace, and never
 * through a symbolic link.
 */

/* For statx: a link itself, and nothing is mounted by looking. */
#define LOOK_FLAGS (AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)

static inline uint64_t statx_dev(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

/* Open name (one component, or ".") in dirfd for reading, without following a
 * link, waiting for anybody at a FIFO, or changing its access time where we may.
 * flags: O_DIRECTORY or 0.  -1 with errno.
 */
int quiet_open(int dirfd, const char *name, int flags);

/* Directories by paths of any length, never out of the one that they are below. */
struct beneath {
	/* Many components at once; else one after the other (Linux before 5.6,
	 * and sandboxes that forbid what they do not know).
	 */
	bool has_openat2;
};

struct beneath beneath_probe(int dirfd);

/* path: names each with a slash behind, none of them "." or ".."; "" is from
 * itself.  It is written to.  -1 with errno: ESTALE when something else than a
 * directory is on the way.
 */
int beneath_open(const struct beneath *b, int from, char *path);

#endif
