/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_FOLDER_KIT_H
#define CCSNAP_TEST_FOLDER_KIT_H

/* A directory for each test, runs that make images in it, and looks at what
 * they left, for the tests of dest: include it once a program.
 */
#include "dest/dest.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* As a report of ours begins. */
#define REPORT(more) "{\n  \"schema\": \"ccsnap.report/" more

/* --- the system calls that change names, so that a test can end the process
 * before any of them, or take one away ----------------------------------------
 */
static int calls_left = -1; /* -1: no limit */
static int no_flock, no_renameat2, no_link;

static inline void count_call(void)
{
	if (calls_left == 0)
		_exit(99);
	if (calls_left > 0)
		calls_left--;
}

static inline int unsupported(int error)
{
	errno = error;
	return -1;
}

int renameat(int olddir, const char *oldpath, int newdir, const char *newpath)
{
	count_call();
	return (int)syscall(SYS_renameat2, olddir, oldpath, newdir, newpath, 0);
}

int renameat2(int olddir, const char *oldpath, int newdir, const char *newpath, unsigned flags)
{
	count_call();
	if (no_renameat2)
		return unsupported(EINVAL);
	return (int)syscall(SYS_renameat2, olddir, oldpath, newdir, newpath, flags);
}

int linkat(int olddir, const char *oldpath, int newdir, const char *newpath, int flags)
{
	count_call();
	if (no_link)
		return unsupported(EPERM);
	return (int)syscall(SYS_linkat, olddir, oldpath, newdir, newpath, flags);
}

int unlinkat(int dirfd, const char *path, int flags)
{
	count_call();
	return (int)syscall(SYS_unlinkat, dirfd, path, flags);
}

int fsync(int fd)
{
	count_call();
	return (int)syscall(SYS_fsync, fd);
}

int flock(int fd, int operation)
{
	if (no_flock)
		return unsupported(ENOLCK);
	return (int)syscall(SYS_flock, fd, operation);
}

/* --- kit --- */

static struct err err;
static char *dir; /* of one test */
static char where[PATH_MAX];

static inline int set_up(void **state)
{
	char template[] = "/tmp/ccsnap-test-folder.XXXXXX";

	(void)state;
	dir = strdup(mkdtemp(template));
	snprintf(where, sizeof where, "folder:%s", dir);
	calls_left = -1;
	no_flock = no_renameat2 = no_link = 0;
	return 0;
}

static inline int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	free(dir);
	return system(command);
}

enum { KEEP, OVER };

static inline struct dest *open_dest(const char *name, const char *suffix, int overwrite)
{
	struct dest_config cfg = {
		.where = where, .image_name = name, .suffix = suffix, .overwrite = overwrite
	};

	return dest_open(&cfg, &err);
}

static inline int begin(struct dest **dest, const char *name, const char *suffix, int overwrite)
{
	int fd;

	*dest = open_dest(name, suffix, overwrite);
	if (!*dest || (*dest)->ops->reserve(*dest, &fd, &err) < 0)
		return -1;
	return fd;
}

static inline int publish(struct dest *dest, int fd, const char *content)
{
	struct image_info info = { .format = strdup("raw"), .compression = strdup("none") };
	int rc;

	info.created_at = strdup("2026-01-31T23:59:59Z");
	info.size = strlen(content);
	assert_int_equal(io_pwrite(fd, content, strlen(content), 0), 0);
	assert_int_equal(hash_file(fd, "image", info.size, &info.digests, NULL, NULL, &err), 0);
	rc = dest->ops->publish(dest, &info, &err);
	if (rc == 0 && dest->ops->attach_report)
		rc = dest->ops->attach_report(dest, REPORT("{}"), &err);
	image_info_free(&info);
	return rc;
}

static inline int make(const char *name, const char *suffix, const char *content, int overwrite)
{
	struct dest *dest;
	int fd = begin(&dest, name, suffix, overwrite), rc = -1;

	if (fd >= 0)
		rc = publish(dest, fd, content);
	dest_close(dest);
	return rc;
}

static inline void assert_refused(int rc, enum err_kind kind, const char *words)
{
	assert_int_equal(rc, -1);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_int_equal(err.kind, kind);
}

static inline const char *path_of(const char *file)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", dir, file);
	return path;
}

static inline void put(const char *file, const char *content)
{
	int fd = open(path_of(file), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite(fd, content, strlen(content), 0), 0);
	close(fd);
}

static inline int is_there(const char *file)
{
	struct stat st;

	return lstat(path_of(file), &st) == 0;
}

static inline void assert_content(const char *file, const char *content)
{
	autofree char *text = io_read_file(AT_FDCWD, path_of(file), 1000, NULL, &err);

	assert_non_null(text);
	assert_string_equal(text, content);
}

static inline int count_entries(void)
{
	DIR *entries = opendir(dir);
	int n = -2; /* . and .. */

	while (readdir(entries))
		n++;
	closedir(entries);
	return n;
}

static inline void empty_directory(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", dir, dir);
	assert_int_equal(system(command), 0);
}

/* For lists of all. */
static const struct image_filter everything;

/* How many images a list shows; each is what its manifest says. */
static inline int count_listed(void)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_list list;
	struct digests d;
	int n;

	assert_int_equal(dest->ops->list(dest, &everything, &list, &err), 0);
	for (size_t i = 0; i < list.len; i++) {
		int fd = open(path_of(list.at[i].file), O_RDONLY);

		assert_true(fd >= 0);
		assert_int_equal(hash_file(fd, "x", list.at[i].size, &d, NULL, NULL, &err), 0);
		assert_string_equal(d.sha512, list.at[i].digests.sha512);
		close(fd);
	}
	n = (int)list.len;
	image_list_free(&list);
	dest_close(dest);
	return n;
}

static inline int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* One run that ends before the n-th system call that changes a name or syncs;
 * whether it got to the end.
 */
static inline int run_until_call(int n, const char *suffix, const char *content, int overwrite)
{
	pid_t pid = fork();

	if (pid == 0) {
		calls_left = n;
		_exit(make("a", suffix, content, overwrite) < 0);
	}
	return wait_for(pid) != 99;
}

/* The order of a real run; what is not ours to take stays refused. */
static inline int tidy_and_check(const char *suffix)
{
	struct dest *dest = open_dest("a", suffix, KEEP);
	int rc;

	dest->ops->tidy(dest);
	rc = dest->ops->check(dest, 0, &err);
	dest_close(dest);
	return rc;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
