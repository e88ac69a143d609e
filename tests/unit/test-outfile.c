// SPDX-License-Identifier: Apache-2.0
#include "folder-kit.h"

#include "base/log.h"
#include "dest/outfile.h"
#include "dest/outfile_report.h"

/* --- a plain file --- */

static void a_plain_file_is_made_like_an_image_but_alone(void **state)
{
	(void)state;
	snprintf(where, sizeof where, "file:%s/out", dir);
	assert_int_equal(make(NULL, NULL, "text", KEEP), 0);
	assert_content("out", "text");
	assert_int_equal(count_entries(), 1);
	assert_refused(make(NULL, NULL, "more", KEEP), ERR_REFUSED, "exists; use --overwrite");
	assert_int_equal(make(NULL, NULL, "more", OVER), 0);
	assert_content("out", "more");
	assert_int_equal(unlink(path_of("out")), 0);
	assert_int_equal(symlink("victim", path_of("out")), 0);
	assert_refused(make(NULL, NULL, "more", OVER), ERR_REFUSED, "not a regular file");
	strcpy(where, "file:/dev/null");
	assert_refused(make(NULL, NULL, "more", OVER), ERR_REFUSED, "not a regular file");
	snprintf(where, sizeof where, "file:%s/nosuch/out", dir);
	assert_refused(make(NULL, NULL, "more", KEEP), ERR_REFUSED, "does not exist; create it");
	assert_int_equal(count_entries(), 1);
}

static void a_path_that_names_no_file_is_refused(void **state)
{
	static const struct {
		const char *where, *words;
	} bad[] = {
		{ "file:", "does not name a file" },
		{ "file:/", "does not name a file" },
		{ "file:dir/", "does not name a file" },
		{ "file:.", "does not name a file" },
		{ "file:a/..", "does not name a file" },
		{ "file:x/.a.abcdefgh.ccsnap-tmp", "choose another name" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		strcpy(where, bad[i].where);
		assert_null(open_dest(NULL, NULL, KEEP));
		assert_refused(-1, ERR_USAGE, bad[i].words);
		assert_non_null(strstr(err.text, "--output"));
	}
	memset(where, 'x', 5 + NAME_MAX + 1);
	where[5 + NAME_MAX + 1] = '\0';
	memcpy(where, "file:", 5);
	assert_null(open_dest(NULL, NULL, KEEP));
	assert_refused(-1, ERR_USAGE, "at most 255 bytes");
	assert_non_null(strstr(err.text, "--output"));
}

/* --- a directory that goes away --- */

static void a_directory_that_was_moved_gets_nothing(void **state)
{
	static const char *const wheres[] = { "folder:%s/d", "file:%s/d/out" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		for (int again = 0; again < 2; again++) {
			autofree char *old = NULL;
			struct dest *dest;
			int fd;

			assert_int_equal(mkdir(path_of("d"), 0700), 0);
			snprintf(where, sizeof where, wheres[i], dir);
			fd = begin(&dest, i ? NULL : "a", i ? NULL : ".raw", KEEP);
			assert_true(fd >= 0);
			old = strdup(path_of("d"));
			assert_int_equal(rename(old, path_of("moved")), 0);
			if (again)
				assert_int_equal(mkdir(path_of("d"), 0700), 0);
			assert_refused(publish(dest, fd, "text"), ERR_FAILED,
				       "/d was moved, replaced or unmounted meanwhile");
			dest_close(dest);
			/* empty, both: nothing was published, nothing left */
			assert_int_equal(rmdir(path_of("moved")), 0);
			assert_int_equal(rmdir(path_of("d")), again ? 0 : -1);
		}
	}
}

/* --- a text at a path --- */

static void texts_are_replaced_whole_and_private(void **state)
{
	autofree char *path = strdup(path_of("f"));
	mode_t before = umask(0);
	struct stat st;
	size_t len;
	char *text;

	(void)state;
	assert_int_equal(outfile_replace_path(path, REPORT("one\n"), &err), 0);
	assert_int_equal(outfile_replace_path(path, REPORT("two\n"), &err), 0);
	umask(before);
	text = io_read_file(AT_FDCWD, path, 100, &len, &err);
	assert_string_equal(text, REPORT("two\n"));
	assert_int_equal(len, strlen(text));
	free(text);
	assert_null(io_read_file(AT_FDCWD, path, 3, NULL, &err));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(count_entries(), 1);
}

static void a_text_goes_to_long_and_to_short_paths(void **state)
{
	char name[NAME_MAX + 1], there[PATH_MAX];

	(void)state;
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	assert_int_equal(outfile_replace_path(path_of(name), "text", &err), 0);
	assert_content(name, "text");
	assert_non_null(getcwd(there, sizeof there));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(outfile_replace_path("f", "text", &err), 0);
	assert_int_equal(chdir(there), 0);
	assert_content("f", "text");
	assert_int_equal(count_entries(), 2);
}

static void a_text_is_put_only_where_a_file_of_ours_can_be(void **state)
{
	static const char *const bad[] = { "link", "fifo", ".",	       "..",
					   "",	   "d",	   "nosuch/f", ".f.abcdefgh.ccsnap-tmp" };

	(void)state;
	put("victim", "precious");
	assert_int_equal(symlink("victim", path_of("link")), 0);
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_int_equal(mkdir(path_of("d"), 0700), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(outfile_replace_path(path_of(bad[i]), "x", &err), -1);
		assert_int_equal(err.kind, ERR_FAILED);
	}
	assert_content("victim", "precious");
	assert_int_equal(count_entries(), 4);
}

static void a_report_replaces_nothing_but_reports(void **state)
{
	static const char *const others[] = { "precious", "{\n  \"schema\": \"other/1\"}", "{" };
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		put("f", others[i]);
		assert_refused(outfile_check_report(fd, dir, "f", &err), ERR_REFUSED,
			       "no report of ccsnap");
		assert_refused(outfile_replace_path(path_of("f"), REPORT("new"), &err), ERR_FAILED,
			       "no report of ccsnap");
		assert_content("f", others[i]);
	}
	put("a.report.json", "precious");
	assert_refused(make("a", ".raw", "new", OVER), ERR_REFUSED, "no report of ccsnap");
	assert_content("a.report.json", "precious");
	put("f", "");
	assert_int_equal(outfile_replace_path(path_of("f"), REPORT("new"), &err), 0);
	close(fd);
}

static void killed_anywhere_the_old_text_or_the_new_one_is_there(void **state)
{
	int n, code = 99;

	(void)state;
	for (n = 0; code == 99; n++) {
		pid_t pid;

		assert_int_equal(outfile_replace_path(path_of("f"), REPORT("old"), &err), 0);
		/* and what the run before left is gone */
		assert_int_equal(count_entries(), 1);
		pid = fork();
		if (pid == 0) {
			calls_left = n;
			_exit(outfile_replace_path(path_of("f"), REPORT("new"), &err) < 0);
		}
		code = wait_for(pid);
		if (n < 2) /* the file's fsync, the rename */
			assert_content("f", REPORT("old"));
		else
			assert_content("f", REPORT("new"));
	}
	assert_int_equal(code, 0);
	assert_int_equal(n, 4); /* ended before: fsync, rename, fsync of the directory */
}

static void a_text_sweeps_what_its_own_name_left_and_no_more(void **state)
{
	(void)state;
	put(".f.abcdefgh.ccsnap-tmp", "left");
	put(".other.abcdefgh.ccsnap-tmp", "left");
	assert_int_equal(outfile_replace_path(path_of("f"), "text", &err), 0);
	assert_true(is_there(".other.abcdefgh.ccsnap-tmp"));
	assert_int_equal(count_entries(), 2);
}

/* --- sources --- */

/* Held open for good, so that no other file of these tests can get its number. */
static void protect(const char *file)
{
	struct stat st;

	assert_int_equal(fstat(open(path_of(file), O_RDONLY), &st), 0);
	io_protect(&st);
}

static void put_source(const char *file)
{
	put(file, "source");
	protect(file);
}

static void link_source(const char *file, const char *other)
{
	autofree char *from = strdup(path_of(file));

	assert_int_equal(link(from, path_of(other)), 0);
}

static void a_source_in_the_store_is_never_replaced(void **state)
{
	static const char *const suffixes[] = { ".raw", ".qcow2" };

	(void)state;
	assert_int_equal(make("a", ".raw", "source", KEEP), 0);
	protect("a.raw");
	for (int i = 0; i < 2; i++)
		assert_refused(make("a", suffixes[i], "new", OVER), ERR_REFUSED,
			       "a.raw is the source; it is never replaced");
	assert_content("a.raw", "source");
	assert_int_equal(count_listed(), 1);
	assert_int_equal(count_entries(), 3);
	/* no image of the store: just a file beside */
	empty_directory();
	put_source("a.raw");
	assert_refused(make("a", ".raw", "new", OVER), ERR_REFUSED, "a.raw is the source");
	for (int i = 0; i < 2; i++)
		assert_int_equal(make("a", ".qcow2", "new", OVER), 0);
	assert_content("a.raw", "source");
}

static void a_hard_link_of_a_source_is_never_replaced(void **state)
{
	static const char *const names[] = { "a.raw", "a.manifest.json", "a.report.json" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		put_source("source");
		link_source("source", names[i]);
		assert_refused(make("a", ".raw", "new", OVER), ERR_REFUSED, "is the source");
		assert_refused(outfile_replace_path(path_of(names[i]), "new", &err), ERR_FAILED,
			       "is the source");
		assert_content(names[i], "source");
		assert_int_equal(count_entries(), 2);
		empty_directory();
	}
}

/* The run has looked at the names long ago. */
static void a_source_that_gets_a_name_of_ours_meanwhile_stays(void **state)
{
	static const char *const names[] = { "a.raw", "a.qcow2", "a.manifest.json",
					     "a.report.json" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct dest *dest;
		int fd;

		assert_int_equal(make("a", ".raw", "old", KEEP), 0);
		put_source("source");
		fd = begin(&dest, "a", ".qcow2", OVER);
		assert_true(fd >= 0);
		unlink(path_of(names[i]));
		link_source("source", names[i]);
		assert_refused(publish(dest, fd, "new"), ERR_REFUSED, "is the source");
		dest_close(dest);
		assert_content(names[i], "source");
		assert_true(is_there("a.raw"));
		empty_directory();
	}
}

/* A run was killed after its image got its name, and before the manifest: what
 * settling would remove or replace now is a source.
 */
static void a_source_is_not_lost_when_a_killed_run_is_finished(void **state)
{
	static const char *const names[] = { "a.raw", "a.manifest.json", "a.report.json" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (int n = 0, done = 0; !done; n++) {
			assert_int_equal(make("a", ".raw", "old", KEEP), 0);
			done = run_until_call(n, ".qcow2", "new", OVER);
			put_source("source");
			unlink(path_of(names[i]));
			link_source("source", names[i]);
			tidy_and_check(".qcow2");
			make("a", ".qcow2", "third", OVER);
			make("a", ".raw", "fourth", OVER);
			assert_content(names[i], "source");
			empty_directory();
		}
	}
}

static void a_source_among_the_leftovers_is_not_swept(void **state)
{
	static const char *const names[] = { ".a.abcdefgh.ccsnap-tmp", ".b.abcdefgh.ccsnap-tmp",
					     ".a.bbbbbbbb.ccsnap-note", ".a.cccccccc.ccsnap-note" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		put_source(names[i]);
	put(".a.cccccccc.ccsnap-tmp", "left");
	assert_int_equal(tidy_and_check(".raw"), 0);
	assert_int_equal(make("a", ".raw", "new", KEEP), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_content(names[i], "source");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plain_file_is_made_like_an_image_but_alone),
		TEST(a_path_that_names_no_file_is_refused),
		TEST(a_directory_that_was_moved_gets_nothing),
		TEST(texts_are_replaced_whole_and_private),
		TEST(a_text_goes_to_long_and_to_short_paths),
		TEST(a_text_is_put_only_where_a_file_of_ours_can_be),
		TEST(a_report_replaces_nothing_but_reports),
		TEST(killed_anywhere_the_old_text_or_the_new_one_is_there),
		TEST(a_text_sweeps_what_its_own_name_left_and_no_more),
		TEST(a_source_in_the_store_is_never_replaced),
		TEST(a_hard_link_of_a_source_is_never_replaced),
		TEST(a_source_that_gets_a_name_of_ours_meanwhile_stays),
		TEST(a_source_is_not_lost_when_a_killed_run_is_finished),
		TEST(a_source_among_the_leftovers_is_not_swept),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
