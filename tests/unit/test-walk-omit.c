// SPDX-License-Identifier: Apache-2.0
#include "walk-kit.h"

#include "base/interrupt.h"
#include "walk/exclude.h"
#include "walk/mounts.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

CLEANUP_TYPE(struct excludes, excludes, excludes_free)
#define autoexcludes CLEANUP(excludes_cleanup)

/* --- excludes ------------------------------------------------------------------- */

static void make_excluded(struct walked *w)
{
	walked_start(w);
	make_dir(w, "a");
	make_dir(w, "a/deep");
	make_file(w, "a/deep/x", "1234");
	make_dir(w, "zz");
	make_dir(w, "zz/a");
	make_file(w, "zz/a/y", "2");
	make_dir(w, "tmp");
	assert_int_equal(fchmodat(w->fd, "tmp", 01777, 0), 0);
	make_file(w, "tmp/junk", "j");
	make_file(w, "keep", "k");
	assert_int_equal(linkat(w->fd, "keep", w->fd, "a/other-name", 0), 0);
}

static void an_exclude_covers_its_path_and_what_is_below(void **state)
{
	autowalked struct walked w;
	autoexcludes struct excludes *x = NULL;
	const struct exclude_use *uses;

	(void)state;
	make_excluded(&w);
	x = excludes_new(&w.err);
	assert_int_equal(excludes_add_pattern(x, "/a", &w.err), 0);
	w.cfg.excludes = x;
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(node_at(&w, "a"), MODEL_NONE);
	assert_int_not_equal(node_at(&w, "zz/a/y"), MODEL_NONE);
	assert_string_equal(told(&w, ACCOUNT_EXCLUDED, "/a"), "/a");
	assert_int_equal(w.account.count[ACCOUNT_EXCLUDED], 1);
	assert_int_equal(excludes_uses(x, &uses), 1);
	assert_int_equal(uses[0].hits, 1);
	assert_int_equal(uses[0].bytes, 0);
}

static void the_bytes_below_an_exclude_are_measured_when_asked_for(void **state)
{
	autowalked struct walked w;
	autoexcludes struct excludes *x = NULL;
	const struct exclude_use *uses;
	static const char megabyte[1 << 20] = { 1 };
	autoclose int fd = -1;
	uint64_t before;

	(void)state;
	make_excluded(&w);
	x = excludes_new(&w.err);
	assert_int_equal(excludes_add_pattern(x, "/a", &w.err), 0);
	w.cfg.excludes = x;
	w.cfg.measure_excluded = true;
	assert_int_equal(walked_do(&w), 0);
	excludes_uses(x, &uses);
	before = uses[0].bytes;
	fd = openat(w.fd, "a/deep/x", O_WRONLY);
	assert_int_equal(write(fd, megabyte, sizeof megabyte), sizeof megabyte);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(walked_do(&w), 0);
	assert_true(uses[0].bytes - before >= sizeof megabyte);
	assert_true(uses[0].bytes - before < 2 * sizeof megabyte);
}

static void one_excluded_name_leaves_the_data_to_the_other(void **state)
{
	autowalked struct walked w;
	autoexcludes struct excludes *x = NULL;

	(void)state;
	make_excluded(&w);
	x = excludes_new(&w.err);
	assert_int_equal(excludes_add_pattern(x, "/a", &w.err), 0);
	w.cfg.excludes = x;
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(node_of(&w, "keep")->names, 1);
	assert_int_equal(node_of(&w, "keep")->data, MODEL_DENSE);
	assert_int_equal(w.totals.hard_links, 0);
}

static void content_only_leaves_an_empty_directory(void **state)
{
	autowalked struct walked w;
	autoexcludes struct excludes *x = NULL;

	(void)state;
	make_excluded(&w);
	x = excludes_new(&w.err);
	assert_int_equal(excludes_add_path(x, w.dir, "/tmp", &w.err), 0);
	w.cfg.excludes = x;
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(node_of(&w, "tmp")->mode, S_IFDIR | 01777);
	assert_int_equal(node_of(&w, "tmp")->count, 0);
	assert_non_null(told(&w, ACCOUNT_EXCLUDED, "/tmp"));
}

/* --- our own -------------------------------------------------------------------- */

static struct walk_own own_at(const struct walked *w, const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(w->fd, path, &st, 0), 0);
	return (struct walk_own){ st.st_dev, st.st_ino, "our own work" };
}

static void our_own_is_left_out_under_every_name(void **state)
{
	autowalked struct walked w;
	enum { OTHERS = 5000 };
	static struct walk_own own[OTHERS + 2];

	(void)state;
	make_excluded(&w);
	own[0] = own_at(&w, "zz/a/y");
	for (size_t i = 1; i <= OTHERS; i++)
		own[i] = (struct walk_own){ i % 7, i * 3, "somewhere else" };
	own[OTHERS + 1] = own_at(&w, "keep");
	w.cfg.own = own;
	w.cfg.own_count = OTHERS + 2;
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(node_at(&w, "keep"), MODEL_NONE);
	assert_int_equal(node_at(&w, "a/other-name"), MODEL_NONE);
	assert_int_equal(node_at(&w, "zz/a/y"), MODEL_NONE);
	assert_string_equal(told(&w, ACCOUNT_EXCLUDED, "/a/other-name"), "our own work");
	assert_int_equal(w.account.count[ACCOUNT_EXCLUDED], 3);
	assert_int_equal(own[1].ino, 3); /* the caller's list stays */
}

/* --- what cannot be read ---------------------------------------------------------- */

static void make_unreadable(struct walked *w)
{
	walked_start(w);
	make_dir(w, "closed");
	make_file(w, "closed/inside", "x");
	make_dir(w, "d");
	make_file(w, "d/secret", "s");
	make_file(w, "d/secret2", "s");
	make_file(w, "d/seen", "s");
	assert_int_equal(symlinkat("seen", w->fd, "d/l"), 0);
	assert_int_equal(fchmodat(w->fd, "d/secret", 0, 0), 0);
	assert_int_equal(fchmodat(w->fd, "d/secret2", 0, 0), 0);
	assert_int_equal(fchmodat(w->fd, "closed", 0, 0), 0);
}

static void the_first_unreadable_path_is_named_and_the_others_counted(void **state)
{
	autowalked struct walked w;
	uid_t before;
	int ret;

	(void)state;
	make_unreadable(&w);
	before = as_ordinary_user();
	ret = walked_do(&w);
	as_before(before);
	assert_int_equal(ret, -1);
	assert_int_equal(w.err.kind, ERR_FAILED);
	assert_non_null(strstr(w.err.text, "/closed"));
	assert_non_null(strstr(w.err.text, "and 2 more"));
	assert_non_null(strstr(w.err.text, "--keep-going"));
}

static void keep_going_leaves_files_out_and_directories_empty(void **state)
{
	autowalked struct walked w;
	uid_t before;
	int ret;

	(void)state;
	make_unreadable(&w);
	w.cfg.keep_going = true;
	before = as_ordinary_user();
	ret = walked_do(&w);
	as_before(before);
	assert_int_equal(ret, 0);
	assert_int_equal(node_of(&w, "closed")->count, 0);
	assert_int_equal(node_of(&w, "closed")->mode, S_IFDIR);
	assert_int_equal(node_at(&w, "d/secret"), MODEL_NONE);
	assert_int_not_equal(node_at(&w, "d/seen"), MODEL_NONE);
	assert_int_equal(w.account.count[ACCOUNT_UNREADABLE], 3);
	assert_non_null(told(&w, ACCOUNT_UNREADABLE, "/closed"));
	assert_non_null(told(&w, ACCOUNT_UNREADABLE, "/d/secret2"));
	assert_int_equal(w.account.count[ACCOUNT_ATTRIBUTE], 0);
}

static void an_unreadable_file_that_is_excluded_is_no_error(void **state)
{
	autowalked struct walked w;
	autoexcludes struct excludes *x = NULL;
	uid_t before;
	int ret;

	(void)state;
	make_unreadable(&w);
	x = excludes_new(&w.err);
	assert_int_equal(excludes_add_pattern(x, "/closed", &w.err), 0);
	assert_int_equal(excludes_add_pattern(x, "secret*", &w.err), 0);
	w.cfg.excludes = x;
	before = as_ordinary_user();
	ret = walked_do(&w);
	as_before(before);
	assert_int_equal(ret, 0);
}

/* --- what moves ------------------------------------------------------------------- */

#define MANY 1500

/* Called when half of the files have been looked at. */
static void rob(void *ctx, uint64_t entries)
{
	struct walked *w = ctx;

	if (entries != 1024)
		return;
	assert_int_equal(unlinkat(w->fd, "f1400", 0), 0);
	assert_int_equal(unlinkat(w->fd, "a-gone", AT_REMOVEDIR), 0);
	assert_int_equal(renameat(w->fd, "a-swapped", w->fd, "zzz"), 0);
	assert_int_equal(symlinkat("/etc", w->fd, "a-swapped"), 0);
	assert_int_equal(unlinkat(w->fd, "f1401", 0), 0);
	assert_int_equal(mkfifoat(w->fd, "f1401", 0600), 0);
}

static void what_vanishes_meanwhile_is_told_and_not_in_the_model(void **state)
{
	autowalked struct walked w;

	(void)state;
	walked_start(&w);
	make_dir(&w, "a-gone");
	make_dir(&w, "a-swapped");
	make_dir(&w, "a-stays");
	make_file(&w, "a-stays/x", "x");
	for (int i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof name, "f%04d", i);
		make_file(&w, name, "");
	}
	w.cfg.progress = rob;
	w.cfg.progress_ctx = &w;
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(w.account.count[ACCOUNT_VANISHED], 3);
	assert_non_null(told(&w, ACCOUNT_VANISHED, "/f1400"));
	assert_non_null(told(&w, ACCOUNT_VANISHED, "/a-gone"));
	assert_non_null(told(&w, ACCOUNT_VANISHED, "/a-swapped"));
	assert_int_equal(node_at(&w, "f1400"), MODEL_NONE);
	assert_int_equal(node_at(&w, "a-gone"), MODEL_NONE);
	assert_int_equal(node_at(&w, "a-swapped"), MODEL_NONE);
	assert_int_equal(node_of(&w, "f1401")->mode & S_IFMT, S_IFIFO);
	assert_int_not_equal(node_at(&w, "a-stays/x"), MODEL_NONE);
	assert_int_equal(w.totals.directories, 2);
	assert_int_equal(w.totals.files, MANY - 2 + 1);
}

/* In a process of its own, since a signal is remembered for good. */
static void a_signal_ends_the_walk(void **state)
{
	autowalked struct walked w;
	int status;
	pid_t pid;

	(void)state;
	walked_start(&w);
	for (int i = 0; i < MANY; i++) {
		char name[16];

		snprintf(name, sizeof name, "f%04d", i);
		make_file(&w, name, "");
	}
	pid = fork();
	if (pid == 0) {
		interrupt_install();
		raise(SIGTERM);
		_exit(walked_do(&w) == -1 && w.err.kind == ERR_INTERRUPTED ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- mounts (root only: in a mount namespace of a child) ---------------------------- */

/* A kernel's table in which the tmpfs at a point is a local disk's. */
static void copy_mountinfo(const struct walked *w, const char *as_disk, const char *fstype,
			   const char *out)
{
	FILE *from = fopen("/proc/self/mountinfo", "re"), *to = fopen(out, "we");
	char line[4096], point[128];

	assert_non_null(from);
	assert_non_null(to);
	snprintf(point, sizeof point, " %s/%s ", w->dir, as_disk);
	while (fgets(line, sizeof line, from)) {
		int id, parent;

		if (strstr(line, point) && sscanf(line, "%d %d", &id, &parent) == 2)
			fprintf(to, "%d %d 259:1 / %s/%s rw - %s /dev/disk1 rw\n", id, parent,
				w->dir, as_disk, fstype);
		else
			fputs(line, to);
	}
	fclose(from);
	assert_int_equal(fclose(to), 0);
}

struct mount_case {
	const char *as_disk, *fstype;
	const char *include;
	const char *exclude;
	const char *refused; /* what the error says; NULL: there is none */
	void (*check)(struct walked *w, const struct mounts *m);
};

static void mount_tmpfs(const struct walked *w, const char *name, const char *mode)
{
	char path[128], options[64];

	snprintf(path, sizeof path, "%s/%s", w->dir, name);
	snprintf(options, sizeof options, "size=1m,mode=%s", mode);
	assert_int_equal(mount("t", path, "tmpfs", 0, options), 0);
}

static void mount_bind(const struct walked *w, const char *from, const char *to)
{
	char a[128], b[128];

	snprintf(a, sizeof a, "%s/%s", w->dir, from);
	snprintf(b, sizeof b, "%s/%s", w->dir, to);
	assert_int_equal(mount(a, b, NULL, MS_BIND, NULL), 0);
}

static void make_mounts(struct walked *w)
{
	make_dir(w, "m");
	assert_int_equal(fchmodat(w->fd, "m", 0750, 0), 0);
	make_file(w, "m/underneath", "u");
	make_dir(w, "a");
	make_file(w, "a/f", "f");
	assert_int_equal(linkat(w->fd, "a/f", w->fd, "g", 0), 0);
	make_dir(w, "b");
	make_file(w, "file", "beneath");
	assert_int_equal(fchmodat(w->fd, "file", 0600, 0), 0);
	mount_tmpfs(w, "m", "0711");
	make_file(w, "m/inside", "i");
	mount_bind(w, "a", "b");
	mount_bind(w, "g", "file");
}

static void walk_mounts(struct walked *w, const struct mount_case *c)
{
	const char *const include[] = { c->include, NULL };
	char table[128];
	autoexcludes struct excludes *x = excludes_new(&w->err);
	struct statx st;
	struct mounts *m;

	if (c->exclude)
		assert_int_equal(excludes_add_path(x, w->dir, c->exclude, &w->err), 0);
	w->cfg.excludes = x;
	snprintf(table, sizeof table, "%s/table", w->dir);
	copy_mountinfo(w, c->as_disk, c->fstype, table);
	assert_int_equal(statx(w->fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st), 0);
	m = mounts_read(&(struct mounts_config){ .source = w->dir,
						 .source_id = st.stx_mnt_id,
						 .include = include,
						 .mountinfo = table },
			&w->err);
	if (!m)
		fail_msg("%s", w->err.text);
	unlink(table);
	w->cfg.mounts = m;
	assert_int_equal(walked_do(w), c->refused ? -1 : 0);
	if (c->refused && !strstr(w->err.text, c->refused))
		fail_msg("%s", w->err.text);
	if (c->refused)
		assert_int_equal(w->err.kind, ERR_USAGE);
	if (c->check)
		c->check(w, m);
	mounts_free(m);
}

static void run_mounts(const struct mount_case *c, void (*make)(struct walked *w))
{
	autowalked struct walked w;
	int status;
	pid_t pid;

	walked_start(&w);
	pid = geteuid() == 0 ? fork() : -1;
	if (pid < 0)
		return;
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0)
			_exit(0);
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		close(w.fd); /* it lies on a mount of the other namespace */
		w.fd = w.cfg.root_fd = open(w.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		make(&w);
		walk_mounts(&w, c);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void check_skipped(struct walked *w, const struct mounts *m)
{
	struct stat inside;

	(void)m;
	assert_int_equal(node_of(w, "m")->mode, S_IFDIR | 0750);
	assert_int_equal(node_of(w, "m")->count, 0);
	assert_int_equal(node_of(w, "b")->count, 0);
	assert_int_equal(node_of(w, "file")->mode, S_IFREG | 0600);
	assert_int_not_equal(node_at(w, "file"), node_at(w, "g"));
	assert_int_equal(node_at(w, "a/f"), node_at(w, "g"));
	assert_int_equal(w->account.count[ACCOUNT_SKIPPED_MOUNT], 3);
	assert_non_null(told(w, ACCOUNT_SKIPPED_MOUNT, "/m"));
	assert_int_equal(fstatat(w->fd, "m", &inside, 0), 0);
	assert_int_not_equal(node_of(w, "m")->found_dev, inside.st_dev);
}

static void skipped_mounts_leave_the_directory_underneath_but_empty(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "nothing", "ext4", .check = check_skipped }, make_mounts);
}

static void check_underneath(struct walked *w, const struct mounts *m)
{
	const struct model_node *n = node_of(w, "file");

	(void)m;
	assert_int_equal(n->mode, S_IFREG | 0600);
	assert_int_equal(n->size, 7);
	assert_int_equal(n->data, MODEL_DENSE);
	assert_string_equal(n->content, "beneath");
	assert_non_null(strstr(told(w, ACCOUNT_SKIPPED_MOUNT, "/file"), "is in the image"));
}

static void a_file_that_something_is_mounted_over_is_carried(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "nothing", "ext4", .check = check_underneath },
		   make_mounts);
}

static void make_large_underneath(struct walked *w)
{
	autoclose int fd = -1;

	make_file(w, "g", "g");
	make_file(w, "file", "f");
	fd = openat(w->fd, "file", O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	mount_bind(w, "g", "file");
}

static void check_large_underneath(struct walked *w, const struct mounts *m)
{
	(void)m;
	assert_int_equal(node_of(w, "file")->size, 0);
	assert_string_equal(node_of(w, "file")->content, "");
	assert_non_null(strstr(told(w, ACCOUNT_SKIPPED_MOUNT, "/file"), "an empty file"));
}

static void one_that_is_large_stays_empty_and_that_is_told(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "nothing", "ext4", .check = check_large_underneath },
		   make_large_underneath);
}

static void make_below(struct walked *w)
{
	make_dir(w, "data");
	make_dir(w, "data/deep");
	make_dir(w, "data/deep/m");
	mount_tmpfs(w, "data/deep/m", "0755");
}

static void an_included_mount_below_what_is_left_out_is_refused(void **state)
{
	static const struct mount_case cases[] = {
		{ "nothing", "ext4", "data/deep/m", "data",
		  "/data/deep/m lies below /data, which is left out (data)", NULL },
		{ "nothing", "ext4", "data/deep/m", "/data/deep/",
		  "/data/deep/m lies below /data/deep, which", NULL },
		{ "nothing", "ext4", "data/deep/m", "/data/deep/m",
		  "/data/deep/m is left out (/data/deep/m)", NULL },
		{ "nothing", "ext4", "data/deep/m", NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		run_mounts(&cases[i], make_below);
}

static void check_included(struct walked *w, const struct mounts *m)
{
	(void)m;
	assert_int_equal(node_of(w, "m")->mode, S_IFDIR | 0711);
	assert_int_not_equal(node_at(w, "m/inside"), MODEL_NONE);
	assert_int_equal(node_at(w, "m/underneath"), MODEL_NONE);
	assert_non_null(told(w, ACCOUNT_FOLDED_MOUNT, "/m"));
	assert_int_equal(w->account.count[ACCOUNT_SKIPPED_MOUNT], 2);
}

static void an_included_mount_is_walked_with_its_own_root(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "nothing", "ext4", "/m", .check = check_included },
		   make_mounts);
}

static void make_boot(struct walked *w)
{
	make_dir(w, "boot");
	assert_int_equal(fchmodat(w->fd, "boot", 0700, 0), 0);
	mount_tmpfs(w, "boot", "0755");
	make_file(w, "boot/vmlinuz", "k");
	assert_int_equal(linkat(w->fd, "boot/vmlinuz", w->fd, "boot/vmlinuz.old", 0), 0);
	make_dir(w, "boot/efi");
	make_dir(w, "srv");
}

static void check_boot(struct walked *w, const struct mounts *m)
{
	uint32_t root = w->totals.boot_root, point = model_lookup(&w->model, MODEL_ROOT, "boot");

	assert_int_not_equal(root, MODEL_NONE);
	assert_int_equal(w->model.nodes[point].mounted, root);
	assert_int_equal(w->model.nodes[point].count, 0);
	assert_int_equal(w->model.nodes[point].mode, S_IFDIR | 0700);
	assert_int_equal(w->model.nodes[root].mode, S_IFDIR | 0755);
	assert_int_equal(w->model.nodes[root].parent, point);
	assert_int_equal(w->model.nodes[root].name, 0);
	assert_int_equal(w->model.nodes[root].count, 3);
	assert_int_equal(node_at(w, "boot/vmlinuz"), node_at(w, "boot/vmlinuz.old"));
	assert_ptr_equal(w->totals.boot, mounts_at(m, 1));
	assert_int_equal(w->account.count[ACCOUNT_SKIPPED_MOUNT], 0);
}

static void a_separate_boot_is_a_mounted_root_of_its_own(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "boot", "ext4", .check = check_boot }, make_boot);
}

static void check_esp(struct walked *w, const struct mounts *m)
{
	(void)m;
	assert_int_equal(w->totals.boot_root, MODEL_NONE);
	assert_int_not_equal(w->totals.esp_root, MODEL_NONE);
	assert_int_equal(node_at(w, "boot"), w->totals.esp_root);
}

static void a_mounted_esp_is_a_mounted_root_of_its_own(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "boot", "vfat", .check = check_esp }, make_boot);
}

/* A tmpfs that the table does not know: it came after the mounts were read. */
static void check_unknown(struct walked *w, const struct mounts *m)
{
	(void)m;
	mount_tmpfs(w, "srv", "0777");
	assert_int_equal(walked_do(w), 0);
	assert_int_equal(node_of(w, "srv")->mode, S_IFDIR | 0755);
	assert_non_null(told(w, ACCOUNT_SKIPPED_MOUNT, "/srv"));
}

static void a_mount_that_came_later_is_skipped(void **state)
{
	(void)state;
	run_mounts(&(struct mount_case){ "boot", "ext4", .check = check_unknown }, make_boot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exclude_covers_its_path_and_what_is_below),
		cmocka_unit_test(the_bytes_below_an_exclude_are_measured_when_asked_for),
		cmocka_unit_test(one_excluded_name_leaves_the_data_to_the_other),
		cmocka_unit_test(content_only_leaves_an_empty_directory),
		cmocka_unit_test(our_own_is_left_out_under_every_name),
		cmocka_unit_test(the_first_unreadable_path_is_named_and_the_others_counted),
		cmocka_unit_test(keep_going_leaves_files_out_and_directories_empty),
		cmocka_unit_test(an_unreadable_file_that_is_excluded_is_no_error),
		cmocka_unit_test(what_vanishes_meanwhile_is_told_and_not_in_the_model),
		cmocka_unit_test(a_signal_ends_the_walk),
		cmocka_unit_test(skipped_mounts_leave_the_directory_underneath_but_empty),
		cmocka_unit_test(a_file_that_something_is_mounted_over_is_carried),
		cmocka_unit_test(one_that_is_large_stays_empty_and_that_is_told),
		cmocka_unit_test(an_included_mount_below_what_is_left_out_is_refused),
		cmocka_unit_test(an_included_mount_is_walked_with_its_own_root),
		cmocka_unit_test(a_separate_boot_is_a_mounted_root_of_its_own),
		cmocka_unit_test(a_mounted_esp_is_a_mounted_root_of_its_own),
		cmocka_unit_test(a_mount_that_came_later_is_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
