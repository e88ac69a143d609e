/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CURSOR_H
#define CCSNAP_CURSOR_H

#include "source/extent.h"

#include <stddef.h>
#include <stdint.h>

/* Cuts a source, or a part of it, into pieces of whole clusters, in disk order:
 * a run known to be zero, or up to chunk_size bytes that have to be read.
 */
struct err;
struct source;

struct cursor {
	struct source *src;
	size_t cluster_size, chunk_size; /* the second a multiple of the first */
	uint64_t offset;     /* next guest byte to hand out, a multiple of the cluster size */
	uint64_t end;	     /* the same, or the disk's end */
	uint64_t window_end; /* extents are known up to here; in the beginning: offset */
	struct extent_list extents;
	size_t i; /* the extent that holds offset, or one before it */
};

struct piece {
	uint64_t offset, length; /* a multiple of the cluster size, or to the disk's end */
	bool zero;
};

/* Returns 1 and fills piece, 0 at the end, -1 on error. */
int cursor_next(struct cursor *c, struct piece *piece, struct err *err);

void cursor_free(struct cursor *c);

#endif
