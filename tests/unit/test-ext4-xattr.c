// SPDX-License-Identifier: Apache-2.0
#include "ext4-xattr-kit.h"

static void no_attributes_leave_zeros(void **state)
{
	static const uint8_t zeros[96];

	(void)state;
	encode(NULL, 0);
	assert_false(image.has_block);
	assert_memory_equal(image.inode, zeros, 96);
}

static void attributes_are_in_the_inode_in_the_order_of_the_disk(void **state)
{
	struct model_xattr list[] = {
		{ "security.x", "1", 1 },
		{ "trusted.x", "", 0 },
		{ "user.bb", "23", 2 },
	};

	(void)state;
	encode(list, 3);
	assert_false(image.has_block);
	assert_int_equal(drops.count, 0);
	assert_int_equal(found_count, 3);
	for (size_t i = 0; i < 3; i++)
		expect_stored(&list[i]);
	assert_string_equal(found[0].name, "bb");
	assert_int_equal(found[2].index, 6);
}

static void the_inode_has_room_for_88_bytes(void **state)
{
	struct model_xattr list[] = { { "user.a", text, 68 } };

	(void)state;
	encode(list, 1);
	assert_false(image.has_block);
	expect_stored(&list[0]);
	list[0].size = 69;
	encode(list, 1);
	assert_true(image.has_block);
	assert_int_equal(get32(image.inode), 0);
	expect_stored(&list[0]);
}

static void the_block_has_room_for_4060_bytes(void **state)
{
	struct model_xattr list[] = { { "user.m", text, 4040 } };

	(void)state;
	encode(list, 1);
	assert_int_equal(drops.count, 0);
	expect_stored(&list[0]);
	list[0].size = 4041;
	encode(list, 1);
	assert_false(image.has_block);
	assert_int_equal(drops.count, 1);
	assert_string_equal(drops.name[0], "user.m");
	list[0].size = 65536;
	encode(list, 1);
	assert_int_equal(drops.count, 1);
	assert_non_null(strstr(drops.why, "larger than ext4"));
}

/* 20 + 88 + 4040: only with the second one in the inode is there room. */
static void what_fits_in_any_arrangement_is_kept(void **state)
{
	struct model_xattr list[] = {
		{ "user.a", text, 0 },
		{ "user.b", text, 68 },
		{ "user.c", text, 4020 },
	};

	(void)state;
	encode(list, 3);
	assert_int_equal(drops.count, 0);
	for (size_t i = 0; i < 3; i++)
		expect_stored(&list[i]);
	assert_false(find("user.b")->in_block);
	assert_true(find("user.a")->in_block);

	list[0].size = 1; /* four bytes too many */
	encode(list, 3);
	assert_int_equal(drops.count, 1);
	assert_string_equal(drops.name[0], "user.c");

	list[0].size = 80; /* room enough in sum, but neither fits in the inode */
	encode((struct model_xattr[]){ list[0], list[2] }, 2);
	assert_int_equal(drops.count, 1);
	assert_string_equal(drops.name[0], "user.c");
	expect_stored(&list[0]);
}

static void of_too_many_the_largest_are_dropped(void **state)
{
	struct model_xattr list[] = {
		{ "security.capability", text, 20 },
		{ "trusted.t", text, 1900 },
		{ "user.a", text, 2100 },
		{ "user.b", text, 2100 },
		{ "user.c", text, 10 },
	};

	(void)state;
	encode(list, 5);
	assert_int_equal(drops.count, 1);
	assert_string_equal(drops.name[0], "user.a");
	assert_int_equal(found_count, 4);
	list[1].size = list[2].size = list[3].size = 4000;
	encode(list, 5);
	assert_int_equal(drops.count, 2);
	assert_true(is_dropped("user.a") && is_dropped("user.b"));
	for (size_t i = 0; i < 2; i++)
		expect_stored(&list[i]);
}

static void of_too_many_those_that_matter_least_are_dropped(void **state)
{
	struct model_xattr list[] = {
		{ "security.capability", text, 1600 },
		{ "security.ima", text, 1200 },
		{ "security.selinux", text, 1000 },
		{ "trusted.t", text, 100 },
		{ "user.a", text, 200 },
		{ "user.b", text, 300 },
	};
	static const char *const first[] = { "user.b", "user.a", "trusted.t" };

	(void)state;
	for (size_t gone = 2; gone <= 3; gone++) {
		encode(list, 6);
		assert_int_equal(drops.count, gone);
		for (size_t i = 0; i < gone; i++)
			assert_true(is_dropped(first[i]));
		list[0].size += 100;
	}
}

/* Nothing goes that would not make room. */
static void what_fits_beside_what_matters_more_is_kept(void **state)
{
	struct model_xattr list[] = {
		{ "security.selinux", text, 3000 },
		{ "trusted.t", text, 3000 },
		{ "user.a", text, 30 },
		{ "user.b", text, 2000 },
	};

	(void)state;
	encode(list, 4);
	assert_int_equal(drops.count, 2);
	assert_true(is_dropped("trusted.t") && is_dropped("user.b"));
	expect_stored(&list[0]);
	expect_stored(&list[2]);
}

static void what_no_kernel_would_show_is_dropped(void **state)
{
	static char name[300] = "user.";
	struct model_xattr list[] = {
		{ "btrfs.compression", "zstd", 4 },
		{ "system.data", "x", 1 },
		{ "system.posix_acl_accessory", "x", 1 },
		{ "system.nfs4_acl", "x", 1 },
		{ "user.", "x", 1 },
		{ "trusted.", "x", 1 },
		{ "users.x", "x", 1 },
		{ "", "x", 1 },
		{ name, "x", 1 },
		{ "user.kept", "x", 1 },
	};
	const size_t count = sizeof list / sizeof *list;

	(void)state;
	memset(name + 5, 'n', 256);
	encode(list, count);
	assert_int_equal(drops.count, count - 1);
	assert_int_equal(found_count, 1);
	expect_stored(&list[count - 1]);
	name[5 + 255] = '\0';
	encode(list, count);
	assert_int_equal(drops.count, count - 2);
	expect_stored(&list[count - 2]);
}

static void of_two_with_one_name_the_first_is_kept(void **state)
{
	struct model_xattr list[] = { { "user.a", "1", 1 }, { "user.a", "2", 1 } };

	(void)state;
	encode(list, 2);
	assert_int_equal(drops.count, 1);
	assert_int_equal(found_count, 1);
	expect_stored(&list[0]);
}

#define V2	    2, 0, 0, 0
#define TAG(t, p)   t, 0, p, 0, 0xff, 0xff, 0xff, 0xff
#define NAMED(t, i) t, 0, 5, 0, i, 1, 2, 0x80

static void acls_get_the_form_of_the_disk(void **state)
{
	static const uint8_t kernel[] = { V2,	     TAG(1, 7),	  NAMED(2, 7), NAMED(2, 6),
					  TAG(4, 5), NAMED(8, 9), TAG(16, 5),  TAG(32, 0) };
	static const uint8_t disk[] = { 1,    0, 0, 0, 1, 0,	7,  0, 2,    0, 5,  0, 7, 1, 2,
					0x80, 2, 0, 5, 0, 6,	1,  2, 0x80, 4, 0,  5, 0, 8, 0,
					5,    0, 9, 1, 2, 0x80, 16, 0, 5,    0, 32, 0, 0, 0 };
	struct model_xattr list[] = {
		{ "system.posix_acl_access", kernel, sizeof kernel },
		{ "system.posix_acl_default", kernel, sizeof kernel },
	};

	(void)state;
	encode(list, 2);
	assert_int_equal(drops.count, 0);
	for (size_t i = 0; i < 2; i++) {
		const struct found *f = find(list[i].name);

		assert_non_null(f);
		assert_int_equal(f->name_length, 0);
		assert_int_equal(f->size, sizeof disk);
		assert_memory_equal(f->value, disk, sizeof disk);
	}
}

/* A mode's group bits are the mask when there is an ACL. */
static void a_mode_is_cut_when_its_acl_is_lost(void **state)
{
	static uint8_t acl[4 + 8 * 605] = { V2, TAG(1, 7) };
	static const uint8_t rest[] = { TAG(4, 5), TAG(16, 6), TAG(32, 0) };
	struct model_xattr x = { "system.posix_acl_access", acl, 12 };

	(void)state;
	encode(&x, 1);
	assert_int_equal(drops.count, 1);
	assert_int_equal(image.mode_cut, 070);
	for (; x.size < 4 + 8 * 601; x.size += 8)
		memcpy(acl + x.size, (uint8_t[]){ NAMED(2, 7) }, 8);
	memcpy(acl + x.size, rest, sizeof rest);
	x.size += sizeof rest;
	encode(&x, 1);
	assert_int_equal(drops.count, 1);
	assert_int_equal(image.mode_cut, 033);
	/* one of those that it names has no rights at all */
	memcpy(acl + 12, (uint8_t[]){ 2, 0, 0, 0, 7, 1, 2, 0x80 }, 8);
	encode(&x, 1);
	assert_int_equal(image.mode_cut, 077);

	memcpy(acl + 12, rest, sizeof rest);
	x.size = 12 + sizeof rest;
	encode(&x, 1);
	assert_int_equal(drops.count, 0);
	assert_int_equal(image.mode_cut, 0);
	x.name = "system.posix_acl_default";
	x.size = 12;
	encode(&x, 1);
	assert_int_equal(drops.count, 1);
	assert_int_equal(image.mode_cut, 0);
}

static void malformed_acls_are_dropped(void **state)
{
	static const struct {
		size_t size;
		uint8_t value[44];
	} cases[] = {
		{ 0, { 0 } },
		{ 3, { 2, 0, 0 } },
		{ 4, { V2 } },
		{ 27, { V2, TAG(1, 7), TAG(4, 7), TAG(32, 7) } },
		{ 29, { V2, TAG(1, 7), TAG(4, 7), TAG(32, 7) } },
		{ 28, { 1, 0, 0, 0, TAG(1, 7), TAG(4, 7), TAG(32, 7) } },
		{ 20, { V2, TAG(1, 7), TAG(4, 7) } },
		{ 28, { V2, TAG(1, 7), TAG(4, 8), TAG(32, 7) } },
		{ 28, { V2, TAG(4, 7), TAG(1, 7), TAG(32, 7) } },
		{ 36, { V2, TAG(1, 7), TAG(1, 7), TAG(4, 7), TAG(32, 7) } },
		{ 36, { V2, TAG(1, 7), TAG(4, 7), TAG(32, 7), TAG(64, 7) } },
		{ 36, { V2, TAG(0, 7), TAG(1, 7), TAG(4, 7), TAG(32, 7) } },
		{ 36, { V2, TAG(1, 7), TAG(3, 7), TAG(4, 7), TAG(32, 7) } },
		{ 36, { V2, TAG(1, 7), NAMED(2, 7), TAG(4, 7), TAG(32, 7) } },
		{ 44, { V2, TAG(1, 7), TAG(2, 7), TAG(4, 7), TAG(16, 7), TAG(32, 7) } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct model_xattr x = { "system.posix_acl_access", cases[i].value, cases[i].size };

		encode(&x, 1);
		assert_int_equal(drops.count, 1);
		assert_non_null(strstr(drops.why, "ACL"));
		assert_int_equal(found_count, 0);
	}
}

static void same_set_same_bytes_in_any_order(void **state)
{
	struct model_xattr list[] = {
		{ "security.selinux", text, 31 },
		{ "trusted.overlay", "y", 1 },
		{ "user.a", text, 4 },
		{ "user.aa", text, 900 },
		{ "user.b", text, 900 },
	};
	static struct xattr_image first;

	(void)state;
	encode(list, 5);
	first = image;
	for (size_t turn = 1; turn < 5; turn++) {
		const struct model_xattr x = list[0];

		memmove(list, list + 1, 4 * sizeof *list);
		list[4] = x;
		encode(list, 5);
		assert_memory_equal(image.inode, first.inode, 96);
		assert_memory_equal(image.block, first.block, BLOCK);
	}
}

static void none_is_lost_in_silence(void **state)
{
	static char names[MANY][16];
	static struct model_xattr list[MANY];
	uint32_t random = 5;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		snprintf(names[i], sizeof names[i], i % 3 ? "user.%04u" : "trusted.%04u",
			 (unsigned)(i % MANY));
	for (int round = 0; round < 1000; round++) {
		const size_t len = round ? next_random(&random) % 60 : MANY;
		const size_t size_max = 1 + next_random(&random) % 300;

		for (size_t i = 0; i < len; i++) {
			list[i] = (struct model_xattr){ names[i], text,
							next_random(&random) % size_max };
		}
		encode(list, len);
		assert_int_equal(found_count + drops.count, len);
		for (size_t i = 0; i < len && len < MANY; i++) {
			if (!is_dropped(list[i].name))
				expect_stored(&list[i]);
		}
	}
}

static void a_sealed_block_knows_its_place(void **state)
{
	struct model_xattr x = { "user.m", text, 400 };
	const uint8_t place[8] = { 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0, 0 };
	uint8_t block[BLOCK];
	uint32_t sum;

	(void)state;
	encode(&x, 1);
	memcpy(block, image.block, BLOCK);
	xattr_block_seal(block, 3, 0, SEED_OF_TEST);
	xattr_block_seal(block, 1024, 0x456789abcdef, SEED_OF_TEST);
	assert_int_equal(get32(block + 4), 1024);
	sum = get32(block + 16);
	memset(block + 16, 0, 4);
	assert_int_equal(sum, crc32c(crc32c(SEED_OF_TEST, place, 8), block, BLOCK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_attributes_leave_zeros),
		cmocka_unit_test(attributes_are_in_the_inode_in_the_order_of_the_disk),
		cmocka_unit_test(the_inode_has_room_for_88_bytes),
		cmocka_unit_test(the_block_has_room_for_4060_bytes),
		cmocka_unit_test(what_fits_in_any_arrangement_is_kept),
		cmocka_unit_test(of_too_many_the_largest_are_dropped),
		cmocka_unit_test(of_too_many_those_that_matter_least_are_dropped),
		cmocka_unit_test(what_fits_beside_what_matters_more_is_kept),
		cmocka_unit_test(what_no_kernel_would_show_is_dropped),
		cmocka_unit_test(of_two_with_one_name_the_first_is_kept),
		cmocka_unit_test(acls_get_the_form_of_the_disk),
		cmocka_unit_test(a_mode_is_cut_when_its_acl_is_lost),
		cmocka_unit_test(malformed_acls_are_dropped),
		cmocka_unit_test(same_set_same_bytes_in_any_order),
		cmocka_unit_test(none_is_lost_in_silence),
		cmocka_unit_test(a_sealed_block_knows_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
