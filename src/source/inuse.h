/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_INUSE_H
#define CCSNAP_INUSE_H

#include "source/source.h"

#include <stdint.h>
#include <sys/stat.h>

/* Does anything else write to a file or block device?  A running QEMU is seen
 * by its image locks, everything else by what the kernel says about mounts,
 * swap and stacked devices.
 */
struct err;

/* How an exclusive open of a block device went. */
enum inuse_claim {
	CLAIM_NONE,   /* not tried, or no block device */
	CLAIM_HELD,   /* ours: nobody can mount it meanwhile */
	CLAIM_DENIED, /* somebody else's; good only if a read-only mount explains it */
};

/* Refused (ERR_REFUSED) with who holds it and what to do. */
int inuse_check(int fd, const struct stat *st, enum inuse_claim claim, struct err *err);

/* The same for whoever wants to write to it: what only reads is in the way, too, be it
 * a read-only mount or a QEMU.  As long as fd is open, no QEMU can open it.
 */
int inuse_take(int fd, const struct stat *st, enum inuse_claim claim, struct err *err);

/* Sectors of a block device that were written or discarded since the system
 * started; 0 when nobody counts.
 */
uint64_t inuse_count_written(const struct stat *st);

/* The file that a loop device, or a partition of one, shows.  0 when it is no
 * such device or the file cannot be found.
 */
int inuse_loop_backing(const struct stat *st, struct stat *backing);

/* Take and hold, as long as fd is open, the locks that make a QEMU refuse to
 * open it for writing.  Where the filesystem has no locks, nothing happens.
 */
int inuse_lock(int fd, struct err *err);

#endif
