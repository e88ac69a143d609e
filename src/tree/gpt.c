// SPDX-License-Identifier: Apache-2.0
#include "tree/gpt.h"

#include "base/bytes.h"
#include "base/size.h"
#include "base/uuid.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS = 128,
	ENTRY_SIZE = 128,
	ENTRIES_SIZE = SLOTS * ENTRY_SIZE,
	HEADER_SIZE = 92,
	NAME_MAX_UNITS = 36,
	BOOT_CODE_SIZE = 440,
};

const char gpt_type_bios_boot[] = "21686148-6449-6e6f-744e-656564454649";
const char gpt_type_esp[] = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
const char gpt_type_linux[] = "0fc63daf-8483-4772-8e79-3d69d8477de4";
const char gpt_type_xbootldr[] = "bc13c2ff-59e6-4262-a352-b275fd6f7172";
const char gpt_type_root_x86_64[] = "4f68bce3-e8cd-4db1-96e7-fbcaf984b709";
const char gpt_type_root_arm64[] = "b921b045-1df0-41c3-af44-4c6f280d3fae";

/* The reflected CRC-32 of IEEE 802.3; a table is not worth it for 16 KiB. */
static uint32_t crc32_of(const uint8_t *bytes, size_t len)
{
	uint32_t crc = ~0u;

	while (len-- > 0) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* On disk the first three fields are little-endian, the rest as it is written. */
static void put_guid(uint8_t *dst, const uint8_t guid[16])
{
	static const uint8_t order[16] = {
		3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15,
	};

	for (size_t i = 0; i < sizeof order; i++)
		dst[i] = guid[order[i]];
}

static void put_type(uint8_t *dst, const char *text)
{
	uint8_t guid[16] = { 0 };
	bool good = uuid_parse(text, guid);

	assert(good);
	(void)good;
	put_guid(dst, guid);
}

static uint64_t sectors_of(const struct gpt_config *cfg)
{
	return cfg->disk_size / cfg->sector_size;
}

static uint64_t table_sectors(unsigned sector_size)
{
	return ENTRIES_SIZE / sector_size;
}

size_t gpt_head_size(unsigned sector_size)
{
	return 2 * sector_size + ENTRIES_SIZE;
}

size_t gpt_tail_size(unsigned sector_size)
{
	return sector_size + ENTRIES_SIZE;
}

static void encode_entries(const struct gpt_config *cfg, uint8_t entries[ENTRIES_SIZE])
{
	uint64_t first = gpt_head_size(cfg->sector_size);
	uint64_t end = cfg->disk_size - gpt_tail_size(cfg->sector_size);

	for (size_t i = 0; i < cfg->count; i++) {
		const struct gpt_partition *part = &cfg->partitions[i];
		size_t len = strlen(part->name);
		uint8_t *entry;

		assert(part->number >= 1 && part->number <= SLOTS && len <= NAME_MAX_UNITS);
		assert(part->offset % cfg->sector_size == 0 && part->offset >= first);
		assert(part->length % cfg->sector_size == 0 && part->length > 0);
		assert(part->offset <= end && part->length <= end - part->offset);
		entry = entries + (size_t)(part->number - 1) * ENTRY_SIZE;
		put_type(entry, part->type);
		put_guid(entry + 16, part->guid);
		put_le64(entry + 32, part->offset / cfg->sector_size);
		put_le64(entry + 40, (part->offset + part->length) / cfg->sector_size - 1);
		for (size_t c = 0; c < len; c++)
			entry[56 + 2 * c] = (uint8_t)part->name[c]; /* UTF-16, little-endian */
	}
}

/* self: where this header lies, other: the other one, table: the entries. */
static void encode_header(const struct gpt_config *cfg, uint8_t *header, const uint8_t *entries,
			  uint64_t self, uint64_t other, uint64_t table)
{
	uint64_t reach = table_sectors(cfg->sector_size);

	memcpy(header, "EFI PART", 8);
	put_le32(header + 8, 0x00010000); /* revision 1.0 */
	put_le32(header + 12, HEADER_SIZE);
	put_le64(header + 24, self);
	put_le64(header + 32, other);
	put_le64(header + 40, 2 + reach);		    /* first sector for partitions */
	put_le64(header + 48, sectors_of(cfg) - 2 - reach); /* the last */
	put_guid(header + 56, cfg->disk_guid);
	put_le64(header + 72, table);
	put_le32(header + 80, SLOTS);
	put_le32(header + 84, ENTRY_SIZE);
	put_le32(header + 88, crc32_of(entries, ENTRIES_SIZE));
	put_le32(header + 16, crc32_of(header, HEADER_SIZE)); /* over itself as 0 */
}

/* One entry over the whole disk.  Image services look at every field of it: not
 * bootable, from CHS 0/2/0 and LBA 1, nothing in the other slots.
 */
static void encode_protective_mbr(const struct gpt_config *cfg, uint8_t *mbr)
{
	static const uint8_t entry[] = { 0x00, 0x00, 0x02, 0x00, 0xee, 0xff, 0xff, 0xff };
	uint64_t covered = MIN(sectors_of(cfg) - 1, UINT32_MAX);

	if (cfg->boot_code)
		memcpy(mbr, cfg->boot_code, BOOT_CODE_SIZE);
	memcpy(mbr + 446, entry, sizeof entry);
	put_le32(mbr + 454, 1);
	put_le32(mbr + 458, (uint32_t)covered);
	mbr[510] = 0x55;
	mbr[511] = 0xaa;
}

void gpt_encode(const struct gpt_config *cfg, uint8_t *head, uint8_t *tail)
{
	size_t sector = cfg->sector_size;
	uint64_t last;
	uint8_t *entries = head + 2 * sector;

	assert(sector == 512 || sector == 4096);
	assert(cfg->disk_size % sector == 0);
	assert(cfg->disk_size > gpt_head_size(cfg->sector_size) + gpt_tail_size(cfg->sector_size));
	last = sectors_of(cfg) - 1;
	memset(head, 0, gpt_head_size(cfg->sector_size));
	memset(tail, 0, gpt_tail_size(cfg->sector_size));
	encode_protective_mbr(cfg, head);
	encode_entries(cfg, entries);
	encode_header(cfg, head + sector, entries, 1, last, 2);
	memcpy(tail, entries, ENTRIES_SIZE);
	encode_header(cfg, tail + ENTRIES_SIZE, entries, last, 1,
		      last - table_sectors(cfg->sector_size));
}
