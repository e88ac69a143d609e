// SPDX-License-Identifier: Apache-2.0
#include "qemu-kit.h"

#include "base/str.h"

#include <dirent.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void images_of_every_kind_read_like_their_disk(void **state)
{
	static const struct {
		const char *format, *options;
	} kinds[] = {
		{ "qcow2", "" },
		{ "qcow2", "-o compat=0.10" },
		{ "qcow2", "-c" },
		{ "qcow2", "-c -o compression_type=zstd" },
		{ "qcow2", "-o extended_l2=on" },
		{ "qcow2", "-o cluster_size=512" },
		{ "qcow2", "-o cluster_size=2M" },
		{ "qcow2", "-o preallocation=metadata" },
		{ "vmdk", "-o subformat=monolithicSparse" },
		{ "vmdk", "-o subformat=streamOptimized" },
		{ "vdi", "" },
		{ "vdi", "-o static=on" },
		{ "vhdx", "" },
		{ "vhdx", "-o subformat=fixed" },
	};

	(void)state;
	require_qemu();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		run("qemu-img convert -f raw -O %s %s base.raw image", kinds[i].format,
		    kinds[i].options);
		assert_same(kinds[i].format, "image", NULL);
		run("rm image");
	}
}

static void files_of_a_split_vmdk_are_refused_unless_allowed(void **state)
{
	static const char *const kinds[] = { "monolithicFlat", "twoGbMaxExtentSparse",
					     "twoGbMaxExtentFlat" };

	(void)state;
	require_qemu();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		run("qemu-img convert -f raw -O vmdk -o subformat=%s base.raw v.vmdk", kinds[i]);
		assert_refused("vmdk", "v.vmdk", NULL, "--allow-backing");
		assert_same("vmdk", "v.vmdk", "allow");
		run("rm v*.vmdk");
	}
}

static void a_chain_reads_as_its_top_when_allowed(void **state)
{
	(void)state;
	require_qemu();
	run("mkdir sub && qemu-img create -q -f qcow2 -b base.raw -F raw one.qcow2 &&"
	    "qemu-img create -q -f qcow2 -b $PWD/one.qcow2 -F qcow2 two.qcow2 &&"
	    "qemu-img create -q -f qcow2 -b ../two.qcow2 -F qcow2 sub/three.qcow2");
	assert_refused("qcow2", "sub/three.qcow2", NULL, "--allow-backing");
	assert_same("qcow2", "sub/three.qcow2", "allow");
	run("mv base.raw moved.raw");
	assert_refused("qcow2", "sub/three.qcow2", "allow", "base.raw");
	run("mv moved.raw base.raw");
}

static void a_data_file_is_refused_unless_allowed(void **state)
{
	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 -o data_file=d.data base.raw d.qcow2");
	assert_refused("qcow2", "d.qcow2", NULL, "d.data");
	assert_same("qcow2", "d.qcow2", "allow");
}

static void a_chain_that_bites_its_tail_is_refused(void **state)
{
	(void)state;
	require_qemu();
	run("qemu-img create -q -f qcow2 -u -b b.qcow2 -F qcow2 a.qcow2 1M &&"
	    "qemu-img create -q -f qcow2 -u -b a.qcow2 -F qcow2 b.qcow2 1M");
	assert_refused("qcow2", "a.qcow2", "allow", "leads back to itself");
}

static void names_that_are_no_plain_path_are_refused(void **state)
{
	static const char *const names[] = { "json:{}", "nbd:localhost:10809", "file:base.raw",
					     "fat:rw:/etc", "ssh://host/x" };

	(void)state;
	require_qemu();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		run("qemu-img create -q -f qcow2 -u -b '%s' -F raw n.qcow2 1M", names[i]);
		assert_refused("qcow2", "n.qcow2", "allow", "no plain path");
	}
}

static void a_backing_file_needs_a_recorded_format(void **state)
{
	(void)state;
	require_qemu();
	/* qemu-img writes the format by itself, so spoil the extension's type */
	run("qemu-img create -q -f qcow2 -u -b base.raw -F raw f.qcow2 1M &&"
	    "printf '\\1' | dd of=f.qcow2 bs=1 seek=112 conv=notrunc status=none");
	assert_refused("qcow2", "f.qcow2", "allow", "no recorded format");
}

static void another_format_than_stated_is_refused(void **state)
{
	static const char *const formats[] = { "qcow2", "vmdk", "vdi", "vhdx" };

	(void)state;
	require_qemu();
	for (size_t i = 0; i < 4; i++)
		assert_refused(formats[i], "base.raw", NULL, "--source-format");
}

static void a_truncated_image_is_refused(void **state)
{
	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw t.qcow2 && truncate -s -256K t.qcow2");
	assert_refused("qcow2", "t.qcow2", NULL, "cut short");
}

static void what_qemu_cannot_read_is_told_in_its_words(void **state)
{
	(void)state;
	require_qemu();
	/* 0x7fffffff snapshots */
	run("qemu-img convert -f raw -O qcow2 base.raw s.qcow2 &&"
	    "printf '\\177\\377\\377\\377' | dd of=s.qcow2 bs=1 seek=60 conv=notrunc status=none");
	assert_refused("qcow2", "s.qcow2", NULL, "qemu-nbd cannot read it: ");
	assert_null(strstr(err.text, "json:"));
}

static int count_entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static void nothing_is_left_in_the_temporary_directory(void **state)
{
	struct source *src;

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw l.qcow2");
	src = open_image("qcow2", "l.qcow2", NULL);
	assert_int_equal(count_entries("tmp"), 2); /* . and .. */
	source_close(src);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left either */
}

static void a_missing_temporary_directory_does_not_matter(void **state)
{
	char name[300] = "tmp/";

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw m.qcow2");
	setenv("TMPDIR", "/nonexistent", 1);
	assert_same("qcow2", "m.qcow2", NULL);
	memset(name + 4, 'x', 250); /* longer than the name of a socket may be */
	assert_int_equal(mkdir(name, 0700), 0);
	setenv("TMPDIR", name, 1);
	assert_same("qcow2", "m.qcow2", NULL);
	setenv("TMPDIR", "tmp", 1);
	rmdir(name);
}

static void a_missing_qemu_nbd_is_named_with_its_package(void **state)
{
	char *search = strdup(getenv("PATH"));

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw p.qcow2");
	setenv("PATH", "/nonexistent", 1);
	assert_refused("qcow2", "p.qcow2", NULL, "qemu-utils");
	setenv("PATH", search, 1);
	free(search);
}

static void many_threads_need_few_descriptors(void **state)
{
	const struct source_config cfg = {
		.path = "n.qcow2", .format = "qcow2", .intent = SOURCE_CAPTURE, .connections = 256
	};
	struct rlimit limit, low;
	struct source *src;

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw n.qcow2");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ 64, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	src = source_open(&cfg, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (!src)
		fail_msg("%s", err.text);
	assert_reads_as_expected(src);
	source_close(src);
}

/* The qemu-nbd that we have started, by looking at all our threads' children. */
static pid_t find_server(void)
{
	char text[64] = "";
	glob_t found;

	assert_int_equal(glob("/proc/self/task/*/children", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc && !text[0]; i++) {
		FILE *f = fopen(found.gl_pathv[i], "r");

		if (f && !fgets(text, sizeof text, f))
			text[0] = '\0';
		if (f)
			fclose(f);
	}
	globfree(&found);
	assert_true(text[0]);
	return (pid_t)atoi(text);
}

static void a_dead_server_ends_the_read(void **state)
{
	struct source *src;

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw k.qcow2");
	src = open_image("qcow2", "k.qcow2", NULL);
	kill(find_server(), SIGKILL);
	assert_int_equal(source_read_at(src, got, MIB, MIB, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_non_null(strstr(err.text, "k.qcow2: cannot read at offset 1048576"));
	source_close(src);
}

static void *abort_soon(void *src)
{
	const struct timespec moment = { .tv_nsec = 200 * 1000 * 1000 };

	nanosleep(&moment, NULL);
	source_abort(src);
	return NULL;
}

static void a_silent_server_can_be_given_up(void **state)
{
	struct extent_list list = { 0 };
	struct source *src;
	pthread_t thread;

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O qcow2 base.raw a.img");
	src = open_image("qcow2", "a.img", NULL);
	kill(find_server(), SIGSTOP);
	pthread_create(&thread, NULL, abort_soon, src);
	assert_int_equal(source_read_at(src, got, MIB, 0, &err), -1);
	pthread_join(thread, NULL);
	assert_int_equal(source_read_at(src, got, MIB, 0, &err), -1); /* later ones, too */
	assert_int_equal(source_extents(src, 0, MIB, &list, &err), -1);
	source_close(src);
}

static void a_change_of_any_file_is_noticed(void **state)
{
	struct source *src;

	(void)state;
	require_qemu();
	run("cp base.raw c.raw && qemu-img create -q -f qcow2 -b c.raw -F raw c.qcow2");
	src = open_image("qcow2", "c.qcow2", "allow");
	run("sleep 0.02; echo x >>c.raw");
	assert_int_equal(source_check(src, &err), -1);
	assert_non_null(strstr(err.text, "c.raw: changed while it was read"));
	source_close(src);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_of_every_kind_read_like_their_disk),
		cmocka_unit_test(files_of_a_split_vmdk_are_refused_unless_allowed),
		cmocka_unit_test(a_chain_reads_as_its_top_when_allowed),
		cmocka_unit_test(a_data_file_is_refused_unless_allowed),
		cmocka_unit_test(a_chain_that_bites_its_tail_is_refused),
		cmocka_unit_test(names_that_are_no_plain_path_are_refused),
		cmocka_unit_test(a_backing_file_needs_a_recorded_format),
		cmocka_unit_test(another_format_than_stated_is_refused),
		cmocka_unit_test(a_truncated_image_is_refused),
		cmocka_unit_test(what_qemu_cannot_read_is_told_in_its_words),
		cmocka_unit_test(nothing_is_left_in_the_temporary_directory),
		cmocka_unit_test(a_missing_temporary_directory_does_not_matter),
		cmocka_unit_test(a_missing_qemu_nbd_is_named_with_its_package),
		cmocka_unit_test(a_dead_server_ends_the_read),
		cmocka_unit_test(a_silent_server_can_be_given_up),
		cmocka_unit_test(a_change_of_any_file_is_noticed),
		cmocka_unit_test(many_threads_need_few_descriptors),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
