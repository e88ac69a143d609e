// SPDX-License-Identifier: Apache-2.0
#include "qemu-kit.h"

#include <errno.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Images that were cut, forged, or are changed under our hands. */

/* Read as it was, or refused; what is missing is never taken for zeros. */
static void assert_cut_is_no_surprise(const char *format, const char *path, const char *allow)
{
	struct source *src = try_open(format, path, allow);

	if (!src && err.kind != ERR_REFUSED)
		fail_msg("%s", err.text);
	if (src)
		assert_reads_as_expected(src);
	source_close(src);
}

static void an_image_cut_anywhere_near_its_end_is_refused_or_whole(void **state)
{
	static const struct {
		const char *format, *options;
	} kinds[] = {
		{ "qcow2", "" },
		{ "qcow2", "-c -o compression_type=zstd" },
		{ "qcow2", "-o extended_l2=on" },
		{ "qcow2", "-o cluster_size=2M" },
		{ "vmdk", "-o subformat=monolithicSparse" },
		{ "vmdk", "-o subformat=streamOptimized" },
		{ "vdi", "" },
		{ "vhdx", "" },
		{ "vhdx", "-o block_size=1M" },
	};
	static const unsigned cuts[] = { 1, 4096, 262144 };

	(void)state;
	require_qemu();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		run("qemu-img convert -f raw -O %s %s base.raw whole", kinds[i].format,
		    kinds[i].options);
		for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
			run("cp whole cut && truncate -s -%u cut", cuts[k]);
			assert_cut_is_no_surprise(kinds[i].format, "cut", NULL);
		}
		run("rm whole cut");
	}
}

static void a_cut_file_of_a_set_is_refused_or_whole(void **state)
{
	static const struct {
		const char *format, *options, *cut;
	} kinds[] = {
		{ "qcow2", "data_file=set.data", "set.data" },
		{ "qcow2", "data_file=set.data,data_file_raw=on", "set.data" },
		{ "vmdk", "subformat=monolithicFlat", "set-flat.vmdk" },
		{ "vmdk", "subformat=twoGbMaxExtentFlat", "set-f001.vmdk" },
		{ "vmdk", "subformat=twoGbMaxExtentSparse", "set-s001.vmdk" },
	};

	(void)state;
	require_qemu();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		run("qemu-img convert -f raw -O %s -o %s base.raw set.vmdk", kinds[i].format,
		    kinds[i].options);
		assert_same(kinds[i].format, "set.vmdk", "allow");
		for (unsigned cut = 512; cut <= MIB; cut *= 64) {
			run("truncate -s -%u %s", cut, kinds[i].cut);
			assert_cut_is_no_surprise(kinds[i].format, "set.vmdk", "allow");
		}
		run("truncate -s 100K %s", kinds[i].cut);
		assert_refused(kinds[i].format, "set.vmdk", "allow", "cut short");
		run("rm set*");
	}
}

static void fresh_images_of_odd_sizes_are_whole(void **state)
{
	static const char *const kinds[] = {
		"qcow2", "qcow2 -c", "qcow2 -o extended_l2=on", "qcow2 -o preallocation=metadata",
		"vmdk",	 "vdi",	     "vdi -o static=on",	"vhdx"
	};
	static const unsigned sizes[] = { 1, 65537 };

	(void)state;
	require_qemu();
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		char format[8] = "";

		memcpy(format, kinds[i], strcspn(kinds[i], " "));
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			run("truncate -s %u odd.raw && printf x | dd of=odd.raw bs=1 seek=%u "
			    "conv=notrunc status=none && qemu-img convert -f raw -O %s odd.raw odd",
			    sizes[k], sizes[k] - 1, kinds[i]);
			source_close(open_image(format, "odd", NULL));
			run("rm odd odd.raw");
		}
	}
}

static void extents_go_by_what_they_are_not_by_what_they_are_called(void **state)
{
	static const char *const types[] = { "SPARSE", "VMFSSPARSE", "vmfssparse", "sparse" };

	(void)state;
	require_qemu();
	run("qemu-img convert -f raw -O vmdk -o subformat=twoGbMaxExtentSparse base.raw x.vmdk");
	for (size_t i = 0; i < 4; i++) {
		run("sed 's/ SPARSE / %s /; s/createType=.*/createType=\"vmfsSparse\"/' x.vmdk "
		    ">y.vmdk",
		    types[i]);
		assert_same("vmdk", "y.vmdk", "allow");
	}
	/* capacity 0, and a descriptor inside that names another file */
	run("printf '\\0\\0\\0\\0' | dd of=x-s001.vmdk bs=1 seek=12 conv=notrunc status=none &&"
	    "sed 's/x-s001.vmdk/base.raw/; s/ SPARSE / FLAT /; s/createType=.*/"
	    "createType=\"twoGbMaxExtentFlat\"/' x.vmdk |"
	    "dd of=x-s001.vmdk bs=512 seek=1 conv=notrunc status=none");
	for (size_t i = 0; i < 4; i++) {
		run("sed 's/ SPARSE / %s /; s/createType=.*/createType=\"vmfsSparse\"/' x.vmdk "
		    ">y.vmdk",
		    types[i]);
		assert_refused("vmdk", "y.vmdk", "allow", "capacity");
	}
}

static void another_size_than_the_header_promises_is_refused(void **state)
{
	(void)state;
	require_qemu();
	/* QEMU leaves out what is not a whole sector */
	run("qemu-img convert -f raw -O qcow2 base.raw z.qcow2 &&"
	    "printf '\\1' | dd of=z.qcow2 bs=1 seek=31 conv=notrunc status=none");
	assert_refused("qcow2", "z.qcow2", NULL, "3146241 bytes, but 3146240");
	run("qemu-img convert -f raw -O vmdk -o subformat=twoGbMaxExtentSparse base.raw w.vmdk &&"
	    "sed -i 's/^RW [0-9]*/RW 5000/' w.vmdk");
	assert_refused("vmdk", "w.vmdk", "allow", "where the descriptor says 5000");
}

/* Somebody who may write to the image turns it into another one as soon as
 * our qemu-nbd is started: behind our look at the headers, before QEMU's own.
 */
struct swap {
	void *image;
	const char *by;
};

/* Whichever of our threads has started it. */
static int has_child(void)
{
	glob_t found = { 0 };
	int seen = 0;

	glob("/proc/self/task/*/children", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *f = fopen(found.gl_pathv[i], "r");

		seen += f && fgetc(f) != EOF;
		if (f)
			fclose(f);
	}
	globfree(&found);
	return seen;
}

enum { SWAP_SIZE = 512 * 1024 };

static void *swap_image(void *ctx)
{
	struct swap *swap = ctx;
	int fd = open(swap->by, O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 10 * 1000 && !has_child(); i++)
		continue;
	if (pread(fd, swap->image, SWAP_SIZE, 0) < 0)
		return ctx; /* the image stays as it is */
	close(fd);
	return NULL;
}

/* NULL when it was refused, as it should be, or what was read. */
static const char *read_swapped(const char *format, const char *good, const char *evil)
{
	struct swap swap = { .by = evil };
	pthread_t thread;
	struct source *src;
	int fd;

	run("cp %s swapped", good);
	fd = open("swapped", O_RDWR | O_CLOEXEC);
	swap.image = mmap(NULL, SWAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(swap.image, MAP_FAILED);
	pthread_create(&thread, NULL, swap_image, &swap);
	src = try_open(format, "swapped", NULL);
	pthread_join(thread, NULL);
	munmap(swap.image, SWAP_SIZE);
	close(fd);
	memset(got, 0, 4096);
	if (src)
		source_read_at(src, got, 4096, 0, &err);
	source_close(src);
	return src ? (const char *)got : NULL;
}

static void make_swaps(void)
{
	run("yes SECRET | head -c 64K >secret.raw &&"
	    "qemu-img create -q -f qcow2 good.qcow2 64K &&"
	    "qemu-io -f qcow2 -c 'write -P 1 0 64k' good.qcow2 >/dev/null &&"
	    "qemu-img create -q -f qcow2 -o data_file=$PWD/evil.data,data_file_raw=on evil.qcow2 "
	    "64K && cp secret.raw evil.data && truncate -s 512K good.qcow2 evil.qcow2 &&"
	    "qemu-img create -q -f vmdk good.vmdk 64K && truncate -s 512K good.vmdk &&"
	    "{ printf '# Disk DescriptorFile\\nversion=1\\nCID=1\\nparentCID=ffffffff\\n"
	    "createType=\"monolithicFlat\"\\nRW 128 FLAT \"%%s\" 0\\n' $PWD/evil.data; "
	    "} >evil.vmdk && truncate -s 512K evil.vmdk");
}

/* It may be too late or too early for the swap, so several times. */
static void assert_swaps_show_nothing(void)
{
	static const char *const formats[] = { "qcow2", "vmdk" };

	for (size_t i = 0; i < 10; i++) {
		char good[16], evil[16];
		const char *text;

		snprintf(good, sizeof good, "good.%s", formats[i % 2]);
		snprintf(evil, sizeof evil, "evil.%s", formats[i % 2]);
		text = read_swapped(formats[i % 2], good, evil);
		assert_true(!text || !strstr(text, "SECRET"));
	}
}

static void an_image_that_is_swapped_leads_to_no_other_file(void **state)
{
	(void)state;
	require_qemu();
	make_swaps();
	assert_swaps_show_nothing();
}

/* As a kernel without Landlock: it holds for this process, for good. */
static void forbid_landlock(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { 4, filter };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void nor_does_it_where_the_kernel_has_no_landlock(void **state)
{
	(void)state;
	require_qemu();
	make_swaps();
	forbid_landlock();
	assert_swaps_show_nothing();
	run("qemu-img convert -f raw -O qcow2 base.raw e.qcow2");
	assert_same("qcow2", "e.qcow2", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_image_cut_anywhere_near_its_end_is_refused_or_whole),
		cmocka_unit_test(a_cut_file_of_a_set_is_refused_or_whole),
		cmocka_unit_test(fresh_images_of_odd_sizes_are_whole),
		cmocka_unit_test(extents_go_by_what_they_are_not_by_what_they_are_called),
		cmocka_unit_test(another_size_than_the_header_promises_is_refused),
		cmocka_unit_test(an_image_that_is_swapped_leads_to_no_other_file),
		/* the last one: what it forbids stays forbidden */
		cmocka_unit_test(nor_does_it_where_the_kernel_has_no_landlock),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
