// SPDX-License-Identifier: Apache-2.0
#include "ext4/alloc.h"

#include "base/array.h"
#include "base/err.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

static int append(struct alloc *a, uint64_t start, uint64_t end, struct err *err)
{
	if (!array_room(a->at, a->cap, a->len + 1))
		return err_nomem(err);
	a->at[a->len++] = (struct alloc_range){ start, end - start };
	a->free += end - start;
	return 0;
}

int alloc_init(struct alloc *a, ext2_filsys fs, struct err *err)
{
	const uint64_t last = ext2fs_blocks_count(fs->super) - 1;
	blk64_t start, end;

	*a = (struct alloc){ .fs = fs };
	for (blk64_t at = fs->super->s_first_data_block; at <= last; at = end) {
		if (ext2fs_find_first_zero_block_bitmap2(fs->block_map, at, last, &start))
			break;
		if (ext2fs_find_first_set_block_bitmap2(fs->block_map, start, last, &end))
			end = last + 1;
		if (append(a, start, end, err) < 0) {
			alloc_free(a);
			return -1;
		}
	}
	return 0;
}

void alloc_free(struct alloc *a)
{
	free(a->at);
	*a = (struct alloc){ 0 };
}

/* The library counts with 32 bits here. */
static void mark(ext2_filsys fs, struct alloc_range range, int in_use)
{
	while (range.count > 0) {
		const uint64_t part = MIN(range.count, UINT64_C(1) << 30);

		ext2fs_block_alloc_stats_range(fs, range.start, (blk_t)part, in_use);
		range.start += part;
		range.count -= part;
	}
}

void alloc_commit(struct alloc *a)
{
	mark(a->fs, a->taken, +1);
	a->taken = (struct alloc_range){ 0 };
}

struct alloc_range alloc_take(struct alloc *a, uint64_t want)
{
	struct alloc_range *first = a->at + a->head, got;

	if (a->head == a->len)
		return (struct alloc_range){ 0 };
	got = (struct alloc_range){ first->start, MIN(want, first->count) };
	first->start += got.count;
	first->count -= got.count;
	if (first->count == 0)
		a->head++;
	a->free -= got.count;

	if (a->taken.start + a->taken.count != got.start)
		alloc_commit(a);
	if (a->taken.count == 0)
		a->taken.start = got.start;
	a->taken.count += got.count;
	return got;
}

int alloc_full(struct err *err)
{
	return err_set(err, ERR_FAILED, "the image's filesystem is full; ask for more free space");
}

int alloc_take_block(struct alloc *a, uint64_t *place, struct err *err)
{
	const struct alloc_range got = alloc_take(a, 1);

	if (got.count == 0)
		return alloc_full(err);
	*place = got.start;
	return 0;
}

/* The first free range behind start. */
static size_t find(const struct alloc *a, uint64_t start)
{
	size_t low = a->head, high = a->len;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (a->at[middle].start > start)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void remove_at(struct alloc *a, size_t i)
{
	memmove(a->at + i, a->at + i + 1, (a->len - i - 1) * sizeof *a->at);
	a->len--;
}

static int insert(struct alloc *a, struct alloc_range range, struct err *err)
{
	const size_t i = find(a, range.start);
	struct alloc_range *before = i > a->head ? &a->at[i - 1] : NULL,
			   *behind = i < a->len ? &a->at[i] : NULL;

	if (before && before->start + before->count == range.start) {
		before->count += range.count;
		if (behind && before->start + before->count == behind->start) {
			before->count += behind->count;
			remove_at(a, i);
		}
		return 0;
	}
	if (behind && range.start + range.count == behind->start) {
		behind->start = range.start;
		behind->count += range.count;
		return 0;
	}
	if (!array_room(a->at, a->cap, a->len + 1))
		return err_nomem(err);
	memmove(a->at + i + 1, a->at + i, (a->len - i) * sizeof *a->at);
	a->at[i] = range;
	a->len++;
	return 0;
}

int alloc_give(struct alloc *a, struct alloc_range range, struct err *err)
{
	if (range.count == 0)
		return 0;
	alloc_commit(a);
	if (insert(a, range, err) < 0)
		return -1;
	mark(a->fs, range, -1);
	a->free += range.count;
	return 0;
}
