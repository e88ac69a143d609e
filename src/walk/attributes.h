/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_ATTRIBUTES_H
#define CCSNAP_WALK_ATTRIBUTES_H

#include "ext4/model.h"

#include <stdint.h>

/* Extended attributes and chattr flags of one inode after the other.  One thread
 * at a time.
 */
struct err;

struct attributes {
	/* lost(ctx, which, why) for each that is there and cannot be carried. */
	void (*lost)(void *ctx, const char *which, const char *why);
	void *ctx;
	struct attributes_scratch *scratch;
};

/* Of the open file or directory fd: its extended attributes become a set of the
 * model, its flags those that ext4 has, too.
 */
int attributes_read(struct attributes *a, int fd, struct model *model, uint32_t *xattrs,
		    uint32_t *flags, struct err *err);

/* Of what may not be opened: the extended attributes of name in dirfd, not of
 * what a link points to.
 */
int attributes_read_at(struct attributes *a, int dirfd, const char *name, struct model *model,
		       uint32_t *xattrs, struct err *err);

void attributes_free(struct attributes *a);

#endif
