// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "walk/exclude.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;
static char *source; /* a directory of its own for each test, without links on the way */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int make_source(void **state)
{
	char template[] = "/tmp/test-exclude-XXXXXX";

	(void)state;
	source = realpath(mkdtemp(template), NULL);
	err = (struct err){ 0 };
	return source ? 0 : -1;
}

static int remove_source(void **state)
{
	(void)state;
	nftw(source, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(source);
	return 0;
}

static char *in_source(const char *path)
{
	char *full = str_format("%s/%s", source, path);

	assert_non_null(full);
	return full;
}

static void make_directory(const char *path)
{
	autofree char *full = in_source(path);

	assert_int_equal(mkdir(full, 0755), 0);
}

static void make_file(const char *path)
{
	autofree char *full = in_source(path);
	autoclose int fd = open(full, O_CREAT | O_EXCL | O_WRONLY, 0644);

	assert_true(fd >= 0);
}

static void make_link(const char *target, const char *path)
{
	autofree char *full = in_source(path);

	assert_int_equal(symlink(target, full), 0);
}

static struct excludes *new_excludes(void)
{
	struct excludes *x = excludes_new(&err);

	assert_non_null(x);
	return x;
}

/* As the walk asks: from the top, and no more below what is left out. */
static enum exclude_verdict verdict(struct excludes *x, const char *path, bool directory)
{
	size_t which;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		autofree char *above = strndup(path, (size_t)(slash - path));
		enum exclude_verdict v = excludes_match(x, above, true, &which);

		if (v != EXCLUDE_NO)
			return EXCLUDE_ALL;
	}
	return excludes_match(x, path, directory, &which);
}

static bool is_left_out(struct excludes *x, const char *path)
{
	return verdict(x, path, false) != EXCLUDE_NO;
}

static void assert_says(enum err_kind kind, const char *words)
{
	if (err.kind != kind || !strstr(err.text, words))
		print_error("kind %d: %s (wanted: %s)\n", err.kind, err.text, words);
	assert_int_equal(err.kind, kind);
	assert_non_null(strstr(err.text, words));
}

static void add_path(struct excludes *x, const char *text)
{
	int ok = excludes_add_path(x, source, text, &err);

	if (ok < 0)
		print_error("%s\n", err.text);
	assert_int_equal(ok, 0);
}

static void add_below_source(struct excludes *x, const char *path)
{
	autofree char *full = in_source(path);

	add_path(x, full);
}

/* Patterns are separated by newlines. */
static void add_patterns(struct excludes *x, const char *lines)
{
	autofree char *copy = strdup(lines);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		int ok = excludes_add_pattern(x, line, &err);

		if (ok < 0)
			print_error("%s\n", err.text);
		assert_int_equal(ok, 0);
	}
}

static const struct {
	const char *patterns, *path;
	char type;   /* d: a directory, f: anything else */
	char result; /* -: left out, +: kept, 0: kept, but empty */
} rows[] = {
	/* no slash: any depth */
	{ "*.o", "a.o", 'f', '-' },
	{ "*.o", "src/deep/a.o", 'f', '-' },
	{ "*.o", "a.out", 'f', '+' },
	{ "*.o", "dir.o/file", 'f', '-' },
	{ "core", "core", 'f', '-' },
	{ "core", "a/b/core", 'f', '-' },
	{ "core", "a/core/b", 'f', '-' },
	{ "core", "a/cores", 'f', '+' },
	{ "core", "Core", 'f', '+' },
	{ "*", "anything", 'f', '-' },
	{ "*", ".hidden", 'f', '-' },
	{ "?hidden", ".hidden", 'f', '-' },
	{ "*.pem", "etc/ssl/certs/x.pem", 'f', '-' },
	{ "*.gpg", "etc/ssl/certs/x.pem", 'f', '+' },
	/* leading slash: from the root */
	{ "/tmp2", "tmp2", 'd', '-' },
	{ "/tmp2", "home/u/tmp2", 'd', '+' },
	{ "/tmp2", "tmp2/below", 'f', '-' },
	{ "/*.img", "disk.img", 'f', '-' },
	{ "/*.img", "srv/disk.img", 'f', '+' },
	{ "//a//b", "a/b", 'f', '-' },
	/* slash in the middle: from the root, too */
	{ "a/b", "a/b", 'f', '-' },
	{ "a/b", "z/a/b", 'f', '+' },
	{ "a/*", "a/b", 'f', '-' },
	{ "a/*", "a", 'd', '+' },
	{ "a/*/c", "a/b/c", 'f', '-' },
	{ "a/*/c", "a/b/b/c", 'f', '+' },
	{ "a*c", "a/c", 'f', '+' },
	{ "a?c", "a/c", 'f', '+' },
	/* trailing slash: directories only */
	{ "cache/", "cache", 'd', '-' },
	{ "cache/", "cache", 'f', '+' },
	{ "cache/", "home/u/cache", 'd', '-' },
	{ "cache/", "home/u/cache/x", 'f', '-' },
	{ "/cache/", "u/cache", 'd', '+' },
	{ "a/b//", "a/b", 'f', '+' },
	{ "a/b//", "a/b", 'd', '-' },
	/* "**": any number of directories */
	{ "**/x", "x", 'f', '-' },
	{ "**/x", "a/b/c/x", 'f', '-' },
	{ "/**/x", "a/x", 'f', '-' },
	{ "a/**/x", "a/x", 'f', '-' },
	{ "a/**/x", "a/b/x", 'f', '-' },
	{ "a/**/x", "a/b/c/d/x", 'f', '-' },
	{ "a/**/x", "b/x", 'f', '+' },
	{ "a/**/x", "ax", 'f', '+' },
	{ "a/**", "a", 'd', '+' },
	{ "a/**", "a/b", 'f', '-' },
	{ "a/**", "a/b/c", 'f', '-' },
	{ "**", "x", 'f', '-' },
	{ "a/**/b/**/c", "a/b/c", 'f', '-' },
	{ "a/**/b/**/c", "a/1/b/2/3/c", 'f', '-' },
	{ "a/**/b/**/c", "a/1/c/2/3/b", 'f', '+' },
	{ "a/**/b/c/**/d", "a/b/b/c/d", 'f', '-' },
	{ "a/**/b/c/**/d", "a/b/x/c/d", 'f', '+' },
	{ "a/**/b/**/b", "a/b", 'f', '+' },
	{ "a/**/b/**/b", "a/b/b", 'f', '-' },
	{ "**/a/**/", "x/a/y", 'd', '-' },
	{ "**/a/**/", "x/a/y", 'f', '+' },
	{ "home/*/**/*.tmp", "home/u/x.tmp", 'f', '-' },
	{ "home/*/**/*.tmp", "home/x.tmp", 'f', '+' },
	/* characters */
	{ "[ab].c", "a.c", 'f', '-' },
	{ "[!ab].c", "a.c", 'f', '+' },
	{ "[^ab].c", "c.c", 'f', '-' },
	{ "[]x]", "]", 'f', '-' },
	{ "[a-c]1", "b1", 'f', '-' },
	{ "[[:digit:]]*", "7up", 'f', '-' },
	{ "[[:digit:]]*", "up7", 'f', '+' },
	{ "d\\[1\\]", "d[1]", 'f', '-' },
	{ "d\\[1\\]", "d1", 'f', '+' },
	{ "d[[]1]", "d[1]", 'f', '-' },
	{ "\\*", "*", 'f', '-' },
	{ "\\*", "a", 'f', '+' },
	{ "a\\\\b", "a\\b", 'f', '-' },
	{ "\xff*", "\xff\xfe", 'f', '-' },
	{ "*.log", "\xff.log", 'f', '-' },
	{ "?", "\xc3\xbc", 'f', '+' }, /* bytes: one character of UTF-8 may be more */
	{ "??", "\xc3\xbc", 'f', '-' },
	/* comments, blanks */
	{ "# *", "# x", 'f', '+' },
	{ "\\# *", "# x", 'f', '-' },
	{ "\n\n*.o\n", "a.o", 'f', '-' },
	{ " a", "a", 'f', '+' },
	{ " a", " a", 'f', '-' },
	{ "a ", "a", 'f', '+' },
	{ "a ", "a ", 'f', '-' },
	{ "[ ]", " ", 'f', '-' },
	/* "!": the last that matches counts */
	{ "*.log\n!keep.log", "var/keep.log", 'f', '+' },
	{ "*.log\n!keep.log", "var/x.log", 'f', '-' },
	{ "!keep.log\n*.log", "keep.log", 'f', '-' },
	{ "*.log\n!keep.log\n/var/keep.log", "var/keep.log", 'f', '-' },
	{ "*.log\n!keep.log\n/var/keep.log", "srv/keep.log", 'f', '+' },
	{ "/var/log\n!/var/log/keep", "var/log/keep", 'f', '-' }, /* too late */
	{ "/var/log/*\n!/var/log/keep", "var/log/keep", 'f', '+' },
	{ "/var/log/*\n!/var/log/keep", "var/log/x", 'f', '-' },
	{ "*\n!*/", "a", 'd', '+' },
	{ "*\n!*/", "a/b", 'f', '-' },
	{ "\\!x", "!x", 'f', '-' },
	{ "!x", "x", 'f', '+' },
	{ "*\n!!x", "!x", 'f', '+' },
	{ "*\n!#x", "#x", 'f', '+' },
	/* what a system needs stays, empty; elsewhere it is a name like any other */
	{ "tmp", "tmp", 'd', '0' },
	{ "tmp", "tmp/x", 'f', '-' },
	{ "tmp", "home/tmp", 'd', '-' },
	{ "/var/tmp/", "var/tmp", 'd', '0' },
	{ "*\n!/proc", "proc", 'd', '+' },
	/* the manual's examples that are not above */
	{ "/swapfile", "swapfile", 'f', '-' },
	{ "/swapfile", "srv/swapfile", 'f', '+' },
	{ ".cache/", "home/u/.cache/x", 'f', '-' },
	{ ".cache/", "home/u/.cache", 'f', '+' },
	{ "var/log/*.gz", "var/log/syslog.2.gz", 'f', '-' },
	{ "var/log/*.gz", "var/log/apt/term.log.1.gz", 'f', '+' },
	{ "/home/*/Downloads/", "home/u/Downloads", 'd', '-' },
	{ "/home/*/Downloads/", "home/u/x/Downloads", 'd', '+' },
	{ "/srv/**/*.iso", "srv/x.iso", 'f', '-' },
	{ "/srv/**/*.iso", "srv/a/b/x.iso", 'f', '-' },
	{ "/srv/**/*.iso", "mnt/srv/x.iso", 'f', '+' },
	{ "/var/spool/app/**", "var/spool/app", 'd', '+' },
	{ "/var/spool/app/**", "var/spool/app/x", 'd', '-' },
	{ "core.[0-9]*", "a/core.1234", 'f', '-' },
	{ "core.[0-9]*", "core.c", 'f', '+' },
	{ "/opt/data/*\n!/opt/data/keep", "opt/data/keep/x", 'f', '+' },
	{ "/opt/data/*\n!/opt/data/keep", "opt/data/x", 'd', '-' },
	{ "\\#*\\#", "home/u/#draft.txt#", 'f', '-' },
	{ "\\#*\\#", "#draft.txt", 'f', '+' },
};

static char result_of(enum exclude_verdict v)
{
	return v == EXCLUDE_NO ? '+' : v == EXCLUDE_ALL ? '-' : '0';
}

static void patterns_mean_what_the_manual_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct excludes *x = new_excludes();
		char result;

		add_patterns(x, rows[i].patterns);
		result = result_of(verdict(x, rows[i].path, rows[i].type == 'd'));
		if (result != rows[i].result)
			print_error("%s on %s gives %c\n", rows[i].patterns, rows[i].path, result);
		assert_int_equal(result, rows[i].result);
		excludes_free(x);
	}
}

static void patterns_without_meaning_are_refused(void **state)
{
	static const char *const pairs[][2] = {
		{ "/", "names nothing" },	   { "///", "names nothing" },
		{ "!", "names nothing" },	   { "!/", "names nothing" },
		{ "  ", "nothing but blanks" },	   { "! ", "nothing but blanks" },
		{ "./a", "\"..\" match nothing" }, { "a/../b", "match nothing" },
		{ "..", "match nothing" },	   { "a**", "must stand alone" },
		{ "**a/b", "must stand alone" },   { "a/***", "must stand alone" },
		{ "a\\", "escapes nothing" },	   { "a\\/b", "escapes nothing" },
		{ "[a", "without its" },	   { "[]", "without its" },
		{ "[a/b]", "without its" },	   { "x[[:nosuch:]]", "without its" },
		{ "[[.a.]]", "without its" },	   { "[\\", "without its" },
	};
	struct excludes *x = new_excludes();
	const struct exclude_use *uses;

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_int_equal(excludes_add_pattern(x, pairs[i][0], &err), -1);
		assert_says(ERR_USAGE, pairs[i][1]);
		assert_says(ERR_USAGE, "--exclude-glob");
	}
	assert_int_equal(excludes_uses(x, &uses), 0);
	excludes_free(x);
}

static void hostile_patterns_end_soon(void **state)
{
	struct excludes *x = new_excludes();
	char pattern[4096], *path = malloc(200001);

	(void)state;
	assert_non_null(path);
	for (size_t i = 0; i < 1000; i++)
		memcpy(pattern + i * 4, i % 2 ? "a/*/" : "**//", 4);
	memcpy(pattern + 4000, "b", 2);
	add_patterns(x, pattern);
	add_patterns(x, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b");
	for (size_t i = 0; i < 200000; i += 2)
		memcpy(path + i, "a/", 2);
	path[199999] = '\0';
	assert_int_equal(excludes_match(x, path, false, &(size_t){ 0 }), EXCLUDE_NO);
	memset(path, 'a', 255);
	path[255] = '\0';
	assert_int_equal(excludes_match(x, path, false, &(size_t){ 0 }), EXCLUDE_NO);
	memset(pattern, 'a', sizeof pattern);
	pattern[4095] = '\0';
	assert_int_equal(excludes_add_pattern(x, pattern, &err), 0);
	memset(path, 'a', 4096);
	path[4096] = '\0';
	assert_int_equal(excludes_add_pattern(x, path, &err), -1);
	assert_says(ERR_USAGE, "more than 4095 bytes");
	free(path);
	excludes_free(x);
}

static int add_file_of(struct excludes *x, const char *text, size_t len)
{
	autofree char *path = in_source("patterns");
	autoclose int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	return excludes_add_file(x, path, &err);
}

static void each_line_of_a_file_counts(void **state)
{
	static const char text[] = "# all of them\n\n*.o\n!keep.o\n/last without newline";
	struct excludes *x = new_excludes();
	const struct exclude_use *uses;

	(void)state;
	assert_int_equal(add_file_of(x, text, sizeof text - 1), 0);
	assert_int_equal(excludes_uses(x, &uses), 3);
	assert_string_equal(uses[0].text, "*.o");
	assert_string_equal(uses[2].text, "/last without newline");
	assert_true(is_left_out(x, "a.o"));
	assert_false(is_left_out(x, "keep.o"));
	assert_true(is_left_out(x, "last without newline"));
	assert_int_equal(add_file_of(x, "", 0), 0);
	assert_int_equal(excludes_uses(x, &uses), 3);
	excludes_free(x);
}

static void patterns_can_come_through_a_pipe(void **state)
{
	struct excludes *x = new_excludes();
	autofree char *path = NULL;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "*.o\n*.a", 7), 7);
	close(ends[1]);
	path = str_format("/proc/self/fd/%d", ends[0]);
	assert_int_equal(excludes_add_file(x, path, &err), 0);
	close(ends[0]);
	assert_true(is_left_out(x, "a.o"));
	assert_true(is_left_out(x, "a.a"));
	excludes_free(x);
}

static void a_file_of_patterns_without_end_is_refused(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	assert_int_equal(excludes_add_file(x, "/dev/zero", &err), -1);
	assert_says(ERR_USAGE, "--exclude-from: /dev/zero is longer than");
	excludes_free(x);
}

static void files_that_are_no_pattern_files_are_refused_by_line(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *words;
	} bad[] = {
		{ "a\nb\r\nc\n", 7, "patterns:2: the line ends in a carriage return" },
		{ "\r\n", 2, "patterns:1: the line ends in a carriage return" },
		{ "a\nb\0c\n", 6, "patterns:2: a NUL byte" },
		{ "\xef\xbb\xbf*.o\n", 7, "patterns:1: a byte order mark" },
		{ "ok\n\n[x\n", 7, "patterns:3: \"[x\": \"[\" without" },
	};
	struct excludes *x = new_excludes();
	char longer[5000];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(add_file_of(x, bad[i].text, bad[i].len), -1);
		assert_says(ERR_USAGE, bad[i].words);
	}
	memset(longer, 'a', sizeof longer);
	assert_int_equal(add_file_of(x, longer, sizeof longer), -1);
	assert_says(ERR_USAGE, "patterns:1: ");
	assert_says(ERR_USAGE, "more than 4095 bytes");
	assert_int_equal(excludes_add_file(x, "/nonexistent/patterns", &err), -1);
	assert_says(ERR_USAGE, "--exclude-from: ");
	excludes_free(x);
}

static void a_path_is_left_out_there_and_nowhere_else(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("a");
	make_directory("zz");
	make_directory("zz/a");
	add_below_source(x, "a");
	assert_int_equal(verdict(x, "a", true), EXCLUDE_ALL);
	assert_true(is_left_out(x, "a/x"));
	assert_false(is_left_out(x, "zz/a"));
	assert_false(is_left_out(x, "zz/a/y"));
	assert_false(is_left_out(x, "ab"));
	assert_false(is_left_out(x, "A"));
	excludes_free(x);
}

static void glob_characters_of_a_path_are_its_own(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("d[1]");
	make_directory("d1");
	make_file("*");
	make_file("!b");
	make_file("a\\b");
	add_below_source(x, "d[1]");
	add_below_source(x, "*");
	add_path(x, "!b");
	add_path(x, "a\\b");
	assert_true(is_left_out(x, "d[1]/secret"));
	assert_false(is_left_out(x, "d1/keep"));
	assert_true(is_left_out(x, "*"));
	assert_true(is_left_out(x, "!b"));
	assert_true(is_left_out(x, "a\\b"));
	assert_false(is_left_out(x, "ab"));
	excludes_free(x);
}

static void every_spelling_of_a_path_is_that_path(void **state)
{
	static const char *const spellings[] = { "d/e",	      "d/e/",	  "/d/e",   "//d//e//",
						 "./d/./e/.", "d/../d/e", "/./d/e", "d/e/../e" };

	(void)state;
	make_directory("d");
	make_directory("d/e");
	for (size_t i = 0; i < 2 * (sizeof spellings / sizeof *spellings); i++) {
		struct excludes *x = new_excludes();

		if (i % 2)
			add_path(x, spellings[i / 2]);
		else
			add_below_source(x, spellings[i / 2]);
		assert_true(is_left_out(x, "d/e"));
		assert_false(is_left_out(x, "d"));
		assert_false(is_left_out(x, "e"));
		excludes_free(x);
	}
}

static void a_path_is_read_from_the_current_directory_too(void **state)
{
	struct excludes *x = new_excludes();
	autofree char *sub = in_source("sub");
	autoclose int old = open(".", O_PATH | O_DIRECTORY);

	(void)state;
	make_directory("sub");
	make_file("sub/f");
	make_file("g");
	assert_int_equal(chdir(sub), 0);
	add_path(x, "f");
	add_path(x, "../g");
	assert_int_equal(fchdir(old), 0);
	assert_true(is_left_out(x, "sub/f"));
	assert_true(is_left_out(x, "g"));
	assert_false(is_left_out(x, "f"));
	excludes_free(x);
}

static void two_readings_that_both_exist_are_refused(void **state)
{
	struct excludes *x = new_excludes();
	autofree char *sub = in_source("sub");
	autoclose int old = open(".", O_PATH | O_DIRECTORY);
	int result;

	(void)state;
	make_directory("sub");
	make_file("sub/f");
	make_file("f");
	assert_int_equal(chdir(sub), 0);
	result = excludes_add_path(x, source, "f", &err);
	assert_int_equal(fchdir(old), 0);
	assert_int_equal(result, -1);
	assert_says(ERR_USAGE, "could mean /sub/f or /f");
	add_below_source(x, "sub/f");
	assert_true(is_left_out(x, "sub/f"));
	assert_false(is_left_out(x, "f"));
	excludes_free(x);
}

/* Of the tree's own directories; the last one, too. */
static void make_directories(const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		autofree char *above = strndup(path, (size_t)(slash - path));

		make_directory(above);
	}
	make_directory(path);
}

/* Also when the path has the source in front already. */
static void the_advice_for_two_readings_tells_them_apart(void **state)
{
	autofree char *text = in_source("f"), *advice = str_format("with /..%s in front", source);
	autofree char *again = str_format("%s/f", source + 1);
	autofree char *first = str_format("/..%s/f", source);
	autofree char *second = str_format("/..%s/%s", source, again);
	struct excludes *x = new_excludes();

	(void)state;
	make_directories(source + 1);
	make_file("f");
	make_file(again);
	assert_int_equal(excludes_add_path(x, source, text, &err), -1);
	assert_says(ERR_USAGE, "could mean /f or /");
	assert_says(ERR_USAGE, advice);
	add_path(x, first);
	assert_true(is_left_out(x, "f"));
	assert_false(is_left_out(x, again));
	excludes_free(x);

	x = new_excludes();
	add_path(x, second);
	assert_false(is_left_out(x, "f"));
	assert_true(is_left_out(x, again));
	excludes_free(x);
}

static void the_source_and_what_is_outside_are_refused(void **state)
{
	static const char *const itself[] = { "", ".", "/", "//", "/.", "d/.." };
	static const char *const outside[] = { "..", "../x", "d/../../x", "/../x", "nosuch/../x" };
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("d");
	for (size_t i = 0; i < sizeof itself / sizeof *itself; i++) {
		assert_int_equal(excludes_add_path(x, source, itself[i], &err), -1);
		assert_says(ERR_USAGE, "is the source itself");
	}
	assert_int_equal(excludes_add_path(x, source, source, &err), -1);
	assert_says(ERR_USAGE, "is the source itself");
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
		autofree char *full = in_source(outside[i]);

		assert_int_equal(excludes_add_path(x, source, outside[i], &err), -1);
		assert_says(ERR_USAGE, "leads out of");
		assert_int_equal(excludes_add_path(x, source, full, &err), -1);
		assert_says(ERR_USAGE, "leads out of");
	}
	excludes_free(x);
}

static void links_on_the_way_are_followed_inside_of_the_source(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("run");
	make_file("run/x");
	make_directory("var");
	make_link("/run", "var/run");	     /* as from the tree's own root */
	make_link("../../../run", "var/up"); /* ends at the tree's root */
	make_link("run/x", "link");
	make_link("loop", "loop");
	add_path(x, "var/run/x");
	assert_true(is_left_out(x, "run/x"));
	excludes_free(x);

	x = new_excludes();
	add_below_source(x, "var/up/x");
	assert_true(is_left_out(x, "run/x"));
	assert_false(is_left_out(x, "var/up"));
	excludes_free(x);

	x = new_excludes();
	add_path(x, "link"); /* the last one is meant itself */
	add_path(x, "var/run/");
	assert_true(is_left_out(x, "link"));
	assert_true(is_left_out(x, "var/run"));
	assert_false(is_left_out(x, "run/x"));
	assert_false(is_left_out(x, "run"));
	assert_int_equal(excludes_add_path(x, source, "loop/x", &err), -1);
	excludes_free(x);
}

static void no_path_is_looked_up_outside_of_the_source(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("etc");
	make_link("/etc", "host"); /* has a passwd on the host, none in the tree */
	add_path(x, "host/passwd");
	assert_int_equal(excludes_check_hits(x, &err), -1);
	assert_says(ERR_REFUSED, "host/passwd hits nothing");
	excludes_free(x);
}

static void a_source_reached_by_a_link_is_the_source(void **state)
{
	struct excludes *x = new_excludes();
	autofree char *way = str_format("%s-link", source), *inner = str_format("%s-d", source);
	autofree char *d = in_source("d"), *a = str_format("%s/d/e", way),
		      *b = str_format("%s/f", inner);

	(void)state;
	make_directory("d");
	make_file("d/e");
	make_file("d/f");
	assert_int_equal(symlink(source, way), 0);
	assert_int_equal(symlink(d, inner), 0);
	add_path(x, a);
	add_path(x, b);
	unlink(way);
	unlink(inner);
	assert_true(is_left_out(x, "d/e"));
	assert_true(is_left_out(x, "d/f"));
	excludes_free(x);
}

static void the_whole_machine_is_a_source_as_well(void **state)
{
	struct excludes *x = new_excludes();
	autofree char *f = in_source("f");

	(void)state;
	make_file("f");
	assert_int_equal(excludes_add_path(x, "/", f, &err), 0);
	assert_int_equal(excludes_add_path(x, "/", "/../proc/", &err), 0);
	assert_int_equal(excludes_add_path(x, "/", "/", &err), -1);
	assert_says(ERR_USAGE, "is the source itself");
	assert_true(is_left_out(x, f + 1));
	assert_int_equal(verdict(x, "proc", true), EXCLUDE_CONTENT);
	excludes_free(x);
}

static void what_comes_into_being_later_is_left_out(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	add_below_source(x, "later");
	add_path(x, "/relative/later/");
	assert_true(is_left_out(x, "later"));
	assert_true(is_left_out(x, "relative/later"));
	assert_int_equal(excludes_check_hits(x, &err), 0);
	excludes_free(x);
}

static void what_hits_nothing_is_refused_by_name(void **state)
{
	struct excludes *x = new_excludes();
	const struct exclude_use *uses;
	size_t which;

	(void)state;
	make_file("there");
	assert_int_equal(excludes_check_hits(x, &err), 0);
	add_path(x, "there");
	add_path(x, "nosuch/");
	assert_int_equal(excludes_match(x, "there", false, &which), EXCLUDE_ALL);
	assert_int_equal(which, 0);
	excludes_count(x, which, 1, 4096);
	excludes_count(x, which, 0, 1);
	assert_int_equal(excludes_check_hits(x, &err), -1);
	assert_says(ERR_REFUSED, "--exclude: nosuch/ hits nothing");
	assert_says(ERR_REFUSED, "-f");
	assert_int_equal(excludes_uses(x, &uses), 2);
	assert_string_equal(uses[0].text, "there");
	assert_true(uses[0].hits == 1 && uses[0].bytes == 4097 && uses[1].hits == 0);
	excludes_free(x);

	x = new_excludes();
	add_patterns(x, "*.o \n!x.o");
	assert_false(is_left_out(x, "a.o"));
	assert_int_equal(excludes_check_hits(x, &err), -1);
	assert_says(ERR_REFUSED, "--exclude-glob: \"*.o \" hits nothing");
	excludes_free(x);

	x = new_excludes();
	assert_int_equal(add_file_of(x, "\n*.o\n", 5), 0);
	assert_int_equal(excludes_check_hits(x, &err), -1);
	assert_says(ERR_REFUSED, "patterns:2: \"*.o\" hits nothing");
	excludes_free(x);
}

static void an_exclude_that_only_another_outdid_has_hit(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("home");
	make_file("home/secret");
	make_directory("tmp");
	make_file("tmp/x");
	assert_int_equal(excludes_add_defaults(x, &err), 0);
	add_path(x, "home");
	add_path(x, "home/");	    /* once more */
	add_path(x, "home/secret"); /* below it: nobody asks for it */
	add_path(x, "tmp/x");	    /* below a default */
	add_patterns(x, "*.o\n/build/*\n*.o");
	assert_int_equal(verdict(x, "home", true), EXCLUDE_ALL);
	assert_int_equal(verdict(x, "build/a.o", false), EXCLUDE_ALL);
	assert_int_equal(verdict(x, "tmp", true), EXCLUDE_CONTENT);
	assert_int_equal(excludes_check_hits(x, &err), 0);
	add_path(x, "home/nosuch"); /* there is no such thing, home or not */
	assert_int_equal(excludes_check_hits(x, &err), -1);
	assert_says(ERR_REFUSED, "home/nosuch hits nothing");
	excludes_free(x);
}

static void what_was_taken_back_has_been_there(void **state)
{
	struct excludes *x = new_excludes();
	const struct exclude_use *uses;

	(void)state;
	add_patterns(x, "/logs/*\n!l.log\n*.o");
	assert_false(is_left_out(x, "logs/l.log"));
	excludes_uses(x, &uses);
	assert_int_equal(uses[0].hits, 0);
	assert_false(excludes_is_idle(x, 0));
	assert_false(excludes_is_idle(x, 1));
	assert_int_equal(excludes_check_hits(x, &err), -1);
	assert_says(ERR_REFUSED, "\"*.o\" hits nothing, unless it lies below what is left out");
	excludes_free(x);
}

/* On a mount that is skipped, for one. */
static void what_exists_is_never_refused(void **state)
{
	struct excludes *x = new_excludes();

	(void)state;
	make_directory("m");
	make_file("m/top");
	add_path(x, "m/top");
	assert_int_equal(excludes_check_hits(x, &err), 0);
	add_path(x, "m/nosuch");
	assert_int_equal(excludes_check_hits(x, &err), -1);
	excludes_free(x);
}

static void defaults_empty_five_directories_and_nothing_else(void **state)
{
	static const char *const kept[] = { "home/u/proj/tmp",
					    "home/u/proj/tmp/keep",
					    "usr/src/linux/fs/proc",
					    "usr/src/linux/fs/proc/base.c",
					    "var/tmp",
					    "var/run",
					    "etc/ssl/certs/x.pem",
					    "lost+found",
					    "mnt",
					    "media" };
	static const char *const emptied[] = { "proc", "sys", "dev", "run", "tmp" };
	struct excludes *x = new_excludes();
	const struct exclude_use *uses;
	size_t which;

	(void)state;
	assert_int_equal(excludes_add_defaults(x, &err), 0);
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		assert_int_equal(verdict(x, kept[i], true), EXCLUDE_NO);
	assert_int_equal(excludes_uses(x, &uses), sizeof emptied / sizeof *emptied);
	for (size_t i = 0; i < sizeof emptied / sizeof *emptied; i++) {
		assert_int_equal(excludes_match(x, emptied[i], true, &which), EXCLUDE_CONTENT);
		assert_true(uses[which].is_default);
		assert_string_equal(uses[which].text + 1, emptied[i]);
		assert_int_equal(verdict(x, emptied[i], false), EXCLUDE_NO); /* a link there */
	}
	assert_int_equal(excludes_check_hits(x, &err), 0);
	excludes_free(x);
}

static void the_users_own_exclude_of_a_default_gets_the_hit(void **state)
{
	struct excludes *x = new_excludes();
	const struct exclude_use *uses;
	size_t which;

	(void)state;
	make_directory("tmp");
	make_directory("run");
	assert_int_equal(excludes_add_defaults(x, &err), 0);
	add_path(x, "tmp");
	add_patterns(x, "/run/\n!/tmp\n!/dev");
	excludes_uses(x, &uses);
	assert_int_equal(excludes_match(x, "tmp", true, &which), EXCLUDE_CONTENT);
	assert_string_equal(uses[which].text, "tmp");
	assert_int_equal(excludes_match(x, "run", true, &which), EXCLUDE_CONTENT);
	assert_string_equal(uses[which].text, "/run/");
	assert_int_equal(excludes_match(x, "dev", true, &which), EXCLUDE_CONTENT);
	assert_true(uses[which].is_default); /* "!" takes back patterns only */
	excludes_free(x);
}

static void thousands_of_paths_are_told_apart(void **state)
{
	struct excludes *x = new_excludes();
	char path[32];

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(path, sizeof path, "%u/x", i * 7919u % 5000u * 2u);
		add_path(x, path);
	}
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(path, sizeof path, "%u/x", i);
		assert_int_equal(is_left_out(x, path), i % 2 == 0);
	}
	assert_int_equal(excludes_check_hits(x, &err), 0);
	excludes_free(x);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_source, remove_source)
	const struct CMUnitTest tests[] = {
		TEST(patterns_mean_what_the_manual_says),
		TEST(patterns_without_meaning_are_refused),
		TEST(hostile_patterns_end_soon),
		TEST(each_line_of_a_file_counts),
		TEST(patterns_can_come_through_a_pipe),
		TEST(a_file_of_patterns_without_end_is_refused),
		TEST(files_that_are_no_pattern_files_are_refused_by_line),
		TEST(a_path_is_left_out_there_and_nowhere_else),
		TEST(glob_characters_of_a_path_are_its_own),
		TEST(every_spelling_of_a_path_is_that_path),
		TEST(a_path_is_read_from_the_current_directory_too),
		TEST(two_readings_that_both_exist_are_refused),
		TEST(the_advice_for_two_readings_tells_them_apart),
		TEST(the_source_and_what_is_outside_are_refused),
		TEST(links_on_the_way_are_followed_inside_of_the_source),
		TEST(no_path_is_looked_up_outside_of_the_source),
		TEST(a_source_reached_by_a_link_is_the_source),
		TEST(the_whole_machine_is_a_source_as_well),
		TEST(what_comes_into_being_later_is_left_out),
		TEST(what_hits_nothing_is_refused_by_name),
		TEST(an_exclude_that_only_another_outdid_has_hit),
		TEST(what_was_taken_back_has_been_there),
		TEST(what_exists_is_never_refused),
		TEST(defaults_empty_five_directories_and_nothing_else),
		TEST(the_users_own_exclude_of_a_default_gets_the_hit),
		TEST(thousands_of_paths_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
