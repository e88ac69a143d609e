// SPDX-License-Identifier: Apache-2.0
#include "options-kit.h"

static void keys_are_long_options(void **state)
{
	struct options opt;

	(void)state;
	write_config("# a comment\n; another\n\nlevel = 5\n[ccsnap]\n  overwrite : yes\r\n"
		     "property=a=b; c\nproperty = d=#e \nto = folder:/a b\nagainst = other\n"
		     "dry-run = no\nverbose = 2\nquiet = 0");
	parse_ok(&opt, WORDS("-sx", "--property=x=y", "--config", config));
	assert_int_equal(opt.level, 5);
	assert_true(opt.overwrite);
	assert_false(opt.dry_run);
	assert_int_equal(opt.verbose, 2);
	assert_string_equal(opt.to, "folder:/a b");
	assert_string_equal(opt.properties[0], "a=b; c");
	assert_string_equal(opt.properties[1], "d=#e");
	assert_string_equal(opt.properties[2], "x=y");
	assert_null(opt.against);
	options_free(&opt);
}

static void the_command_line_beats_the_file(void **state)
{
	struct options opt;

	(void)state;
	write_config("source = a\nlevel = 5\nto = folder:/a\nquiet = yes\ncompression = zlib\n"
		     "cluster-size = 4K\nproperty = a=b\nverbose = no\n");
	parse_ok(&opt, WORDS("-sb", "--output=f", "-v", "--format=raw", "--config", config));
	assert_string_equal(opt.source, "b");
	assert_string_equal(opt.output, "f");
	assert_null(opt.to);
	assert_null(opt.properties);
	assert_null(opt.compression);
	assert_int_equal(opt.level, OPTION_UNSET);
	assert_int_equal(opt.cluster_size, 0);
	assert_int_equal(opt.verbose, 1);
	assert_false(opt.quiet);
	options_free(&opt);

	write_config("output = f\nformat = raw\nverbose = 2\n");
	parse_ok(&opt,
		 WORDS("-sb", "--to=folder:x", "--cluster-size=4K", "-q", "--config", config));
	assert_null(opt.output);
	assert_null(opt.format);
	assert_int_equal(opt.verbose, 0);
	assert_true(opt.quiet);
	options_free(&opt);

	write_config("compression = zlib\n");
	parse_ok(&opt, WORDS("-sb", "--level=19", "--config", config));
	assert_null(opt.compression);
	assert_int_equal(opt.level, 19);
	options_free(&opt);

	write_config("level = 19\n");
	parse_ok(&opt, WORDS("-sb", "--compression=zlib", "--config", config));
	assert_string_equal(opt.compression, "zlib");
	assert_int_equal(opt.level, OPTION_UNSET);
	options_free(&opt);

	write_config("compression = none\n");
	assert_refused(WORDS("-sb", "--level=99", "--config", config),
		       REFUSED("--level", "'99'", "zstd"));
}

static void a_key_of_another_command_is_checked_and_ignored(void **state)
{
	struct options opt;

	(void)state;
	write_config("source = x\nthreads = 3\nformat = raw\nlevel = 3\n");
	parse_ok(&opt, WORDS("list", "--config", config));
	options_free(&opt);
	parse_ok(&opt, WORDS("verify", "i.qcow2", "--config", config));
	assert_null(opt.format); /* of images to be made, not of this one */
	assert_int_equal(opt.threads, 3);
	options_free(&opt);
	write_config("threads = many\n");
	assert_refused(WORDS("list", "--config", config), REFUSED("c.conf:1", "threads", "'many'"));
}

static void each_wrong_file_is_one_line_with_file_and_number(void **state)
{
	static const struct {
		const char *text;
		const char *parts[4];
	} wrong[] = {
		{ "\nsorce = x\n", { ":2", "sorce", "source" } },
		{ "frobnicate = x", { ":1", "frobnicate", "unknown" } },
		{ "--source = x", { ":1", "--source" } },
		{ "config = x", { ":1", "config", "command line only" } },
		{ "help = yes", { ":1", "help", "command line only" } },
		{ "level = \n", { ":1", "level", "empty" } },
		{ "level\n", { ":1", "KEY = VALUE" } },
		{ "= 3\n", { ":1", "unknown" } },
		{ "a\nb\nlevel=1", { ":1", "KEY = VALUE" } },
		{ "level = 3 # fast", { ":1", "level", "'3 # fast'" } },
		{ "level = 3 ; fast", { ":1", "' ;'" } },
		{ "to = folder:/a ;b", { ":1", "' ;'" } },
		{ "threads = 0", { ":1", "threads", "1 to 256" } },
		{ "overwrite = maybe", { ":1", "overwrite", "'maybe'", "yes, no" } },
		{ "overwrite = YES", { ":1", "overwrite", "'YES'", "yes, no" } },
		{ "verbose = 10", { ":1", "verbose", "'10'" } },
		{ "[other]\nlevel = 1", { ":1", "[ccsnap]" } },
		{ "[other]", { ":1", "[ccsnap]" } },
		{ "[ccsnap", { ":1", "[ccsnap]" } },
		{ "[ccsnap] x", { ":1", "[ccsnap]" } },
		{ "to = \"folder:/x\"", { ":1", "to", "quotes" } },
		{ "to = folder:/x\n  more", { ":2", "KEY = VALUE" } },
		{ "to = folder:/x\noutput = y", { ":2", "output", "--to" } },
		{ "level = 99", { ":1", "level", "'99'", "zstd" } },
		{ "quiet = 1\nverbose = 1", { ":1", "quiet", "--verbose" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *parts[6] = { "c.conf" };

		write_config(wrong[i].text);
		memcpy(parts + 1, wrong[i].parts, sizeof wrong[i].parts);
		assert_refused(WORDS("-sx", "--config", config), parts);
	}
}

/* A value arrives whole or not at all, however long its line. */
static void no_value_is_cut(void **state)
{
	int refused = 0;

	(void)state;
	for (size_t len = 1; len < 5000; len += len < 300 ? 1 : 311) {
		char value[5000], text[5100];
		struct options opt;
		struct err err;

		memset(value, 'x', len);
		value[len] = '\0';
		snprintf(text, sizeof text, "level = 1\nsource = %s\nlevel = 2\n", value);
		write_config(text);
		if (parse(&opt, WORDS("--config", config), &err) == 0) {
			assert_int_equal(refused, 0);
			assert_string_equal(opt.source, value);
			assert_int_equal(opt.level, 2);
			options_free(&opt);
		} else {
			refused++;
			assert_non_null(strstr(err.text, "c.conf:2: the line is too long"));
		}
	}
	assert_true(refused > 0);
}

static void what_is_no_text_file_is_refused(void **state)
{
	char *big = calloc(1, 1 << 20);

	(void)state;
	write_text(config, "level = 1\0\nquiet = 1", 20);
	assert_refused(WORDS("-sx", "--config", config), REFUSED("c.conf", "no text file"));
	memset(big, '#', 1 << 20);
	write_text(config, big, 1 << 20);
	assert_refused(WORDS("-sx", "--config", config), REFUSED("c.conf", "longer"));
	free(big);
}

static void the_users_file_is_found_and_config_replaces_it(void **state)
{
	autofree char *sub = str_format("%s/ccsnap", dir);
	autofree char *file = str_format("%s/ccsnap.conf", sub);
	struct options opt;

	(void)state;
	assert_int_equal(mkdir(sub, 0700), 0);
	write_text(file, "threads = 7\n", 12);
	setenv("XDG_CONFIG_HOME", dir, 1);
	parse_ok(&opt, WORDS("-sx"));
	assert_int_equal(opt.threads, 7);
	options_free(&opt);
	parse_ok(&opt, WORDS("-sx", "--config=/dev/null"));
	assert_int_equal(opt.threads, 0);
	options_free(&opt);
	write_text(file, "threads = 0\n", 12);
	assert_refused(WORDS("-sx"), REFUSED("ccsnap.conf:1", "threads"));
	setenv("XDG_CONFIG_HOME", "relative", 1); /* is ignored */
	setenv("HOME", "", 1);
	parse_ok(&opt, WORDS("-sx"));
	options_free(&opt);
	unlink(file);
	rmdir(sub);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_long_options),
		cmocka_unit_test(the_command_line_beats_the_file),
		cmocka_unit_test(a_key_of_another_command_is_checked_and_ignored),
		cmocka_unit_test(each_wrong_file_is_one_line_with_file_and_number),
		cmocka_unit_test(no_value_is_cut),
		cmocka_unit_test(what_is_no_text_file_is_refused),
		cmocka_unit_test(the_users_file_is_found_and_config_replaces_it),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
