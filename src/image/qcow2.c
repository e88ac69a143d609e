// SPDX-License-Identifier: Apache-2.0
#include "image/image.h"

#include "base/err.h"
#include "base/io.h"
#include "base/size.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* qcow2 version 3, stand-alone, written once from front to back (format: QEMU
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
 */
enum {
	HEADER_LENGTH = 112,
	REFCOUNT_ORDER = 4, /* 16 bits */
	REFCOUNT_MAX = UINT16_MAX,
	SECTOR = 512,
};

#define QCOW2_MAGIC	     0x514649fbu
#define INCOMPAT_COMPRESSION (UINT64_C(1) << 3)
#define ENTRY_COPIED	     (UINT64_C(1) << 63) /* refcount is exactly one */
#define ENTRY_COMPRESSED     (UINT64_C(1) << 62)

/* Limits of QEMU's reader (block/qcow2.h). */
#define L1_BYTES_MAX	   (32 * MIB)
#define REFTABLE_BYTES_MAX (8 * MIB)

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
	bool l2_used;

	uint64_t next_cluster;	    /* the first never given out */
	uint64_t pack_at, pack_end; /* free bytes of the open packed cluster */

	uint16_t *refs; /* the block of cluster next_cluster-1, in host order */
	size_t refs_len, block_index;
	uint64_t *reftable; /* offsets of the blocks written, big-endian */
	size_t reftable_cap;
};

struct image *qcow2_create(const struct image_config *cfg, struct err *err);
uint64_t qcow2_size_max(size_t cluster_size);
uint64_t qcow2_overhead(uint64_t size, size_t cluster_size, uint64_t clusters);

static int write_at(struct qcow2 *q, const void *buf, size_t len, uint64_t offset, struct err *err)
{
	if (io_pwrite(q->base.fd, buf, len, offset) < 0)
		return err_errno(err, ERR_FAILED, "cannot write %s at offset %llu", q->base.name,
				 (unsigned long long)offset);
	return 0;
}

static int reftable_set(struct qcow2 *q, size_t block, uint64_t offset, struct err *err)
{
	if ((block + 1) * sizeof *q->reftable > REFTABLE_BYTES_MAX)
		return err_set(err, ERR_FAILED,
			       "the image file grows too large for its cluster size; "
			       "use a larger --cluster-size");
	if (block >= q->reftable_cap) {
		size_t cap = MAX(q->reftable_cap * 2, block + 64);
		uint64_t *table = reallocarray(q->reftable, cap, sizeof *table);

		if (!table)
			return err_nomem(err);
		memset(table + q->reftable_cap, 0, (cap - q->reftable_cap) * sizeof *table);
		q->reftable = table;
		q->reftable_cap = cap;
	}
	q->reftable[block] = htobe64(offset);
	return 0;
}

/* Writes the block in memory to host cluster `where` and empties it. */
static int refs_write(struct qcow2 *q, uint64_t where, struct err *err)
{
	uint64_t offset = where << q->cluster_bits;

	for (size_t i = 0; i < q->refs_len; i++)
		q->refs[i] = htobe16(q->refs[i]);
	if (reftable_set(q, q->block_index, offset, err) < 0 ||
	    write_at(q, q->refs, q->base.cluster_size, offset, err) < 0)
		return -1;
	memset(q->refs, 0, q->base.cluster_size);
	return 0;
}

static uint16_t *ref_of(struct qcow2 *q, uint64_t cluster)
{
	assert(cluster / q->refs_len == q->block_index);
	return &q->refs[cluster % q->refs_len];
}

/* The next host cluster, with a refcount of one.  The first of a new refcount
 * block closes the block before, which takes the cluster behind it.
 */
static int cluster_alloc(struct qcow2 *q, uint64_t *cluster, struct err *err)
{
	uint64_t c = q->next_cluster++;

	if (c / q->refs_len != q->block_index) {
		uint64_t where = q->next_cluster++;

		if (refs_write(q, where, err) < 0)
			return -1;
		q->block_index++;
		q->pack_at = q->pack_end = 0;
		*ref_of(q, where) = 1;
	}
	*ref_of(q, c) = 1;
	*cluster = c;
	return 0;
}

static int l2_flush(struct qcow2 *q, struct err *err)
{
	uint64_t cluster, offset;

	if (!q->l2_used)
		return 0;
	if (cluster_alloc(q, &cluster, err) < 0)
		return -1;
	offset = cluster << q->cluster_bits;
	if (write_at(q, q->l2, q->base.cluster_size, offset, err) < 0)
		return -1;
	q->l1[q->l2_index] = htobe64(offset | ENTRY_COPIED);
	memset(q->l2, 0, q->base.cluster_size);
	q->l2_used = false;
	return 0;
}

static int place_plain(struct qcow2 *q, uint64_t *offset, uint64_t *entry, struct err *err)
{
	uint64_t cluster;

	if (cluster_alloc(q, &cluster, err) < 0)
		return -1;
	*offset = cluster << q->cluster_bits;
	*entry = *offset | ENTRY_COPIED;
	return 0;
}

/* Compressed descriptor: the byte offset, and above it how many 512-byte
 * sectors the data touches besides the first.
 */
static uint64_t packed_entry(const struct qcow2 *q, uint64_t offset, size_t size)
{
	unsigned shift = 62 - (q->cluster_bits - 8);
	uint64_t sectors = (offset + size - 1) / SECTOR - offset / SECTOR;

	return ENTRY_COMPRESSED | sectors << shift | offset;
}

static int place_packed(struct qcow2 *q, size_t size, uint64_t *offset, uint64_t *entry,
			struct err *err)
{
	uint64_t room = q->pack_end - q->pack_at, cluster;
	bool adjacent = q->pack_end == q->next_cluster << q->cluster_bits;
	uint16_t *ref = room ? ref_of(q, q->pack_at >> q->cluster_bits) : NULL;

	if (!room || *ref == REFCOUNT_MAX || (size > room && !adjacent)) {
		if (cluster_alloc(q, &cluster, err) < 0)
			return -1;
		*offset = cluster << q->cluster_bits;
		q->pack_end = *offset + q->base.cluster_size;
	} else {
		*offset = q->pack_at;
		++*ref;
		if (size > room) {
			uint64_t end = q->pack_end + q->base.cluster_size;

			if (cluster_alloc(q, &cluster, err) < 0)
				return -1;
			q->pack_end = end;
		}
	}
	q->pack_at = *offset + size;
	*entry = packed_entry(q, *offset, size);
	return 0;
}

/* Make q->l2 the table of guest cluster g. */
static int l2_select(struct qcow2 *q, uint64_t g, struct err *err)
{
	size_t index = (size_t)(g / q->l2_len);

	if (index != q->l2_index && l2_flush(q, err) < 0)
		return -1;
	q->l2_index = index;
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

static int qcow2_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct qcow2 *q = (struct qcow2 *)img;
	uint64_t g = chunk->offset >> q->cluster_bits;
	struct run run = { 0 };

	for (size_t i = 0; !chunk->zero && i < chunk->cluster_count; i++, g++) {
		const struct cluster *c = &chunk->clusters[i];
		uint64_t offset, entry;
		int r;

		if (c->form == CLUSTER_ZERO)
			continue;
		if (l2_select(q, g, err) < 0)
			return -1;
		if (c->form == CLUSTER_PACKED)
			r = place_packed(q, c->size, &offset, &entry, err);
		else
			r = place_plain(q, &offset, &entry, err);
		if (r < 0 || run_add(q, &run, chunk->data + c->at, c->size, offset, err) < 0)
			return -1;
		q->l2[g % q->l2_len] = htobe64(entry);
		q->l2_used = true;
	}
	return run_flush(q, &run, err);
}

/* Where everything behind the data goes.  All of it is referenced once. */
struct tail {
	uint64_t l1_at, table_at, blocks_at, end; /* clusters */
	uint64_t table_clusters, block_count;
};

static struct tail tail_plan(const struct qcow2 *q)
{
	size_t size = q->base.cluster_size;
	struct tail t = { .l1_at = q->next_cluster };
	uint64_t blocks_total = 0, needed = q->block_index + 1;

	t.table_at = t.l1_at + round_up(q->l1_len * sizeof *q->l1, size) / size;
	/* more blocks make a longer table and both more clusters to count */
	while (blocks_total != needed) {
		blocks_total = needed;
		t.block_count = blocks_total - q->block_index;
		t.table_clusters = round_up(blocks_total * sizeof *q->reftable, size) / size;
		t.blocks_at = t.table_at + t.table_clusters;
		t.end = t.blocks_at + t.block_count;
		needed = (t.end - 1) / q->refs_len + 1;
	}
	return t;
}

static int tail_write_blocks(struct qcow2 *q, const struct tail *t, struct err *err)
{
	uint64_t cluster = t->l1_at;

	for (uint64_t i = 0; i < t->block_count; i++) {
		while (cluster < t->end && cluster / q->refs_len == q->block_index)
			*ref_of(q, cluster++) = 1;
		if (refs_write(q, t->blocks_at + i, err) < 0)
			return -1;
		q->block_index++;
	}
	assert(cluster == t->end);
	return 0;
}

static int header_write(struct qcow2 *q, const struct tail *t, struct err *err)
{
	struct header h = {
		.magic = htobe32(QCOW2_MAGIC),
		.version = htobe32(3),
		.cluster_bits = htobe32(q->cluster_bits),
		.size = htobe64(q->base.size),
		.l1_size = htobe32((uint32_t)q->l1_len),
		.l1_table_offset = htobe64(t->l1_at << q->cluster_bits),
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
	struct tail t;

	if (l2_flush(q, err) < 0)
		return -1;
	t = tail_plan(q);
	if (ftruncate(img->fd, (off_t)(t.end << q->cluster_bits)) < 0)
		return err_errno(err, ERR_FAILED, "cannot set the length of %s", img->name);
	if (write_at(q, q->l1, q->l1_len * sizeof *q->l1, t.l1_at << q->cluster_bits, err) < 0 ||
	    tail_write_blocks(q, &t, err) < 0 ||
	    write_at(q, q->reftable, q->block_index * sizeof *q->reftable,
		     t.table_at << q->cluster_bits, err) < 0)
		return -1;
	return header_write(q, &t, err);
}

static void qcow2_close(struct image *img)
{
	struct qcow2 *q = (struct qcow2 *)img;

	free(q->l1);
	free(q->l2);
	free(q->refs);
	free(q->reftable);
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
	uint64_t first, per_l2;

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
	q->refs_len = cfg->cluster_size / sizeof *q->refs;
	per_l2 = q->l2_len * cfg->cluster_size;
	q->l1_len = (size_t)(round_up(cfg->size, per_l2) / per_l2);
	q->l1 = calloc(MAX(q->l1_len, 1), sizeof *q->l1);
	q->l2 = calloc(q->l2_len, sizeof *q->l2);
	q->refs = calloc(q->refs_len, sizeof *q->refs);
	if (!q->l1 || !q->l2 || !q->refs)
		goto no_memory;
	/* the header's cluster */
	if (cluster_alloc(q, &first, err) < 0)
		goto fail;
	return &q->base;

no_memory:
	err_nomem(err);
fail:
	if (q)
		qcow2_close(&q->base);
	return NULL;
}
