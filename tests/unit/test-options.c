// SPDX-License-Identifier: Apache-2.0
#include "options-kit.h"

#include "option_table.h"

static void the_command_is_create_when_none_is_named(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("-s", "disk", "name"));
	assert_string_equal(opt.command->name, "create");
	assert_string_equal(opt.source, "disk");
	assert_int_equal(opt.arg_count, 1);
	assert_string_equal(opt.args[0], "name");
	options_free(&opt);
}

static void an_image_may_be_called_like_a_command(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("create", "list", "-s", "disk"));
	assert_string_equal(opt.args[0], "list");
	options_free(&opt);
	parse_ok(&opt, WORDS("-s", "disk", "--", "verify"));
	assert_string_equal(opt.command->name, "create");
	assert_string_equal(opt.args[0], "verify");
	options_free(&opt);
}

static void every_spelling_of_a_value_works(void **state)
{
	static char *const spellings[][3] = { { "--source=a=b" }, { "--source", "a=b" },
					      { "-s", "a=b" },	  { "-sa=b" },
					      { "-dsa=b" },	  { "-ds", "a=b" } };

	(void)state;
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		struct options opt;

		parse_ok(&opt, WORDS(spellings[i][0], spellings[i][1]));
		assert_string_equal(opt.source, "a=b");
		assert_int_equal(opt.dry_run, spellings[i][0][1] == 'd');
		options_free(&opt);
	}
}

static void a_value_is_never_taken_for_an_option(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("--source", "--json", "--output", "-q", "--", "--quiet"));
	assert_string_equal(opt.source, "--json");
	assert_string_equal(opt.output, "-q");
	assert_string_equal(opt.args[0], "--quiet");
	assert_false(opt.json || opt.quiet);
	options_free(&opt);
}

static void any_byte_is_kept(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("-s", " \xff\n*$(x)", "--output= -\x01 ", "na me\xfe"));
	assert_string_equal(opt.source, " \xff\n*$(x)");
	assert_string_equal(opt.output, " -\x01 ");
	assert_string_equal(opt.args[0], "na me\xfe");
	options_free(&opt);
}

static void the_last_use_wins_and_lists_append(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("-sa", "--level=1", "--property=a=1", "--source=b", "--level", "9",
			     "--property", "b=", "-vv", "-v"));
	assert_string_equal(opt.source, "b");
	assert_int_equal(opt.level, 9);
	assert_int_equal(opt.verbose, 3);
	assert_string_equal(opt.properties[0], "a=1");
	assert_string_equal(opt.properties[1], "b=");
	assert_null(opt.properties[2]);
	options_free(&opt);
}

static void every_value_arrives(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt,
		 WORDS("-s", "d", "--source-format=vmdk", "--allow-backing", "--sector-size=4096",
		       "--stall-timeout=0", "--format=qcow2", "--compression=zlib", "--level=+9",
		       "--cluster-size=2MiB", "--threads=256", "--max-virtual-size=1p",
		       "--to=folder:/x", "--overwrite", "--lock-wait=7", "--report=r.json",
		       "--progress=json", "--json", "--config=/dev/null", "-q"));
	assert_string_equal(opt.source_format, "vmdk");
	assert_true(opt.allow_backing && opt.overwrite && opt.json && opt.quiet);
	assert_int_equal(opt.sector_size, 4096);
	assert_int_equal(opt.stall_timeout, 0);
	assert_string_equal(opt.compression, "zlib");
	assert_int_equal(opt.level, 9);
	assert_int_equal(opt.cluster_size, 2 << 20);
	assert_int_equal(opt.threads, 256);
	assert_true(opt.max_virtual_size == UINT64_C(1) << 50);
	assert_string_equal(opt.to, "folder:/x");
	assert_int_equal(opt.lock_wait, 7);
	assert_string_equal(opt.report, "r.json");
	assert_string_equal(opt.progress, "json");
	options_free(&opt);
}

static void what_nobody_says_has_its_default(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("-sd"));
	assert_int_equal(opt.stall_timeout, 300);
	assert_int_equal(opt.level, OPTION_UNSET);
	assert_null(opt.format);
	assert_null(opt.compression);
	assert_null(opt.to);
	assert_null(opt.properties);
	assert_int_equal(opt.threads + opt.cluster_size + opt.max_virtual_size, 0);
	options_free(&opt);
}

static void help_needs_nothing_else(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("--help"));
	assert_true(opt.help);
	assert_null(opt.command);
	options_free(&opt);
	parse_ok(&opt, WORDS("convert", "-h", "--config=/nonexistent", "--level=x"));
	assert_true(opt.help);
	assert_string_equal(opt.command->name, "convert");
	options_free(&opt);
	parse_ok(&opt, WORDS("--completion=bash"));
	assert_string_equal(opt.completion, "bash");
	options_free(&opt);
}

static void names_of_convert_say_the_formats(void **state)
{
	struct options opt;

	(void)state;
	write_config("format = qcow2\nsource-format = raw\ncompression = zlib\nlevel = 3\n");
	parse_ok(&opt, WORDS("convert", "a.vmdk", "b.raw", "--config", config));
	assert_string_equal(opt.source_format, "vmdk");
	assert_string_equal(opt.format, "raw");
	assert_null(opt.compression);
	assert_int_equal(opt.level, OPTION_UNSET);
	options_free(&opt);
	parse_ok(&opt, WORDS("convert", "a.vmdk", "b.raw", "--format=qcow2", "--source-format",
			     "raw", "--config=/dev/null"));
	assert_string_equal(opt.source_format, "raw");
	assert_string_equal(opt.format, "qcow2");
	options_free(&opt);
}

/* A use of the option that its command alone would accept. */
static char *use_of(const struct option_def *def, const char *value)
{
	return value ? str_format("--%s=%s", def->name, value) : str_format("--%s", def->name);
}

/* What each command needs besides: the disk, its arguments. */
static void parse_with(const struct command *c, char *one, char *two, struct err *err)
{
	struct options opt;

	if (str_equal(c->name, "create"))
		parse(&opt, WORDS("create", "-sx", one, two), err);
	else if (str_equal(c->name, "verify"))
		parse(&opt, WORDS("verify", "i.qcow2", "--against=x", one, two), err);
	else if (str_equal(c->name, "convert"))
		parse(&opt, WORDS("convert", "i", "o", "--source-format=qcow2", one, two), err);
	else if (c->args_min > 0)
		parse(&opt, WORDS((char *)c->name, "i.qcow2", one, two), err);
	else
		parse(&opt, WORDS((char *)c->name, one, two), err);
	if (err->kind == ERR_NONE)
		options_free(&opt);
}

static void every_choice_of_every_option_works_for_every_command(void **state)
{
	(void)state;
	for (const struct command *c = commands; c->name; c++) {
		for (const struct option_def *def = option_table; def->name; def++) {
			if (!(def->commands & c->bit) || !def->choice)
				continue;
			for (size_t i = 0; def->choice(i); i++) {
				autofree char *use = use_of(def, def->choice(i));
				struct err err;

				parse_with(c, use, NULL, &err);
				if (err.kind != ERR_NONE)
					fail_msg("%s %s: %s", c->name, use, err.text);
			}
		}
	}
}

/* Some value for each type of option. */
static const char *sample(const struct option_def *def, size_t i)
{
	static const char *const values[] = {
		"k=v", "folder:x", "1", "9", "64K", "f.raw", "f.vmdk"
	};

	if (def->choice)
		return def->choice(i);
	if (!def->arg)
		return NULL;
	return i < sizeof values / sizeof *values ? values[i] : NULL;
}

static void any_two_options_are_accepted_or_refused_in_one_line(void **state)
{
	(void)state;
	for (const struct command *c = commands; c->name; c++) {
		for (const struct option_def *a = option_table; a->name; a++) {
			for (const struct option_def *b = option_table; b->name; b++) {
				size_t i = 0, k = 0;

				if (!(a->commands & c->bit) || !(b->commands & c->bit))
					continue;
				do {
					autofree char *one = use_of(a, sample(a, i));
					autofree char *two = use_of(b, sample(b, k));
					struct err err;

					parse_with(c, one, two, &err);
					if (err.kind != ERR_NONE)
						assert_int_equal(err.kind, ERR_USAGE);
					assert_null(strchr(err.text, '\n'));
					if (!sample(b, ++k)) {
						k = 0;
						i++;
					}
				} while (sample(a, i));
			}
		}
	}
}

static void what_makes_an_image_can_wait_for_its_name(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("convert", "a.qcow2", "b.qcow2", "--lock-wait=60"));
	assert_int_equal(opt.lock_wait, 60);
	options_free(&opt);
}

/* A file speaks of the disks to be captured: not of a disk to compare with, and
 * not of an image from elsewhere.
 */
static void a_file_says_nothing_about_other_disks_than_the_captured(void **state)
{
	struct options opt;
	struct err err;

	(void)state;
	write_config("source-format = qcow2\nallow-backing = yes\nformat = raw\n");
	parse_ok(&opt, WORDS("-sx", "--config", config));
	assert_string_equal(opt.source_format, "qcow2");
	assert_true(opt.allow_backing);
	options_free(&opt);

	parse_ok(&opt, WORDS("verify", "i.qcow2", "--against=x", "--config", config));
	assert_null(opt.format);
	assert_null(opt.source_format);
	assert_false(opt.allow_backing);
	options_free(&opt);

	parse_ok(&opt, WORDS("convert", "i", "o", "--config", config));
	assert_null(opt.source_format);
	assert_false(opt.allow_backing);
	assert_string_equal(opt.format, "raw");
	options_free(&opt);

	write_config("source-format = qcow\n");
	assert_int_equal(parse(&opt, WORDS("verify", "i.qcow2", "--config", config), &err), -1);
	assert_non_null(strstr(err.text, "raw, qcow2"));
}

static void parse_with_file(struct options *opt, char *text, char **words)
{
	write_config(text);
	parse_ok(opt, words);
}

static void the_stronger_of_two_clouds_is_taken(void **state)
{
	struct options opt;

	(void)state;
	parse_with_file(&opt, "os-cloud = old\n",
			WORDS("list", "--to=glance:lab", "--config", config));
	assert_null(opt.os_cloud);
	assert_string_equal(opt.to, "glance:lab");
	options_free(&opt);
	parse_with_file(&opt, "to = glance:old\n",
			WORDS("list", "--os-cloud=lab", "--config", config));
	assert_string_equal(opt.os_cloud, "lab");
	assert_string_equal(opt.to, "glance");
	options_free(&opt);
	parse_with_file(&opt, "os-cloud = lab\n", WORDS("list", "--to=glance", "--config", config));
	assert_string_equal(opt.os_cloud, "lab");
	options_free(&opt);
}

/* As the manual says of both. */
static void a_file_beside_a_service_is_kept_when_one_place_says_both(void **state)
{
	struct options opt;

	(void)state;
	parse_with_file(&opt, "output = a.qcow2\nto = glance\n", WORDS("-sx", "--config", config));
	assert_string_equal(opt.output, "a.qcow2");
	assert_string_equal(opt.to, "glance");
	options_free(&opt);
	parse_with_file(&opt, "output = a.qcow2\n",
			WORDS("-sx", "--to=glance", "--config", config));
	assert_null(opt.output);
	options_free(&opt);
	parse_with_file(&opt, "to = glance\n",
			WORDS("-sx", "--output=a.qcow2", "--config", config));
	assert_null(opt.to);
	options_free(&opt);
}

/* Of a file, and where it means something else than was meant. */
static void what_a_destination_hides_is_in_no_message(void **state)
{
	static char *const files[] = { "to = https://me:p%40ss-word@host/x\n",
				       "to = folder:http://me:p%40ss-word@host\n" };
	struct options opt;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		parse_with_file(&opt, files[i], WORDS("-sx", "--config", config));
		err_set(&err, ERR_FAILED, "p@ss-word and p%%40ss-word");
		assert_string_equal(err.text, "**** and ****");
		options_free(&opt);
	}
}

static void argv_is_left_alone_but_for_secrets(void **state)
{
	autofree char *to = strdup("https://me:secret@host/x?sig=abc");
	autofree char *plain = strdup("--to=folder:/x?y@z"), *name = strdup("a://b:c@d?e");
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("upload", name, "--to", to));
	assert_string_equal(to, "https://*********@host/x?*******");
	assert_string_equal(opt.to, "https://me:secret@host/x?sig=abc");
	assert_string_equal(name, "a://b:c@d?e");
	options_free(&opt);
	parse_ok(&opt, WORDS("upload", name, plain));
	assert_string_equal(plain, "--to=folder:/x?y@z");
	options_free(&opt);
}

static void help_is_also_a_word(void **state)
{
	struct options opt;

	(void)state;
	parse_ok(&opt, WORDS("help"));
	assert_true(opt.help && !opt.command);
	options_free(&opt);
	parse_ok(&opt, WORDS("help", "upload"));
	assert_string_equal(opt.command->name, "upload");
	assert_true(opt.help);
	options_free(&opt);
	parse_ok(&opt, WORDS("create", "help", "-sx"));
	assert_string_equal(opt.args[0], "help");
	options_free(&opt);
	parse_ok(&opt, WORDS("help", "-sx"));
	assert_string_equal(opt.args[0], "help");
	options_free(&opt);
}

/* --- the table --- */

static void every_argument_has_its_row(void **state)
{
	(void)state;
	for (const struct command *c = commands; c->name; c++) {
		int rows = 0;

		for (const struct argument_def *def = argument_table; def->name; def++) {
			if (def->command != c->bit)
				continue;
			assert_int_equal(def->index, rows++);
			assert_non_null(strstr(c->args, def->name));
		}
		assert_int_equal(rows, c->args_max);
	}
}

static void the_table_holds_together(void **state)
{
	(void)state;
	for (const struct option_def *a = option_table; a->name; a++) {
		assert_true(strlen(a->name) >= 2 && strlen(a->name) <= 32);
		assert_non_null(a->help);
		assert_int_equal(!a->arg, a->type == OPTION_FLAG || a->type == OPTION_COUNT);
		for (const struct option_def *b = a + 1; b->name; b++) {
			if (!(a->commands & b->commands))
				continue;
			assert_string_not_equal(a->name, b->name);
			assert_true(!a->letter || a->letter != b->letter);
		}
	}
}

/* fn's output on stdout, as one string. */
static char *printed(void (*fn)(const void *arg), const void *arg)
{
	autofree char *path = str_format("%s/out", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), saved;
	char *text = calloc(1, 65536);

	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	fn(arg);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_true(pread(fd, text, 65535, 0) > 0);
	close(fd);
	unlink(path);
	return text;
}

static void print_help(const void *command)
{
	options_print_help(command);
}

static void print_completion(const void *shell)
{
	options_print_completion(shell);
}

static void help_names_every_option_in_lines_that_fit(void **state)
{
	(void)state;
	for (const struct command *c = commands; c->name; c++) {
		autofree char *text = printed(print_help, c);

		for (const struct option_def *def = option_table; def->name; def++) {
			autofree char *word = str_format("--%s%s", def->name, def->arg ? "=" : " ");

			if (!def->arg)
				word[strlen(word) - 1] = '\0';
			if (def->commands & c->bit)
				assert_non_null(strstr(text, word));
		}
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			assert_true(strlen(line) <= 100);
	}
}

static void completion_names_every_option(void **state)
{
	autofree char *text = printed(print_completion, "bash");

	(void)state;
	assert_non_null(strstr(text, "complete -F _ccsnap ccsnap"));
	for (const struct option_def *def = option_table; def->name; def++) {
		autofree char *word = str_format("--%s ", def->name);

		assert_non_null(strstr(text, word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_command_is_create_when_none_is_named),
		cmocka_unit_test(an_image_may_be_called_like_a_command),
		cmocka_unit_test(every_spelling_of_a_value_works),
		cmocka_unit_test(a_value_is_never_taken_for_an_option),
		cmocka_unit_test(any_byte_is_kept),
		cmocka_unit_test(the_last_use_wins_and_lists_append),
		cmocka_unit_test(every_value_arrives),
		cmocka_unit_test(what_nobody_says_has_its_default),
		cmocka_unit_test(help_needs_nothing_else),
		cmocka_unit_test(names_of_convert_say_the_formats),
		cmocka_unit_test(every_choice_of_every_option_works_for_every_command),
		cmocka_unit_test(any_two_options_are_accepted_or_refused_in_one_line),
		cmocka_unit_test(what_makes_an_image_can_wait_for_its_name),
		cmocka_unit_test(a_file_says_nothing_about_other_disks_than_the_captured),
		cmocka_unit_test(the_stronger_of_two_clouds_is_taken),
		cmocka_unit_test(a_file_beside_a_service_is_kept_when_one_place_says_both),
		cmocka_unit_test(what_a_destination_hides_is_in_no_message),
		cmocka_unit_test(argv_is_left_alone_but_for_secrets),
		cmocka_unit_test(help_is_also_a_word),
		cmocka_unit_test(every_argument_has_its_row),
		cmocka_unit_test(the_table_holds_together),
		cmocka_unit_test(help_names_every_option_in_lines_that_fit),
		cmocka_unit_test(completion_names_every_option),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
