// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "config.h"
#include "dest/dest.h"
#include "plan.h"
#include "properties.h"
#include "tree/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char warned[4096];

static void remember_warning(void *ctx, const char *warning)
{
	(void)ctx;
	strncat(warned, warning, sizeof warned - strlen(warned) - 1);
}

static int quiet_log(void **state)
{
	(void)state;
	warned[0] = '\0';
	log_set_level(LOG_ERROR);
	log_set_sink(remember_warning, NULL);
	return 0;
}

static void free_list(char ***list)
{
	str_list_free(*list);
}
#define autolist CLEANUP(free_list)

static const struct tree_facts debian = {
	.os_id = "debian",
	.os_version = "12",
	.machine = "x86_64",
	.boots_uefi = true,
};

/* Of / in the series s; users: "KEY=VALUE", ends with NULL, or NULL. */
static char **made(const struct tree_facts *facts, char *const *users)
{
	const struct plan plan = { .source.path = "/",
				   .series = "s",
				   .properties = (char **)users };
	struct err err = { 0 };
	char **list = properties_of(&plan, facts, NULL, &err);

	if (!list)
		fail_msg("%s", err.text);
	return list;
}

#define USERS(...) ((char *const[]){ __VA_ARGS__, NULL })

/* NULL: there is none. */
static const char *value_of(char **list, const char *key)
{
	const char *found = NULL;

	for (; *list; list++) {
		if (!str_starts(*list, key) || (*list)[strlen(key)] != '=')
			continue;
		assert_null(found);
		found = *list + strlen(key) + 1;
	}
	return found;
}

static void assert_value(char **list, const char *key, const char *expected)
{
	const char *value = value_of(list, key);

	if (!value)
		fail_msg("no %s", key);
	assert_string_equal(value, expected);
}

static void a_tree_tells_what_is_in_it(void **state)
{
	autolist char **list = made(&debian, NULL);

	(void)state;
	assert_string_equal(list[0], "os_distro=debian");
	assert_string_equal(list[1], "os_version=12");
	assert_string_equal(list[2], "architecture=x86_64");
	assert_string_equal(list[3], "hw_firmware_type=uefi");
	assert_string_equal(list[4], PROPERTY_VERSION "=" PACKAGE_VERSION);
	assert_string_equal(list[5], PROPERTY_SERIES "=s");
	assert_true(str_starts(list[6], PROPERTY_SOURCE "="));
	assert_null(list[7]);
}

static void of_a_disk_only_what_ccsnap_knows_is_told(void **state)
{
	autolist char **list = made(NULL, NULL);

	(void)state;
	assert_true(str_starts(list[0], PROPERTY_VERSION));
	assert_null(list[3]);
	assert_null(value_of(list, PROPERTY_SHA256));
}

static void a_domain_tells_its_hardware(void **state)
{
	const struct plan plan = { .source.path = "vm" };
	struct instance_facts facts = { .uuid = "8f2f9b8e-6f0e-4ed5-9d7b-1d2a3c4b5e6f",
					.firmware = "uefi",
					.architecture = "x86_64",
					.bus = "virtio" };
	struct uuid_text id;
	struct err err = { 0 };
	autolist char **list = properties_of(&plan, NULL, &facts, &err);
	autolist char **scsi = NULL;

	(void)state;
	assert_non_null(list);
	assert_string_equal(value_of(list, "hw_firmware_type"), "uefi");
	assert_string_equal(value_of(list, "architecture"), "x86_64");
	assert_string_equal(value_of(list, "hw_disk_bus"), "virtio");
	properties_domain_id(facts.uuid, &id);
	assert_string_equal(value_of(list, PROPERTY_SOURCE), id.text);
	facts.bus = "scsi"; /* needs the model of a controller, too */
	scsi = properties_of(&plan, NULL, &facts, &err);
	assert_null(value_of(scsi, "hw_disk_bus"));
}

static void without_a_series_there_is_none(void **state)
{
	const struct plan plan = { .source.path = "/" };
	struct err err = { 0 };
	autolist char **list = properties_of(&plan, NULL, NULL, &err);

	(void)state;
	assert_non_null(list);
	assert_null(value_of(list, PROPERTY_SERIES));
}

static void what_is_not_known_is_left_out(void **state)
{
	const struct tree_facts facts = { .os_id = "", .machine = NULL };
	autolist char **list = made(&facts, NULL);

	(void)state;
	assert_true(str_starts(list[0], "ccsnap_"));
	assert_string_equal(warned, "");
}

static void the_firmware_is_told_when_there_is_only_one(void **state)
{
	static const struct {
		bool bios, uefi;
		const char *expected;
	} rows[] = { { false, false, NULL },
		     { true, false, "bios" },
		     { false, true, "uefi" },
		     { true, true, NULL } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct tree_facts facts = { .boots_bios = rows[i].bios,
						  .boots_uefi = rows[i].uefi };
		autolist char **list = made(&facts, NULL);

		if (rows[i].expected)
			assert_value(list, "hw_firmware_type", rows[i].expected);
		else
			assert_null(value_of(list, "hw_firmware_type"));
	}
}

static void the_users_value_beats_ours_in_its_place(void **state)
{
	autolist char **list =
		made(&debian, USERS("mine=1", "os_version=sid", "mine=2=2", "os_versio=x"));

	(void)state;
	assert_string_equal(list[1], "os_version=sid");
	assert_string_equal(list[7], "mine=2=2");
	assert_string_equal(list[8], "os_versio=x");
	assert_null(list[9]);
}

static void an_empty_value_takes_a_property_away(void **state)
{
	autolist char **list = made(
		&debian, USERS("a=1", "os_distro=", "a=", "never-there=", "hw_firmware_type="));

	(void)state;
	assert_string_equal(list[0], "os_version=12");
	assert_null(value_of(list, "os_distro"));
	assert_null(value_of(list, "hw_firmware_type"));
	assert_null(value_of(list, "a"));
	assert_null(value_of(list, "never-there"));
	assert_string_equal(list[1], "architecture=x86_64");
	assert_null(list[5]);
}

static void names_of_our_own_are_refused(void **state)
{
	static char *const rows[] = { "ccsnap_source=x", "ccsnap_sha256=", "ccsnap_mine=1" };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *users[] = { rows[i], NULL };
		const struct plan plan = { .source.path = "/", .properties = users };
		struct err err = { 0 };

		assert_null(properties_of(&plan, &debian, NULL, &err));
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "ccsnap_"));
	}
}

static char **with_provenance(const char *json)
{
	const struct tree_facts facts = { .provenance = json, .provenance_len = strlen(json) };

	return made(&facts, USERS("provenance-b=mine"));
}

static void provenance_is_carried_on(void **state)
{
	autolist char **list = with_provenance("{\"a\": \"x\\ny\", \"b\": \"theirs\", "
					       "\"chameleon-supported\": true, \"c=\": 1}");

	(void)state;
	assert_value(list, "provenance-a", "xy");
	assert_value(list, "provenance-b", "mine");
	assert_null(value_of(list, "provenance-chameleon-supported"));
}

static void broken_provenance_costs_a_warning(void **state)
{
	autolist char **list = with_provenance("{\n\"a\" 1}");

	(void)state;
	assert_null(value_of(list, "provenance-a"));
	assert_value(list, "provenance-b", "mine");
	assert_non_null(strstr(warned, "opt/chameleon/provenance.json: line 2"));
}

static void what_a_tree_says_is_made_fit(void **state)
{
	static const struct {
		const char *found, *expected;
	} rows[] = {
		{ "d\te\x7f"
		  "b\xc2\x85\x1bian",
		  "debian" },
		{ "\xc3\xa4=\xe2\x82\xac", "\xc3\xa4=\xe2\x82\xac" },
		{ "\x01", NULL },
		{ "de\xff"
		  "bian",
		  NULL },
		{ "de\xc3", NULL },
		{ "\xf0\x9f\x98\x80", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tree_facts facts = { .os_id = rows[i].found, .os_version = "1" };
		autolist char **list = made(&facts, NULL);

		if (rows[i].expected)
			assert_value(list, "os_distro", rows[i].expected);
		else
			assert_null(value_of(list, "os_distro"));
		assert_value(list, "os_version", "1");
	}
	assert_non_null(strstr(warned, "os_distro"));
}

static void a_property_is_set_once(void **state)
{
	autolist char **list = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(properties_set(&list, "a", "1", &err), 0);
	assert_int_equal(properties_set(&list, "ab", "2", &err), 0);
	assert_int_equal(properties_set(&list, "a", "3", &err), 0);
	assert_string_equal(list[0], "a=3");
	assert_string_equal(list[1], "ab=2");
	assert_null(list[2]);
}

/* Of an image that exists. */
static void the_users_come_on_top_of_any_list(void **state)
{
	autolist char **list = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(properties_set_users(&list, USERS("a="), &err), 0);
	assert_int_equal(properties_set_users(&list, NULL, &err), 0);
	assert_null(list);
	assert_int_equal(properties_set_users(&list, USERS("a=1", "b=2", "a="), &err), 0);
	assert_string_equal(list[0], "b=2");
	assert_null(list[1]);
}

static struct uuid_text source_id(const char *path)
{
	struct uuid_text id;
	struct err err = { 0 };
	uint8_t uuid[16];

	if (properties_source_id(path, &id, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(uuid_parse(id.text, uuid));
	return id;
}

static void a_source_is_its_real_path(void **state)
{
	char link[] = "/tmp/ccsnap-test-properties-XXXXXX";
	struct uuid_text usr = source_id("/usr");

	(void)state;
	assert_string_equal(source_id("/usr/../usr/.").text, usr.text);
	assert_string_not_equal(source_id("/").text, usr.text);
	assert_non_null(mkdtemp(link));
	assert_int_equal(rmdir(link), 0);
	assert_int_equal(symlink("/usr", link), 0);
	assert_string_equal(source_id(link).text, usr.text);
	unlink(link);
}

static void a_source_that_is_not_there_is_an_error(void **state)
{
	struct uuid_text id;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(properties_source_id("/nowhere/at/all", &id, &err), -1);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

#define TEST(name) cmocka_unit_test_setup(name, quiet_log)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tree_tells_what_is_in_it),
		TEST(of_a_disk_only_what_ccsnap_knows_is_told),
		TEST(a_domain_tells_its_hardware),
		TEST(without_a_series_there_is_none),
		TEST(what_is_not_known_is_left_out),
		TEST(the_firmware_is_told_when_there_is_only_one),
		TEST(the_users_value_beats_ours_in_its_place),
		TEST(an_empty_value_takes_a_property_away),
		TEST(names_of_our_own_are_refused),
		TEST(provenance_is_carried_on),
		TEST(broken_provenance_costs_a_warning),
		TEST(what_a_tree_says_is_made_fit),
		TEST(a_property_is_set_once),
		TEST(the_users_come_on_top_of_any_list),
		TEST(a_source_is_its_real_path),
		TEST(a_source_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
