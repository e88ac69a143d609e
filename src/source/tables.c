// SPDX-License-Identifier: Apache-2.0
#include "source/tables.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "source/reader.h"

#include <stdlib.h>

enum { BLOCK = 64 * 1024, SECTOR = 512 };

struct walk {
	const struct reader *in;
	const struct layout *layout;
	uint64_t data_size;
	uint64_t units;		     /* that the disk has */
	uint64_t first;		     /* the unit that the second-level table begins with */
	uint64_t tables, tables_max; /* second-level ones, seen and possible */
	uint64_t last;		     /* the highest offset of data */
};

static uint64_t div_round_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

typedef int visitor(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err);

/* Calls visit for each of count entries of entry_size bytes at offset. */
static int walk(struct walk *w, uint64_t offset, uint64_t count, size_t entry_size, visitor *visit,
		struct err *err)
{
	autofree uint8_t *block = malloc(BLOCK);
	const uint64_t at_once = BLOCK / entry_size;

	if (!block)
		return err_nomem(err);
	for (uint64_t i = 0; i < count;) {
		size_t n = (size_t)MIN(count - i, at_once);

		if (interrupt_check(err) < 0 ||
		    reader_get(w->in, block, n * entry_size, offset + i * entry_size, err) < 0)
			return -1;
		for (size_t k = 0; k < n; k++)
			if (visit(w, i + k, block + k * entry_size, err) < 0)
				return -1;
		i += n;
	}
	return 0;
}

static int check_data(const struct walk *w, uint64_t offset, uint64_t length, struct err *err)
{
	if (offset <= w->data_size && length <= w->data_size - offset)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "damaged or cut short: %llu bytes of data should lie at offset %llu, where "
		       "its size is %llu",
		       (unsigned long long)length, (unsigned long long)offset,
		       (unsigned long long)w->data_size);
}

/* What the guest can see of a unit: the last one may go on behind its end, and
 * nobody has to store that.
 */
static uint64_t visible(const struct walk *w, uint64_t unit)
{
	return MIN(w->layout->unit, w->layout->size - unit * w->layout->unit);
}

/* No two entries share a table, so there are no more than fit into the file:
 * else one would be read for each part of a disk of any size.
 */
static int count_table(struct walk *w, struct err *err)
{
	return ++w->tables > w->tables_max
		       ? reader_damaged("it names the same tables again and again", err)
		       : 0;
}

/* qcow2 */
#define QCOW2_OFFSET	 UINT64_C(0x00fffffffffffe00)
#define QCOW2_RESERVED	 UINT64_C(0x7f000000000001ff) /* of an L1 entry */
#define QCOW2_COPIED	 (UINT64_C(1) << 63)
#define QCOW2_COMPRESSED (UINT64_C(1) << 62)
#define QCOW2_ZERO	 UINT64_C(1)

enum { SUBCLUSTERS = 32 };

/* Its length is known in sectors only; who wrote the file need not have filled
 * up the last one.
 */
static int qcow2_check_compressed(const struct walk *w, uint64_t bits, struct err *err)
{
	unsigned cluster_bits = (unsigned)__builtin_ctzll(w->layout->unit);
	unsigned length_bits = cluster_bits - 8, offset_bits = 62 - length_bits;
	uint64_t offset = bits & ((UINT64_C(1) << offset_bits) - 1);
	uint64_t more = (bits >> offset_bits) & ((UINT64_C(1) << length_bits) - 1);
	uint64_t last = round_down(offset, SECTOR) + more * SECTOR;

	return check_data(w, offset, MAX(last, offset) + 1 - offset, err);
}

/* Of a cluster in 32 parts: up to the last one that is stored. */
static uint64_t qcow2_stored(const struct walk *w, uint64_t length, uint32_t allocated)
{
	uint64_t parts = SUBCLUSTERS - (unsigned)__builtin_clz(allocated);

	return MIN(length, parts * (w->layout->unit / SUBCLUSTERS));
}

static int qcow2_visit_l2(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err)
{
	const struct layout *layout = w->layout;
	uint64_t bits = get_be64(entry), offset = bits & QCOW2_OFFSET;
	uint64_t length = visible(w, w->first + index);

	if (bits & QCOW2_COMPRESSED)
		return qcow2_check_compressed(w, bits, err);
	/* in another file, data may be at offset 0, too */
	if (offset == 0 && !(layout->external && (bits & QCOW2_COPIED)))
		return 0;
	if (!layout->extended && (bits & QCOW2_ZERO))
		return 0;
	if (layout->extended && get_be32(entry + 12) == 0) /* none is allocated */
		return 0;
	if (layout->extended)
		length = qcow2_stored(w, length, get_be32(entry + 12));
	if (offset % layout->unit)
		return reader_damaged("an L2 entry is not aligned", err);
	return check_data(w, offset, length, err);
}

static int qcow2_visit_l1(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err)
{
	const struct layout *layout = w->layout;
	uint64_t bits = get_be64(entry), offset = bits & QCOW2_OFFSET;

	if (bits & QCOW2_RESERVED)
		return reader_damaged("an L1 entry has unknown bits", err);
	if (offset == 0)
		return 0;
	if (offset % layout->unit)
		return reader_damaged("an L1 entry is not aligned", err);
	w->first = index * layout->per_table;
	if (count_table(w, err) < 0)
		return -1;
	return walk(w, offset, MIN(layout->per_table, w->units - w->first),
		    layout->extended ? 16 : 8, qcow2_visit_l2, err);
}

static int qcow2_check(struct walk *w, struct err *err)
{
	const struct layout *layout = w->layout;
	uint64_t needed = div_round_up(w->units, layout->per_table);

	w->tables_max = w->in->size / layout->unit + 1;
	if (layout->entries < needed)
		return reader_damaged("its L1 table is too small for the disk", err);
	if (needed > 0 && layout->table % layout->unit)
		return reader_damaged("its L1 table is not aligned", err);
	return walk(w, layout->table, needed, 8, qcow2_visit_l1, err);
}

/* vdi: one table of block numbers */
#define VDI_DISCARDED 0xfffffffeU /* and above: no data */

static int vdi_visit(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err)
{
	uint64_t block = get_le32(entry);

	if (block >= VDI_DISCARDED)
		return 0;
	return check_data(w, w->layout->data + block * w->layout->unit, visible(w, index), err);
}

static int vdi_check(struct walk *w, struct err *err)
{
	if (w->layout->entries < w->units)
		return reader_damaged("its table is too small for the disk", err);
	return walk(w, w->layout->table, w->units, 4, vdi_visit, err);
}

/* vmdk: a directory of tables of grains; numbers are sectors */
static int vmdk_visit_grain(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err)
{
	uint64_t offset = (uint64_t)get_le32(entry) * SECTOR;

	if (offset == 0 || (offset == SECTOR && w->layout->zero_grains))
		return 0;
	w->last = MAX(w->last, offset);
	/* of a compressed one, see vmdk_check_last */
	return check_data(w, offset, w->layout->markers ? 1 : visible(w, w->first + index), err);
}

static int vmdk_visit_table(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err)
{
	const struct layout *layout = w->layout;
	uint64_t offset = (uint64_t)get_le32(entry) * SECTOR;

	if (offset == 0)
		return 0;
	w->first = index * layout->per_table;
	if (count_table(w, err) < 0)
		return -1;
	return walk(w, offset, MIN(layout->per_table, w->units - w->first), 4, vmdk_visit_grain,
		    err);
}

/* Compressed grains have their length before them.  They lie one behind the
 * other, so when the last one is whole, all are; to read every length would
 * mean to read every page of the file.
 */
static int vmdk_check_last(const struct walk *w, struct err *err)
{
	uint8_t marker[12]; /* the grain's first sector, its length */

	if (!w->layout->markers || w->last == 0)
		return 0;
	if (reader_get(w->in, marker, sizeof marker, w->last, err) < 0)
		return -1;
	return check_data(w, w->last, sizeof marker + (uint64_t)get_le32(marker + 8), err);
}

static int vmdk_check(struct walk *w, struct err *err)
{
	const struct layout *layout = w->layout;
	uint64_t needed = div_round_up(w->units, layout->per_table);

	w->tables_max = w->in->size / (layout->per_table * 4) + 1;
	if (layout->entries < needed)
		return reader_damaged("its grain directory is too small for the disk", err);
	if (walk(w, layout->table, needed, 4, vmdk_visit_table, err) < 0)
		return -1;
	return vmdk_check_last(w, err);
}

/* vhdx: one table, with an entry for a bitmap behind each per_table blocks */
#define VHDX_OFFSET UINT64_C(0xfffffffffff00000)

enum { VHDX_STATE = 7, VHDX_PRESENT = 6 }; /* and 7: partially */

static int vhdx_visit(struct walk *w, uint64_t index, const uint8_t *entry, struct err *err)
{
	uint64_t bits = get_le64(entry), with_bitmap = w->layout->per_table + 1;

	if (index % with_bitmap == w->layout->per_table || (bits & VHDX_STATE) < VHDX_PRESENT)
		return 0;
	return check_data(w, bits & VHDX_OFFSET, visible(w, index - index / with_bitmap), err);
}

static int vhdx_check(struct walk *w, struct err *err)
{
	const struct layout *layout = w->layout;
	uint64_t needed = w->units ? w->units + (w->units - 1) / layout->per_table : 0;

	if (layout->entries < needed)
		return reader_damaged("its block table is too small for the disk", err);
	return walk(w, layout->table, needed, 8, vhdx_visit, err);
}

int tables_check(const struct reader *in, const struct layout *layout, uint64_t data_size,
		 struct err *err)
{
	static int (*const checks[])(struct walk * w, struct err * err) = {
		[LAYOUT_QCOW2] = qcow2_check,
		[LAYOUT_VDI] = vdi_check,
		[LAYOUT_VMDK] = vmdk_check,
		[LAYOUT_VHDX] = vhdx_check,
	};
	struct walk w = { .in = in, .layout = layout, .data_size = data_size };

	if (layout->kind == LAYOUT_NONE)
		return 0;
	w.units = div_round_up(layout->size, layout->unit);
	return checks[layout->kind](&w, err);
}
