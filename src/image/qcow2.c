// SPDX-License-Identifier: Apache-2.0
#include "image/formats.h"

#include "base/err.h"
#include "base/size.h"
#include "image/refcounts.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* qcow2 version 3, stand-alone, written from front to back (format: QEMU
 * docs/interop/qcow2.txt).
 *
 * Host clusters are given out in ascending order and guest clusters come in
 * ascending order, so an L2 table is final when the guest offset has left it
 * and a refcount block when allocation has left it; each is written then, and
 * only one of either is in memory.  Packed clusters follow each other byte by
 * byte.  A plain cluster takes a host cluster of its own; the packed one that
 * it interrupts stays open and goes on filling while it is in the current
 * refcount block.  At the end come L1, the refcount table and what refcount
 * blocks are left, and the header last of all.
 *
 *   header | data, L2 tables, refcount blocks as they come | L1 | refcount table | last blocks
 *
 * A guest cluster that is put again goes behind the others, like a new one, and
 * the references to its old place are dropped; only plain on plain stays where
 * it is.  Its L2 table and refcount block are read back for that and written
 * where they were.
 */
enum { HEADER_LENGTH = 112, SECTOR = 512 };

#define QCOW2_MAGIC	     0x514649fbu
#define INCOMPAT_COMPRESSION (UINT64_C(1) << 3)
#define ENTRY_COPIED	     (UINT64_C(1) << 63) /* refcount is exactly one */
#define ENTRY_COMPRESSED     (UINT64_C(1) << 62)

/* Limit of QEMU's reader (block/qcow2.h). */
#define L1_BYTES_MAX (32 * MIB)

struct header {
	uint32_t magic, version;
	uint64_t backing_file_offset;
	uint32_t backing_file_size, cluster_bits;
	uint64_t size;
	uint32_t crypt_method, l1_size;
	uint64_t l1_table_offset, refcount_table_offset;
	uint32_t refcount_table_clusters, nb_snapshots;
	uint64_t snapshots_offset;
	uint64_t incompatible_features, compatible_features, autoclear_features;
	uint32_t refcount_order, header_length;
	uint8_t compression_type, padding[7];
};

_Static_assert(sizeof(struct header) == HEADER_LENGTH, "header layout");

struct qcow2 {
	struct image base;
	unsigned cluster_bits;
	uint8_t compression_type;

	uint64_t *l1; /* big-endian, as on disk */
	size_t l1_len;
	uint64_t *l2; /* the table of l1[l2_index], big-endian */
	size_t l2_len, l2_index;
	bool l2_changed;

	struct refcounts refs;
	uint64_t pack_at, pack_end; /* free bytes of the open packed cluster */
};

static int write_at(struct qcow2 *q, const void *buf, size_t len, uint64_t offset, struct err *err)
{
	return image_write_at(&q->base, buf, len, offset, err);
}

static int cluster_alloc(struct qcow2 *q, uint64_t *offset, struct err *err)
{
	if (refcounts_alloc(&q->refs, offset, err) < 0)
		return -1;
	*offset <<= q->cluster_bits;
	return 0;
}

/* --- L2 tables --- */

static int l2_flush(struct qcow2 *q, struct err *err)
{
	uint64_t offset = be64toh(q->l1[q->l2_index]) & ~ENTRY_COPIED;

	if (!q->l2_changed)
		return 0;
	if (!offset && cluster_alloc(q, &offset, err) < 0)
		return -1;
	if (write_at(q, q->l2, q->base.cluster_size, offset, err) < 0)
		return -1;
	q->l1[q->l2_index] = htobe64(offset | ENTRY_COPIED);
	q->l2_changed = false;
	return 0;
}

/* Compressed descriptor: so many bits for the byte offset, and above it how
 * many 512-byte sectors the data touches besides the first.
 */
static unsigned packed_shift(const struct qcow2 *q)
{
	return 62 - (q->cluster_bits - 8);
}

static uint64_t packed_offset(const struct qcow2 *q, uint64_t entry)
{
	return entry & ((UINT64_C(1) << packed_shift(q)) - 1);
}

/* A table that was damaged meanwhile must not lead us into other clusters. */
static int l2_check(const struct qcow2 *q, struct err *err)
{
	uint64_t end = q->refs.next << q->cluster_bits;

	for (size_t i = 0; i < q->l2_len; i++) {
		uint64_t entry = be64toh(q->l2[i]);
		uint64_t offset =
			entry & ENTRY_COMPRESSED ? packed_offset(q, entry) : entry & ~ENTRY_COPIED;

		if (offset >= end)
			return image_say_changed(&q->base, err);
	}
	return 0;
}

/* Make q->l2 the table of that index. */
static int l2_select(struct qcow2 *q, size_t index, struct err *err)
{
	uint64_t offset = be64toh(q->l1[index]) & ~ENTRY_COPIED;

	if (index == q->l2_index)
		return 0;
	if (l2_flush(q, err) < 0)
		return -1;
	q->l2_index = index;
	if (!offset) {
		memset(q->l2, 0, q->base.cluster_size);
		return 0;
	}
	if (image_read_at(&q->base, q->l2, q->base.cluster_size, offset, err) < 0)
		return -1;
	return l2_check(q, err);
}

static void l2_set(struct qcow2 *q, uint64_t g, uint64_t entry)
{
	uint64_t *at = &q->l2[g % q->l2_len];

	q->l2_changed |= *at != htobe64(entry);
	*at = htobe64(entry);
}

/* --- places --- */

static uint64_t packed_entry(const struct qcow2 *q, uint64_t offset, size_t size)
{
	uint64_t sectors = (offset + size - 1) / SECTOR - offset / SECTOR;

	return ENTRY_COMPRESSED | sectors << packed_shift(q) | offset;
}

/* The host clusters that an entry uses lose it. */
static int entry_drop(struct qcow2 *q, uint64_t entry, struct err *err)
{
	uint64_t offset = entry & ~ENTRY_COPIED, last = offset;

	if (!entry)
		return 0;
	if (entry & ENTRY_COMPRESSED) {
		uint64_t sectors = (entry & ~ENTRY_COMPRESSED) >> packed_shift(q);

		offset = packed_offset(q, entry);
		last = round_down(offset, SECTOR) + sectors * SECTOR;
	}
	return refcounts_drop(&q->refs, offset >> q->cluster_bits, last >> q->cluster_bits, err);
}

static int place_packed(struct qcow2 *q, size_t size, uint64_t *offset, struct err *err)
{
	uint64_t room = q->pack_end - q->pack_at;
	bool adjacent = q->pack_end == q->refs.next << q->cluster_bits;
	uint16_t *ref = room ? refcounts_newest(&q->refs, q->pack_at >> q->cluster_bits) : NULL;

	if (!ref || *ref == REFCOUNT_MAX || (size > room && !adjacent)) {
		if (cluster_alloc(q, offset, err) < 0)
			return -1;
		q->pack_end = *offset + q->base.cluster_size;
	} else {
		*offset = q->pack_at;
		++*ref;
		if (size > room) {
			uint64_t next;

			if (cluster_alloc(q, &next, err) < 0)
				return -1;
			q->pack_end += q->base.cluster_size;
		}
	}
	q->pack_at = *offset + size;
	return 0;
}

/* Where a cluster goes in place of what the old entry says. */
static int place(struct qcow2 *q, const struct cluster *c, uint64_t old, uint64_t *offset,
		 uint64_t *entry, struct err *err)
{
	if (c->form == CLUSTER_PLAIN && old & ENTRY_COPIED) {
		*offset = old & ~ENTRY_COPIED;
		*entry = old;
		return 0;
	}
	if (entry_drop(q, old, err) < 0)
		return -1;
	if (c->form == CLUSTER_PACKED) {
		if (place_packed(q, c->size, offset, err) < 0)
			return -1;
		*entry = packed_entry(q, *offset, c->size);
		return 0;
	}
	if (cluster_alloc(q, offset, err) < 0)
		return -1;
	*entry = *offset | ENTRY_COPIED;
	return 0;
}

/* Bytes that lie next to each other both in the chunk and in the file. */
struct run {
	const uint8_t *data;
	uint64_t offset;
	size_t len;
};

static int run_flush(struct qcow2 *q, struct run *run, struct err *err)
{
	size_t len = run->len;

	run->len = 0;
	return len ? write_at(q, run->data, len, run->offset, err) : 0;
}

static int run_add(struct qcow2 *q, struct run *run, const uint8_t *data, size_t len,
		   uint64_t offset, struct err *err)
{
	if (run->len && run->data + run->len == data && run->offset + run->len == offset) {
		run->len += len;
		return 0;
	}
	if (run_flush(q, run, err) < 0)
		return -1;
	*run = (struct run){ .data = data, .offset = offset, .len = len };
	return 0;
}

static int put_data(struct qcow2 *q, uint64_t g, const struct cluster *c, const uint8_t *data,
		    struct run *run, struct err *err)
{
	uint64_t offset, entry;

	if (l2_select(q, (size_t)(g / q->l2_len), err) < 0 ||
	    place(q, c, be64toh(q->l2[g % q->l2_len]), &offset, &entry, err) < 0 ||
	    run_add(q, run, data, c->size, offset, err) < 0)
		return -1;
	l2_set(q, g, entry);
	return 0;
}

/* Zeros need no table: only those that are there are looked at. */
static int put_zeros(struct qcow2 *q, uint64_t g, uint64_t count, struct err *err)
{
	for (uint64_t end = g + count, next; g < end; g = next) {
		size_t index = (size_t)(g / q->l2_len);

		next = MIN((index + 1) * q->l2_len, end);
		if (index != q->l2_index && !q->l1[index])
			continue;
		if (l2_select(q, index, err) < 0)
			return -1;
		for (; g < next; g++) {
			if (entry_drop(q, be64toh(q->l2[g % q->l2_len]), err) < 0)
				return -1;
			l2_set(q, g, 0);
		}
	}
	return 0;
}

static int qcow2_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct qcow2 *q = (struct qcow2 *)img;
	uint64_t g = chunk->offset >> q->cluster_bits;
	struct run run = { 0 };

	if (chunk->zero)
		return put_zeros(
			q, g, round_up(chunk->length, img->cluster_size) >> q->cluster_bits, err);
	for (size_t i = 0; i < chunk->cluster_count; i++, g++) {
		const struct cluster *c = &chunk->clusters[i];
		int r;

		if (c->form == CLUSTER_ZERO)
			r = put_zeros(q, g, 1, err);
		else
			r = put_data(q, g, c, chunk->data + c->at, &run, err);
		if (r < 0)
			return -1;
	}
	return run_flush(q, &run, err);
}

static int header_write(struct qcow2 *q, const struct refcounts_tail *t, struct err *err)
{
	struct header h = {
		.magic = htobe32(QCOW2_MAGIC),
		.version = htobe32(3),
		.cluster_bits = htobe32(q->cluster_bits),
		.size = htobe64(q->base.size),
		.l1_size = htobe32((uint32_t)q->l1_len),
		.l1_table_offset = htobe64(t->first << q->cluster_bits),
		.refcount_table_offset = htobe64(t->table_at << q->cluster_bits),
		.refcount_table_clusters = htobe32((uint32_t)t->table_clusters),
		.incompatible_features = htobe64(q->compression_type ? INCOMPAT_COMPRESSION : 0),
		.refcount_order = htobe32(REFCOUNT_ORDER),
		.header_length = htobe32(HEADER_LENGTH),
		.compression_type = q->compression_type,
	};

	return write_at(q, &h, sizeof h, 0, err);
}

static int qcow2_finish(struct image *img, struct err *err)
{
	struct qcow2 *q = (struct qcow2 *)img;
	size_t l1_size = q->l1_len * sizeof *q->l1;
	struct refcounts_tail t;

	if (l2_flush(q, err) < 0)
		return -1;
	t = refcounts_plan_tail(&q->refs, round_up(l1_size, img->cluster_size) >> q->cluster_bits);
	if (ftruncate(img->fd, (off_t)(t.end << q->cluster_bits)) < 0)
		return err_errno(err, ERR_FAILED, "cannot set the length of %s", img->name);
	if (write_at(q, q->l1, l1_size, t.first << q->cluster_bits, err) < 0 ||
	    refcounts_write_tail(&q->refs, &t, err) < 0)
		return -1;
	return header_write(q, &t, err);
}

static void qcow2_close(struct image *img)
{
	struct qcow2 *q = (struct qcow2 *)img;

	free(q->l1);
	free(q->l2);
	refcounts_free(&q->refs);
	free(q);
}

static const struct image_ops qcow2_ops = {
	.put = qcow2_put,
	.finish = qcow2_finish,
	.close = qcow2_close,
};

/* By the length of L1 and by the host offset's bits in a packed descriptor. */
uint64_t qcow2_size_max(size_t cluster_size)
{
	unsigned bits = (unsigned)__builtin_ctzll(cluster_size);
	uint64_t per_l2 = cluster_size / sizeof(uint64_t) * cluster_size;

	return MIN(L1_BYTES_MAX / sizeof(uint64_t) * per_l2, UINT64_C(1) << (62 - (bits - 8)));
}

/* Header, L1 and L2, then what counts the references of all; one cluster more
 * that ends partly filled.
 */
uint64_t qcow2_overhead(uint64_t size, size_t cluster_size, uint64_t clusters)
{
	uint64_t entries = cluster_size / sizeof(uint64_t), per_l2 = entries * cluster_size;
	uint64_t l1_len = round_up(size, per_l2) / per_l2;
	uint64_t tables = 2 + round_up(l1_len, entries) / entries + MIN(l1_len, clusters);
	uint64_t per_block = cluster_size / sizeof(uint16_t);
	uint64_t blocks = (clusters + tables) / per_block + 2;

	return (tables + blocks + round_up(blocks, entries) / entries) * cluster_size;
}

struct image *qcow2_create(const struct image_config *cfg, struct err *err)
{
	struct qcow2 *q = calloc(1, sizeof *q);
	uint64_t header, per_l2;

	if (!q)
		goto no_memory;
	q->base = (struct image){
		.ops = &qcow2_ops,
		.size = cfg->size,
		.cluster_size = cfg->cluster_size,
		.fd = cfg->fd,
		.name = cfg->name,
	};
	q->cluster_bits = (unsigned)__builtin_ctzll(cfg->cluster_size);
	q->compression_type = strcmp(cfg->compression, "zstd") == 0;
	q->l2_len = cfg->cluster_size / sizeof *q->l2;
	per_l2 = q->l2_len * cfg->cluster_size;
	q->l1_len = (size_t)(round_up(cfg->size, per_l2) / per_l2);
	q->l1 = calloc(MAX(q->l1_len, 1), sizeof *q->l1);
	q->l2 = calloc(q->l2_len, sizeof *q->l2);
	if (!q->l1 || !q->l2)
		goto no_memory;
	/* the header's cluster */
	if (refcounts_init(&q->refs, &q->base, err) < 0 || cluster_alloc(q, &header, err) < 0)
		goto fail;
	return &q->base;

no_memory:
	err_nomem(err);
fail:
	if (q)
		qcow2_close(&q->base);
	return NULL;
}
