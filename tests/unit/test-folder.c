// SPDX-License-Identifier: Apache-2.0
#include "dest/dest.h"

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

/* --- the system calls that change names, so that a test can end the process
 * before any of them, or take one away ----------------------------------------
 */
static int calls_left = -1; /* -1: no limit */
static int no_flock, no_renameat2, no_link;

static void count_call(void)
{
	if (calls_left == 0)
		_exit(99);
	if (calls_left > 0)
		calls_left--;
}

static int unsupported(int error)
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

static int set_up(void **state)
{
	char template[] = "/tmp/ccsnap-test-folder.XXXXXX";

	(void)state;
	dir = strdup(mkdtemp(template));
	snprintf(where, sizeof where, "folder:%s", dir);
	calls_left = -1;
	no_flock = no_renameat2 = no_link = 0;
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	free(dir);
	return system(command);
}

enum { KEEP, OVER };

static struct dest *open_dest(const char *name, const char *suffix, int overwrite)
{
	struct dest_config cfg = {
		.where = where, .image_name = name, .suffix = suffix, .overwrite = overwrite
	};

	return dest_open(&cfg, &err);
}

static int begin(struct dest **dest, const char *name, const char *suffix, int overwrite)
{
	int fd;

	*dest = open_dest(name, suffix, overwrite);
	if (!*dest || (*dest)->ops->reserve(*dest, &fd, &err) < 0)
		return -1;
	return fd;
}

static int publish(struct dest *dest, int fd, const char *content)
{
	struct image_info info = { .format = strdup("raw"), .compression = strdup("none") };
	int rc;

	info.created_at = strdup("2026-01-31T23:59:59Z");
	info.size = strlen(content);
	assert_int_equal(io_pwrite(fd, content, strlen(content), 0), 0);
	assert_int_equal(hash_file(fd, "image", info.size, &info.digests, NULL, NULL, &err), 0);
	rc = dest->ops->publish(dest, &info, &err);
	if (rc == 0 && dest->ops->attach_report)
		rc = dest->ops->attach_report(dest, "{}\n", &err);
	image_info_free(&info);
	return rc;
}

static int make(const char *name, const char *suffix, const char *content, int overwrite)
{
	struct dest *dest;
	int fd = begin(&dest, name, suffix, overwrite), rc = -1;

	if (fd >= 0)
		rc = publish(dest, fd, content);
	dest_close(dest);
	return rc;
}

static void assert_refused(int rc, enum err_kind kind, const char *words)
{
	assert_int_equal(rc, -1);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_int_equal(err.kind, kind);
}

static const char *path_of(const char *file)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", dir, file);
	return path;
}

static void put(const char *file, const char *content)
{
	int fd = open(path_of(file), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite(fd, content, strlen(content), 0), 0);
	close(fd);
}

static int is_there(const char *file)
{
	struct stat st;

	return lstat(path_of(file), &st) == 0;
}

static void assert_content(const char *file, const char *content)
{
	autofree char *text = io_read_file(AT_FDCWD, path_of(file), 1000, NULL, &err);

	assert_non_null(text);
	assert_string_equal(text, content);
}

static int count_entries(void)
{
	DIR *entries = opendir(dir);
	int n = -2; /* . and .. */

	while (readdir(entries))
		n++;
	closedir(entries);
	return n;
}

static void empty_directory(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", dir, dir);
	assert_int_equal(system(command), 0);
}

/* How many images a list shows; each is what its manifest says. */
static int count_listed(void)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_list list;
	struct digests d;
	int n;

	assert_int_equal(dest->ops->list(dest, &list, &err), 0);
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

static int warnings; /* see count_warning */

static void count_warning(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
	warnings++;
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* One run that ends before the n-th system call that changes a name or syncs;
 * whether it got to the end.
 */
static int run_until_call(int n, const char *suffix, const char *content, int overwrite)
{
	pid_t pid = fork();

	if (pid == 0) {
		calls_left = n;
		_exit(make("a", suffix, content, overwrite) < 0);
	}
	return wait_for(pid) != 99;
}

/* --- tests --- */

static void image_manifest_and_report_are_private_whatever_the_umask(void **state)
{
	static const char *const files[] = { "a.raw", "a.manifest.json", "a.report.json" };
	mode_t before = umask(0);
	struct stat st;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	umask(before);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stat(path_of(files[i]), &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
	}
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
	assert_content("a.raw", "text");
}

static void closing_without_publishing_leaves_nothing(void **state)
{
	struct dest *dest;

	(void)state;
	assert_true(begin(&dest, "a", ".raw", KEEP) >= 0);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(count_listed(), 0);
	dest_close(dest);
	assert_int_equal(count_entries(), 0);
}

static void existing_names_are_refused_without_overwrite(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);

	(void)state;
	assert_int_equal(dest->ops->check(dest, 100, &err), 0);
	assert_true(dest->free_bytes > 100);
	assert_int_equal(make("a", ".raw", "old", KEEP), 0);
	assert_refused(dest->ops->check(dest, 100, &err), ERR_REFUSED, "/a.raw exists; use --over");
	assert_refused(make("a", ".raw", "new", KEEP), ERR_REFUSED, "/a.raw exists; use --over");
	dest_close(dest);
	assert_content("a.raw", "old");
	assert_int_equal(make("a", ".raw", "newer", OVER), 0);
	assert_content("a.raw", "newer");
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
}

static void a_name_is_taken_in_every_format(void **state)
{
	struct dest *dest = open_dest("a", ".qcow2", KEEP);

	(void)state;
	assert_int_equal(make("a", ".raw", "old", KEEP), 0);
	assert_refused(dest->ops->check(dest, 0, &err), ERR_REFUSED, "/a.raw exists; use --over");
	dest_close(dest);
	assert_refused(make("a", ".qcow2", "new", KEEP), ERR_REFUSED, "/a.raw exists");
	assert_int_equal(make("a", ".qcow2", "new", OVER), 0);
	assert_false(is_there("a.raw"));
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
}

static void what_comes_into_being_meanwhile_is_not_replaced(void **state)
{
	struct dest *dest;
	int fd = begin(&dest, "a", ".raw", KEEP);

	(void)state;
	put("a.raw", "foreign");
	assert_refused(publish(dest, fd, "ours"), ERR_REFUSED, "a.raw");
	dest_close(dest);
	assert_content("a.raw", "foreign");
	assert_int_equal(count_entries(), 1);
}

static void what_is_no_regular_file_is_never_replaced(void **state)
{
	static const char *const files[] = { "a.raw", "a.manifest.json", "a.report.json" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int kind = 0; kind < 4; kind++) {
			const char *path = path_of(files[i]);

			if (kind == 0)
				assert_int_equal(symlink("/nosuch", path), 0);
			else if (kind == 1)
				assert_int_equal(mkfifo(path, 0600), 0);
			else if (kind == 2)
				assert_int_equal(mkdir(path, 0700), 0);
			else if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0)
				continue; /* not root */
			assert_refused(make("a", ".raw", "x", OVER), ERR_REFUSED,
				       "is not a regular file; it is never replaced");
			assert_int_equal(count_entries(), 1);
			assert_int_equal(remove(path_of(files[i])), 0);
		}
	}
}

static void a_manifest_without_its_image_is_debris(void **state)
{
	(void)state;
	assert_int_equal(make("a", ".raw", "old", KEEP), 0);
	assert_int_equal(unlink(path_of("a.raw")), 0);
	assert_int_equal(count_listed(), 0);
	assert_int_equal(make("a", ".qcow2", "new", KEEP), 0);
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
}

static void a_damaged_manifest_is_replaced_only_when_asked(void **state)
{
	(void)state;
	put("a.manifest.json", "{");
	put("b.manifest.json", "{}");
	assert_int_equal(count_listed(), 0);
	assert_refused(make("a", ".raw", "x", KEEP), ERR_REFUSED,
		       "remove a.manifest.json or use --overwrite");
	assert_int_equal(make("a", ".raw", "x", OVER), 0);
	assert_int_equal(count_listed(), 1);
}

static void images_of_another_size_are_not_listed(void **state)
{
	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	put("a.raw", "longer text");
	assert_int_equal(count_listed(), 0);
}

/* Ends a run between every two steps, and lists. */
static void a_list_during_a_publish_does_not_warn(void **state)
{
	int n = 0, done;

	(void)state;
	log_set_sink(count_warning, NULL);
	warnings = 0;
	do {
		done = run_until_call(n++, ".raw", "text", KEEP);
		assert_int_equal(count_listed(), is_there("a.raw"));
		empty_directory();
	} while (!done);
	assert_int_equal(warnings, 0);
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	put("a.raw", "longer text");
	assert_int_equal(count_listed(), 0);
	assert_int_equal(warnings, 1);
	assert_int_equal(unlink(path_of("a.raw")), 0);
	assert_int_equal(symlink("a.report.json", path_of("a.raw")), 0);
	assert_int_equal(count_listed(), 0);
	assert_int_equal(warnings, 2);
	log_set_sink(NULL, NULL);
}

static void a_manifest_that_was_renamed_is_not_believed(void **state)
{
	autofree char *from = NULL;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	from = strdup(path_of("a.manifest.json"));
	assert_int_equal(rename(from, path_of("b.manifest.json")), 0);
	put("b.raw", "text");
	assert_int_equal(count_listed(), 0);
}

static void lists_are_sorted_by_time_then_name(void **state)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_list list;

	(void)state;
	assert_int_equal(make("b", ".raw", "1", KEEP), 0);
	assert_int_equal(make("c", ".raw", "2", KEEP), 0);
	assert_int_equal(make("a", ".raw", "3", KEEP), 0);
	assert_int_equal(dest->ops->list(dest, &list, &err), 0);
	assert_int_equal(list.len, 3);
	assert_string_equal(list.at[0].name, "a");
	assert_string_equal(list.at[2].name, "c");
	image_list_free(&list);
	dest_close(dest);
}

static void names_are_bytes(void **state)
{
	static char longest[NAME_MAX - 13];
	static const char *const good[] = {
		"...",	 "-a",	  "a b\n\x1b[31m",   "\xff\xfe",
		"\\xff", "a.raw", "x.manifest.json", ".a.abcdefgh.ccsnap-tmp",
		longest
	};

	(void)state;
	memset(longest, 0xe4, sizeof longest - 1);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(make(good[i], ".raw", good[i], KEEP), 0);
		assert_int_equal(count_listed(), (int)i + 1);
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(make(good[i], ".raw", good[i], OVER), 0);
	assert_int_equal(count_listed(), sizeof good / sizeof *good);
	assert_int_equal(count_entries(), 3 * sizeof good / sizeof *good);
}

static void names_that_cannot_be_files_are_refused(void **state)
{
	static char long_name[NAME_MAX - 12];
	static const char *const bad[] = { "", ".", "..", "a/b", "/abs", "../up", long_name };

	(void)state;
	memset(long_name, 'x', sizeof long_name - 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_null(open_dest(bad[i], ".raw", KEEP));
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "NAME '"));
		assert_non_null(strstr(err.text, "accepted are 1 to 241 bytes without /"));
	}
}

static void another_run_for_the_name_is_busy(void **state)
{
	struct dest *first, *second;

	(void)state;
	assert_true(begin(&first, "a", ".raw", KEEP) >= 0);
	assert_refused(make("a", ".qcow2", "x", KEEP), ERR_BUSY, "another run is making");
	assert_int_equal(make("b", ".raw", "x", KEEP), 0);
	assert_true(begin(&second, "c", ".raw", KEEP) >= 0);
	dest_close(first);
	dest_close(second);
	assert_int_equal(make("a", ".qcow2", "x", KEEP), 0);
}

static void a_waiting_run_gets_the_name_when_it_is_free(void **state)
{
	struct dest_config cfg = {
		.where = where, .image_name = "a", .suffix = ".raw", .lock_wait_seconds = 20
	};
	struct dest *dest;
	pid_t pid = fork();
	int fd;

	(void)state;
	if (pid == 0) {
		fd = begin(&dest, "a", ".raw", KEEP);
		usleep(600000);
		_exit(fd < 0);
	}
	for (int i = 0; i < 200 && count_entries() == 0; i++)
		usleep(5000);
	dest = dest_open(&cfg, &err);
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(count_entries(), 1);
	dest_close(dest);
}

static void of_twenty_runs_at_once_one_gets_the_name(void **state)
{
	int won = 0, busy = 0, go[2];
	pid_t pids[20];
	char byte;

	(void)state;
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < 20; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(go[1]);
			if (read(go[0], &byte, 1) != 0)
				_exit(1);
			if (make("a", i % 2 ? ".raw" : ".qcow2", "text", KEEP) == 0)
				_exit(0);
			_exit(err_exit_code(&err));
		}
	}
	close(go[1]);
	for (int i = 0; i < 20; i++) {
		int code = wait_for(pids[i]);

		assert_true(code == 0 || code == 75 || code == 4);
		won += code == 0;
		busy += code == 75;
	}
	close(go[0]);
	assert_int_equal(won, 1);
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
	print_message("busy: %d of 20\n", busy);
}

static void leftovers_of_the_dead_go_and_all_else_stays(void **state)
{
	static const char *const foreign[] = {
		".ccsnap-tmp",
		".abcdefgh.ccsnap-tmp",
		"a.abcdefgh.ccsnap-tmp",
		".a.ABCDEFGH.ccsnap-tmp",
		".a.abcdefg.ccsnap-tmp",
		".a.abcdefgh.ccsnap-tmp~",
		".a.abcdefg1.ccsnap-tmp",
	};
	size_t count = sizeof foreign / sizeof *foreign;

	(void)state;
	put(".a.abcdefgh.ccsnap-tmp", "left");
	put(".other.name.abcdefgh.ccsnap-tmp", "left");
	put(".other.name.abcdefgh.ccsnap-note", "left");
	for (size_t i = 0; i < count; i++)
		put(foreign[i], "not ours");
	assert_int_equal(mkdir(path_of(".d.abcdefgh.ccsnap-tmp"), 0700), 0);
	assert_int_equal(symlink("/etc/passwd", path_of(".l.abcdefgh.ccsnap-tmp")), 0);
	assert_int_equal(mkfifo(path_of(".f.abcdefgh.ccsnap-tmp"), 0600), 0);
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	for (size_t i = 0; i < count; i++)
		assert_content(foreign[i], "not ours");
	assert_int_equal(count_entries(), 3 + (int)count + 3);
}

static void assert_one_whole_image(void)
{
	assert_int_equal(count_listed(), 1);
	assert_true(is_there("a.raw") != is_there("a.qcow2"));
	assert_int_equal(count_entries(), is_there("a.report.json") ? 3 : 2);
}

static void killed_anywhere_a_new_name_is_whole_or_free(void **state)
{
	int n = 0, done;

	(void)state;
	do {
		int visible, code;

		done = run_until_call(n++, ".raw", "text", KEEP);
		visible = is_there("a.raw");
		assert_int_equal(count_listed(), visible);
		code = make("a", ".raw", "text", KEEP);
		assert_int_equal(code, visible ? -1 : 0);
		if (code < 0)
			assert_int_equal(err.kind, ERR_REFUSED);
		assert_one_whole_image();
		empty_directory();
	} while (!done);
	print_message("%d places\n", n);
	assert_true(n > 8);
}

static void killed_anywhere_the_old_image_or_the_new_one_is_there(void **state)
{
	static const char *const suffixes[] = { ".raw", ".qcow2" };
	int n = 0, done;

	(void)state;
	for (int s = 0; s < 2; s++) {
		for (n = 0, done = 0; !done; n++) {
			assert_int_equal(make("a", ".raw", "old one", OVER), 0);
			assert_content("a.raw", "old one");
			/* as long as the old one: the list must not be fooled afterwards */
			done = run_until_call(n, suffixes[s], "new one", OVER);
			assert_true(is_there("a.raw") || is_there("a.qcow2"));

			/* without leave to overwrite: heals what was begun, then refuses */
			assert_refused(make("a", ".raw", "third", KEEP), ERR_REFUSED, "exists");
			assert_int_equal(count_listed(), 1);
			assert_int_equal(make("a", suffixes[n % 2], "fourth", OVER), 0);
			assert_content(n % 2 ? "a.qcow2" : "a.raw", "fourth");
			assert_one_whole_image();
		}
		print_message("%d places\n", n);
		assert_true(n > 8);
	}
}

/* The order of a real run; what is not ours to take stays refused. */
static int tidy_and_check(const char *suffix)
{
	struct dest *dest = open_dest("a", suffix, KEEP);
	int rc;

	dest->ops->tidy(dest);
	rc = dest->ops->check(dest, 0, &err);
	dest_close(dest);
	return rc;
}

static void a_refused_run_finishes_and_sweeps_what_a_killed_run_left(void **state)
{
	int n, done;

	(void)state;
	for (n = 0, done = 0; !done; n++) {
		done = run_until_call(n, ".raw", "text", KEEP);
		assert_int_equal(tidy_and_check(".raw"), is_there("a.raw") ? -1 : 0);
		assert_int_equal(count_entries(),
				 (is_there("a.raw") ? 2 : 0) + is_there("a.report.json") +
					 (!is_there("a.raw") && is_there("a.manifest.json")));
		empty_directory();
	}
	for (n = 0, done = 0; !done; n++) {
		assert_int_equal(make("a", ".raw", "old one", OVER), 0);
		done = run_until_call(n, ".qcow2", "new one", OVER);
		assert_refused(tidy_and_check(".raw"), ERR_REFUSED, "exists; use --overwrite");
		assert_one_whole_image();
	}
}

static void a_check_sweeps_nothing(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);

	(void)state;
	put(".a.abcdefgh.ccsnap-tmp", "left");
	put(".b.abcdefgh.ccsnap-tmp", "left");
	put(".b.abcdefgh.ccsnap-note", "left");
	put(".a.bbbbbbbb.ccsnap-note", "left");
	assert_int_equal(dest->ops->check(dest, 0, &err), 0);
	assert_int_equal(count_entries(), 4);
	dest->ops->tidy(dest);
	assert_int_equal(count_entries(), 0);
	dest_close(dest);
}

static void tidying_up_makes_no_folder_and_leaves_the_living_alone(void **state)
{
	struct dest *dest;

	(void)state;
	assert_true(begin(&dest, "a", ".raw", KEEP) >= 0);
	assert_int_equal(tidy_and_check(".raw"), 0);
	assert_int_equal(count_entries(), 1);
	dest_close(dest);
	strcat(where, "/nosuch");
	assert_refused(tidy_and_check(".raw"), ERR_REFUSED, "does not exist");
	assert_int_equal(count_entries(), 0);
	snprintf(where, sizeof where, "file:%s/out", dir);
	put(".out.abcdefgh.ccsnap-tmp", "left");
	put("out", "there");
	assert_refused(tidy_and_check(NULL), ERR_REFUSED, "out exists");
	assert_int_equal(count_entries(), 1);
}

static void killed_at_random_the_next_run_works_and_leaves_no_debris(void **state)
{
	int killed = 0;

	(void)state;
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (int j = 0;; j++)
				if (make("a", ".raw", j % 2 ? "one" : "two", OVER) < 0)
					_exit(1);
		}
		usleep((useconds_t)(1000 + i * 997 % 20000));
		kill(pid, SIGKILL);
		killed += wait_for(pid) == -SIGKILL;
		assert_int_equal(make("a", ".raw", "next", OVER), 0);
		assert_content("a.raw", "next");
		assert_one_whole_image();
	}
	assert_int_equal(killed, 40);
}

static void filesystems_that_cannot_rename_without_replacing_work(void **state)
{
	(void)state;
	no_renameat2 = 1;
	for (no_link = 0; no_link < 2; no_link++) {
		assert_int_equal(make("b", ".raw", "x", KEEP), 0);
		assert_int_equal(count_listed(), 1);
		empty_directory();
		what_comes_into_being_meanwhile_is_not_replaced(state);
		empty_directory();
	}
}

static void filesystems_without_locks_work(void **state)
{
	struct dest *first, *second;
	int fd1, fd2;

	(void)state;
	no_flock = 1;
	put(".z.abcdefgh.ccsnap-tmp", "alive or not");
	fd1 = begin(&first, "a", ".raw", KEEP);
	fd2 = begin(&second, "a", ".raw", KEEP);
	assert_true(fd1 >= 0 && fd2 >= 0);
	assert_int_equal(publish(first, fd1, "first"), 0);
	assert_refused(publish(second, fd2, "second"), ERR_REFUSED, "a.raw");
	dest_close(first);
	dest_close(second);
	assert_content("a.raw", "first");
	assert_content(".z.abcdefgh.ccsnap-tmp", "alive or not");
	assert_int_equal(count_entries(), 4);
}

static void a_directory_locked_by_a_stranger_is_waited_for(void **state)
{
	pid_t pid;
	int fd;

	(void)state;
	pid = fork();
	if (pid == 0) {
		fd = open(dir, O_RDONLY);
		flock(fd, LOCK_EX);
		put("ready", "");
		usleep(400000);
		_exit(0);
	}
	for (int i = 0; i < 200 && !is_there("ready"); i++)
		usleep(5000);
	assert_int_equal(make("a", ".raw", "x", KEEP), 0);
	assert_int_equal(wait_for(pid), 0);
}

static void too_little_room_is_refused_with_figures(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);
	struct rlimit before, small;

	(void)state;
	assert_refused(dest->ops->check(dest, UINT64_MAX - 1, &err), ERR_REFUSED, "needed, ");
	assert_non_null(strstr(err.text, dir));
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_refused(dest->ops->check(dest, 4097, &err), ERR_REFUSED, "ulimit -f");
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(dest->ops->check(dest, 4097, &err), 0);
	dest_close(dest);
	assert_int_equal(count_entries(), 0);
}

static void the_room_is_known_also_when_the_name_is_refused(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);

	(void)state;
	assert_false(dest->free_known);
	assert_int_equal(dest->ops->check(dest, 0, &err), 0);
	assert_true(dest->free_known && dest->free_bytes > 0);
	dest->free_known = false;
	put("a.raw", "x");
	assert_int_equal(dest->ops->check(dest, 0, &err), -1);
	assert_true(dest->free_known);
	dest->free_known = false;
	assert_refused(dest->ops->check(dest, UINT64_MAX - 1, &err), ERR_REFUSED, "not enough");
	assert_true(dest->free_known);
	dest_close(dest);
	strcat(where, "/nosuch");
	dest = open_dest("a", ".raw", KEEP);
	assert_int_equal(dest->ops->check(dest, 0, &err), -1);
	assert_false(dest->free_known);
	dest_close(dest);
}

static void a_folder_that_is_missing_is_refused(void **state)
{
	struct dest *dest;
	struct image_list list;
	int fd;

	(void)state;
	strcat(where, "/nosuch");
	dest = open_dest("a", ".raw", KEEP);
	assert_refused(dest->ops->check(dest, 0, &err), ERR_REFUSED, "does not exist; create it");
	assert_refused(dest->ops->reserve(dest, &fd, &err), ERR_REFUSED,
		       "does not exist; create it");
	assert_refused(dest->ops->list(dest, &list, &err), ERR_REFUSED,
		       "does not exist; create it");
	dest_close(dest);
	assert_false(is_there("nosuch"));
}

static void the_store_of_an_ordinary_user_is_made_when_needed(void **state)
{
	autofree char *standard = NULL;
	struct dest *dest;
	struct stat st;
	int fd;

	(void)state;
	if (getuid() == 0) {
		assert_int_equal(chown(dir, 65534, (gid_t)-1), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	setenv("XDG_DATA_HOME", path_of("data"), 1);
	standard = dest_default();
	assert_true(str_ends(standard, "/data/ccsnap/images"));
	strcpy(where, standard);
	dest = open_dest("a", ".raw", KEEP);
	assert_int_equal(count_listed(), 0);
	assert_int_equal(dest->ops->check(dest, 4096, &err), 0);
	assert_false(is_there("data"));
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(publish(dest, fd, "text"), 0);
	assert_int_equal(stat(path_of("data/ccsnap/images"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	dest_close(dest);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void a_folder_without_permission_is_refused(void **state)
{
	struct dest *dest;
	int fd;

	(void)state;
	assert_int_equal(chmod(dir, 0555), 0);
	if (getuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	dest = open_dest("a", ".raw", KEEP);
	assert_refused(dest->ops->check(dest, 0, &err), ERR_REFUSED, "cannot write to");
	assert_refused(dest->ops->reserve(dest, &fd, &err), ERR_REFUSED,
		       "/a.raw under a temporary name");
	dest_close(dest);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void unknown_destinations_name_the_known_ones(void **state)
{
	static const char *const bad[] = {
		"", "store", "/store", "http://x/", "folder", "Folder:x"
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		strcpy(where, bad[i]);
		assert_null(open_dest("a", ".raw", KEEP));
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "accepted are folder:PATH, file:PATH"));
	}
	strcpy(where, "folder:");
	assert_null(open_dest("a", ".raw", KEEP));
	assert_int_equal(err.kind, ERR_USAGE);
}

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
	assert_int_equal(outfile_replace_path(path, "one\n", &err), 0);
	assert_int_equal(outfile_replace_path(path, "two\n", &err), 0);
	umask(before);
	text = io_read_file(AT_FDCWD, path, 100, &len, &err);
	assert_string_equal(text, "two\n");
	assert_int_equal(len, 4);
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

static void killed_anywhere_the_old_text_or_the_new_one_is_there(void **state)
{
	int n, code = 99;

	(void)state;
	for (n = 0; code == 99; n++) {
		pid_t pid;

		assert_int_equal(outfile_replace_path(path_of("f"), "old", &err), 0);
		/* and what the run before left is gone */
		assert_int_equal(count_entries(), 1);
		pid = fork();
		if (pid == 0) {
			calls_left = n;
			_exit(outfile_replace_path(path_of("f"), "new", &err) < 0);
		}
		code = wait_for(pid);
		if (n < 2) /* the file's fsync, the rename */
			assert_content("f", "old");
		else
			assert_content("f", "new");
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(image_manifest_and_report_are_private_whatever_the_umask),
		TEST(closing_without_publishing_leaves_nothing),
		TEST(existing_names_are_refused_without_overwrite),
		TEST(a_name_is_taken_in_every_format),
		TEST(what_comes_into_being_meanwhile_is_not_replaced),
		TEST(what_is_no_regular_file_is_never_replaced),
		TEST(a_manifest_without_its_image_is_debris),
		TEST(a_damaged_manifest_is_replaced_only_when_asked),
		TEST(images_of_another_size_are_not_listed),
		TEST(a_list_during_a_publish_does_not_warn),
		TEST(a_manifest_that_was_renamed_is_not_believed),
		TEST(lists_are_sorted_by_time_then_name),
		TEST(names_are_bytes),
		TEST(names_that_cannot_be_files_are_refused),
		TEST(another_run_for_the_name_is_busy),
		TEST(a_waiting_run_gets_the_name_when_it_is_free),
		TEST(of_twenty_runs_at_once_one_gets_the_name),
		TEST(leftovers_of_the_dead_go_and_all_else_stays),
		TEST(killed_anywhere_a_new_name_is_whole_or_free),
		TEST(killed_anywhere_the_old_image_or_the_new_one_is_there),
		TEST(a_refused_run_finishes_and_sweeps_what_a_killed_run_left),
		TEST(a_check_sweeps_nothing),
		TEST(tidying_up_makes_no_folder_and_leaves_the_living_alone),
		TEST(killed_at_random_the_next_run_works_and_leaves_no_debris),
		TEST(filesystems_that_cannot_rename_without_replacing_work),
		TEST(filesystems_without_locks_work),
		TEST(a_directory_locked_by_a_stranger_is_waited_for),
		TEST(too_little_room_is_refused_with_figures),
		TEST(the_room_is_known_also_when_the_name_is_refused),
		TEST(a_folder_that_is_missing_is_refused),
		TEST(the_store_of_an_ordinary_user_is_made_when_needed),
		TEST(a_folder_without_permission_is_refused),
		TEST(unknown_destinations_name_the_known_ones),
		TEST(a_plain_file_is_made_like_an_image_but_alone),
		TEST(a_path_that_names_no_file_is_refused),
		TEST(a_directory_that_was_moved_gets_nothing),
		TEST(texts_are_replaced_whole_and_private),
		TEST(a_text_goes_to_long_and_to_short_paths),
		TEST(a_text_is_put_only_where_a_file_of_ours_can_be),
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
