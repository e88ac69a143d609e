// SPDX-License-Identifier: Apache-2.0
#include "walk-kit.h"

#include "walk/walk_inner.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static const char *const odd_names[] = {
	" ",
	"-rf",
	"new\nline",
	"back\\slash",
	"\xff\xfe not utf-8",
	"\x01\x1b[31m",
	"*?[glob]",
	"...",
	"a'b\"c",
	"\xc3\xa4",
	"$(id)",
	"%s%n",
	"no\rchange",
	".hidden",
	"~",
	"a b  c",
};

static void make_bind(const struct walked *w, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(snprintf(sa.sun_path, sizeof sa.sun_path, "%s/%s", w->dir, name) <
		    (int)sizeof sa.sun_path);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
}

/* --- all kinds ----------------------------------------------------------------- */

static void names_are_bytes_and_sorted_as_such(void **state)
{
	autowalked struct walked w;
	const size_t count = sizeof odd_names / sizeof *odd_names;

	(void)state;
	walked_start(&w);
	for (size_t i = 0; i < count; i++) {
		if (i % 2)
			make_dir(&w, odd_names[i]);
		else
			make_file(&w, odd_names[i], odd_names[i]);
	}
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(assert_all_equal(&w), count + 1);
	assert_int_equal(w.totals.files + w.totals.directories, count + 1);
	assert_false(account_has_warnings(&w.account));
}

static void fifos_sockets_and_links_are_carried_and_not_opened(void **state)
{
	autowalked struct walked w;
	char target[4001];

	(void)state;
	walked_start(&w);
	memset(target, 'x', sizeof target - 1);
	target[sizeof target - 1] = '\0';
	assert_int_equal(mkfifoat(w.fd, "fifo", 0640), 0);
	make_bind(&w, "socket");
	assert_int_equal(symlinkat(target, w.fd, "long"), 0);
	assert_int_equal(symlinkat("nowhere", w.fd, "dangling"), 0);
	assert_int_equal(symlinkat("loop", w.fd, "loop"), 0);
	assert_int_equal(symlinkat(".", w.fd, "self"), 0);
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(assert_all_equal(&w), 7);
	assert_int_equal(w.totals.fifos, 1);
	assert_int_equal(w.totals.sockets, 1);
	assert_int_equal(w.totals.symlinks, 4);
	assert_int_equal(w.totals.devices, 0);
	assert_false(account_has_warnings(&w.account));
}

static void devices_and_whiteouts_are_carried(void **state)
{
	autowalked struct walked w;

	(void)state;
	walked_start(&w);
	if (geteuid() == 0 && mknodat(w.fd, "whiteout", S_IFCHR | 0600, makedev(0, 0)) == 0) {
		assert_int_equal(mknodat(w.fd, "b", S_IFBLK | 0660, makedev(259, 70000)), 0);
		assert_int_equal(mknodat(w.fd, "c", S_IFCHR | 0666, makedev(1, 3)), 0);
		assert_int_equal(walked_do(&w), 0);
		assert_int_equal(assert_all_equal(&w), 4);
		assert_int_equal(w.totals.devices, 3);
	}
}

static void owner_and_mode_are_carried_in_full(void **state)
{
	autowalked struct walked w;

	(void)state;
	walked_start(&w);
	make_file(&w, "setuid", "");
	assert_int_equal(fchmodat(w.fd, "setuid", 06755, 0), 0);
	make_dir(&w, "sticky");
	assert_int_equal(fchmodat(w.fd, "sticky", 01777, 0), 0);
	if (geteuid() == 0) {
		make_file(&w, "far", "");
		assert_int_equal(fchownat(w.fd, "far", 4294967294u, 3000000000u, 0), 0);
	}
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(node_of(&w, "sticky")->mode, S_IFDIR | 01777);
	assert_int_equal(node_of(&w, "setuid")->mode & 07000, 06000);
}

static void times_are_carried_from_before_1970_to_after_2038(void **state)
{
	static const struct {
		const char *name;
		int64_t sec;
		long nsec;
	} times[] = {
		{ "zero", 0, 0 },
		{ "1960", -315619200, 500000000 },
		{ "2038", 2147483648, 1 },
		{ "2106", 4295000000, 123456789 },
		{ "2242", 8589934592, 999999999 },
	};
	autowalked struct walked w;
	uint64_t newest = 0;

	(void)state;
	walked_start(&w);
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		make_file(&w, times[i].name, "");
		set_mtime(&w, times[i].name, times[i].sec, times[i].nsec);
	}
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		struct stat st;

		assert_int_equal(fstatat(w.fd, times[i].name, &st, 0), 0);
		if (st.st_mtim.tv_sec > 0 && (uint64_t)st.st_mtim.tv_sec > newest)
			newest = (uint64_t)st.st_mtim.tv_sec;
	}
	assert_true(newest >= 2147483647);
	assert_int_equal(w.totals.times_newest, newest);
}

static void attributes_of_every_kind_of_file_are_carried(void **state)
{
	static const char acl[] = "\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\xd2\x04\0\0"
				  "\x04\0\x04\0\xff\xff\xff\xff\x10\0\x04\0\xff\xff\xff\xff"
				  "\x20\0\x04\0\xff\xff\xff\xff";
	autowalked struct walked w;
	char path[128];
	autoclose int f = -1, d = -1;

	(void)state;
	walked_start(&w);
	make_file(&w, "f", "x");
	make_dir(&w, "d");
	f = openat(w.fd, "f", O_RDWR);
	d = openat(w.fd, "d", O_RDONLY);
	assert_int_equal(fsetxattr(f, "user.k", "v\0w", 3, 0), 0);
	assert_int_equal(fsetxattr(f, "user.empty", "", 0, 0), 0);
	assert_int_equal(fsetxattr(d, "user.dir", "1", 1, 0), 0);
	assert_int_equal(fsetxattr(f, "system.posix_acl_access", acl, sizeof acl - 1, 0), 0);
	assert_int_equal(fsetxattr(d, "system.posix_acl_default", acl, sizeof acl - 1, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(symlinkat("f", w.fd, "l"), 0);
		assert_int_equal(mkfifoat(w.fd, "p", 0600), 0);
		snprintf(path, sizeof path, "%s/l", w.dir);
		assert_int_equal(lsetxattr(path, "trusted.link", "1", 1, 0), 0);
		snprintf(path, sizeof path, "%s/p", w.dir);
		assert_int_equal(lsetxattr(path, "trusted.fifo", "2", 1, 0), 0);
		assert_int_equal(fsetxattr(f, "trusted.x", "\0\xff", 2, 0), 0);
		assert_int_equal(fsetxattr(d, "trusted.y", "z", 1, 0), 0);
	}
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(w.model.sets[node_of(&w, "f")->xattrs].len, geteuid() ? 3 : 4);
	assert_int_equal(w.model.sets[node_of(&w, "d")->xattrs].len, geteuid() ? 2 : 3);
	assert_false(account_has_warnings(&w.account));
}

static void chattr_flags_are_carried(void **state)
{
	autowalked struct walked w;
	autoclose int f = -1, d = -1;
	int flags, for_file = FS_NODUMP_FL | FS_NOATIME_FL | FS_SYNC_FL,
		   for_dir = FS_NODUMP_FL | FS_DIRSYNC_FL;

	(void)state;
	walked_start(&w);
	make_file(&w, "f", "x");
	make_dir(&w, "d");
	f = openat(w.fd, "f", O_RDONLY);
	d = openat(w.fd, "d", O_RDONLY);
	if (ioctl(f, FS_IOC_GETFLAGS, &flags) < 0 || ioctl(f, FS_IOC_SETFLAGS, &for_file) < 0 ||
	    ioctl(d, FS_IOC_SETFLAGS, &for_dir) < 0)
		return;
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(node_of(&w, "f")->flags, for_file);
	assert_int_equal(node_of(&w, "d")->flags, for_dir);
}

/* --- names of one inode --------------------------------------------------------- */

static void names_of_one_inode_are_one_node(void **state)
{
	autowalked struct walked w;

	(void)state;
	walked_start(&w);
	make_dir(&w, "d");
	make_file(&w, "a", "12345");
	assert_int_equal(linkat(w.fd, "a", w.fd, "d/b", 0), 0);
	assert_int_equal(linkat(w.fd, "a", w.fd, "z", 0), 0);
	assert_int_equal(mkfifoat(w.fd, "p", 0600), 0);
	assert_int_equal(linkat(w.fd, "p", w.fd, "d/p", 0), 0);
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(node_at(&w, "a"), node_at(&w, "d/b"));
	assert_int_equal(node_at(&w, "a"), node_at(&w, "z"));
	assert_int_equal(node_at(&w, "p"), node_at(&w, "d/p"));
	assert_int_equal(node_of(&w, "a")->names, 3);
	assert_int_equal(w.totals.hard_links, 3);
	assert_int_equal(w.totals.files, 1);
	assert_int_equal(w.totals.apparent_bytes, 5);
	assert_int_equal(w.totals.data_bytes, MODEL_BLOCK);
}

static void thousands_of_inodes_with_two_names_are_told_apart(void **state)
{
	autowalked struct walked w;

	(void)state;
	walked_start(&w);
	make_dir(&w, "d");
	for (int i = 0; i < 1500; i++) {
		char a[16], b[16];

		snprintf(a, sizeof a, "%d", i);
		snprintf(b, sizeof b, "d/%d", i);
		make_file(&w, a, "");
		assert_int_equal(linkat(w.fd, a, w.fd, b, 0), 0);
	}
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(w.totals.hard_links, 1500);
}

static void the_index_has_all_names_of_what_has_several(void **state)
{
	autowalked struct walked w;
	const struct model_name *names;
	uint32_t count = 7, two, one;

	(void)state;
	walked_start(&w);
	make_dir(&w, "d");
	make_file(&w, "d/two", "2");
	make_file(&w, "one", "1");
	make_file(&w, "three", "3");
	assert_int_equal(linkat(w.fd, "d/two", w.fd, "again", 0), 0);
	assert_int_equal(linkat(w.fd, "three", w.fd, "d/three", 0), 0);
	assert_int_equal(linkat(w.fd, "three", w.fd, "third", 0), 0);
	assert_int_equal(walked_do(&w), 0);
	two = node_at(&w, "d/two");
	one = node_at(&w, "one");
	assert_null(model_names(&w.model, two, &count));
	assert_int_equal(model_index_names(&w.model, &w.err), 0);
	names = model_names(&w.model, two, &count);
	assert_int_equal(count, 2);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = model_string(&w.model, names[i].name);

		assert_int_equal(names[i].node, two);
		assert_int_equal(model_lookup(&w.model, names[i].dir, name), two);
	}
	assert_int_not_equal(names[0].dir, names[1].dir);
	assert_non_null(model_names(&w.model, node_at(&w, "third"), &count));
	assert_int_equal(count, 3);
	assert_null(model_names(&w.model, one, &count));
	assert_int_equal(count, 0);
}

static void the_index_goes_when_a_name_comes_or_goes(void **state)
{
	autowalked struct walked w;
	uint32_t count, node;

	(void)state;
	walked_start(&w);
	make_file(&w, "a", "");
	assert_int_equal(linkat(w.fd, "a", w.fd, "b", 0), 0);
	assert_int_equal(walked_do(&w), 0);
	node = node_at(&w, "a");
	assert_int_equal(model_index_names(&w.model, &w.err), 0);
	assert_int_equal(model_link(&w.model, MODEL_ROOT, "c", 1, node, &w.err), 0);
	assert_null(model_names(&w.model, node, &count));
	assert_int_equal(model_index_names(&w.model, &w.err), 0);
	assert_non_null(model_names(&w.model, node, &count));
	assert_int_equal(count, 3);
	model_unlink(&w.model, MODEL_ROOT, "b");
	assert_null(model_names(&w.model, node, &count));
	assert_int_equal(model_index_names(&w.model, &w.err), 0);
	assert_non_null(model_names(&w.model, node, &count));
	assert_int_equal(count, 2);
}

/* --- holes ---------------------------------------------------------------------- */

static void holes_are_found_to_the_block(void **state)
{
	autowalked struct walked w;
	static const char data[5000] = { 1 };
	autoclose int fd = -1;

	(void)state;
	walked_start(&w);
	fd = openat(w.fd, "sparse", O_CREAT | O_RDWR, 0644);
	assert_int_equal(pwrite(fd, data, 5000, 0), 5000);
	assert_int_equal(pwrite(fd, data, 1, 40960 + 4095), 1);
	assert_int_equal(pwrite(fd, data, 1, 40960 + 4096), 1);
	assert_int_equal(pwrite(fd, data, 100, 100000), 100);
	assert_int_equal(ftruncate(fd, 1234567), 0);
	make_file(&w, "all-hole", "");
	close(fd);
	fd = openat(w.fd, "all-hole", O_RDWR);
	assert_int_equal(ftruncate(fd, 10000000), 0);
	close(fd);
	fd = openat(w.fd, "dense", O_CREAT | O_RDWR, 0644);
	for (int i = 0; i < 10; i++)
		assert_int_equal(write(fd, data, 5000), 5000);
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(node_of(&w, "all-hole")->data, MODEL_HOLES);
	assert_int_equal(node_of(&w, "dense")->data, MODEL_DENSE);
	assert_int_equal(node_of(&w, "sparse")->data, MODEL_SPARSE);
	assert_int_equal(w.totals.data_bytes,
			 (model_data_blocks(&w.model, node_at(&w, "sparse")) + 13) * MODEL_BLOCK);
	assert_int_equal(w.totals.apparent_bytes, 1234567 + 10000000 + 50000);
}

static void what_was_allocated_and_never_written_is_no_data(void **state)
{
	autowalked struct walked w;
	autoclose int fd = -1;

	(void)state;
	walked_start(&w);
	fd = openat(w.fd, "reserved", O_CREAT | O_RDWR, 0644);
	if (fallocate(fd, 0, 0, 8 << 20) < 0)
		return;
	assert_int_equal(pwrite(fd, "x", 1, 1 << 20), 1);
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_true(w.totals.data_bytes < 1 << 20);
}

/* An attribute that does not fit in the inode takes a block, which counts. */
static void a_small_files_holes_are_found_besides_its_attributes(void **state)
{
	autowalked struct walked w;
	static const char value[3000] = { 1 };
	autoclose int fd = -1;
	struct stat st;

	(void)state;
	walked_start(&w);
	fd = openat(w.fd, "f", O_CREAT | O_RDWR, 0644);
	assert_int_equal(pwrite(fd, "x", 1, 4096), 1);
	fsetxattr(fd, "user.large", value, sizeof value, 0);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(walked_do(&w), 0);
	assert_all_equal(&w);
	assert_int_equal(model_data_blocks(&w.model, node_at(&w, "f")), 1);
}

static void a_file_of_one_block_that_is_a_hole_is_one(void **state)
{
	autowalked struct walked w;
	autoclose int fd = -1;

	(void)state;
	walked_start(&w);
	fd = openat(w.fd, "f", O_CREAT | O_RDWR, 0644);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(node_of(&w, "f")->data, MODEL_HOLES);
}

static void a_file_of_a_terabyte_with_one_block_is_one_block(void **state)
{
	autowalked struct walked w;
	autoclose int fd = -1;

	(void)state;
	walked_start(&w);
	fd = openat(w.fd, "huge", O_CREAT | O_RDWR, 0644);
	if (ftruncate(fd, (off_t)1 << 40) < 0)
		return;
	assert_int_equal(pwrite(fd, "x", 1, (off_t)1 << 39), 1);
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(node_of(&w, "huge")->size, (uint64_t)1 << 40);
	assert_int_equal(node_of(&w, "huge")->count, 1);
	assert_int_equal(w.model.segments[node_of(&w, "huge")->first].block, 1u << 27);
	assert_int_equal(w.totals.data_bytes, MODEL_BLOCK);
}

/* --- depth ---------------------------------------------------------------------- */

static void make_chain(const struct walked *w, int levels, const char *name)
{
	int fd = openat(w->fd, ".", O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void paths_longer_than_the_kernel_takes_are_walked(void **state)
{
	autowalked struct walked w;
	char name[201];

	(void)state;
	walked_start(&w);
	memset(name, 'n', 200);
	name[200] = '\0';
	make_chain(&w, 60, name);
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(assert_all_equal(&w), 61);
}

static void thousands_of_levels_need_few_descriptors(void **state)
{
	autowalked struct walked w;
	struct rlimit before, few = { 100, 100 };
	int ret;

	(void)state;
	walked_start(&w);
	make_chain(&w, 10000, "d");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	ret = walked_do(&w);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(ret, 0);
	assert_int_equal(w.totals.directories, 10001);
}

/* Leaves the deep part again and again, which then is no longer open. */
static void many_branches_at_depth_are_walked(void **state)
{
	autowalked struct walked w;
	char path[512] = "";

	(void)state;
	walked_start(&w);
	for (int i = 0; i < 80; i++) {
		char side[600];

		snprintf(side, sizeof side, "%sz", path);
		make_dir(&w, side);
		snprintf(side, sizeof side, "%sz/f", path);
		make_file(&w, side, "f");
		strcat(path, "a/");
		make_dir(&w, path);
	}
	assert_int_equal(walked_do(&w), 0);
	assert_int_equal(assert_all_equal(&w), 1 + 80 * 3);
}

/* --- again ---------------------------------------------------------------------- */

static void a_second_look_sees_the_file_as_it_is_then(void **state)
{
	autowalked struct walked w;
	autoclose int fd = -1;
	uint32_t node;

	(void)state;
	walked_start(&w);
	make_file(&w, "f", "short");
	assert_int_equal(linkat(w.fd, "f", w.fd, "g", 0), 0);
	assert_int_equal(walked_do(&w), 0);
	node = node_at(&w, "f");
	fd = openat(w.fd, "f", O_RDWR);
	assert_int_equal(pwrite(fd, "far", 3, 1000000), 3);
	assert_int_equal(fsetxattr(fd, "user.new", "1", 1, 0), 0);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(walk_again(&w.cfg, &w.model, node, fd, &w.err), 0);
	assert_int_equal(w.model.nodes[node].names, 2);
	assert_all_equal(&w);
}

static void a_file_is_racy_within_a_tick_of_its_times(void **state)
{
	static const struct timespec now = { 1700000000, 500000000 };
	static const struct {
		int64_t mtime;
		uint32_t mtime_nsec;
		int64_t ctime;
		uint32_t ctime_nsec;
		uint16_t type;
		bool racy;
	} cases[] = {
		{ 1700000000, 480000000, 1700000000, 480000000, S_IFREG, true },
		{ 1700000000, 480000000, 1700000000, 480000000, S_IFDIR, false },
		{ 1000000000, 1, 1700000000, 480000000, S_IFREG, true }, /* touched */
		{ 1700000000, 480000000, 1000000000, 1, S_IFREG, true },
		{ 1700000000, 520000000, 1000000000, 1, S_IFREG, true },
		{ 1700000000, 300000000, 1700000000, 300000000, S_IFREG, false },
		{ 1700000000, 300000000, 1699999999, 0, S_IFREG, false },
		{ 1699999999, 0, 1699999999, 0, S_IFREG, true }, /* whole seconds */
		{ 1699999997, 0, 1699999997, 0, S_IFREG, false },
		{ INT64_MIN, 0, INT64_MAX, 0, S_IFREG, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct statx st = {
			.stx_mode = cases[i].type | 0644,
			.stx_mtime = { .tv_sec = cases[i].mtime, .tv_nsec = cases[i].mtime_nsec },
			.stx_ctime = { .tv_sec = cases[i].ctime, .tv_nsec = cases[i].ctime_nsec },
		};

		if (entry_is_racy(&st, &now) != cases[i].racy)
			fail_msg("case %zu", i);
	}
}

/* However slow the machine, one of many walks comes in time. */
static void files_that_may_still_be_written_are_marked(void **state)
{
	autowalked struct walked w;
	const struct timespec wait = { .tv_nsec = 300000000 };
	bool marked = false;

	(void)state;
	walked_start(&w);
	make_file(&w, "old", "x");
	set_mtime(&w, "old", 1000000000, 1);
	nanosleep(&wait, NULL);
	for (int i = 0; i < 1000 && !marked; i++) {
		make_file(&w, "new", "x");
		assert_int_equal(walked_do(&w), 0);
		marked = node_of(&w, "new")->reader_flags == WALK_RACY;
	}
	assert_true(marked);
	assert_int_equal(node_of(&w, "old")->reader_flags, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_bytes_and_sorted_as_such),
		cmocka_unit_test(fifos_sockets_and_links_are_carried_and_not_opened),
		cmocka_unit_test(devices_and_whiteouts_are_carried),
		cmocka_unit_test(owner_and_mode_are_carried_in_full),
		cmocka_unit_test(times_are_carried_from_before_1970_to_after_2038),
		cmocka_unit_test(attributes_of_every_kind_of_file_are_carried),
		cmocka_unit_test(chattr_flags_are_carried),
		cmocka_unit_test(names_of_one_inode_are_one_node),
		cmocka_unit_test(thousands_of_inodes_with_two_names_are_told_apart),
		cmocka_unit_test(the_index_has_all_names_of_what_has_several),
		cmocka_unit_test(the_index_goes_when_a_name_comes_or_goes),
		cmocka_unit_test(holes_are_found_to_the_block),
		cmocka_unit_test(what_was_allocated_and_never_written_is_no_data),
		cmocka_unit_test(a_small_files_holes_are_found_besides_its_attributes),
		cmocka_unit_test(a_file_of_one_block_that_is_a_hole_is_one),
		cmocka_unit_test(a_file_of_a_terabyte_with_one_block_is_one_block),
		cmocka_unit_test(paths_longer_than_the_kernel_takes_are_walked),
		cmocka_unit_test(thousands_of_levels_need_few_descriptors),
		cmocka_unit_test(many_branches_at_depth_are_walked),
		cmocka_unit_test(a_second_look_sees_the_file_as_it_is_then),
		cmocka_unit_test(a_file_is_racy_within_a_tick_of_its_times),
		cmocka_unit_test(files_that_may_still_be_written_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
