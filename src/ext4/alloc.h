/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_ALLOC_H
#define CCSNAP_EXT4_ALLOC_H

#include <ext2fs/ext2fs.h>
#include <stddef.h>
#include <stdint.h>

/* Gives out free blocks, the lowest first, so that what is placed one after
 * another lies one after another.
 */
struct err;

struct alloc_range {
	uint64_t start, count;
};

struct alloc {
	ext2_filsys fs;
	struct alloc_range *at; /* free ones: [head, len) ascend and never touch */
	size_t head, len, cap;
	uint64_t free;		  /* blocks in them */
	struct alloc_range taken; /* given out, not in the bitmap yet */
};

/* From the filesystem's bitmap; all zeros is a valid, empty one. */
int alloc_init(struct alloc *a, ext2_filsys fs, struct err *err);
void alloc_free(struct alloc *a);

/* The lowest free blocks, as many as want when they are neighbours and fewer
 * otherwise; none when all are taken.
 */
struct alloc_range alloc_take(struct alloc *a, uint64_t want);

/* The lowest one; -1 and alloc_full when there is none. */
int alloc_take_block(struct alloc *a, uint64_t *place, struct err *err);

/* That no block is left, in words; -1. */
int alloc_full(struct err *err);

int alloc_give(struct alloc *a, struct alloc_range range, struct err *err);

/* Bring the filesystem's bitmap and counts in line. */
void alloc_commit(struct alloc *a);

#endif
