/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TARGET_H
#define CCSNAP_TARGET_H

#include "base/cleanup.h"
#include "source/source.h"

#include <stdbool.h>
#include <stdint.h>

/* A disk that an image is put onto: a block device, or a regular file that is there
 * already.  Held for us alone as long as it is open.  Written from one thread.
 */
struct err;
struct target;

/* ERR_REFUSED for what is something else, mounted, or in use. */
struct target *target_open(const char *path, struct err *err);
void target_close(struct target *t); /* NULL is fine */

const char *target_name(const struct target *t);
uint64_t target_size(const struct target *t);	     /* in bytes */
unsigned target_sector_size(const struct target *t); /* 0: it has none of its own */

/* What it is, for whoever has to agree: "the disk /dev/sdb (MODEL, 1.8 TiB, 3
 * partitions)".
 */
struct target_text {
	char text[512];
};
struct target_text target_describe(const struct target *t);

/* From offset on; the first one that is called has destroyed what was there. */
int target_write(struct target *t, const void *buf, size_t len, uint64_t offset, struct err *err);
int target_zero(struct target *t, uint64_t len, uint64_t offset, struct err *err);

/* Is it too late for what the target held? */
bool target_is_written(const struct target *t);

/* All of it is on the medium, and will be read from there. */
int target_sync(struct target *t, struct err *err);

/* As a disk to be read, after target_sync; the target's own. */
struct source *target_source(struct target *t);

/* Let the system have a look at the new partitions, where that is needed. */
void target_announce(struct target *t);

CLEANUP_TYPE(struct target, target, target_close)
#define autotarget CLEANUP(target_cleanup)

#endif
