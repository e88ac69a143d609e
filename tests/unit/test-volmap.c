// SPDX-License-Identifier: Apache-2.0
#include "ext4/volmap.h"

#include "base/err.h"
#include "source/extent.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAR (UINT64_C(1) << 32) /* blocks: 16 TiB */

static struct err err;
static struct volmap *map;
static struct extent_list list;

static int begin(void **state)
{
	(void)state;
	map = volmap_new(FAR, &err);
	return map ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	volmap_free(map);
	extent_list_free(&list);
	return 0;
}

static void put(uint64_t block, const uint8_t *bytes)
{
	assert_int_equal(volmap_put(map, block, bytes, &err), 0);
}

static void expect(uint64_t block, const uint8_t *bytes)
{
	uint8_t found[MODEL_BLOCK];

	memset(found, 0xee, sizeof found);
	volmap_get(map, block, found);
	assert_memory_equal(found, bytes, sizeof found);
}

static void every_pattern_of_zeros_comes_back(void **state)
{
	uint8_t bytes[MODEL_BLOCK];
	uint32_t random = 1;

	(void)state;
	for (unsigned zeros = 0; zeros <= 256; zeros++) {
		for (size_t i = 0; i < sizeof bytes; i++) {
			random = random * 1664525u + 1013904223u;
			bytes[i] = (random >> 24) < zeros ? 0 : (uint8_t)(random >> 16) | 1;
		}
		put(zeros, bytes);
		expect(zeros, bytes);
		put(7, bytes);
		expect(7, bytes);
	}
	assert_false(volmap_has(map, 256));
	for (size_t i = 0; i < sizeof bytes; i++) {
		memset(bytes, 0, sizeof bytes);
		bytes[i] = 1;
		put(i, bytes);
		expect(i, bytes);
	}
}

static void what_was_never_written_is_zero(void **state)
{
	static const uint8_t zeros[MODEL_BLOCK];

	(void)state;
	expect(0, zeros);
	expect(FAR - 1, zeros);
	expect(FAR + 5, zeros);
	assert_false(volmap_has(map, FAR + 5));
	assert_int_equal(volmap_next(map, 0, FAR), FAR);
	put(9, zeros);
	assert_false(volmap_has(map, 9));
}

static void behind_the_end_is_an_error(void **state)
{
	uint8_t bytes[MODEL_BLOCK] = { 1 };

	(void)state;
	assert_int_equal(volmap_put(map, FAR, bytes, &err), -1);
	assert_null(volmap_edit(map, FAR, &err));
}

static void edits_go_on_from_what_is_there(void **state)
{
	uint8_t bytes[MODEL_BLOCK] = { 0 }, *whole;

	(void)state;
	bytes[4000] = 7;
	put(5, bytes);
	whole = volmap_edit(map, 5, &err);
	assert_non_null(whole);
	assert_memory_equal(whole, bytes, sizeof bytes);
	whole[3] = bytes[3] = 9;
	expect(5, bytes);
	assert_ptr_equal(volmap_edit(map, 5, &err), whole);
	bytes[100] = 1;
	put(5, bytes);
	expect(5, bytes);
	whole = volmap_edit(map, 6, &err);
	memset(bytes, 0, sizeof bytes);
	assert_memory_equal(whole, bytes, sizeof bytes);
}

static void the_next_block_is_found_over_any_gap(void **state)
{
	static const uint64_t at[] = { 0, 1, 511, 512, 262143, 262144, 300000, FAR / 2, FAR - 1 };
	uint8_t bytes[MODEL_BLOCK] = { 1 };

	(void)state;
	for (size_t i = 0; i < sizeof at / sizeof *at; i++)
		put(at[i], bytes);
	for (size_t i = 1; i < sizeof at / sizeof *at; i++) {
		assert_int_equal(volmap_next(map, at[i - 1] + 1, FAR), at[i]);
		assert_int_equal(volmap_next(map, at[i], FAR), at[i]);
		assert_int_equal(volmap_next(map, at[i - 1] + 1, at[i]), at[i]);
	}
	assert_int_equal(volmap_next(map, 2, 100), 100);
}

static void changes_are_told_once(void **state)
{
	uint8_t bytes[MODEL_BLOCK] = { 1 };
	static const uint8_t zeros[MODEL_BLOCK];

	(void)state;
	put(511, bytes);
	put(512, bytes);
	put(FAR - 1, bytes);
	assert_int_equal(volmap_take_changes(map, 1000, &list, &err), 0);
	assert_int_equal(list.len, 2);
	assert_int_equal(list.at[0].offset, 1000 + 511 * 4096);
	assert_int_equal(list.at[0].length, 2 * 4096);
	assert_false(list.at[0].zero);
	assert_int_equal(list.at[1].offset, 1000 + (FAR - 1) * 4096);

	list.len = 0;
	assert_int_equal(volmap_take_changes(map, 0, &list, &err), 0);
	assert_int_equal(list.len, 0);

	put(512, zeros);
	assert_non_null(volmap_edit(map, 4000, &err));
	assert_int_equal(volmap_take_changes(map, 0, &list, &err), 0);
	assert_int_equal(list.len, 2);
	assert_int_equal(list.at[0].offset, 512 * 4096);
	assert_int_equal(list.at[1].offset, 4000 * 4096);
}

static void a_small_directory_costs_tens_of_bytes(void **state)
{
	uint8_t bytes[MODEL_BLOCK] = { 0 };
	size_t before;

	(void)state;
	memset(bytes, 1, 24);
	memset(bytes + 4084, 1, 12);
	put(0, bytes);
	before = mallinfo2().uordblks;
	for (unsigned i = 1; i < 100000; i++)
		put(i, bytes);
	assert_true(mallinfo2().uordblks - before < 100000 * 99);
}

static void what_is_lent_is_not_kept_twice(void **state)
{
	uint8_t bytes[MODEL_BLOCK];
	const struct volmap_loan loan = { .bytes = bytes + 90, .at = 90, .len = 4000 };
	size_t before;

	(void)state;
	memset(bytes, 1, sizeof bytes);
	put(0, bytes);
	before = mallinfo2().uordblks;
	for (unsigned i = 1; i < 1000; i++) {
		assert_int_equal(volmap_put_lent(map, i, bytes, &loan, 1, &err), 0);
		bytes[4]++;
		put(i, bytes);
		expect(i, bytes);
	}
	assert_true(mallinfo2().uordblks - before < 1000 * 300);
}

static void a_block_with_lent_bytes_changes_as_any_other(void **state)
{
	static const uint8_t zeros[MODEL_BLOCK];
	uint8_t memory[300], bytes[MODEL_BLOCK] = { 0 };
	const struct volmap_loan loans[] = { { memory, 100, 100 },
					     { memory + 100, 200, 100 },
					     { memory + 200, 3996, 100 } };

	(void)state;
	memset(memory, 5, sizeof memory);
	memset(bytes + 100, 5, 200);
	memset(bytes + 3996, 5, 100);
	assert_int_equal(volmap_put_lent(map, 5, bytes, loans, 3, &err), 0);
	expect(5, bytes);
	bytes[250] = 0; /* the second is not lent any more */
	bytes[0] = 1;
	put(5, bytes);
	expect(5, bytes);
	memset(memory + 100, 6, 100);
	expect(5, bytes);

	volmap_edit(map, 5, &err)[3999] = bytes[3999] = 7;
	memset(memory, 6, sizeof memory);
	expect(5, bytes);
	assert_int_equal(volmap_put_lent(map, 5, bytes, NULL, 0, &err), 0);
	expect(5, bytes);

	memset(memory, 0, sizeof memory); /* zeros are nothing, lent or not */
	memset(bytes, 0, sizeof bytes);
	bytes[0] = 1;
	assert_int_equal(volmap_put_lent(map, 5, bytes, loans, 3, &err), 0);
	expect(5, bytes);
	put(5, zeros);
	assert_false(volmap_has(map, 5));
	expect(5, zeros);
	assert_int_equal(volmap_put_lent(map, 6, zeros, loans, 3, &err), 0);
	assert_false(volmap_has(map, 6));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_pattern_of_zeros_comes_back),
		TEST(what_was_never_written_is_zero),
		TEST(behind_the_end_is_an_error),
		TEST(edits_go_on_from_what_is_there),
		TEST(the_next_block_is_found_over_any_gap),
		TEST(changes_are_told_once),
		TEST(a_small_directory_costs_tens_of_bytes),
		TEST(what_is_lent_is_not_kept_twice),
		TEST(a_block_with_lent_bytes_changes_as_any_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
