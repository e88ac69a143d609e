// SPDX-License-Identifier: Apache-2.0
#include "dest/workfile.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "dest/dest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;
static char *dir;
static struct dest scratch;
static int no_tmpfile;

/* Some filesystems have no files without a name. */
int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static int set_up(void **state)
{
	char template[] = "/tmp/ccsnap-test-workfile.XXXXXX";

	(void)state;
	dir = strdup(mkdtemp(template));
	no_tmpfile = 0;
	unsetenv("TMPDIR");
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	free(dir);
	free(scratch.path);
	memset(&scratch, 0, sizeof scratch);
	return system(command);
}

static int count_entries(void)
{
	autodir DIR *entries = opendir(dir);
	int n = -2; /* . and .. */

	while (readdir(entries))
		n++;
	return n;
}

static struct workfile *new_in(const char *work_dir)
{
	const struct dest_config cfg = { .image_name = "mine", .work_dir = work_dir };
	struct workfile *w;

	assert_int_equal(workfile_open(&scratch, &cfg, &w, &err), 0);
	return w;
}

static struct workfile *new_kept(const char *path, bool overwrite)
{
	const struct dest_config cfg = { .image_name = "mine",
					 .keep_path = path,
					 .overwrite = overwrite };
	struct workfile *w;

	free(scratch.path);
	assert_int_equal(workfile_open(&scratch, &cfg, &w, &err), 0);
	return w;
}

static void assert_has_no_name(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(io_pwrite(fd, "x", 1, 0), 0);
	assert_int_equal(count_entries(), 0);
}

static void the_file_has_no_name_at_any_time(void **state)
{
	autoworkfile struct workfile *w = new_in(dir);
	mode_t before = umask(0);
	int fd;

	(void)state;
	assert_int_equal(workfile_reserve(w, &fd, &err), 0);
	umask(before);
	assert_has_no_name(fd);
	assert_null(scratch.path);
	assert_int_equal(workfile_keep(w, &scratch, &err), 0);
	assert_int_equal(workfile_hint(&scratch, NULL, NULL, &err), -1);
	assert_false(scratch.receipt.is_kept);
	assert_int_equal(count_entries(), 0);
}

static void it_has_none_where_the_filesystem_knows_no_such_files(void **state)
{
	int fd;

	(void)state;
	no_tmpfile = 1;
	assert_int_equal(workfile_unnamed(dir, &fd, &err), 0);
	assert_has_no_name(fd);
	close(fd);
}

static void without_a_work_directory_it_is_in_TMPDIR(void **state)
{
	char link[64];
	char target[256] = "";
	int fd;

	(void)state;
	setenv("TMPDIR", dir, 1);
	assert_int_equal(workfile_unnamed(NULL, &fd, &err), 0);
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	assert_true(readlink(link, target, sizeof target - 1) > 0);
	assert_true(str_starts(target, dir));
	close(fd);
}

static void a_missing_work_directory_is_refused(void **state)
{
	autofree char *missing = str_format("%s/no", dir);
	autoworkfile struct workfile *w = new_in(missing);
	int fd;

	(void)state;
	assert_int_equal(workfile_check(w, &scratch, 1, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_non_null(strstr(err.text, "/no (see --work-dir)"));
	assert_int_equal(workfile_reserve(w, &fd, &err), -1);
	assert_int_equal(workfile_unnamed(missing, &fd, &err), -1);
}

static void too_little_room_is_refused_and_the_room_told(void **state)
{
	autoworkfile struct workfile *w = new_in(dir);

	(void)state;
	assert_int_equal(workfile_check(w, &scratch, 1, &err), 0);
	assert_true(scratch.free_known && scratch.free_bytes > 1);
	if (scratch.free_bytes == UINT64_MAX)
		skip();
	assert_int_equal(workfile_check(w, &scratch, UINT64_MAX, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(count_entries(), 0);
}

static void a_file_to_be_kept_appears_when_it_is_kept(void **state)
{
	autofree char *path = str_format("%s/out", dir);
	autoworkfile struct workfile *w = new_kept(path, false);
	autofree char *text = NULL;
	int fd;

	(void)state;
	workfile_tidy(w);
	assert_int_equal(workfile_check(w, &scratch, 1, &err), 0);
	assert_true(scratch.free_known);
	assert_int_equal(workfile_reserve(w, &fd, &err), 0);
	assert_int_equal(io_pwrite(fd, "whole", 5, 0), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_string_equal(scratch.path, path);
	assert_int_equal(workfile_keep(w, &scratch, &err), 0);
	assert_true(scratch.receipt.is_kept);
	text = io_read_file(AT_FDCWD, path, 10, NULL, &err);
	assert_string_equal(text, "whole");
	assert_int_equal(count_entries(), 1);
}

static void what_is_not_kept_is_gone(void **state)
{
	autofree char *path = str_format("%s/out", dir);
	struct workfile *w = new_kept(path, false);
	int fd;

	(void)state;
	assert_int_equal(workfile_reserve(w, &fd, &err), 0);
	assert_int_equal(count_entries(), 1);
	workfile_free(w);
	assert_int_equal(count_entries(), 0);
}

static void an_adopted_file_needs_nothing_and_stays_the_callers(void **state)
{
	struct workfile *w = new_in("/nonexistent");
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	(void)state;
	workfile_adopt(w, fd);
	assert_int_equal(workfile_check(w, &scratch, UINT64_MAX, &err), 0);
	assert_true(scratch.free_known);
	assert_int_equal(workfile_fd(w), fd);
	assert_int_equal(workfile_keep(w, &scratch, &err), 0);
	workfile_free(w);
	assert_int_equal(close(fd), 0);
}

static void an_existing_file_is_kept_unless_it_may_be_replaced(void **state)
{
	autofree char *path = str_format("%s/out", dir);
	autoworkfile struct workfile *w = new_kept(path, false), *over = new_kept(path, true);

	(void)state;
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(workfile_check(w, &scratch, 1, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(workfile_check(over, &scratch, 1, &err), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_file_has_no_name_at_any_time),
		TEST(it_has_none_where_the_filesystem_knows_no_such_files),
		TEST(without_a_work_directory_it_is_in_TMPDIR),
		TEST(a_missing_work_directory_is_refused),
		TEST(too_little_room_is_refused_and_the_room_told),
		TEST(a_file_to_be_kept_appears_when_it_is_kept),
		TEST(what_is_not_kept_is_gone),
		TEST(an_adopted_file_needs_nothing_and_stays_the_callers),
		TEST(an_existing_file_is_kept_unless_it_may_be_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
