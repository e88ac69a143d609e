// SPDX-License-Identifier: Apache-2.0
#include "source/vhdx.h"

#include "base/err.h"
#include "base/size.h"
#include "source/reader.h"

#include <stdlib.h>
#include <string.h>

/* [MS-VHDX].  Two copies of a table of regions; one region holds the table of
 * metadata items, one the places of the blocks.
 */
enum {
	VHDX_ENTRY = 32, /* bytes, in both tables */
	VHDX_ENTRIES_MAX = 2047,
	VHDX_TABLE = 64 * 1024,
	VHDX_HAS_PARENT = 2,
};

#define BLOCK_MIN     MIB
#define BLOCK_MAX     (256 * MIB)
#define DISK_MAX      (64 * TIB)
#define CHUNK_SECTORS (UINT64_C(1) << 23) /* that one bitmap block is for */

static const uint8_t metadata_region[16] = { 0x06, 0xa2, 0x7c, 0x8b, 0x90, 0x47, 0x9a, 0x4b,
					     0xb8, 0xfe, 0x57, 0x5f, 0x05, 0x0f, 0x88, 0x6e };
static const uint8_t block_region[16] = { 0x66, 0x77, 0xc2, 0x2d, 0x23, 0xf6, 0x00, 0x42,
					  0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd, 0x4a, 0x08 };
static const uint8_t file_parameters[16] = { 0x37, 0x67, 0xa1, 0xca, 0x36, 0xfa, 0x43, 0x4d,
					     0xb3, 0xb6, 0x33, 0xf0, 0xaa, 0x44, 0xe7, 0x6b };
static const uint8_t sector_size[16] = { 0x1d, 0xbf, 0x41, 0x81, 0x6f, 0xa9, 0x09, 0x47,
					 0xba, 0x47, 0xf2, 0x33, 0xa8, 0xfa, 0xab, 0x5f };

static const uint8_t disk_size[16] = { 0x24, 0x42, 0xa5, 0x2f, 0x1b, 0xcd, 0x76, 0x48,
				       0xb2, 0x11, 0x5d, 0xbe, 0xd8, 0x3b, 0xf4, 0xb8 };

/* The entry of that id in a table that was read whole, or NULL. */
static const uint8_t *find(const uint8_t *table, size_t header, size_t count, const uint8_t id[16])
{
	for (size_t i = 0; i < count; i++)
		if (!memcmp(table + header + i * VHDX_ENTRY, id, 16))
			return table + header + i * VHDX_ENTRY;
	return NULL;
}

/* Also where the places of the blocks stand. */
static int find_metadata(const struct reader *in, uint8_t *table, uint64_t *offset,
			 struct layout *layout, struct err *err)
{
	static const uint64_t places[] = { 192 * KIB, 256 * KIB };

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const uint8_t *metadata, *blocks;

		if (reader_get(in, table, VHDX_TABLE, places[i], err) < 0)
			return -1;
		if (memcmp(table, "regi", 4) || get_le32(table + 8) > VHDX_ENTRIES_MAX)
			continue;
		metadata = find(table, 16, get_le32(table + 8), metadata_region);
		blocks = find(table, 16, get_le32(table + 8), block_region);
		if (!metadata || !blocks)
			continue;
		*offset = get_le64(metadata + 16);
		layout->table = get_le64(blocks + 16);
		layout->entries = get_le32(blocks + 24) / 8;
		return 0;
	}
	return reader_damaged("no usable region table", err);
}

/* The first words of an item, which QEMU needs as well. */
static int read_item(const struct reader *in, const uint8_t *table, uint64_t region,
		     const uint8_t id[16], uint8_t *buf, size_t len, struct err *err)
{
	const uint8_t *entry = find(table, 32, get_le16(table + 10), id);

	if (!entry || get_le32(entry + 20) < len)
		return reader_damaged("its metadata is incomplete", err);
	return reader_get(in, buf, len, region + get_le32(entry + 16), err);
}

int vhdx_parse(const struct reader *in, struct references *out, struct err *err)
{
	autofree uint8_t *table = malloc(VHDX_TABLE);
	uint8_t parameters[8], sector[4], size[8];
	struct layout *layout = &out->layout;
	uint64_t region = 0;

	if (!table)
		return err_nomem(err);
	if (in->size < 8)
		return references_wrong_format("vhdx", err);
	if (reader_get(in, table, 8, 0, err) < 0)
		return -1;
	if (memcmp(table, "vhdxfile", 8))
		return references_wrong_format("vhdx", err);
	if (find_metadata(in, table, &region, layout, err) < 0 ||
	    reader_get(in, table, VHDX_TABLE, region, err) < 0)
		return -1;
	if (memcmp(table, "metadata", 8) || get_le16(table + 10) > VHDX_ENTRIES_MAX)
		return reader_damaged("no usable metadata table", err);
	if (read_item(in, table, region, file_parameters, parameters, 8, err) < 0 ||
	    read_item(in, table, region, sector_size, sector, 4, err) < 0 ||
	    read_item(in, table, region, disk_size, size, 8, err) < 0)
		return -1;
	out->sector_size = get_le32(sector);
	if (out->sector_size != 512 && out->sector_size != 4096)
		return reader_damaged("its sector size is impossible", err);
	layout->kind = LAYOUT_VHDX;
	layout->unit = get_le32(parameters);
	layout->size = get_le64(size);
	if (layout->unit < BLOCK_MIN || layout->unit > BLOCK_MAX ||
	    (layout->unit & (layout->unit - 1)) || layout->size > DISK_MAX)
		return reader_damaged("its disk or block size is impossible", err);
	layout->per_table = CHUNK_SECTORS * out->sector_size / layout->unit;
	if ((get_le32(parameters + 4) & VHDX_HAS_PARENT) &&
	    !references_add(out, REFERENCE_PARENT, "", NULL, err))
		return -1;
	return 0;
}
