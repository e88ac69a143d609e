// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "dest/provenance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned warnings;
static char last_warning[512];

static void count_warning(void *ctx, const char *warning)
{
	(void)ctx;
	snprintf(last_warning, sizeof last_warning, "%s", warning);
	warnings++;
}

static int quiet_log(void **state)
{
	(void)state;
	warnings = 0;
	log_set_level(LOG_ERROR);
	log_set_sink(count_warning, NULL);
	return 0;
}

static void free_list(char ***list)
{
	for (char **p = *list; p && *p; p++)
		free(*p);
	free(*list);
}
#define autolist CLEANUP(free_list)

static char **properties(const char *json)
{
	struct err err = { 0 };
	char **list = provenance_properties(json, strlen(json), &err);

	if (!list)
		fail_msg("%s: %s", json, err.text);
	return list;
}

static size_t length(char **list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

static void assert_list(const char *json, const char *const *expected)
{
	autolist char **list = properties(json);
	size_t i = 0;

	for (; expected[i]; i++) {
		assert_non_null(list[i]);
		assert_string_equal(list[i], expected[i]);
	}
	assert_null(list[i]);
}

#define GIVES(json, ...)    assert_list(json, (const char *const[]){ __VA_ARGS__, NULL })
#define GIVES_NOTHING(json) assert_list(json, (const char *const[]){ NULL })

static void each_member_is_a_property_in_its_order(void **state)
{
	(void)state;
	GIVES("{ \"build-tag\": \"jenkins-1\", \"build-os\": \"ubuntu\", \"a\": \"\xc3\xa4\" }",
	      "provenance-build-tag=jenkins-1", "provenance-build-os=ubuntu",
	      "provenance-a=\xc3\xa4");
	GIVES_NOTHING("{}");
	assert_int_equal(warnings, 0);
}

static void what_is_no_text_becomes_text_as_in_json(void **state)
{
	(void)state;
	GIVES("{\"n\": -12, \"r\": 0.1, \"t\": true, \"f\": false}", "provenance-n=-12",
	      "provenance-r=0.1", "provenance-t=true", "provenance-f=false");
	GIVES("{\"o\": {\"a\": [1, \"x=y\\n\"], \"b\": null}, \"l\": []}",
	      "provenance-o={\"a\":[1,\"x=y\\n\"],\"b\":null}", "provenance-l=[]");
}

static void what_says_nothing_is_left_out(void **state)
{
	(void)state;
	GIVES("{\"a\": null, \"b\": \"\", \"c\": \"c\"}", "provenance-c=c");
	assert_int_equal(warnings, 0);
}

static void an_image_does_not_inherit_that_it_is_supported(void **state)
{
	(void)state;
	GIVES("{\"chameleon-supported\": true, \"chameleon-supported-os\": \"x\", "
	      "\"is-chameleon-supported\": \"no\"}",
	      "provenance-is-chameleon-supported=no");
}

static void the_last_of_equal_keys_counts(void **state)
{
	(void)state;
	GIVES("{\"a\": 1, \"b\": 2, \"a\": 3}", "provenance-a=3", "provenance-b=2");
}

static void a_key_that_makes_no_property_is_left_out_with_a_warning(void **state)
{
	(void)state;
	GIVES("{\"\": 1, \"a=b\": 2, \"c\\n\": 3, \"d\\u0085\": 4, \"e \": 5, "
	      "\"\xf0\x9f\x98\x80\": 6, \" o k\": 7}",
	      "provenance- o k=7");
	assert_int_equal(warnings, 1);
}

/* {"kkk...": "vvv..."} with so many of each. */
static char **with_lengths(size_t key, size_t value)
{
	static char json[PROVENANCE_VALUE_MAX + 1000];

	memset(json, 'k', sizeof json);
	memcpy(json, "{\"", 2);
	memcpy(json + 2 + key, "\":\"", 3);
	memset(json + 2 + key + 3, 'v', value);
	strcpy(json + 2 + key + 3 + value, "\"}");
	return properties(json);
}

static void long_keys_and_values_are_left_out_with_a_warning(void **state)
{
	const size_t key = PROVENANCE_KEY_MAX - strlen("provenance-");
	autolist char **most = with_lengths(key, PROVENANCE_VALUE_MAX);
	autolist char **long_key = with_lengths(key + 1, 1);
	autolist char **long_value = with_lengths(1, PROVENANCE_VALUE_MAX + 1);

	(void)state;
	assert_int_equal(length(most), 1);
	assert_int_equal(strlen(*most), PROVENANCE_KEY_MAX + 1 + PROVENANCE_VALUE_MAX);
	assert_int_equal(length(long_key), 0);
	assert_int_equal(length(long_value), 0);
	assert_int_equal(warnings, 2);
}

static void of_many_members_the_first_count(void **state)
{
	char json[16 * (PROVENANCE_MEMBERS_MAX + 2)];
	int len = 0;

	(void)state;
	for (int i = 0; i <= PROVENANCE_MEMBERS_MAX; i++)
		len += sprintf(json + len, "%c\"k%d\":1", i ? ',' : '{', i);
	strcpy(json + len, "}");
	autolist char **list = properties(json);

	assert_int_equal(length(list), PROVENANCE_MEMBERS_MAX);
	assert_string_equal(list[PROVENANCE_MEMBERS_MAX - 1], "provenance-k63=1");
	assert_int_equal(warnings, 1);
}

static void a_warning_tells_how_many_and_the_first(void **state)
{
	(void)state;
	GIVES("{\"a=b\": 1, \"c=d\": \"\", \"e=f\": 1, \"g\": 1}", "provenance-g=1");
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, "2 of its entries, \"a=b\" the first: the name"));
}

static void what_is_no_object_is_an_error_that_names_the_line(void **state)
{
	static const struct {
		const char *json, *line;
	} rows[] = {
		{ "", "line 1" },
		{ "[1]", "line 1" },
		{ "\"text\"", "line 1" },
		{ "{\n\"a\": 1,\n}", "line 3" },
		{ "{\"a\": 1} x", "line 1" },
		{ "{\n\"a\": \"\xff\"}", "line 2" },
		{ "{\"a\": \"\\u0000\"}", "line 1" },
		{ "{\"a\": 123456789012345678901234567890}", "line 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct err err = { 0 };

		assert_null(provenance_properties(rows[i].json, strlen(rows[i].json), &err));
		assert_int_equal(err.kind, ERR_FAILED);
		if (!strstr(err.text, rows[i].line))
			fail_msg("%s: %s", rows[i].json, err.text);
	}
}

static void too_much_is_refused(void **state)
{
	static char json[PROVENANCE_MAX + 1];
	struct err err = { 0 };

	(void)state;
	memset(json, ' ', sizeof json);
	memcpy(json, "{}", 2);
	autolist char **most = provenance_properties(json, PROVENANCE_MAX, &err);

	assert_non_null(most);
	assert_null(provenance_properties(json, PROVENANCE_MAX + 1, &err));
	assert_non_null(strstr(err.text, "64 KiB"));
}

static void nesting_without_end_is_an_error(void **state)
{
	static char json[PROVENANCE_MAX];
	struct err err = { 0 };

	(void)state;
	memset(json, '[', sizeof json);
	memcpy(json, "{\"a\":", 5);
	assert_null(provenance_properties(json, sizeof json, &err));
	assert_int_equal(err.kind, ERR_FAILED);
}

#define TEST(name) cmocka_unit_test_setup(name, quiet_log)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_member_is_a_property_in_its_order),
		TEST(what_is_no_text_becomes_text_as_in_json),
		TEST(what_says_nothing_is_left_out),
		TEST(an_image_does_not_inherit_that_it_is_supported),
		TEST(the_last_of_equal_keys_counts),
		TEST(a_key_that_makes_no_property_is_left_out_with_a_warning),
		TEST(long_keys_and_values_are_left_out_with_a_warning),
		TEST(of_many_members_the_first_count),
		TEST(a_warning_tells_how_many_and_the_first),
		TEST(what_is_no_object_is_an_error_that_names_the_line),
		TEST(too_much_is_refused),
		TEST(nesting_without_end_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
