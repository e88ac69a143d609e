// SPDX-License-Identifier: Apache-2.0
#include "image/refcounts.h"

#include "base/err.h"
#include "base/size.h"
#include "image/formats.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Limit of QEMU's reader (block/qcow2.h). */
#define TABLE_BYTES_MAX (8 * MIB)

int refcounts_init(struct refcounts *r, const struct image *img, struct err *err)
{
	*r = (struct refcounts){
		.img = img,
		.cluster_bits = (unsigned)__builtin_ctzll(img->cluster_size),
		.per_block = img->cluster_size / sizeof *r->open,
	};
	r->open = calloc(r->per_block, sizeof *r->open);
	return r->open ? 0 : err_nomem(err);
}

void refcounts_free(struct refcounts *r)
{
	free(r->open);
	free(r->back);
	free(r->table);
}

static int table_set(struct refcounts *r, size_t block, uint64_t offset, struct err *err)
{
	if ((block + 1) * sizeof *r->table > TABLE_BYTES_MAX)
		return err_set(err, ERR_FAILED,
			       "the image file grows too large for its cluster size; "
			       "use a larger --cluster-size");
	if (block >= r->table_cap) {
		size_t cap = MAX(r->table_cap * 2, block + 64);
		uint64_t *table = reallocarray(r->table, cap, sizeof *table);

		if (!table)
			return err_nomem(err);
		memset(table + r->table_cap, 0, (cap - r->table_cap) * sizeof *table);
		r->table = table;
		r->table_cap = cap;
	}
	r->table[block] = htobe64(offset);
	return 0;
}

/* Leaves the block in memory in the file's byte order. */
static int block_write(const struct refcounts *r, uint16_t *refs, uint64_t offset, struct err *err)
{
	for (size_t i = 0; i < r->per_block; i++)
		refs[i] = htobe16(refs[i]);
	return image_write_at(r->img, refs, r->img->cluster_size, offset, err);
}

/* Writes the open block to host cluster `where`; the next one is open then. */
static int newest_write(struct refcounts *r, uint64_t where, struct err *err)
{
	uint64_t offset = where << r->cluster_bits;

	if (table_set(r, r->open_index, offset, err) < 0 ||
	    block_write(r, r->open, offset, err) < 0)
		return -1;
	memset(r->open, 0, r->img->cluster_size);
	r->open_index++;
	return 0;
}

uint16_t *refcounts_newest(struct refcounts *r, uint64_t cluster)
{
	return cluster / r->per_block == r->open_index ? &r->open[cluster % r->per_block] : NULL;
}

static void count_once(struct refcounts *r, uint64_t cluster)
{
	uint16_t *ref = refcounts_newest(r, cluster);

	assert(ref && *ref == 0);
	*ref = 1;
}

int refcounts_alloc(struct refcounts *r, uint64_t *cluster, struct err *err)
{
	uint64_t c = r->next++;

	if (c / r->per_block != r->open_index) {
		uint64_t where = r->next++;

		if (newest_write(r, where, err) < 0)
			return -1;
		count_once(r, where);
	}
	count_once(r, c);
	*cluster = c;
	return 0;
}

/* --- blocks written earlier --- */

static int back_write(struct refcounts *r, struct err *err)
{
	if (!r->back_valid)
		return 0;
	r->back_valid = false;
	return block_write(r, r->back, be64toh(r->table[r->back_index]), err);
}

static int back_read(struct refcounts *r, size_t index, struct err *err)
{
	if (r->back_valid && r->back_index == index)
		return 0;
	if (back_write(r, err) < 0)
		return -1;
	if (!r->back && !(r->back = calloc(r->per_block, sizeof *r->back)))
		return err_nomem(err);
	if (image_read_at(r->img, r->back, r->img->cluster_size, be64toh(r->table[index]), err) < 0)
		return -1;
	for (size_t i = 0; i < r->per_block; i++)
		r->back[i] = be16toh(r->back[i]);
	r->back_index = index;
	r->back_valid = true;
	return 0;
}

static int drop_one(struct refcounts *r, uint64_t cluster, struct err *err)
{
	uint16_t *ref;

	if (cluster >= r->next)
		return image_say_changed(r->img, err);
	ref = refcounts_newest(r, cluster);
	if (!ref) {
		if (back_read(r, (size_t)(cluster / r->per_block), err) < 0)
			return -1;
		ref = &r->back[cluster % r->per_block];
	}
	if (*ref == 0)
		return image_say_changed(r->img, err);
	--*ref;
	return 0;
}

int refcounts_drop(struct refcounts *r, uint64_t first, uint64_t last, struct err *err)
{
	for (uint64_t c = first; c <= last; c++)
		if (drop_one(r, c, err) < 0)
			return -1;
	return 0;
}

/* --- the end --- */

struct refcounts_tail refcounts_plan_tail(const struct refcounts *r, uint64_t callers)
{
	size_t size = r->img->cluster_size;
	struct refcounts_tail t = { .first = r->next, .table_at = r->next + callers };
	uint64_t blocks_total = 0, needed = r->open_index + 1;

	/* more blocks make a longer table and both more clusters to count */
	while (blocks_total != needed) {
		blocks_total = needed;
		t.block_count = blocks_total - r->open_index;
		t.table_clusters = round_up(blocks_total * sizeof *r->table, size) / size;
		t.blocks_at = t.table_at + t.table_clusters;
		t.end = t.blocks_at + t.block_count;
		needed = (t.end - 1) / r->per_block + 1;
	}
	return t;
}

static int write_blocks(struct refcounts *r, const struct refcounts_tail *t, struct err *err)
{
	uint64_t cluster = t->first;

	for (uint64_t i = 0; i < t->block_count; i++) {
		while (cluster < t->end && refcounts_newest(r, cluster))
			count_once(r, cluster++);
		if (newest_write(r, t->blocks_at + i, err) < 0)
			return -1;
	}
	assert(cluster == t->end);
	return 0;
}

int refcounts_write_tail(struct refcounts *r, const struct refcounts_tail *tail, struct err *err)
{
	if (back_write(r, err) < 0 || write_blocks(r, tail, err) < 0)
		return -1;
	return image_write_at(r->img, r->table, r->open_index * sizeof *r->table,
			      tail->table_at << r->cluster_bits, err);
}
