// SPDX-License-Identifier: Apache-2.0
#include "ext4-dir-kit.h"

static void hashes_agree_with_debugfs(void **state)
{
	static const struct {
		const char *name;
		struct half_md4 want;
	} known[] = {
		/* debugfs -R "dx_hash -h half_md4 -s 11111111-2222-2222-3333-333344444444 NAME" */
		{ "a", { 0x8b5e922c, 0xbf71638c } },
		{ "hello", { 0x900d2580, 0x26c619ad } },
		{ "gr\xc3\xbc\xc3\x9f", { 0x9ea61b7a, 0x481350e0 } },
		{ "S3Tm_", { 0xfffffffc, 0x365aa044 } }, /* there: 0xfffffffe */
	};

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const struct half_md4 h = half_md4(known[i].name, strlen(known[i].name), seed);

		assert_int_equal(h.hash, known[i].want.hash);
		assert_int_equal(h.minor, known[i].want.minor);
	}
}

static void an_empty_directory_is_one_block(void **state)
{
	struct names n = names_new(1);
	struct dir_blocks dir = encode(&n, 0);
	const uint8_t *p = dir.bytes;

	(void)state;
	assert_int_equal(dir.count, 1);
	assert_false(dir.indexed);
	p = expect_entry(p, OWN, ".", 2);
	p = expect_entry(p, PARENT, "..", 2);
	assert_ptr_equal(p, dir.bytes + 4084);
	expect_tail(dir.bytes);
	dir_blocks_free(&dir);
	assert_null(dir.bytes);
	names_free(&n);
}

static void a_small_directory_keeps_its_order(void **state)
{
	struct names n = names_new(3);
	struct dir_blocks dir;
	const uint8_t *p;

	(void)state;
	names_add(&n, "a", 1);
	names_add(&n, "four", 4);
	names_add(&n, "\xff\x01", 255);
	dir = encode(&n, 0);
	assert_int_equal(dir.count, 1);
	p = dir.bytes + 24;
	assert_int_equal(get16(p + 4), 12);
	p = expect_entry(p, FIRST, "a", 1);
	assert_int_equal(get16(p + 4), 12);
	p = expect_entry(p, FIRST + 1, "four", 2);
	assert_int_equal(p[6], 255);
	assert_int_equal(get16(p + 4), 4084 - 48);
	expect_tail(dir.bytes);
	dir_blocks_free(&dir);
	names_free(&n);
}

/* 4060 bytes are for entries; with one more of 4 an index begins. */
static void an_index_begins_with_the_second_block(void **state)
{
	struct names n = numbered(145, 17); /* 145 * 28 = 4060 */
	struct dir_blocks dir = encode(&n, 0);

	(void)state;
	assert_int_equal(dir.count, 1);
	assert_int_equal(dir_blocks_max(n.at, n.len), 1);
	assert_false(dir.indexed);
	expect_tail(dir.bytes);
	assert_int_equal(count_entries(&dir), 147);
	for (size_t i = 0; i < n.len; i++)
		assert_true(search(dir.bytes, 0, &n.at[i]));
	dir_blocks_free(&dir);

	n.at[7].len = 21;
	dir = encode(&n, 0);
	assert_int_equal(dir.count, 2);
	assert_true(dir_blocks_max(n.at, n.len) > 1);
	expect_htree(&n, &dir);
	dir_blocks_free(&dir);
	names_free(&n);
}

/* 15 of the longest names fill a leaf. */
static void the_index_gets_a_second_level_where_the_root_is_full(void **state)
{
	static const struct {
		size_t leaves, nodes;
	} cases[] = { { 2, 0 },	  { 506, 0 }, { 507, 0 },  { 508, 1 },
		      { 510, 1 }, { 511, 2 }, { 1020, 2 }, { 1021, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct names n = numbered(cases[i].leaves * 15, 255);
		struct dir_blocks dir = encode(&n, 0);

		assert_int_equal(dir.bytes[30], cases[i].nodes > 0);
		assert_int_equal(dir.count, 1 + cases[i].nodes + cases[i].leaves);
		expect_htree(&n, &dir);
		dir_blocks_free(&dir);
		names_free(&n);
	}
}

static void every_name_of_a_hundred_thousand_is_found(void **state)
{
	struct names n = names_new(100000);
	struct dir_blocks dir;
	uint32_t random = 3;
	char prefix[32];

	(void)state;
	for (size_t i = 0; i < 100000; i++) {
		const size_t len = 1 + next_random(&random) % (i % 50 ? 40 : 255);

		snprintf(prefix, sizeof prefix, "%x\xfc", (unsigned)i);
		names_add(&n, prefix, len);
	}
	dir = encode(&n, 0);
	assert_int_equal(dir.bytes[30], 1);
	expect_htree(&n, &dir);
	dir_blocks_free(&dir);
	names_free(&n);
}

static void directories_of_any_size_are_sound(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct names n = numbered(1 + next_random(&random) % 900, 7);
		struct dir_blocks dir;

		for (size_t i = 0; i < n.len; i++)
			n.at[i].len = (uint8_t)(7 + next_random(&random) % 249);
		dir = encode(&n, 0);
		if (dir.indexed)
			expect_htree(&n, &dir);
		else
			assert_int_equal(dir_blocks_max(n.at, n.len), 1);
		dir_blocks_free(&dir);
		names_free(&n);
	}
}

struct hashed_name {
	uint32_t hash;
	char text[8];
};

static int compare_hashed(const void *a, const void *b)
{
	const struct hashed_name *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static struct hashed_name *hash_many(size_t count)
{
	struct hashed_name *list = calloc(count, sizeof *list);

	assert_non_null(list);
	for (size_t i = 0; i < count; i++) {
		char text[32];

		snprintf(text, sizeof text, "%07zu", i);
		memcpy(list[i].text, text, sizeof list[i].text);
		list[i].hash = half_md4(list[i].text, 7, seed).hash;
	}
	qsort(list, count, sizeof *list, compare_hashed);
	return list;
}

/* Names of 7 bytes take 16, a leaf holds 255: the first of two names with one
 * hash is the last of the first leaf.
 */
static void names_of_one_hash_are_found_across_two_leaves(void **state)
{
	enum { MANY = 300000, PER_LEAF = 255 };
	struct hashed_name *list = hash_many(MANY);
	size_t twin = PER_LEAF;
	struct names n = names_new(PER_LEAF * 2);
	struct dir_blocks dir;

	(void)state;
	while (twin + PER_LEAF < MANY && list[twin].hash != list[twin + 1].hash)
		twin++;
	assert_true(twin + PER_LEAF < MANY);
	for (size_t i = twin - (PER_LEAF - 1); i <= twin + PER_LEAF; i++)
		names_add(&n, list[i].text, 7);
	dir = encode(&n, 0);
	assert_int_equal(dir.count, 3);
	assert_int_equal(get32(dir.bytes + 32 + 8), list[twin].hash | 1);
	expect_htree(&n, &dir);
	dir_blocks_free(&dir);
	names_free(&n);
	free(list);
}

/* It begins the last leaf, so that it is found only by the key of that. */
static void the_name_with_the_reserved_hash_is_found(void **state)
{
	struct names n = numbered(255 * 2 + 1, 7);
	struct dir_blocks dir;

	(void)state;
	n.len--;
	names_add(&n, "S3Tm_", 5);
	dir = encode(&n, 0);
	assert_int_equal(dir.count, 4);
	assert_int_equal(get32(dir.bytes + 32 + 16), 0xfffffffc);
	expect_htree(&n, &dir);
	dir_blocks_free(&dir);
	names_free(&n);
}

/* 254 * 16 + 20 = 4084 */
static void a_leaf_is_filled_to_the_last_byte(void **state)
{
	struct names n = numbered(255, 8);
	struct dir_blocks dir;

	(void)state;
	n.at[99].len = 12;
	dir = encode(&n, 0);
	assert_int_equal(dir.count, 2);
	expect_htree(&n, &dir);
	dir_blocks_free(&dir);
	n.at[0].len = 9;
	dir = encode(&n, 0);
	assert_int_equal(dir.count, 3);
	expect_htree(&n, &dir);
	dir_blocks_free(&dir);
	names_free(&n);
}

static void lost_and_found_gets_empty_blocks(void **state)
{
	struct names n = numbered(1, 7);
	struct dir_blocks dir = encode(&n, 4);

	(void)state;
	assert_int_equal(dir.count, 4);
	assert_false(dir.indexed);
	assert_int_equal(count_entries(&dir), 3);
	for (size_t i = 0; i < 4; i++)
		expect_tail(dir.bytes + i * BLOCK);
	for (size_t i = 1; i < 4; i++) {
		assert_int_equal(get32(dir.bytes + i * BLOCK), 0);
		assert_int_equal(get16(dir.bytes + i * BLOCK + 4), 4084);
	}
	dir_blocks_free(&dir);
	names_free(&n);
}

static void same_entries_give_the_same_bytes(void **state)
{
	struct names n = numbered(3000, 30);
	struct dir_blocks a = encode(&n, 0), b = encode(&n, 0);

	(void)state;
	assert_int_equal(a.count, b.count);
	assert_memory_equal(a.bytes, b.bytes, (size_t)a.count * BLOCK);
	dir_blocks_free(&a);
	dir_blocks_free(&b);
	names_free(&n);
}

static void more_than_two_levels_are_refused(void **state)
{
	enum { COUNT = 507 * 510 * 15 + 1 };
	static char name[255];
	struct dir_entry *entries = calloc(COUNT, sizeof *entries);
	struct dir_config cfg = { .entries = entries, .count = COUNT };
	struct dir_blocks out;
	struct err err = { 0 };

	(void)state;
	assert_non_null(entries);
	memset(name, 'x', sizeof name);
	for (size_t i = 0; i < COUNT; i++)
		entries[i] = (struct dir_entry){ name, sizeof name, FIRST, S_IFREG };
	assert_int_equal(dir_encode(&cfg, &out, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_non_null(strstr(err.text, "directory too large"));
	dir_blocks_free(&out);
	free(entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_agree_with_debugfs),
		cmocka_unit_test(an_empty_directory_is_one_block),
		cmocka_unit_test(a_small_directory_keeps_its_order),
		cmocka_unit_test(an_index_begins_with_the_second_block),
		cmocka_unit_test(the_index_gets_a_second_level_where_the_root_is_full),
		cmocka_unit_test(every_name_of_a_hundred_thousand_is_found),
		cmocka_unit_test(directories_of_any_size_are_sound),
		cmocka_unit_test(names_of_one_hash_are_found_across_two_leaves),
		cmocka_unit_test(the_name_with_the_reserved_hash_is_found),
		cmocka_unit_test(a_leaf_is_filled_to_the_last_byte),
		cmocka_unit_test(lost_and_found_gets_empty_blocks),
		cmocka_unit_test(same_entries_give_the_same_bytes),
		cmocka_unit_test(more_than_two_levels_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
