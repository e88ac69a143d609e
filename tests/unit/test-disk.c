// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "source/extent.h"
#include "source/source.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[96];
static struct err err;
static char last_warning[2048];

static void keep_warning(void *ctx, const char *warning)
{
	(void)ctx;
	snprintf(last_warning, sizeof last_warning, "%s", warning);
}

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test-disk-XXXXXX");
	log_set_level(LOG_ERROR);
	log_set_sink(keep_warning, NULL);
	snprintf(path, sizeof path, "%s/disk", mkdtemp(dir) ? dir : "");
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int remove_disk(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

/* A file of that size with bytes at offset; for the caller to close. */
static int make_disk(off_t size, const char *bytes, off_t offset)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, bytes, strlen(bytes), offset), strlen(bytes));
	*last_warning = '\0';
	return fd;
}

static struct source *open_as(enum source_intent intent)
{
	const struct source_config cfg = { .path = path, .format = "raw", .intent = intent };

	err = (struct err){ 0 };
	return source_open(&cfg, &err);
}

static struct source *open_disk(void)
{
	struct source *src = open_as(SOURCE_CAPTURE);

	if (!src)
		print_error("%s\n", err.text);
	assert_non_null(src);
	return src;
}

static void assert_refused(const char *why)
{
	assert_null(open_as(SOURCE_CAPTURE));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_non_null(strstr(err.text, path));
	if (!strstr(err.text, why))
		print_error("%s\n", err.text);
	assert_non_null(strstr(err.text, why));
}

static void odd_sizes_are_padded_with_zeros(void **state)
{
	static const off_t sizes[] = { 0, 1, 511, 512, 513, 65537 };
	static uint8_t buf[66048];

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int fd = make_disk(sizes[i], "", 0);
		struct source *src;

		if (sizes[i] > 0)
			assert_int_equal(pwrite(fd, "x", 1, sizes[i] - 1), 1);
		src = open_disk();
		assert_int_equal(src->size, round_up((uint64_t)sizes[i], 512));
		assert_int_equal(src->padding, src->size - (uint64_t)sizes[i]);
		memset(buf, 0xff, sizeof buf);
		assert_int_equal(source_read_at(src, buf, src->size, 0, &err), 0);
		for (uint64_t at = 0; at < src->size; at++)
			assert_int_equal(buf[at], at + 1 == (uint64_t)sizes[i] ? 'x' : 0);
		assert_int_equal(source_check(src, &err), 0);
		source_close(src);
		close(fd);
	}
}

static void holes_are_known_and_nothing_is_missed(void **state)
{
	int fd = make_disk((off_t)(4 * MIB + 100), "x", MIB);
	struct extent_list list = { 0 };
	struct source *src = open_disk();
	uint64_t at = 0, zero = 0;

	(void)state;
	assert_int_equal(source_extents(src, 0, src->size, &list, &err), 0);
	for (size_t i = 0; i < list.len; i++) {
		assert_int_equal(list.at[i].offset, at);
		assert_true(list.at[i].length > 0);
		assert_false(list.at[i].zero && at <= MIB && MIB < at + list.at[i].length);
		at += list.at[i].length;
		zero += list.at[i].zero ? list.at[i].length : 0;
	}
	assert_int_equal(at, src->size);
	assert_true(zero > MIB); /* /tmp has holes wherever this is run */
	extent_list_free(&list);
	source_close(src);
	close(fd);
}

static void a_part_can_be_asked_about(void **state)
{
	int fd = make_disk((off_t)MIB, "x", 0);
	struct extent_list list = { 0 };
	struct source *src = open_disk();

	(void)state;
	assert_int_equal(source_extents(src, 512, 1024, &list, &err), 0);
	assert_int_equal(list.len, 1);
	assert_int_equal(list.at[0].offset, 512);
	assert_int_equal(list.at[0].length, 1024);
	extent_list_free(&list);
	source_close(src);
	close(fd);
}

static void a_file_that_shrinks_is_noticed(void **state)
{
	int fd = make_disk((off_t)MIB, "x", MIB - 1);
	struct extent_list list = { 0 };
	struct source *src = open_disk();
	char buf[4096];

	(void)state;
	assert_int_equal(ftruncate(fd, 5000), 0);
	assert_int_equal(source_read_at(src, buf, sizeof buf, 4096, &err), -1);
	assert_non_null(strstr(err.text, "ended at offset 5000 (it was 1048576"));
	assert_int_equal(source_extents(src, 0, src->size, &list, &err), -1);
	assert_non_null(strstr(err.text, "ended at offset 5000"));
	assert_int_equal(source_check(src, &err), -1);
	extent_list_free(&list);
	source_close(src);
	close(fd);
}

static void a_write_meanwhile_is_noticed(void **state)
{
	int fd = make_disk((off_t)MIB, "x", 0);
	struct source *src = open_disk();
	const struct timespec tick = { .tv_nsec = 20 * 1000 * 1000 };

	(void)state;
	assert_int_equal(source_check(src, &err), 0);
	nanosleep(&tick, NULL); /* times move in ticks of the kernel's clock */
	assert_int_equal(pwrite(fd, "y", 1, 5), 1);
	assert_int_equal(source_check(src, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_non_null(strstr(err.text, "changed while it was read"));
	source_close(src);
	close(fd);
}

static void what_is_no_disk_is_refused(void **state)
{
	(void)state;
	assert_refused("cannot open");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused("a directory, and no disk");
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_refused("neither a regular file nor a block device");
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_refused("neither a regular file nor a block device");
}

static void other_formats_are_read_as_raw_with_a_warning(void **state)
{
	static const struct {
		const char *magic, *said;
		off_t offset;
	} magics[] = {
		{ "QFI\xfb", "--source-format=qcow2", 0 },
		{ "KDMV", "--source-format=vmdk", 0 },
		{ "COWD", "--source-format=vmdk", 0 },
		{ "# Disk DescriptorFile", "vmdk", 0 },
		{ "vhdxfile", "--source-format=vhdx", 0 },
		{ "conectix", "qemu-img convert", 0 },
		{ "QED", "qemu-img convert", 0 },
		{ "\x7f\x10\xda\xbe", "--source-format=vdi", 64 },
	};
	char buf[512];

	(void)state;
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
		int fd = make_disk((off_t)MIB, magics[i].magic, magics[i].offset);
		struct source *src = open_disk();

		assert_int_equal(src->size, MIB);
		assert_non_null(strstr(last_warning, magics[i].said));
		assert_int_equal(source_read_at(src, buf, sizeof buf, 0, &err), 0);
		assert_memory_equal(buf + magics[i].offset, magics[i].magic,
				    strlen(magics[i].magic));
		source_close(src);
		close(fd);
	}
}

static void the_place_of_the_gpt_tells_the_sector_size(void **state)
{
	int fd = make_disk((off_t)MIB, "EFI PART", 4096);
	struct source *src = open_disk();

	(void)state;
	assert_int_equal(src->sector_size, 4096);
	assert_non_null(strstr(last_warning, "sectors of 4096 bytes"));
	source_close(src);
	assert_int_equal(pwrite(fd, "EFI PART", 8, 512), 8);
	*last_warning = '\0';
	src = open_disk();
	assert_int_equal(src->sector_size, 512);
	assert_string_equal(last_warning, "");
	source_close(src);
	close(fd);
}

/* As QEMU does (block/file-posix.c). */
static int set_lock(int fd, short type, off_t byte)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &lock);
}

static void a_writing_qemu_is_seen_by_its_locks(void **state)
{
	static const off_t bytes[] = { 101, 103, 200 };
	int fd = make_disk((off_t)MIB, "x", 0);

	(void)state;
	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		assert_int_equal(set_lock(fd, F_RDLCK, bytes[i]), 0);
		assert_refused("running QEMU");
		assert_null(open_as(SOURCE_LOOK));
		assert_int_equal(set_lock(fd, F_UNLCK, bytes[i]), 0);
	}
	assert_int_equal(set_lock(fd, F_RDLCK, 100), 0); /* a reader is welcome */
	source_close(open_disk());
	close(fd);
}

static int is_locked(int fd, off_t byte)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
	};

	assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
	return lock.l_type != F_UNLCK;
}

static void a_capture_keeps_qemu_from_writing_and_a_look_does_not(void **state)
{
	int fd = make_disk((off_t)MIB, "x", 0);
	struct source *src = open_disk(), *second;

	(void)state;
	assert_true(is_locked(fd, 100) && is_locked(fd, 201) && is_locked(fd, 203));
	second = open_disk(); /* two captures do not mind each other */
	source_close(second);
	assert_true(is_locked(fd, 201));
	source_close(src);
	assert_false(is_locked(fd, 100) || is_locked(fd, 201) || is_locked(fd, 203));
	src = open_as(SOURCE_LOOK);
	assert_non_null(src);
	assert_false(is_locked(fd, 100) || is_locked(fd, 201) || is_locked(fd, 203));
	source_close(src);
	close(fd);
}

static void a_stuck_source_is_left_alone(void **state)
{
	int fd = make_disk((off_t)MIB, "x", 0);
	struct source *src = open_disk();
	char byte[512];

	(void)state;
	src->stuck = true;
	source_close(src);
	assert_int_equal(source_read_at(src, byte, sizeof byte, 0, &err), 0);
	src->stuck = false;
	source_close(src);
	source_close(NULL);
	close(fd);
}

static struct source *open_paced(uint64_t bytes_per_second)
{
	const struct source_config cfg = {
		.path = path,
		.format = "raw",
		.intent = SOURCE_CAPTURE,
		.bytes_per_second = bytes_per_second,
	};
	struct source *src = source_open(&cfg, &err);

	assert_non_null(src);
	return src;
}

/* But for the quarter of a second that may be made up for. */
static void no_more_is_read_in_a_second_than_allowed(void **state)
{
	int fd = make_disk(MIB, "x", 0);
	struct source *src = open_paced(MIB);
	char *buf = malloc(MIB);
	uint64_t begun = clock_ns();

	(void)state;
	assert_int_equal(source_read_at(src, buf, MIB / 2, 0, &err), 0);
	assert_int_equal(source_read_at(src, buf, MIB / 2, MIB / 2, &err), 0);
	assert_true(clock_seconds_since(begun) >= 0.74);
	source_close(src);
	free(buf);
	close(fd);
}

static void an_abort_ends_the_wait_for_its_turn(void **state)
{
	int fd = make_disk(MIB, "x", 0);
	struct source *src = open_paced(16 * KIB); /* opening reads a little, too */
	char *buf = malloc(MIB);

	(void)state;
	source_abort(src);
	assert_int_equal(source_read_at(src, buf, MIB, 0, &err), -1);
	assert_non_null(strstr(err.text, "given up"));
	source_close(src);
	free(buf);
	close(fd);
}

static void unknown_formats_are_no_format(void **state)
{
	(void)state;
	assert_null(source_format_find("qed"));
	assert_null(source_format_find(""));
	assert_non_null(source_format_find("vhdx"));
}

#define TEST(claim) cmocka_unit_test_teardown(claim, remove_disk)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(odd_sizes_are_padded_with_zeros),
		TEST(holes_are_known_and_nothing_is_missed),
		TEST(a_part_can_be_asked_about),
		TEST(a_file_that_shrinks_is_noticed),
		TEST(a_write_meanwhile_is_noticed),
		TEST(what_is_no_disk_is_refused),
		TEST(other_formats_are_read_as_raw_with_a_warning),
		TEST(the_place_of_the_gpt_tells_the_sector_size),
		TEST(a_writing_qemu_is_seen_by_its_locks),
		TEST(a_capture_keeps_qemu_from_writing_and_a_look_does_not),
		TEST(a_stuck_source_is_left_alone),
		TEST(no_more_is_read_in_a_second_than_allowed),
		TEST(an_abort_ends_the_wait_for_its_turn),
		TEST(unknown_formats_are_no_format),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
