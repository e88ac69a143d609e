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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;

/* What the coreutils say. */
static void by_program(const char *program, int fd, char *hex, size_t cap)
{
	char command[128];
	FILE *f;

	snprintf(command, sizeof command, "%s </proc/%d/fd/%d", program, (int)getpid(), fd);
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
	struct hash *hash = hash_start(HASH_OURS, &err);
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
	struct hash *hash = hash_start(HASH_OURS, &err);

	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * i >> 7);
	assert_int_equal(hash_update(hash, data, sizeof data, &err), 0);
	assert_int_equal(hash_finish(hash, &whole, &err), 0);
	hash_stop(hash);
	for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
		hash = hash_start(HASH_OURS, &err);
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
	struct hash *hash = hash_start(HASH_OURS, &err);
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

static void a_copy_has_the_same_bytes_and_holes(void **state)
{
	int from = scratch_file(), to = scratch_file();
	struct digests d, again;
	struct stat st;

	(void)state;
	assert_int_equal(io_pwrite(from, "begin", 5, 20 * MIB), 0);
	assert_int_equal(ftruncate(from, 90 * MIB + 1), 0);
	assert_int_equal(hash_copy(from, to, "scratch", 90 * MIB, &d, NULL, NULL, &err), 0);
	assert_int_equal(fstat(to, &st), 0);
	assert_int_equal(st.st_size, 90 * MIB);
	assert_true(st.st_blocks * UINT64_C(512) < 10 * MIB);
	assert_int_equal(hash_file(to, "copy", 90 * MIB, &again, NULL, NULL, &err), 0);
	assert_memory_equal(&d, &again, sizeof d);
	assert_int_equal(hash_copy(from, -1, "scratch", 0, &d, NULL, NULL, &err), -1);
	assert_non_null(strstr(err.text, "cannot write the copy of scratch"));
	close(from);
	close(to);
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
	struct hash *hash = hash_start(HASH_OURS, &err);

	(void)state;
	assert_int_equal(hash_zeros(hash, 64 * TIB, &err), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	hash_stop(hash);
}

/* Zeros, but for one byte at odd (UINT64_MAX: nowhere). */
static void digest_zeros(uint64_t mib, uint64_t odd, struct digests *out)
{
	struct hash *hash = hash_start(HASH_SHA256, &err);
	uint64_t at = MIN(odd, mib * MIB);

	assert_non_null(hash);
	assert_int_equal(hash_zeros(hash, at, &err), 0);
	if (at < mib * MIB) {
		assert_int_equal(hash_update(hash, "x", 1, &err), 0);
		assert_int_equal(hash_zeros(hash, mib * MIB - at - 1, &err), 0);
	}
	assert_int_equal(hash_finish(hash, out, &err), 0);
	hash_stop(hash);
}

/* Enough bytes that the checkpoints are thinned out on the way. */
static void checkpoints_tell_where_two_files_differ(void **state)
{
	enum { SIZE = 1100 };
	static const uint64_t odds[] = { 0, 433 * MIB + 12345, SIZE * MIB - 1 };
	static struct digests a, b;
	uint64_t start, end;

	(void)state;
	digest_zeros(SIZE, UINT64_MAX, &a);
	assert_true(digests_equal(&a, &a));
	for (size_t i = 0; i < sizeof odds / sizeof *odds; i++) {
		digest_zeros(SIZE, odds[i], &b);
		assert_false(digests_equal(&a, &b));
		digests_difference(&a, &b, SIZE * MIB, &start, &end);
		assert_true(start <= odds[i] && odds[i] < end && end - start <= 2 * MIB);
	}
}

static void only_the_digests_asked_for_are_computed(void **state)
{
	static const struct {
		unsigned which;
		const char *sha256, *sha512;
	} cases[] = {
		{ HASH_SHA512, "",
		  "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
		  "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f" },
		{ HASH_SHA256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		  "" },
	};
	struct digests d;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hash *hash = hash_start(cases[i].which, &err);

		memset(&d, 'x', sizeof d);
		assert_int_equal(hash_update(hash, "abc", 3, &err), 0);
		assert_int_equal(hash_finish(hash, &d, &err), 0);
		assert_string_equal(d.sha256, cases[i].sha256);
		assert_string_equal(d.sha512, cases[i].sha512);
		assert_int_equal(d.checkpoints.count, 0);
		hash_stop(hash);
	}
}

static struct digests fill_and_digest(int (*take)(struct hash *hash, const void *buf, size_t len,
						  struct err *err))
{
	static uint8_t bufs[HASH_AHEAD + 1][300 * KIB];
	struct hash *hash = hash_start(HASH_OURS, &err);
	struct digests d;

	for (unsigned i = 0; i < 200; i++) {
		uint8_t *buf = bufs[i % (HASH_AHEAD + 1)];
		/* now and then one so short that no thread is woken for it */
		size_t len = i % 37 == 3 ? 100 : sizeof bufs[0] - i;

		memset(buf, (int)i, sizeof bufs[0]);
		assert_int_equal(take(hash, buf, len, &err), 0);
	}
	assert_int_equal(hash_finish(hash, &d, &err), 0);
	hash_stop(hash);
	return d;
}

/* Each is filled anew as soon as the header allows it. */
static void posted_buffers_are_free_after_so_many_more(void **state)
{
	struct digests posted = fill_and_digest(hash_post), updated = fill_and_digest(hash_update);

	(void)state;
	assert_memory_equal(&posted, &updated, sizeof posted);
	assert_true(posted.checkpoints.count > 10);
}

static void stopping_in_mid_work_is_fine(void **state)
{
	static uint8_t buf[4 * MIB];
	struct hash *hash = hash_start(HASH_OURS, &err);

	(void)state;
	assert_int_equal(hash_post(hash, buf, sizeof buf, &err), 0);
	hash_stop(hash);
	hash_stop(NULL);
}

static void algorithms_go_by_the_names_of_hashlib(void **state)
{
	static const struct {
		const char *name, *program;
	} known[] = { { "md5", "md5sum" },	 { "sha1", "sha1sum" },
		      { "sha224", "sha224sum" }, { "sha256", "sha256sum" },
		      { "sha384", "sha384sum" }, { "sha512", "sha512sum" },
		      { "blake2b", "b2sum" },	 { "sha3_256", NULL },
		      { "sha512_256", NULL } };
	char ours[HASH_HEX_MAX + 1], theirs[HASH_HEX_MAX + 1];
	int fd = scratch_file();

	(void)state;
	assert_int_equal(io_pwrite(fd, "abc", 3, 2 * MIB), 0);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_int_equal(
			hash_file_by_name(fd, "scratch", 2 * MIB + 3, known[i].name, ours, &err),
			1);
		if (!known[i].program)
			continue;
		by_program(known[i].program, fd, theirs, (int)strlen(ours) + 1);
		assert_string_equal(ours, theirs);
	}
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(hash_file_by_name(fd, "scratch", 0, "sha3_256", ours, &err), 1);
	assert_string_equal(ours,
			    "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
	close(fd);
}

static void other_algorithms_are_unknown_and_no_error(void **state)
{
	static const char *const names[] = { "",	"crc32",   "shake_256", "SHA512",    "null",
					     "sha512,", "sha512 ", "../sha512", "provider=x" };
	char hex[HASH_HEX_MAX + 1], long_name[5000];
	int fd = scratch_file();

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(hash_file_by_name(fd, "scratch", 0, names[i], hex, &err), 0);
	memset(long_name, 'a', sizeof long_name);
	long_name[sizeof long_name - 1] = '\0';
	assert_int_equal(hash_file_by_name(fd, "scratch", 0, long_name, hex, &err), 0);
	assert_int_equal(hash_file_by_name(fd, "scratch", 1, "sha512", hex, &err), -1);
	assert_non_null(strstr(err.text, "scratch is shorter than expected"));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checkpoints_tell_where_two_files_differ),
		cmocka_unit_test(only_the_digests_asked_for_are_computed),
		cmocka_unit_test(posted_buffers_are_free_after_so_many_more),
		cmocka_unit_test(stopping_in_mid_work_is_fine),
		cmocka_unit_test(algorithms_go_by_the_names_of_hashlib),
		cmocka_unit_test(other_algorithms_are_unknown_and_no_error),
		cmocka_unit_test(nothing_has_the_well_known_digests),
		cmocka_unit_test(pieces_of_any_size_make_the_digest_of_the_whole),
		cmocka_unit_test(zeros_hash_as_zero_bytes_do),
		cmocka_unit_test(files_of_every_shape_match_the_coreutils),
		cmocka_unit_test(files_with_holes_match_the_coreutils),
		cmocka_unit_test(a_copy_has_the_same_bytes_and_holes),
		cmocka_unit_test(progress_rises_to_the_size),
		cmocka_unit_test(a_file_that_is_too_short_is_an_error),
		cmocka_unit_test(a_file_that_shrinks_meanwhile_is_an_error),
		cmocka_unit_test(a_signal_ends_the_reading_of_a_huge_hole),
		cmocka_unit_test(a_signal_ends_terabytes_of_zeros_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
