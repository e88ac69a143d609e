// SPDX-License-Identifier: Apache-2.0
#include "options-kit.h"

#include "option_table.h"

static void each_wrong_command_line_is_one_line_that_names_the_option(void **state)
{
	static const struct {
		char *words[8];
		const char *parts[4];
	} wrong[] = {
		/* what is missing or too much */
		{ { "-s" }, { "-s", "PATH" } },
		{ { "--source" }, { "--source", "PATH" } },
		{ { "-s", "a", "b", "c" }, { "'c'", "[NAME]" } },
		{ { "-s", "a", "" }, { "NAME", "empty", "241" } },
		{ { "verify" }, { "verify", "IMAGE" } },
		{ { "verify", "a", "b" }, { "'b'", "IMAGE" } },
		{ { "verify", "" }, { "IMAGE", "empty", "path" } },
		{ { "convert" }, { "convert", "IN OUT" } },
		{ { "convert", "a" }, { "convert", "IN OUT" } },
		{ { "convert", "a", "b", "c" }, { "'c'", "IN OUT" } },
		{ { "convert", "", "b" }, { "IN:", "empty", "path" } },
		{ { "convert", "a", "" }, { "OUT:", "empty", "path" } },
		{ { "list", "x" }, { "'x'", "list" } },
		{ { "-v", "list" }, { "'list'", "ccsnap list", "ccsnap create" } },
		{ { "-s", "x", "verify" }, { "'verify'", "ccsnap create" } },
		{ { "uplaod", "disk.raw" }, { "uplaod", "did you mean upload" } },

		/* options that are not */
		{ { "--sorce=x" }, { "--sorce", "--source" } },
		{ { "--source-fromat=raw" }, { "--source-fromat", "--source-format" } },
		{ { "--comp=zstd" }, { "--comp", "--compression" } },
		{ { "--Source=x" }, { "--Source", "--source" } },
		{ { "--dryrun" }, { "--dryrun", "--dry-run" } },
		{ { "--frobnicate" }, { "--frobnicate", "ccsnap create --help" } },
		{ { "---source=x" }, { "---source" } },
		{ { "--=x" }, { "--", "unknown" } },
		{ { "-x" }, { "-x", "unknown" } },
		{ { "-dx" }, { "-x", "unknown" } },
		{ { "-\xff" }, { "-\xff" } },
		{ { "-d=yes" }, { "-d", "no value" } },
		{ { "--dry-run=yes" }, { "--dry-run", "no value", "'yes'" } },
		{ { "--dry-run=" }, { "--dry-run", "no value" } },
		{ { "--quiet=1" }, { "--quiet", "no value" } },
		{ { "verify", "a", "--source=x" },
		  { "--source", "create and prune", "ccsnap verify" } },
		{ { "verify", "a", "-s", "x" }, { "-s", "create and prune", "ccsnap verify" } },
		{ { "list", "--source=x" }, { "--source", "create and prune", "ccsnap list" } },
		{ { "list", "--threads=1" },
		  { "--threads", "create, verify and convert", "ccsnap list" } },
		{ { "list", "-d" }, { "-d", "create, convert, upload and prune", "ccsnap list" } },
		{ { "convert", "a", "b", "--to=folder:x" }, { "--to", "ccsnap convert" } },
		{ { "convert", "a", "b", "--output=x" }, { "--output", "ccsnap convert" } },
		{ { "-s", "x", "--against=y" }, { "--against", "ccsnap create", "verify" } },
		{ { "-s", "x", "--manifest=y" }, { "--manifest", "ccsnap create", "verify" } },

		/* names */
		{ { "-sx", "a/b" }, { "NAME", "'a/b'", "without /" } },
		{ { "-sx", "/" }, { "NAME", "'/'", "without /" } },
		{ { "-sx", "." }, { "NAME", "'.'", "not . or .." } },
		{ { "create", "-sx", ".." }, { "NAME", "'..'", "not . or .." } },
		{ { "-sx", "--output=y", "a/b" }, { "NAME", "'a/b'", "without /" } },
		{ { "-sx", "--output=y/" }, { "--output", "'y/'", "path of a file" } },
		{ { "-sx", "--output=/" }, { "--output", "'/'", "path of a file" } },
		{ { "-sx", "--output", "." }, { "--output", "'.'", "path of a file" } },
		{ { "-sx", "--output=a/.." }, { "--output", "'a/..'", "path of a file" } },
		{ { "-sx", "--report=y/" }, { "--report", "'y/'", "path of a file" } },
		{ { "convert", "a.raw", "b/" }, { "OUT", "'b/'", "path of a file" } },
		{ { "convert", "a.raw", ".." }, { "OUT", "'..'", "path of a file" } },

		/* values */
		{ { "--source=" }, { "--source", "empty", "path" } },
		{ { "-s", "" }, { "-s", "empty", "path" } },
		{ { "-sx", "--output=" }, { "--output", "empty" } },
		{ { "-sx", "--report", "" }, { "--report", "empty" } },
		{ { "-sx", "--config=" }, { "--config", "empty" } },
		{ { "-sx", "--to=" }, { "--to", "empty", "folder:PATH" } },
		{ { "-sx", "--to=folder" }, { "--to", "'folder'", "folder:PATH" } },
		{ { "-sx", "--to=folder:" }, { "--to", "'folder:'", "folder:PATH" } },
		{ { "-sx", "--to", "/images" }, { "--to", "'/images'", "folder:PATH" } },
		{ { "-sx", "--to=s3:x" }, { "--to", "'s3:x'", "folder:PATH" } },
		{ { "-sx", "--source-format=qcow" },
		  { "--source-format", "'qcow'", "raw, qcow2" } },
		{ { "-sx", "--source-format=RAW" }, { "--source-format", "'RAW'", "raw, qcow2" } },
		{ { "-sx", "--source-format=" }, { "--source-format", "empty", "raw, qcow2" } },
		{ { "-sx", "--format=vmdk" }, { "--format", "'vmdk'", "qcow2, raw" } },
		{ { "-sx", "--format", "Qcow2" }, { "--format", "'Qcow2'", "qcow2, raw" } },
		{ { "verify", "x", "--format=iso" }, { "--format", "'iso'", "vmdk" } },
		{ { "-sx", "--compression=gzip" }, { "--compression", "'gzip'", "none" } },
		{ { "-sx", "--compression=zstd " }, { "--compression", "'zstd '", "zlib" } },
		{ { "-sx", "--compression=" }, { "--compression", "empty", "zlib" } },
		{ { "-sx", "--sector-size=1024" }, { "--sector-size", "'1024'", "512, 4096" } },
		{ { "-sx", "--sector-size=4K" }, { "--sector-size", "'4K'", "512, 4096" } },
		{ { "-sx", "--progress=on" }, { "--progress", "'on'", "auto, bar, json, none" } },
		{ { "--completion=zsh" }, { "--completion", "'zsh'", "bash" } },
		{ { "-sx", "--stall-timeout=-1" }, { "--stall-timeout", "'-1'", "0 to 86400" } },
		{ { "-sx", "--stall-timeout=86401" }, { "--stall-timeout", "0 to 86400" } },
		{ { "-sx", "--stall-timeout=5m" }, { "--stall-timeout", "'5m'", "0 to 86400" } },
		{ { "-sx", "--stall-timeout=1.5" }, { "--stall-timeout", "'1.5'", "whole" } },
		{ { "-sx", "--stall-timeout", " 1" }, { "--stall-timeout", "' 1'", "whole" } },
		{ { "-sx", "--lock-wait=forever" }, { "--lock-wait", "'forever'", "604800" } },
		{ { "-sx", "--lock-wait=99999999999999999999" }, { "--lock-wait", "604800" } },
		{ { "-sx", "--threads=0" }, { "--threads", "'0'", "1 to 256" } },
		{ { "-sx", "--threads=257" }, { "--threads", "'257'", "1 to 256" } },
		{ { "-sx", "--threads=0x10" }, { "--threads", "'0x10'", "1 to 256" } },
		{ { "-sx", "--threads=18446744073709551617" }, { "--threads", "1 to 256" } },
		{ { "-sx", "--threads=" }, { "--threads", "empty", "1 to 256" } },
		{ { "-sx", "--cluster-size=1K" }, { "--cluster-size", "'1K'", "4K to 2M" } },
		{ { "-sx", "--cluster-size=4M" }, { "--cluster-size", "'4M'", "4K to 2M" } },
		{ { "-sx", "--cluster-size=65537" }, { "--cluster-size", "power of two" } },
		{ { "-sx", "--cluster-size=0" }, { "--cluster-size", "'0'", "power of two" } },
		{ { "-sx", "--cluster-size=64KB" }, { "--cluster-size", "'64KB'", "4K to 2M" } },
		{ { "-sx", "--cluster-size=-64K" }, { "--cluster-size", "'-64K'", "4K to 2M" } },
		{ { "-sx", "--max-virtual-size=0" }, { "--max-virtual-size", "'0'", "above 0" } },
		{ { "-sx", "--max-virtual-size=1E" }, { "--max-virtual-size", "'1E'", "K, M, G" } },
		{ { "-sx", "--max-virtual-size=16384P" }, { "--max-virtual-size", "K, M, G" } },
		{ { "-sx", "--max-virtual-size=1.5G" }, { "--max-virtual-size", "'1.5G'" } },
		{ { "-sx", "--level=high" }, { "--level", "'high'", "1 to 19" } },
		{ { "-sx", "--level=3.5" }, { "--level", "'3.5'", "1 to 19" } },
		{ { "-sx", "--level=" }, { "--level", "empty", "1 to 19" } },
		{ { "-sx", "--level=--3" }, { "--level", "'--3'", "1 to 19" } },
		{ { "-sx", "--level=4294967297" }, { "--level", "1 to 19" } },
		{ { "-sx", "--level=99" }, { "--level", "'99'", "zstd" } },
		{ { "-sx", "--level", "-99" }, { "--level", "'-99'", "zstd" } },
		{ { "-sx", "--level=19", "--compression=zlib" }, { "--level", "'19'", "zlib" } },
		{ { "-sx", "--property=novalue" }, { "--property", "'novalue'", "KEY=VALUE" } },
		{ { "-sx", "--property==v" }, { "--property", "'=v'", "KEY=VALUE" } },
		{ { "-sx", "--property", "k=\xff" }, { "--property", "UTF-8" } },
		{ { "-sx", "--property=k=a\tb" }, { "--property", "control" } },
		{ { "-sx", "--property=k=\xc2\x85" }, { "--property", "control" } },
		{ { "-sx", "--property=" }, { "--property", "empty", "KEY=VALUE" } },

		{ { "-sx", "--series=a\tb" }, { "--series", "control" } },
		{ { "prune", "--series=a\x1b[2J" }, { "--series", "control" } },
		{ { "-sx", "--tag=\xc2\x9b" }, { "--tag", "control" } },
		{ { "list", "--tag=\xff" }, { "--tag", "UTF-8" } },
		{ { "-sx", "--output=-" }, { "--output", "'-'", "standard output" } },
		{ { "fetch", "x", "--output", "-" }, { "--output", "'-'", "standard output" } },
		{ { "list", "--to=file:x" }, { "--to", "'file:x'", "folder:PATH, glance" } },
		{ { "fetch", "x", "--to=https://h/" },
		  { "--to", "accepted: folder:PATH, glance" } },
		{ { "verify", "x", "--to=http://h/" },
		  { "--to", "accepted: folder:PATH, glance" } },
		{ { "prune", "--to=https://h/" }, { "--to", "accepted: folder:PATH, glance" } },

		/* combinations */
		{ { "-sx", "--to=folder:x", "--output=y" }, { "--output", "--to" } },
		{ { "-sx", "-q", "-v" }, { "-q", "--verbose" } },
		{ { "-sx", "-qv" }, { "-q", "--verbose" } },
		{ { "list", "--verbose", "--quiet" }, { "--quiet", "--verbose" } },
		{ { "-sx", "--level=3", "--compression=none" },
		  { "--level", "--compression=none" } },
		{ { "-sx", "--level=3", "--format=raw" }, { "--level", "--format=raw" } },
		{ { "-sx", "--compression=zlib", "--format=raw" },
		  { "--compression", "'zlib'", "--format=raw", "none" } },
		{ { "-sx", "--cluster-size=64K", "--format=raw" },
		  { "--cluster-size", "--format=raw" } },
		{ { "-sx", "--property=a=b", "--output=x" }, { "--property", "--output" } },
		{ { "verify", "x", "--source-format=raw" }, { "--source-format", "--against" } },
		{ { "verify", "x", "--allow-backing" }, { "--allow-backing", "--against" } },
		{ { "convert", "a.raw", "b.raw", "--compression=zstd" },
		  { "--compression", "'zstd'", "--format=raw", "none" } },
		{ { "convert", "a.raw", "b.vmdk" }, { "OUT", "b.vmdk", "'vmdk'", "qcow2, raw" } },
		{ { "-sx", "--config=/nonexistent/x" }, { "--config", "/nonexistent/x" } },
		{ { "-sx", "--config", "/" }, { "--config", "/" } },
	};

	(void)state;
	assert_true(sizeof wrong / sizeof *wrong >= 100);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char *argv[10] = { "ccsnap" };
		const char *parts[5] = { 0 };

		memcpy(argv + 1, wrong[i].words, sizeof wrong[i].words);
		memcpy(parts, wrong[i].parts, sizeof wrong[i].parts);
		assert_refused(argv, parts);
	}
}

static void a_long_wrong_value_leaves_room_for_what_is_accepted(void **state)
{
	char value[5000];

	(void)state;
	memset(value, 'x', sizeof value - 1);
	value[sizeof value - 1] = '\0';
	assert_refused(WORDS("-sx", "--format", value), REFUSED("--format", "qcow2, raw"));
	assert_refused(WORDS("-sx", "--level", value), REFUSED("--level", "1 to 19"));
	memcpy(value, "--", 2);
	assert_refused(WORDS("-sx", value), REFUSED("--xxx", "unknown"));
	assert_refused(WORDS("list", value + 2), REFUSED("'xxx", "list"));
}

/* NAME.manifest.json has to be a file's name. */
static void a_name_too_long_is_refused_by_its_argument(void **state)
{
	char name[300], path[310];
	struct options opt;

	(void)state;
	memset(name, 'x', sizeof name);
	name[242] = '\0';
	assert_refused(WORDS("-sx", name), REFUSED("NAME", "xxx...", "at most 241 bytes"));
	name[241] = '\0';
	parse_ok(&opt, WORDS("-sx", name));
	options_free(&opt);

	memset(name, 'x', sizeof name);
	name[256] = '\0';
	snprintf(path, sizeof path, "a/%s", name);
	assert_refused(WORDS("-sx", "--output", path), REFUSED("--output", "at most 255 bytes"));
	assert_refused(WORDS("convert", "a.raw", path), REFUSED("OUT", "at most 255 bytes"));
	path[2 + 255] = '\0';
	parse_ok(&opt, WORDS("-sx", "--output", path));
	options_free(&opt);
}

static void a_missing_value_is_told_with_what_is_accepted(void **state)
{
	(void)state;
	for (const struct option_def *def = option_table; def->name; def++) {
		autofree char *word = str_format("--%s", def->name);
		char accepted[256];

		if (!def->arg)
			continue;
		option_accepted(def, accepted, sizeof accepted);
		assert_true(strlen(accepted) > 3);
		for (const struct command *c = commands; c->name; c++)
			if (c->bit & def->commands)
				assert_refused(WORDS((char *)c->name, word),
					       REFUSED(word, def->arg, accepted));
	}
	assert_refused(WORDS("-sx", "--level"), REFUSED("zstd 1 to 19", "zlib 1 to 9"));
}

static void no_character_of_a_long_value_is_cut(void **state)
{
	char value[] = "123456789.123456789.123456789.123456789.123456789.123456789."
		       "123456789.12345678\xe2\x82\xac and more";

	(void)state;
	assert_refused(WORDS("-sx", "--format", value), REFUSED("9.12345678...' is not"));
	assert_refused(WORDS("-sx", "x", value + 1), REFUSED("12345678\xe2\x82\xac"));
	memcpy(value + 77, "\xe2\x82\xac", 3);
	assert_refused(WORDS("-sx", "--format", value), REFUSED("\xe2\x82\xac...' is not"));
}

/* A wrong scheme, say, and the whole of it is told back; and whatever it was, ps shows argv. */
static void a_password_in_a_destination_is_not_told_back(void **state)
{
	static const char *const wrong[][2] = {
		{ "--to=ftp://me:hidden@host/x", "--to=ftp://*********@host/x" },
		{ "--to=x://me:hid/den@host", "--to=x://**********@host" },
		{ "--to=ftp://host/x?sig=hidden", "--to=ftp://host/x?**********" },
		{ "--to=ftp://hidden@host", "--to=ftp://******@host" },
	};
	struct options opt;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		autofree char *word = strdup(wrong[i][0]);

		parse(&opt, WORDS("create", "-sx", word), &err);
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "://host"));
		assert_null(strstr(err.text, "hid"));
		assert_string_equal(word, wrong[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_password_in_a_destination_is_not_told_back),
		cmocka_unit_test(each_wrong_command_line_is_one_line_that_names_the_option),
		cmocka_unit_test(a_long_wrong_value_leaves_room_for_what_is_accepted),
		cmocka_unit_test(a_name_too_long_is_refused_by_its_argument),
		cmocka_unit_test(no_character_of_a_long_value_is_cut),
		cmocka_unit_test(a_missing_value_is_told_with_what_is_accepted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
