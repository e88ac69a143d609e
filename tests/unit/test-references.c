// SPDX-License-Identifier: Apache-2.0
#include "references-kit.h"

/* A sound image of 1 MiB: L1 in cluster 1, one L2 in cluster 2. */
static int make_qcow2(void **state)
{
	(void)state;
	memset(file, 0, sizeof file);
	memcpy(file, "QFI\xfb", 4);
	file_be32(4, 3);
	file_be32(20, 16);
	file_be64(24, MIB);
	file_be32(36, 1);
	file_be64(40, 1 * CLUSTER);
	file_be32(96, 4);
	file_be32(100, 112);
	file_be64(1 * CLUSTER, (UINT64_C(1) << 63) | 2 * CLUSTER);
	return 0;
}

static size_t put_extension(size_t at, uint32_t type, const char *text, size_t len)
{
	file_be32(at, type);
	file_be32(at + 4, (uint32_t)len);
	memcpy(file + at + 8, text, len);
	return at + 8 + (len + 7) / 8 * 8;
}

static void put_backing(size_t at, const char *name, size_t len)
{
	file_be64(8, at);
	file_be32(16, (uint32_t)len);
	if (at + len <= sizeof file)
		memcpy(file + at, name, len);
}

static void a_plain_qcow2_names_nothing(void **state)
{
	(void)state;
	assert_int_equal(parse("qcow2"), 0);
	assert_int_equal(refs.len, 0);
	assert_int_equal(check_tables("qcow2", FILE_SIZE), 0);
	file_be32(4, 2);
	assert_int_equal(parse("qcow2"), 0);
}

static void backing_file_and_its_format_are_found(void **state)
{
	(void)state;
	put_extension(112, 0xe2792acaU, "raw", 3);
	put_backing(500, "json:{}", 7);
	assert_int_equal(parse("qcow2"), 0);
	assert_int_equal(refs.len, 1);
	assert_int_equal(refs.at[0].kind, REFERENCE_BACKING);
	assert_string_equal(refs.at[0].name, "json:{}");
	assert_string_equal(refs.at[0].format, "raw");
}

static void a_backing_file_without_format_has_none(void **state)
{
	(void)state;
	put_backing(500, "base", 4);
	assert_int_equal(parse("qcow2"), 0);
	assert_string_equal(refs.at[0].name, "base");
	assert_null(refs.at[0].format);
}

static void a_data_file_is_found_named_or_not(void **state)
{
	(void)state;
	file_be64(72, 4);
	assert_int_equal(parse("qcow2"), 0);
	assert_int_equal(refs.at[0].kind, REFERENCE_DATA_FILE);
	assert_string_equal(refs.at[0].name, "");
	put_extension(112, 0x44415441U, "/etc/passwd", 11);
	assert_int_equal(parse("qcow2"), 0);
	assert_string_equal(refs.at[0].name, "/etc/passwd");
	file_be64(72, 0);
	assert_int_equal(parse("qcow2"), -1);
	assert_refused("data file");
}

static void extensions_behind_others_are_found(void **state)
{
	size_t at = put_extension(112, 0x6803f857U, "some feature names", 18);

	(void)state;
	put_extension(at, 0xe2792acaU, "qcow2", 5);
	put_backing(1000, "b", 1);
	assert_int_equal(parse("qcow2"), 0);
	assert_string_equal(refs.at[0].format, "qcow2");
}

static void names_that_leave_the_header_are_refused(void **state)
{
	static const struct {
		uint64_t offset;
		size_t length;
	} places[] = { { CLUSTER, 1 },		 { CLUSTER - 3, 4 }, { UINT64_MAX, 1 },
		       { UINT64_MAX - 4, 1000 }, { 500, 1024 },	     { 500, UINT32_MAX } };

	(void)state;
	memset(file + 500, 'a', CLUSTER - 500);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		file_be64(8, places[i].offset);
		file_be32(16, (uint32_t)places[i].length);
		assert_int_equal(parse("qcow2"), -1);
		assert_refused("damaged");
	}
}

static void a_nul_inside_a_name_is_refused(void **state)
{
	(void)state;
	put_backing(500, "safe\0evil", 9);
	assert_int_equal(parse("qcow2"), -1);
	assert_refused("name");
}

static void an_extension_that_leaves_the_header_is_refused(void **state)
{
	(void)state;
	put_extension(112, 0x12345678U, "", 0);
	file_be32(116, CLUSTER);
	assert_int_equal(parse("qcow2"), -1);
	assert_refused("extension");
	file_be32(116, UINT32_MAX);
	assert_int_equal(parse("qcow2"), -1);
	assert_refused("extension");
}

static void headers_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *why;
	} faults[] = {
		{ 0, 0, "not a qcow2" },
		{ 4, 1, "version 1" },
		{ 4, 4, "version 4" },
		{ 20, 8, "cluster size" },
		{ 20, 22, "cluster size" },
		{ 20, 0xffffffffU, "cluster size" },
		{ 24, 0x80000000U, "disk size" },
		{ 32, 1, "encrypted" },
		{ 32, 2, "encrypted" },
		{ 36, 0x7fffffffU, "L1" },
		{ 76, 0x20, "unknown" },
		{ 72, 1, "unknown" },
		{ 76, 2, "corrupt" },
		{ 96, 7, "refcount" },
		{ 100, 72, "length" },
		{ 100, CLUSTER + 8, "length" },
	};

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		make_qcow2(state);
		file_be32(faults[i].at, faults[i].value);
		assert_int_equal(parse("qcow2"), -1);
		assert_refused(faults[i].why);
	}
}

static void a_file_that_ends_in_its_header_is_refused(void **state)
{
	static const char *const formats[] = { "qcow2", "vmdk", "vdi", "vhdx" };

	(void)state;
	for (size_t f = 0; f < 4; f++) {
		for (size_t size = 0; size < 104; size++) {
			assert_int_equal(parse_sized(formats[f], size), -1);
			assert_int_equal(err.kind, ERR_REFUSED);
		}
	}
}

static void tables_that_lead_out_of_the_file_are_refused(void **state)
{
	static const uint64_t outside[] = {
		FILE_SIZE, UINT64_C(1) << 55, (UINT64_C(1) << 62) | FILE_SIZE, /* compressed */
	};

	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
		make_qcow2(state);
		file_be64(2 * CLUSTER + 15 * 8, outside[i]);
		assert_int_equal(check_tables("qcow2", FILE_SIZE), -1);
		assert_refused("cut short");
	}
	file_be64(2 * CLUSTER + 15 * 8, 7 * CLUSTER);
	assert_int_equal(check_tables("qcow2", FILE_SIZE), 0);
	assert_int_equal(check_tables("qcow2", FILE_SIZE - 1), -1);
	assert_refused("cut short");
	file_be64(24, MIB - CLUSTER + 512); /* the guest sees one sector of the cluster */
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER + 512), 0);
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER + 511), -1);
	file_be64(1 * CLUSTER, FILE_SIZE);
	assert_int_equal(check_tables("qcow2", FILE_SIZE), -1);
}

static void a_compressed_cluster_must_be_there_up_to_its_last_sector(void **state)
{
	const unsigned length_at = 62 - (16 - 8);
	const uint64_t offset = 7 * CLUSTER + 700;

	(void)state;
	file_be64(2 * CLUSTER, (UINT64_C(1) << 62) | (UINT64_C(2) << length_at) | offset);
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER + 3 * 512 + 1), 0);
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER + 3 * 512), -1);
	assert_refused("cut short");
	file_be64(2 * CLUSTER, (UINT64_C(1) << 62) | offset);
	assert_int_equal(check_tables("qcow2", offset + 1), 0);
	assert_int_equal(check_tables("qcow2", offset), -1);
}

static void subclusters_must_be_there_up_to_the_last_that_is_stored(void **state)
{
	(void)state;
	file_be64(72, 16);
	file_be64(2 * CLUSTER, 7 * CLUSTER);
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER), 0);
	file_be64(2 * CLUSTER + 8, 5); /* the first and the third of 2 KiB */
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER + 3 * 2048), 0);
	assert_int_equal(check_tables("qcow2", 7 * CLUSTER + 3 * 2048 - 1), -1);
	assert_refused("cut short");
}

static void data_in_another_file_must_be_there(void **state)
{
	const struct reader in = { NULL, FILE_SIZE, read_file };

	(void)state;
	file_be64(72, 4);
	put_extension(112, 0x44415441U, "data", 4);
	file_be64(2 * CLUSTER, UINT64_C(1) << 63); /* at offset 0 */
	file_be64(2 * CLUSTER + 8, (UINT64_C(1) << 63) | 90 * CLUSTER);
	assert_int_equal(parse("qcow2"), 0);
	assert_int_equal(tables_check(&in, &refs.layout, 91 * CLUSTER, &err), 0);
	assert_int_equal(tables_check(&in, &refs.layout, 91 * CLUSTER - 1, &err), -1);
	assert_refused("cut short");
	file_be64(2 * CLUSTER + 8, 0);
	assert_int_equal(tables_check(&in, &refs.layout, CLUSTER - 1, &err), -1);
	file_be64(2 * CLUSTER, 0);
	assert_int_equal(tables_check(&in, &refs.layout, 0, &err), 0);
}

static void one_table_used_for_all_of_a_huge_disk_is_refused(void **state)
{
	(void)state;
	file_be64(24, 64 * TIB);
	file_be32(36, 131072);
	for (size_t i = 0; i < CLUSTER / 8; i++)
		file_be64(1 * CLUSTER + i * 8, 3 * CLUSTER);
	assert_int_equal(check_tables("qcow2", FILE_SIZE), -1);
	assert_refused("again and again");
}

static void make_vdi(uint32_t type)
{
	memset(file, 0, sizeof file);
	file_le32(64, 0xbeda107fU);
	file_le32(68, 0x00010001U);
	file_le32(76, type);
	file_le32(340, 512);
	file_le32(344, 1024);
	file_le64(368, 4 * CLUSTER);
	file_le32(376, CLUSTER);
	file_le32(384, 4);
}

static void a_vdi_with_a_parent_is_seen(void **state)
{
	(void)state;
	for (uint32_t type = 1; type <= 2; type++) {
		make_vdi(type);
		assert_int_equal(parse("vdi"), 0);
		assert_int_equal(refs.len, 0);
		file[424] = 1; /* UUID of the parent */
		assert_int_equal(parse("vdi"), 0);
		assert_int_equal(refs.len, 1);
		assert_int_equal(refs.at[0].kind, REFERENCE_PARENT);
	}
	make_vdi(4);
	assert_int_equal(parse("vdi"), 0);
	assert_int_equal(refs.len, 1);
	make_vdi(5);
	assert_int_equal(parse("vdi"), -1);
}

static void a_vdi_that_was_cut_short_is_refused(void **state)
{
	(void)state;
	make_vdi(1);
	file_le32(512, 0xffffffffU);
	file_le32(516, 6);
	assert_int_equal(check_tables("vdi", FILE_SIZE), 0);
	assert_int_equal(check_tables("vdi", 1024 + 7 * CLUSTER), 0);
	assert_int_equal(check_tables("vdi", 1024 + 7 * CLUSTER - 1), -1);
	assert_refused("cut short");
	file_le32(516, 7);
	assert_int_equal(check_tables("vdi", FILE_SIZE), -1);
	assert_refused("cut short");
}

static void put_entry(size_t at, const char *id, uint32_t value)
{
	memcpy(file + at, id, 16);
	file_le32(at + 16, value);
	file_le32(at + 20, 8);
}

enum { VHDX_BLOCKS = 448 * KIB };

static void make_vhdx(uint32_t flags)
{
	const size_t regions = 192 * KIB, metadata = 256 * KIB;

	memset(file, 0, sizeof file);
	memcpy(file, "vhdxfile", 8);
	memcpy(file + regions, "regi", 4);
	file_le32(regions + 8, 2);
	put_entry(regions + 16, "\x06\xa2\x7c\x8b\x90\x47\x9a\x4b\xb8\xfe\x57\x5f\x05\x0f\x88\x6e",
		  0);
	file_le64(regions + 32, metadata);
	put_entry(regions + 48, "\x66\x77\xc2\x2d\x23\xf6\x00\x42\x9d\x64\x11\x5e\x9b\xfd\x4a\x08",
		  0);
	file_le64(regions + 64, VHDX_BLOCKS);
	file_le32(regions + 72, MIB);
	memcpy(file + metadata, "metadata", 8);
	file_le32(metadata + 8, 3 << 16);
	put_entry(metadata + 32, "\x37\x67\xa1\xca\x36\xfa\x43\x4d\xb3\xb6\x33\xf0\xaa\x44\xe7\x6b",
		  65536);
	put_entry(metadata + 64, "\x1d\xbf\x41\x81\x6f\xa9\x09\x47\xba\x47\xf2\x33\xa8\xfa\xab\x5f",
		  65544);
	put_entry(metadata + 96, "\x24\x42\xa5\x2f\x1b\xcd\x76\x48\xb2\x11\x5d\xbe\xd8\x3b\xf4\xb8",
		  65552);
	file_le64(metadata + 65552, MIB + CLUSTER);
	file_le32(metadata + 65536, MIB);
	file_le32(metadata + 65536 + 4, flags);
	file_le32(metadata + 65544, 4096);
}

static void a_vhdx_with_a_parent_is_seen(void **state)
{
	(void)state;
	make_vhdx(0);
	assert_int_equal(parse("vhdx"), 0);
	assert_int_equal(refs.len, 0);
	assert_int_equal(refs.sector_size, 4096);
	make_vhdx(2);
	assert_int_equal(parse("vhdx"), 0);
	assert_int_equal(refs.len, 1);
	assert_int_equal(refs.at[0].kind, REFERENCE_PARENT);
}

static void a_vhdx_that_was_cut_short_is_refused(void **state)
{
	(void)state;
	make_vhdx(0);
	file_le64(VHDX_BLOCKS + 8, 0 | 6); /* the last block: the guest sees 64 KiB of it */
	assert_int_equal(check_tables("vhdx", FILE_SIZE), 0);
	file_le64(VHDX_BLOCKS, 0 | 6);
	assert_int_equal(check_tables("vhdx", FILE_SIZE), -1);
	assert_refused("cut short");
	file_le64(VHDX_BLOCKS, MIB | 2); /* zeros */
	assert_int_equal(check_tables("vhdx", FILE_SIZE), 0);
	file_le64(VHDX_BLOCKS + 8, MIB | 7);
	assert_int_equal(check_tables("vhdx", FILE_SIZE), -1);
	assert_refused("cut short");
}

#define TEST(claim) cmocka_unit_test_setup(claim, make_qcow2)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plain_qcow2_names_nothing),
		TEST(backing_file_and_its_format_are_found),
		TEST(a_backing_file_without_format_has_none),
		TEST(a_data_file_is_found_named_or_not),
		TEST(extensions_behind_others_are_found),
		TEST(names_that_leave_the_header_are_refused),
		TEST(a_nul_inside_a_name_is_refused),
		TEST(an_extension_that_leaves_the_header_is_refused),
		TEST(headers_that_make_no_sense_are_refused),
		TEST(a_file_that_ends_in_its_header_is_refused),
		TEST(tables_that_lead_out_of_the_file_are_refused),
		TEST(a_compressed_cluster_must_be_there_up_to_its_last_sector),
		TEST(subclusters_must_be_there_up_to_the_last_that_is_stored),
		TEST(data_in_another_file_must_be_there),
		TEST(one_table_used_for_all_of_a_huge_disk_is_refused),
		TEST(a_vdi_with_a_parent_is_seen),
		TEST(a_vdi_that_was_cut_short_is_refused),
		TEST(a_vhdx_with_a_parent_is_seen),
		TEST(a_vhdx_that_was_cut_short_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, free_refs);
}
