// SPDX-License-Identifier: Apache-2.0
#include "source/tables.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "base/str.h"
#include "source/reader.h"
#include "source/vmdk.h"

#include <stdlib.h>

enum { BLOCK = 64 * 1024 };

static int damaged(const char *what, struct err *err)
{
	return err_set(err, ERR_REFUSED, "damaged: %s", what);
}

static int outside(const struct reader *in, uint64_t offset, struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "damaged or cut short: data should lie at offset %llu, its size is %llu",
		       (unsigned long long)offset, (unsigned long long)in->size);
}

/* Calls visit for each of count entries of entry_size bytes at offset. */
static int walk(const struct reader *in, uint64_t offset, uint64_t count, size_t entry_size,
		int (*visit)(void *ctx, uint64_t index, const uint8_t *entry, struct err *err),
		void *ctx, struct err *err)
{
	autofree uint8_t *block = malloc(BLOCK);
	const uint64_t at_once = BLOCK / entry_size;

	if (!block)
		return err_nomem(err);
	for (uint64_t i = 0; i < count;) {
		size_t n = (size_t)MIN(count - i, at_once);

		if (interrupt_check(err) < 0 ||
		    reader_get(in, block, n * entry_size, offset + i * entry_size, err) < 0)
			return -1;
		for (size_t k = 0; k < n; k++)
			if (visit(ctx, i + k, block + k * entry_size, err) < 0)
				return -1;
		i += n;
	}
	return 0;
}

/* qcow2 */
#define QCOW2_OFFSET	 UINT64_C(0x00fffffffffffe00)
#define QCOW2_RESERVED	 UINT64_C(0x7f000000000001ff) /* of an L1 entry */
#define QCOW2_COMPRESSED (UINT64_C(1) << 62)
#define QCOW2_ZERO	 UINT64_C(1)
#define QCOW2_DATA_FILE	 (UINT64_C(1) << 2)
#define QCOW2_EXTENDED	 (UINT64_C(1) << 4)

struct qcow2_walk {
	const struct reader *in;
	unsigned cluster_bits;
	uint64_t cluster, clusters; /* its size; how many the disk has */
	size_t entry_size;	    /* of L2 */
	uint64_t per_table;
	int extended, external; /* subclusters; data in another file */
	uint64_t tables, tables_max;
};

static int qcow2_visit_l2(void *ctx, uint64_t index, const uint8_t *entry, struct err *err)
{
	const struct qcow2_walk *walk = ctx;
	uint64_t bits = get_be64(entry), offset = bits & QCOW2_OFFSET;

	(void)index;
	if (bits & QCOW2_COMPRESSED) {
		offset = bits & ((UINT64_C(1) << (62 - (walk->cluster_bits - 8))) - 1);
		return offset < walk->in->size ? 0 : outside(walk->in, offset, err);
	}
	if (offset == 0 || walk->external || (!walk->extended && (bits & QCOW2_ZERO)))
		return 0;
	if (walk->extended && get_be32(entry + 12) == 0) /* none is allocated */
		return 0;
	if (offset % walk->cluster)
		return damaged("an L2 entry is not aligned", err);
	return offset < walk->in->size ? 0 : outside(walk->in, offset, err);
}

static int qcow2_visit_l1(void *ctx, uint64_t index, const uint8_t *entry, struct err *err)
{
	struct qcow2_walk *w = ctx;
	uint64_t bits = get_be64(entry), offset = bits & QCOW2_OFFSET;

	if (bits & QCOW2_RESERVED)
		return damaged("an L1 entry has unknown bits", err);
	if (offset == 0)
		return 0;
	if (offset % w->cluster)
		return damaged("an L1 entry is not aligned", err);
	/* No two share a table, so there are no more than fit into the file. */
	if (++w->tables > w->tables_max)
		return damaged("its L1 table names the same tables again and again", err);
	return walk(w->in, offset, MIN(w->per_table, w->clusters - index * w->per_table),
		    w->entry_size, qcow2_visit_l2, w, err);
}

static int qcow2_check(const struct reader *in, struct err *err)
{
	uint8_t header[104] = { 0 };
	struct qcow2_walk w = { .in = in };
	uint64_t size, features, l1_size, needed;

	if (reader_get(in, header, (size_t)MIN(in->size, sizeof header), 0, err) < 0)
		return -1;
	w.cluster_bits = get_be32(header + 20);
	w.cluster = UINT64_C(1) << w.cluster_bits;
	size = get_be64(header + 24);
	l1_size = get_be32(header + 36);
	features = get_be32(header + 4) >= 3 ? get_be64(header + 72) : 0;
	w.extended = (features & QCOW2_EXTENDED) != 0;
	w.external = (features & QCOW2_DATA_FILE) != 0;
	w.entry_size = w.extended ? 16 : 8;
	w.per_table = w.cluster / w.entry_size;
	w.clusters = size / w.cluster + (size % w.cluster != 0);
	w.tables_max = in->size / w.cluster + 1;
	needed = w.clusters / w.per_table + (w.clusters % w.per_table != 0);
	if (l1_size < needed)
		return damaged("its L1 table is too small for the disk", err);
	if (needed > 0 && get_be64(header + 40) % w.cluster)
		return damaged("its L1 table is not aligned", err);
	return walk(in, get_be64(header + 40), needed, 8, qcow2_visit_l1, &w, err);
}

/* vdi: one table of block numbers */
#define VDI_DISCARDED 0xfffffffeU /* and above: no data */

struct vdi_walk {
	const struct reader *in;
	uint64_t data, block_size;
};

static int vdi_visit(void *ctx, uint64_t index, const uint8_t *entry, struct err *err)
{
	const struct vdi_walk *w = ctx;
	uint64_t block = get_le32(entry), end = w->data + (block + 1) * w->block_size;

	(void)index;
	return block >= VDI_DISCARDED || end <= w->in->size ? 0 : outside(w->in, end - 1, err);
}

static int vdi_check(const struct reader *in, struct err *err)
{
	uint8_t header[512];
	struct vdi_walk w = { .in = in };

	if (reader_get(in, header, sizeof header, 0, err) < 0)
		return -1;
	w.data = get_le32(header + 344);
	w.block_size = get_le32(header + 376);
	return walk(in, get_le32(header + 340), get_le32(header + 384), 4, vdi_visit, &w, err);
}

/* vmdk: a directory of tables of grains; numbers are sectors */
struct vmdk_walk {
	const struct reader *in;
	struct vmdk_sparse sparse;
	uint64_t grains, tables, tables_max;
};

static int vmdk_visit_grain(void *ctx, uint64_t index, const uint8_t *entry, struct err *err)
{
	const struct vmdk_walk *w = ctx;
	uint64_t offset = (uint64_t)get_le32(entry) * 512;

	(void)index;
	return offset < w->in->size ? 0 : outside(w->in, offset, err);
}

static int vmdk_visit_table(void *ctx, uint64_t index, const uint8_t *entry, struct err *err)
{
	struct vmdk_walk *w = ctx;
	uint64_t per_table = w->sparse.grains_per_table;
	uint64_t offset = (uint64_t)get_le32(entry) * 512;

	if (offset == 0)
		return 0;
	if (++w->tables > w->tables_max)
		return damaged("its grain directory names the same tables again and again", err);
	return walk(w->in, offset, MIN(per_table, w->grains - index * per_table), 4,
		    vmdk_visit_grain, w, err);
}

int tables_check_vmdk_extent(const struct reader *in, struct err *err)
{
	struct vmdk_walk w = { .in = in };
	uint64_t per_table;

	if (vmdk_read_sparse(in, &w.sparse, err) < 0)
		return -1;
	per_table = w.sparse.grains_per_table;
	w.grains = (w.sparse.capacity + w.sparse.grain - 1) / w.sparse.grain;
	w.tables_max = in->size / (per_table * 4) + 1;
	if (w.sparse.directory > in->size / 512)
		return outside(in, w.sparse.directory * 512, err);
	return walk(in, w.sparse.directory * 512, (w.grains + per_table - 1) / per_table, 4,
		    vmdk_visit_table, &w, err);
}

static int vmdk_check(const struct reader *in, struct err *err)
{
	char magic[4];

	if (reader_get(in, magic, sizeof magic, 0, err) < 0)
		return -1;
	/* A text descriptor has no tables; its extents are looked at one by one. */
	return memcmp(magic, "KDMV", 4) ? 0 : tables_check_vmdk_extent(in, err);
}

int tables_check(const struct reader *in, const char *format, struct err *err)
{
	if (str_equal(format, "qcow2"))
		return qcow2_check(in, err);
	if (str_equal(format, "vdi"))
		return vdi_check(in, err);
	if (str_equal(format, "vmdk"))
		return vmdk_check(in, err);
	return 0; /* raw has none, and for vhdx QEMU looks itself */
}
