// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/size.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;

/* What the coreutils say. */
static void by_program(const char *program, int fd, char *hex, size_t cap)
{
	char command[128];
	FILE *f;

	snprintf(command, sizeof command, "%s /proc/%d/fd/%d", program, (int)getpid(), fd);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(hex, (int)cap, f));
	pclose(f);
}

static int scratch_file(void)
{
	char path[] = "/tmp/ccsnap-test-hash.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static void assert_same_as_coreutils(int fd, uint64_t size)
{
	char sha256[65], sha512[129];
	struct digests d;

	assert_int_equal(hash_file(fd, "scratch", size, &d, NULL, NULL, &err), 0);
	by_program("sha256sum", fd, sha256, sizeof sha256);
	by_program("sha512sum", fd, sha512, sizeof sha512);
	assert_string_equal(d.sha256, sha256);
	assert_string_equal(d.sha512, sha512);
}

static void nothing_has_the_well_known_digests(void **state)
{
	struct hash *hash = hash_start(&err);
	struct digests d;

	(void)state;
	assert_non_null(hash);
	assert_int_equal(hash_finish(hash, &d, &err), 0);
	assert_string_equal(d.sha256,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_memory_equal(d.sha512, "cf83e1357eefb8bd", 16);
	hash_stop(hash);
}

static void pieces_of_any_size_make_the_digest_of_the_whole(void **state)
{
	static const size_t steps[] = { 1, 511, 16383, 16384, 65536, 100000 };
	static char data[400000];
	struct digests whole, d;
	struct hash *hash = hash_start(&err);

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * i >> 7);
	assert_int_equal(hash_update(hash, data, sizeof data, &err), 0);
	assert_int_equal(hash_finish(hash, &whole, &err), 0);
	hash_stop(hash);
	for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
		hash = hash_start(&err);
		for (size_t at = 0; at < sizeof data; at += steps[s])
			assert_int_equal(
				hash_update(hash, data + at, MIN(steps[s], sizeof data - at), &err),
				0);
		assert_int_equal(hash_finish(hash, &d, &err), 0);
		assert_true(digests_equal(&d, &whole));
		hash_stop(hash);
	}
}

static void zeros_hash_as_zero_bytes_do(void **state)
{
	int fd = scratch_file();
	struct hash *hash = hash_start(&err);
	struct digests d;
	char sha256[65];

	(void)state;
	assert_int_equal(ftruncate(fd, 3 * MIB + 7), 0);
	assert_int_equal(hash_zeros(hash, 3 * MIB + 7, &err), 0);
	assert_int_equal(hash_finish(hash, &d, &err), 0);
	by_program("sha256sum", fd, sha256, sizeof sha256);
	assert_string_equal(d.sha256, sha256);
	hash_stop(hash);
	close(fd);
}

static void files_of_every_shape_match_the_coreutils(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 511, MIB - 1, MIB, MIB + 1, 5 * MIB + 13 };
	char byte = 'x';

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int fd = scratch_file();

		for (uint64_t at = 0; at + 1 < sizes[i]; at += 300007)
			assert_int_equal(io_pwrite(fd, &byte, 1, at), 0);
		assert_int_equal(ftruncate(fd, (off_t)sizes[i]), 0);
		assert_same_as_coreutils(fd, sizes[i]);
		close(fd);
	}
}

static void files_with_holes_match_the_coreutils(void **state)
{
	int fd = scratch_file();

	(void)state;
	assert_int_equal(io_pwrite(fd, "begin", 5, 20 * MIB), 0);
	assert_int_equal(io_pwrite(fd, "end", 3, 300 * MIB + 11), 0);
	assert_int_equal(ftruncate(fd, 330 * MIB), 0);
	assert_same_as_coreutils(fd, 330 * MIB);
	close(fd);
}

static void remember(void *ctx, uint64_t done)
{
	uint64_t *seen = ctx;

	assert_true(done > *seen);
	*seen = done;
}

static void progress_rises_to_the_size(void **state)
{
	int fd = scratch_file();
	uint64_t seen = 0;
	struct digests d;

	(void)state;
	assert_int_equal(io_pwrite(fd, "x", 1, 2 * MIB), 0);
	assert_int_equal(ftruncate(fd, 5 * MIB), 0);
	assert_int_equal(hash_file(fd, "scratch", 5 * MIB, &d, remember, &seen, &err), 0);
	assert_int_equal(seen, 5 * MIB);
	close(fd);
}

static void a_file_that_is_too_short_is_an_error(void **state)
{
	int fd = scratch_file();
	struct digests d;

	(void)state;
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(hash_file(fd, "scratch", 101, &d, NULL, NULL, &err), -1);
	assert_non_null(strstr(err.text, "scratch is shorter than expected"));
	close(fd);
}

static void shrink(void *ctx, uint64_t done)
{
	(void)done;
	assert_int_equal(ftruncate(*(int *)ctx, 10), 0);
}

static void a_file_that_shrinks_meanwhile_is_an_error(void **state)
{
	static char data[3 * MIB];
	int fd = scratch_file();
	struct digests d;

	(void)state;
	memset(data, 1, sizeof data);
	assert_int_equal(io_pwrite(fd, data, sizeof data, 0), 0);
	assert_int_equal(hash_file(fd, "scratch", sizeof data, &d, shrink, &fd, &err), -1);
	assert_non_null(strstr(err.text, "became shorter"));
	close(fd);
}

static void raise_once(void *ctx, uint64_t done)
{
	int *times = ctx;

	(void)done;
	if ((*times)++ == 0)
		raise(SIGTERM);
}

static void a_signal_ends_the_reading_of_a_huge_hole(void **state)
{
	int fd = scratch_file(), times = 0;
	struct digests d;

	(void)state;
	interrupt_install();
	assert_int_equal(ftruncate(fd, (off_t)(4 * TIB)), 0);
	assert_int_equal(hash_file(fd, "scratch", 4 * TIB, &d, raise_once, &times, &err), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	assert_int_equal(times, 1);
	close(fd);
}

/* The flag of the test before stays up. */
static void a_signal_ends_terabytes_of_zeros_at_once(void **state)
{
	struct hash *hash = hash_start(&err);

	(void)state;
	assert_int_equal(hash_zeros(hash, 64 * TIB, &err), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	hash_stop(hash);
}

/* Enough bytes that the checkpoints are thinned out on the way. */
static void checkpoints_tell_where_two_files_differ(void **state)
{
	enum { SIZE = 1300 };
	uint8_t *mib = calloc(1, MIB);
	struct digests a, b;
	uint64_t start, end;

	(void)state;
	for (uint64_t odd = 0; odd < SIZE * MIB; odd += 433 * MIB + 12345) {
		for (int changed = 0; changed < 2; changed++) {
			struct hash *hash = hash_start(&err);

			for (uint64_t i = 0; i < SIZE; i++) {
				mib[odd % MIB] = (uint8_t)(changed && i == odd / MIB);
				assert_int_equal(hash_update(hash, mib, MIB, &err), 0);
			}
			mib[odd % MIB] = 0;
			assert_int_equal(hash_finish(hash, changed ? &b : &a, &err), 0);
			hash_stop(hash);
		}
		assert_false(digests_equal(&a, &b));
		assert_true(digests_equal(&a, &a));
		digests_difference(&a, &b, SIZE * MIB, &start, &end);
		assert_true(start <= odd && odd < end && end - start <= 2 * MIB);
	}
	free(mib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpoints_tell_where_two_files_differ),
		cmocka_unit_test(nothing_has_the_well_known_digests),
		cmocka_unit_test(pieces_of_any_size_make_the_digest_of_the_whole),
		cmocka_unit_test(zeros_hash_as_zero_bytes_do),
		cmocka_unit_test(files_of_every_shape_match_the_coreutils),
		cmocka_unit_test(files_with_holes_match_the_coreutils),
		cmocka_unit_test(progress_rises_to_the_size),
		cmocka_unit_test(a_file_that_is_too_short_is_an_error),
		cmocka_unit_test(a_file_that_shrinks_meanwhile_is_an_error),
		cmocka_unit_test(a_signal_ends_the_reading_of_a_huge_hole),
		cmocka_unit_test(a_signal_ends_terabytes_of_zeros_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
