// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static json_t *parse(const struct report *r)
{
	struct err err = { 0 };
	autofree char *json = report_to_json(r, REPORT_INDENTED, &err);
	json_t *o;

	assert_non_null(json);
	o = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	return o;
}

static const char *text_at(json_t *o, const char *section, const char *key)
{
	return json_string_value(json_object_get(json_object_get(o, section), key));
}

static json_int_t integer_at(json_t *o, const char *section, const char *key)
{
	json_t *value = json_object_get(json_object_get(o, section), key);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static void fill(struct report *r)
{
	report_init(r);
	r->name = "disk";
	r->finished_at = clock_now();
	r->creation_seconds = 1.25;
	r->image.is_whole = true;
	r->upload_seconds = 0;
	r->phase_seconds[PHASE_CAPTURE] = 1;
	r->source.kind = "disk";
	r->source.path = "disk.img";
	r->source.format = "raw";
	r->source.size_bytes = UINT64_C(9007199254740993); /* no double holds it */
	r->source.logical_sector_size = 512;
	r->source.consistency = "offline";
	r->capture.ran = true;
	r->image.path = "/store/disk.qcow2";
	r->image.format = "qcow2";
	r->image.compression = "zstd";
	r->image.level = 3;
	r->image.cluster_size = 65536;
	r->image.size_bytes = 4096;
	memset(r->image.digests.sha256, 'a', 64);
	memset(r->image.digests.sha512, 'b', 128);
	r->upload.destination = "folder:/store";
	r->upload.image_id = "some-id";
	r->upload.verified = true;
	r->estimate.ran = true;
	r->libraries[0] = (struct report_library){ "libzstd", "1.5.4" };
}

static void what_was_not_reached_is_null(void **state)
{
	static const char *const keys[] = { "name",	      "creation_seconds",
					    "upload_seconds", "source",
					    "boot_seconds",   "final_size_bytes",
					    "quiesce",	      "capture",
					    "tree",	      "image",
					    "upload",	      "boot",
					    "estimate",	      "error" };
	struct report r;
	json_t *o;

	(void)state;
	report_init(&r);
	o = parse(&r);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		assert_true(json_is_null(json_object_get(o, keys[i])));
	assert_int_equal(json_array_size(json_object_get(o, "phases")), 0);
	assert_int_equal(json_array_size(json_object_get(o, "warnings")), 0);
	json_decref(o);
	report_free(&r);
}

static void integers_are_exact(void **state)
{
	struct report r;
	json_t *o;

	(void)state;
	fill(&r);
	r.capture.bytes_read = INT64_MAX;
	o = parse(&r);
	assert_true(integer_at(o, "source", "size_bytes") == 9007199254740993);
	assert_true(integer_at(o, "capture", "bytes_read") == INT64_MAX);
	json_decref(o);
	report_free(&r);
}

static void bytes_that_are_not_utf8_are_written_as_hex(void **state)
{
	struct report r;
	json_t *o;

	(void)state;
	fill(&r);
	r.name = "a\xff\"\\\n\x01\xc3\xa4";
	r.source.path = "\xed\xa0\x80"; /* a surrogate */
	snprintf(r.error, sizeof r.error, "no \xfe");
	report_warn(&r, "odd \x80 name");
	o = parse(&r);
	assert_string_equal(json_string_value(json_object_get(o, "name")),
			    "a\\xff\"\\\n\x01\xc3\xa4");
	assert_string_equal(text_at(o, "source", "path"), "\\xed\\xa0\\x80");
	assert_string_equal(text_at(o, "error", "message"), "no \\xfe");
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "warnings"), 0)),
			    "odd \\x80 name");
	json_decref(o);
	report_free(&r);
}

static void seconds_that_are_no_number_are_null(void **state)
{
	static const double odd[] = { NAN, -NAN, INFINITY, -INFINITY, -0.5, 1e300 };
	struct report r;

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		json_t *o;

		fill(&r);
		r.upload_seconds = odd[i];
		r.phase_seconds[PHASE_HASH] = odd[i];
		o = parse(&r);
		assert_true(json_is_null(json_object_get(o, "upload_seconds")));
		json_decref(o);
		report_free(&r);
	}
}

static void seconds_are_plain_numbers_in_milliseconds(void **state)
{
	struct err err;
	struct report r;
	char *json;

	(void)state;
	fill(&r);
	r.creation_seconds = 123456789.1239;
	r.upload_seconds = 0.00094;
	json = report_to_json(&r, REPORT_INDENTED, &err);
	assert_non_null(strstr(json, "\"creation_seconds\": 123456789.124,"));
	assert_non_null(strstr(json, "\"upload_seconds\": 0.001,"));
	free(json);
	report_free(&r);
}

static void phases_that_ran_stand_in_the_order_of_the_story(void **state)
{
	struct report r;
	json_t *o, *phases;

	(void)state;
	fill(&r);
	r.phase_seconds[PHASE_PUBLISH] = 2;
	r.phase_seconds[PHASE_PLAN] = 0;
	o = parse(&r);
	phases = json_object_get(o, "phases");
	assert_int_equal(json_array_size(phases), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(phases, 0), "name")),
			    "plan");
	assert_string_equal(json_string_value(json_object_get(json_array_get(phases, 2), "name")),
			    "publish");
	json_decref(o);
	report_free(&r);
}

static void an_image_of_no_bytes_has_a_size(void **state)
{
	struct report r;
	json_t *o;

	(void)state;
	fill(&r);
	r.image.size_bytes = r.source.size_bytes = 0;
	o = parse(&r);
	assert_true(integer_at(o, "image", "size_bytes") == 0);
	assert_true(integer_at(o, "source", "size_bytes") == 0);
	assert_true(json_is_integer(json_object_get(o, "final_size_bytes")));
	json_decref(o);
	report_free(&r);
}

static void warnings_are_bounded_and_the_rest_counted(void **state)
{
	struct report r;
	json_t *o;

	(void)state;
	fill(&r);
	for (int i = 0; i < REPORT_WARNINGS_MAX + 5; i++)
		report_warn(&r, "again");
	o = parse(&r);
	assert_int_equal(json_array_size(json_object_get(o, "warnings")), REPORT_WARNINGS_MAX);
	assert_int_equal(json_integer_value(json_object_get(o, "warnings_omitted")), 5);
	json_decref(o);
	report_free(&r);
}

static void one_line_is_one_line(void **state)
{
	struct err err;
	struct report r;
	char *json;

	(void)state;
	fill(&r);
	r.name = "two\nlines";
	json = report_to_json(&r, REPORT_ONE_LINE, &err);
	assert_ptr_equal(strchr(json, '\n'), json + strlen(json) - 1);
	free(json);
	report_free(&r);
}

/* For a check against docs/report.schema.json from outside: "full", "empty",
 * "failed".
 */
static int print_sample(const char *which)
{
	struct err err;
	struct report r;
	char *json;

	if (strcmp(which, "empty") == 0)
		report_init(&r);
	else
		fill(&r);
	r.finished_at = clock_now();
	if (strcmp(which, "failed") == 0) {
		r.status = REPORT_FAILED;
		r.exit_code = 1;
		r.creation_seconds = -1;
		r.image.is_whole = false;
		r.error_phase = report_phase_names[PHASE_CAPTURE];
		snprintf(r.error, sizeof r.error, "it broke");
		report_warn(&r, "it looked odd");
	}
	json = report_to_json(&r, REPORT_INDENTED, &err);
	fputs(json ? json : "", stdout);
	free(json);
	report_free(&r);
	return json ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_reached_is_null),
		cmocka_unit_test(integers_are_exact),
		cmocka_unit_test(bytes_that_are_not_utf8_are_written_as_hex),
		cmocka_unit_test(seconds_that_are_no_number_are_null),
		cmocka_unit_test(seconds_are_plain_numbers_in_milliseconds),
		cmocka_unit_test(phases_that_ran_stand_in_the_order_of_the_story),
		cmocka_unit_test(an_image_of_no_bytes_has_a_size),
		cmocka_unit_test(warnings_are_bounded_and_the_rest_counted),
		cmocka_unit_test(one_line_is_one_line),
	};

	if (argc == 3 && strcmp(argv[1], "--sample") == 0)
		return print_sample(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
