// SPDX-License-Identifier: Apache-2.0
#include "dest/manifest.h"

#include "base/err.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static struct err err;

static char *properties[] = { "purpose=a=b", "\xff=\x01", "empty=", NULL };

static struct image_info example(void)
{
	struct image_info info = {
		.id = "446ceaac-529e-4c22-b945-476429af44c3",
		.name = "night\xff\"\n",
		.file = "night\xff\"\n.qcow2",
		.format = "qcow2",
		.compression = "zstd",
		.created_at = "2026-01-31T23:59:59Z",
		.size = 12345,
		.virtual_size = UINT64_C(1) << 46,
		.digests.sha256 = SHA256,
		.digests.checkpoints = { .step = 1 << 20,
					 .count = 2,
					 .prefix = { "0123456789abcdef", "fedcba9876543210" } },
		.properties = properties,
	};

	memcpy(info.digests.sha512, SHA256 SHA256, 129);
	return info;
}

/* The example's text with one part replaced. */
static char *text_with(const char *part, const char *instead)
{
	struct image_info info = example();
	char *text = manifest_to_json(&info, &err), *at, *out;

	assert_non_null(text);
	at = strstr(text, part);
	assert_non_null(at);
	out = str_format("%.*s%s%s", (int)(at - text), text, instead, at + strlen(part));
	free(text);
	return out;
}

static void assert_refused(const char *text)
{
	struct image_info info;

	assert_int_equal(manifest_from_json(text, strlen(text), "x.json", &info, &err), -1);
	assert_true(str_starts(err.text, "x.json is not a manifest of ours: "));
	assert_null(info.id);
	assert_null(info.properties);
}

static void what_is_written_is_read(void **state)
{
	struct image_info info = example(), back;
	char *text = manifest_to_json(&info, &err);

	(void)state;
	assert_int_equal(manifest_from_json(text, strlen(text), "x.json", &back, &err), 0);
	assert_string_equal(back.id, info.id);
	assert_string_equal(back.name, "night\\xff\"\n");
	assert_string_equal(back.file, "night\\xff\"\n.qcow2");
	assert_string_equal(back.format, "qcow2");
	assert_string_equal(back.compression, "zstd");
	assert_string_equal(back.created_at, info.created_at);
	assert_int_equal(back.size, info.size);
	assert_int_equal(back.virtual_size, info.virtual_size);
	assert_true(digests_equal(&back.digests, &info.digests));
	assert_true(back.digests.checkpoints.step == 1 << 20);
	assert_int_equal(back.digests.checkpoints.count, 2);
	assert_string_equal(back.digests.checkpoints.prefix[1], "fedcba9876543210");
	assert_string_equal(back.properties[0], "purpose=a=b");
	assert_string_equal(back.properties[1], "\\xff=\x01");
	assert_string_equal(back.properties[2], "empty=");
	assert_null(back.properties[3]);
	image_info_free(&back);
	free(text);
}

static void wrong_members_are_refused(void **state)
{
	static const char *const swaps[][2] = {
		{ "\"ccsnap.manifest/1\"", "\"ccsnap.manifest/2\"" },
		{ "\"schema\"", "\"scheme\"" },
		{ "446ceaac-", "446CEAAC-" },
		{ "446ceaac-", "446ceaac" },
		{ "\"qcow2\"", "\"\"" },
		{ "\"qcow2\"", "null" },
		{ "\"qcow2\"", "\"../qcow2\"" },
		{ "\"zstd\"", "3" },
		{ "2026-01-31T", "2026-01-31 " },
		{ "59Z\"", "59+00:00\"" },
		{ "12345", "-1" },
		{ "12345", "1.5" },
		{ "12345", "\"12345\"" },
		{ "12345", "99999999999999999999" },
		{ "\"sha256\": \"e3", "\"sha256\": \"E3" },
		{ "\"sha256\": \"e3", "\"sha256\": \"e" },
		{ "\"sha512\": \"e3", "\"sha512\": \"\\u0000" },
		{ "\"sha512\"", "\"sha513\"" },
		{ "\"file\": \"", "\"file\": \"../" },
		{ "\"name\": \"", "\"name\": \"a/" },
		{ "\"name\": \"",
		  "\"id\": \"446ceaac-529e-4c22-b945-476429af44c3\", \"name\": \"" },
		{ "1048576", "0" },
		{ "\"fedcba98", "\"FEDCBA98" },
		{ "\"a=b\"", "7" },
		{ "\"purpose\"", "\"pur=pose\"" },
		{ "\"purpose\"", "\"\"" },
		{ "{\n    \"purpose\"", "[\"purpose\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
		char *text = text_with(swaps[i][0], swaps[i][1]);

		assert_refused(text);
		free(text);
	}
}

static void a_file_that_is_a_directory_is_refused(void **state)
{
	char *text = text_with("\"file\": \"night\\\\xff\\\"\\n.qcow2\"", "\"file\": \"..\"");

	(void)state;
	assert_refused(text);
	free(text);
}

static void text_that_is_no_object_is_refused(void **state)
{
	(void)state;
	assert_refused("");
	assert_refused("{");
	assert_refused("null");
	assert_refused("[]");
	assert_refused("{} {}");
}

static void more_than_a_mebibyte_is_refused(void **state)
{
	size_t len = MANIFEST_MAX + 1;
	char *text = malloc(len + 1);

	(void)state;
	memset(text, ' ', len);
	text[len] = '\0';
	assert_refused(text);
	free(text);
}

static void deep_nesting_is_refused(void **state)
{
	char *text = malloc(500001);

	(void)state;
	memset(text, '[', 500000);
	text[500000] = '\0';
	assert_refused(text);
	free(text);
}

static void unknown_members_are_room_for_the_future(void **state)
{
	char *text = text_with("\"schema\"", "\"later\": [1], \"schema\"");
	struct image_info info;

	(void)state;
	assert_int_equal(manifest_from_json(text, strlen(text), "x.json", &info, &err), 0);
	image_info_free(&info);
	free(text);
}

static void a_list_is_an_array_of_manifests(void **state)
{
	struct image_info infos[2] = { example(), example() };
	struct image_list list = { .at = infos, .len = 2 }, none = { 0 };
	char *text = manifest_list_to_json(&list, &err);
	const char *second;

	(void)state;
	assert_true(str_starts(text, "[\n"));
	second = strstr(strstr(text, SHA256) + 1, "\"schema\"");
	assert_non_null(second);
	free(text);
	text = manifest_list_to_json(&none, &err);
	assert_string_equal(text, "[]\n");
	free(text);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("%s is not in %s", part, text);
}

static void what_only_a_service_tells_is_listed_too(void **state)
{
	char *tags[] = { "one", "t\"wo", NULL };
	struct image_info info = example();
	struct image_list list = { .at = &info, .len = 1 };
	char *text = manifest_list_to_json(&list, &err);

	(void)state;
	assert_null(strstr(text, "\"status\""));
	assert_null(strstr(text, "\"tags\""));
	assert_null(strstr(text, "\"hash_"));
	free(text);
	info.status = "active";
	info.tags = tags;
	info.is_protected = true;
	info.hash_algo = "sha512";
	info.hash_value = "0123";
	text = manifest_list_to_json(&list, &err);
	assert_has(text, "\"status\": \"active\"");
	assert_has(text, "\"protected\": true");
	assert_has(text, "\"one\",\n      \"t\\\"wo\"");
	assert_has(text, "\"hash_algo\": \"sha512\"");
	assert_has(text, "\"hash_value\": \"0123\"");
	free(text);
}

/* Of an image that a service is still waiting for, next to nothing is known. */
static void what_is_not_known_is_null(void **state)
{
	struct image_info info = { .id = "x", .status = "queued" };
	struct image_list list = { .at = &info, .len = 1 };
	char *text = manifest_list_to_json(&list, &err);

	(void)state;
	assert_non_null(text);
	assert_has(text, "\"name\": null");
	assert_has(text, "\"compression\": null");
	assert_has(text, "\"size_bytes\": null");
	assert_has(text, "\"virtual_size_bytes\": null");
	assert_has(text, "\"sha256\": null");
	assert_has(text, "\"properties\": {}");
	free(text);
}

static void what_was_fetched_says_where_it_is(void **state)
{
	struct image_info info = example();
	char *text =
		manifest_fetched_to_json(&info, "/tmp/\xff", "sha512", MANIFEST_INDENTED, &err);

	(void)state;
	assert_true(str_starts(text, "{\n"));
	assert_has(text, "\"path\": \"/tmp/\\\\xff\"");
	assert_has(text, "\"verified_by\": \"sha512\"");
	assert_null(strstr(text, "checkpoints"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(wrong_members_are_refused),
		cmocka_unit_test(a_file_that_is_a_directory_is_refused),
		cmocka_unit_test(text_that_is_no_object_is_refused),
		cmocka_unit_test(more_than_a_mebibyte_is_refused),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(unknown_members_are_room_for_the_future),
		cmocka_unit_test(a_list_is_an_array_of_manifests),
		cmocka_unit_test(what_only_a_service_tells_is_listed_too),
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(what_was_fetched_says_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
