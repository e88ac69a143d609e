// SPDX-License-Identifier: Apache-2.0
#include "references-kit.h"

#include "source/vmdk.h"

static int clear_file(void **state)
{
	(void)state;
	memset(file, 0, sizeof file);
	return 0;
}

static int parse_text(const char *text)
{
	strcpy((char *)file, text);
	return parse_sized("vmdk", strlen(text));
}

#define VMDK_HEAD "# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID=ffffffff\n"

static void every_extent_of_a_descriptor_is_found(void **state)
{
	static const char *const types[] = {
		"FLAT", "SPARSE", "", "VMFS", "VMFSSPARSE", "VMFSRDM"
	};

	(void)state;
	assert_int_equal(parse_text(VMDK_HEAD "createType=\"custom\"\r\n"
					      "RW 100 FLAT \"a b.vmdk\" 7\r\n"
					      "RDONLY 200 SPARSE \"/abs/c.vmdk\"\n"
					      "NOACCESS 300 ZERO\n"
					      "\trw 1 VMFS \"d\"\n"
					      "RW 1 VMFSSPARSE \"e\"\n"
					      "RW 1 VMFSRDM \"f\"\n"),
			 0);
	assert_int_equal(refs.len, 6);
	assert_string_equal(refs.type, "custom");
	assert_int_equal(refs.cid, 0x12345678);
	assert_string_equal(refs.at[0].name, "a b.vmdk");
	assert_int_equal(refs.at[0].offset, 7);
	assert_int_equal(refs.at[0].sectors, 100);
	assert_string_equal(refs.at[1].name, "/abs/c.vmdk");
	assert_string_equal(refs.at[1].access, "RDONLY");
	assert_string_equal(refs.at[2].name, "");
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(refs.at[i].type, i == 2 ? "ZERO" : types[i]);
}

/* What QEMU leaves when a descriptor is followed by a shorter one. */
static void a_descriptor_ends_at_its_first_nul(void **state)
{
	static const char text[] = VMDK_HEAD "RW 100 FLAT \"a\" 0\n\0RW 1 FLAT \"old\" 0\n";

	(void)state;
	memcpy(file, text, sizeof text);
	assert_int_equal(parse_sized("vmdk", sizeof text - 1), 0);
	assert_int_equal(refs.len, 1);
	assert_string_equal(refs.at[0].name, "a");
}

static void a_vmdk_parent_is_seen_by_number_or_by_name(void **state)
{
	(void)state;
	assert_int_equal(parse_text("# Disk DescriptorFile\nCID=1\nparentCID=00000002\n"), 0);
	assert_int_equal(refs.at[0].kind, REFERENCE_PARENT);
	assert_int_equal(parse_text(VMDK_HEAD "parentFileNameHint=\"base.vmdk\"\n"), 0);
	assert_string_equal(refs.at[0].name, "base.vmdk");
}

static void extents_that_make_no_sense_are_refused(void **state)
{
	static const char *const bad[] = {
		VMDK_HEAD "RW x FLAT \"a\" 0\n",
		VMDK_HEAD "RW -1 FLAT \"a\" 0\n",
		VMDK_HEAD "RW 99999999999999999999 FLAT \"a\" 0\n",
		VMDK_HEAD "RW 1 FLAT \"a\n",
		VMDK_HEAD "RW 1 FLAT a 0\n",
		VMDK_HEAD "RW 1 FLAT \"\" 0\n",
		VMDK_HEAD "RW 1 FLAT \"a\" 0x10\n",
		VMDK_HEAD "RW 1 ATYPEOFSIXTEENLETTERS \"a\"\n",
		VMDK_HEAD "RW\n",
		VMDK_HEAD "createType=\"a\"b\"\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(parse_text(bad[i]), -1);
		assert_refused("damaged");
	}
}

/* A sparse vmdk of 64 KiB with the given lines in its descriptor. */
static void make_sparse(const char *text)
{
	memset(file, 0, sizeof file);
	memcpy(file, "KDMV", 4);
	file_le32(4, 1);
	file_le64(12, 128);
	file_le64(20, 128);
	file_le64(28, 1);
	file_le64(36, 20);
	file_le32(44, 512);
	file_le64(56, 30);
	strcpy((char *)file + 512, text);
}

static void a_vmdk_that_lists_only_itself_names_nothing(void **state)
{
	(void)state;
	make_sparse(VMDK_HEAD "createType=\"monolithicSparse\"\nRW 128 SPARSE \"old-name.vmdk\"\n");
	assert_int_equal(parse("vmdk"), 0);
	assert_int_equal(refs.len, 0);
	make_sparse(VMDK_HEAD "createType=\"monolithicSparse\"\nRW 1 SPARSE \"a\"\n"
			      "RW 1 SPARSE \"/etc/passwd\"\n");
	assert_int_equal(parse("vmdk"), -1);
	assert_refused("lists other files");
	make_sparse(VMDK_HEAD "createType=\"monolithicFlat\"\nRW 1 FLAT \"/etc/passwd\" 0\n");
	assert_int_equal(parse("vmdk"), -1);
	assert_refused("lists other files");
}

static void a_descriptor_in_disguise_is_refused(void **state)
{
	(void)state;
	make_sparse(VMDK_HEAD "createType=\"monolithicSparse\"\nRW 128 SPARSE \"x\"\n");
	file_le64(12, 0); /* QEMU takes a capacity of 0 to mean: follow the descriptor */
	assert_int_equal(parse("vmdk"), -1);
	assert_refused("capacity");
}

static void a_vmdk_that_was_cut_short_is_refused(void **state)
{
	(void)state;
	make_sparse(VMDK_HEAD "createType=\"monolithicSparse\"\nRW 128 SPARSE \"x\"\n");
	file_le32((size_t)30 * 512, 31);
	file_le32((size_t)31 * 512, 100);
	assert_int_equal(check_tables("vmdk", FILE_SIZE), 0);
	assert_int_equal(check_tables("vmdk", 228 * 512), 0);
	assert_int_equal(check_tables("vmdk", 228 * 512 - 1), -1);
	assert_refused("cut short");
	file_le64(12, 1); /* of one sector */
	assert_int_equal(check_tables("vmdk", 101 * 512), 0);
	file_le32((size_t)31 * 512, FILE_SIZE / 512);
	assert_int_equal(check_tables("vmdk", FILE_SIZE), -1);
	assert_refused("cut short");
	file_le32((size_t)30 * 512, FILE_SIZE / 512);
	assert_int_equal(check_tables("vmdk", FILE_SIZE), -1);
	assert_refused("cut short");
}

static void the_last_compressed_grain_must_be_there_to_its_end(void **state)
{
	(void)state;
	make_sparse(VMDK_HEAD "createType=\"streamOptimized\"\nRW 256 SPARSE \"x\"\n");
	file_le32(8, 3 << 16);
	file_le64(12, 256);
	file_le32((size_t)30 * 512, 31);
	file_le32((size_t)31 * 512, 200);
	file_le32((size_t)31 * 512 + 4, 100);
	file_le32((size_t)200 * 512 + 8, 5000);
	assert_int_equal(check_tables("vmdk", 200 * 512 + 12 + 5000), 0);
	assert_int_equal(check_tables("vmdk", 200 * 512 + 12 + 4999), -1);
	assert_refused("cut short");
	assert_int_equal(check_tables("vmdk", 200 * 512 + 11), -1);
	assert_refused("cut short");
}

static void grains_of_zeros_need_no_place(void **state)
{
	(void)state;
	make_sparse(VMDK_HEAD "createType=\"monolithicSparse\"\nRW 128 SPARSE \"x\"\n");
	file_le32((size_t)30 * 512, 31);
	file_le32((size_t)31 * 512, 1);
	assert_int_equal(check_tables("vmdk", 32 * 512), -1);
	assert_refused("cut short");
	file_le32(8, 4);
	assert_int_equal(check_tables("vmdk", 33 * 512), 0);
}

static int read_extent(struct layout *layout)
{
	const struct reader in = { NULL, FILE_SIZE, read_file };

	err = (struct err){ 0 };
	return vmdk_read_extent(&in, layout, &err);
}

static void extents_are_known_by_how_they_begin(void **state)
{
	struct layout layout;

	(void)state;
	make_sparse("");
	assert_int_equal(read_extent(&layout), 0);
	assert_int_equal(layout.size, 128 * 512);
	file_le64(12, 0);
	assert_int_equal(read_extent(&layout), -1);
	assert_refused("capacity");
	memset(file, 0, sizeof file);
	memcpy(file, "COWD", 4);
	file_le32(12, 8192);
	file_le32(16, 1);
	file_le32(20, 4);
	file_le32(24, 2);
	assert_int_equal(read_extent(&layout), 0);
	assert_int_equal(layout.size, 8192 * 512);
	assert_int_equal(layout.per_table, 4096);
	file_le64(0, 0xcafebabe);
	assert_int_equal(read_extent(&layout), -1);
	assert_refused("qemu-img convert");
	strcpy((char *)file, VMDK_HEAD);
	assert_int_equal(read_extent(&layout), -1);
	assert_refused("does not begin like one");
}

static void a_cow_extent_that_was_cut_short_is_refused(void **state)
{
	struct reader in = { NULL, 200 * 512, read_file };
	struct layout layout;

	(void)state;
	memset(file, 0, sizeof file);
	memcpy(file, "COWD", 4);
	file_le32(12, 4097);
	file_le32(16, 1);
	file_le32(20, 4);
	file_le32(24, 2);
	file_le32((size_t)4 * 512 + 4, 50);
	file_le32((size_t)50 * 512, 199);
	assert_int_equal(read_extent(&layout), 0);
	assert_int_equal(tables_check(&in, &layout, in.size, &err), 0);
	in.size--;
	assert_int_equal(tables_check(&in, &layout, in.size, &err), -1);
	assert_refused("cut short");
	file_le32(24, 1); /* QEMU fails behind the directory's end */
	assert_int_equal(read_extent(&layout), 0);
	assert_int_equal(tables_check(&in, &layout, in.size, &err), -1);
	assert_refused("too small");
}

static int extent_number(const void *ctx, size_t extent)
{
	(void)ctx;
	return 10 + (int)extent;
}

static void our_own_descriptor_names_only_descriptors(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(parse_text(VMDK_HEAD "createType=\"twoGbMaxExtentFlat\"\n"
					      "RDONLY 100 FLAT \"/etc/passwd\" 7\n"
					      "RW 200 FLAT \"b\"\n"),
			 0);
	text = vmdk_descriptor(&refs, &err, extent_number, NULL);
	assert_non_null(strstr(text, "RW 100 FLAT \"/proc/self/fd/10\" 7\n"
				     "RW 200 FLAT \"/proc/self/fd/11\" 0\n"));
	assert_null(strstr(text, "passwd"));
	assert_null(strstr(text, "\n\n"));
	free(text);
	assert_int_equal(parse_text(VMDK_HEAD "createType=\"vmfsSparse\"\n"
					      "rw 100 vmfsSparse \"a\"\n"
					      "Rw 100 flat \"b\" 3\n"),
			 0);
	text = vmdk_descriptor(&refs, &err, extent_number, NULL); /* spelt as QEMU wants it */
	assert_non_null(strstr(text, "RW 100 VMFSSPARSE \"/proc/self/fd/10\"\n"
				     "RW 100 FLAT \"/proc/self/fd/11\" 3\n"));
	free(text);
	assert_int_equal(parse_text(VMDK_HEAD "RW 100 ZERO\n"), 0);
	assert_null(vmdk_descriptor(&refs, &err, extent_number, NULL));
	assert_refused("cannot be read");
}

#define TEST(claim) cmocka_unit_test_setup(claim, clear_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_extent_of_a_descriptor_is_found),
		TEST(a_descriptor_ends_at_its_first_nul),
		TEST(a_vmdk_parent_is_seen_by_number_or_by_name),
		TEST(extents_that_make_no_sense_are_refused),
		TEST(a_vmdk_that_lists_only_itself_names_nothing),
		TEST(a_descriptor_in_disguise_is_refused),
		TEST(a_vmdk_that_was_cut_short_is_refused),
		TEST(the_last_compressed_grain_must_be_there_to_its_end),
		TEST(grains_of_zeros_need_no_place),
		TEST(extents_are_known_by_how_they_begin),
		TEST(a_cow_extent_that_was_cut_short_is_refused),
		TEST(our_own_descriptor_names_only_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, free_refs);
}
