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
};

/* Anything but a regular file or block device, one that cannot be opened, and
 * one in use is refused (ERR_REFUSED); the message begins with its name.  For
 * SOURCE_CAPTURE it is flushed, locked and claimed where possible.
 */
int held_open(struct held *held, const char *path, enum source_intent intent, struct err *err);

/* Is it still as it was, and still not in use? */
int held_check(const struct held *held, struct err *err);

void held_close(struct held *held);

#endif
