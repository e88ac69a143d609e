// SPDX-License-Identifier: Apache-2.0
#include "dest/payload.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/size.h"
#include "dest/dest.h"
#include "dest/http.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (5 * MIB + 12345)

static struct err err;
static struct dest dest;
static uint8_t content[SIZE], sent[SIZE];
static int fd;
static uint64_t progress_seen;

static void see_progress(void *ctx, uint64_t done)
{
	(void)ctx;
	progress_seen = done;
}

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		content[i] = (uint8_t)(i * i >> 9);
	fd = memfd_create("image", 0);
	assert_int_equal(io_pwrite(fd, content, SIZE, 0), 0);
	memset(&dest, 0, sizeof dest);
	dest.progress = see_progress;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(fd);
}

static struct payload *new_payload(uint64_t size)
{
	struct payload *p = payload_new(fd, "image.raw", size, HASH_OURS, &dest, &err);

	assert_non_null(p);
	assert_int_equal(payload_upload(p)->size, size);
	return p;
}

static int read_some(struct payload *p, uint64_t offset, size_t len)
{
	const struct http_upload *upload = payload_upload(p);

	return upload->read(upload->ctx, sent + offset, len, offset, &err);
}

/* [from, end) in steps as libcurl makes them. */
static void read_range(struct payload *p, uint64_t from, uint64_t end, size_t step)
{
	for (uint64_t at = from; at < end; at += step)
		assert_int_equal(read_some(p, at, (size_t)MIN(step, end - at)), 0);
}

/* Another way to the same digests. */
static void digest_content(unsigned which, struct digests *out)
{
	struct hash *hash = hash_start(which, &err);

	assert_int_equal(hash_update(hash, content, SIZE, &err), 0);
	assert_int_equal(hash_finish(hash, out, &err), 0);
	hash_stop(hash);
}

static void assert_digests_of_content(struct payload *p)
{
	struct digests expected, got;

	digest_content(HASH_OURS, &expected);
	assert_int_equal(payload_digests(p, NULL, &got, &err), 0);
	assert_memory_equal(&got, &expected, sizeof got);
}

static void what_is_sent_is_the_file_and_its_digests(void **state)
{
	static const size_t steps[] = { 16 * KIB, 65535, MIB, 2 * MIB, SIZE };

	(void)state;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct payload *p = new_payload(SIZE);

		memset(sent, 0, SIZE);
		read_range(p, 0, SIZE, steps[i]);
		assert_memory_equal(sent, content, SIZE);
		assert_digests_of_content(p);
		assert_digests_of_content(p); /* and again */
		payload_free(p);
	}
}

static void progress_is_of_this_pass_and_sent_bytes_of_all(void **state)
{
	struct payload *p = new_payload(SIZE);

	(void)state;
	read_range(p, 0, 3 * MIB, MIB);
	assert_int_equal(progress_seen, 3 * MIB);
	read_range(p, 0, MIB, MIB);
	assert_int_equal(progress_seen, MIB);
	assert_int_equal(dest.receipt.sent_bytes, 4 * MIB);
	payload_free(p);
}

static void a_pass_begins_anew_at_offset_0_from_anywhere(void **state)
{
	static const uint64_t ends[] = { 1, 512 * KIB, 512 * KIB + 1, 3 * MIB, SIZE - 1, SIZE };
	struct payload *p = new_payload(SIZE);

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		read_range(p, 0, ends[i], 100000);
	memset(sent, 0, SIZE);
	read_range(p, 0, SIZE, 300000);
	assert_memory_equal(sent, content, SIZE);
	assert_digests_of_content(p);
	payload_free(p);
}

static void digests_before_or_in_mid_pass_take_a_pass_of_their_own(void **state)
{
	struct payload *p = new_payload(SIZE);

	(void)state;
	assert_digests_of_content(p);
	read_range(p, 0, MIB, MIB);
	assert_digests_of_content(p);
	assert_int_equal(dest.receipt.sent_bytes, MIB);
	read_range(p, 0, SIZE, MIB);
	assert_digests_of_content(p);
	payload_free(p);
}

static void nothing_has_digests_too(void **state)
{
	struct payload *p = new_payload(0);
	struct digests d;

	(void)state;
	assert_int_equal(payload_digests(p, NULL, &d, &err), 0);
	assert_string_equal(d.sha256,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	payload_free(p);
}

static void a_file_cut_short_meanwhile_is_an_error_with_the_place(void **state)
{
	struct payload *p = new_payload(SIZE);
	struct digests d;

	(void)state;
	read_range(p, 0, MIB, MIB);
	assert_int_equal(ftruncate(fd, 2 * MIB + 5), 0);
	read_range(p, MIB, 2 * MIB, MIB);
	assert_int_equal(read_some(p, 2 * MIB, MIB), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_string_equal(err.text, "image.raw became shorter while it was sent: it ends at "
				      "2097157 of 5255225 bytes");
	assert_int_equal(payload_digests(p, NULL, &d, &err), -1);
	assert_non_null(strstr(err.text, "changed while it was sent"));
	payload_free(p);
}

static void a_file_that_cannot_be_read_is_an_error_with_the_place(void **state)
{
	int closed = open("/dev/null", O_WRONLY);
	struct payload *p = payload_new(closed, "image.raw", SIZE, HASH_OURS, &dest, &err);

	(void)state;
	assert_int_equal(read_some(p, 0, MIB), -1);
	close(closed);
	assert_non_null(strstr(err.text, "cannot read image.raw at offset 0: Bad file"));
	payload_free(p);
}

static void a_file_that_has_changed_is_found_out(void **state)
{
	struct payload *p;
	struct digests known, d;

	(void)state;
	digest_content(HASH_OURS, &known);
	assert_int_equal(io_pwrite(fd, "x", 1, SIZE / 2), 0);
	p = new_payload(SIZE);
	read_range(p, 0, SIZE, MIB);
	assert_int_equal(payload_digests(p, &known, &d, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_non_null(strstr(err.text, "image.raw is not what its manifest says"));
	*known.sha512 = '\0';
	assert_int_equal(payload_digests(p, &known, &d, &err), -1);
	*known.sha256 = '\0';
	assert_int_equal(payload_digests(p, &known, &d, &err), 0);
	payload_free(p);
}

/* Past the tick of the file's times. */
static void write_later(const char *text, uint64_t offset)
{
	usleep(30000);
	assert_int_equal(io_pwrite(fd, text, strlen(text), offset), 0);
}

static void a_file_that_is_written_to_while_it_is_sent_is_a_failure(void **state)
{
	struct payload *p = new_payload(SIZE);
	struct digests d;

	(void)state;
	read_range(p, 0, 3 * MIB, MIB);
	write_later("xxxx", 4 * MIB);
	read_range(p, 3 * MIB, SIZE, MIB);
	assert_int_equal(payload_digests(p, NULL, &d, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_string_equal(err.text, "image.raw changed while it was sent; send it when nothing "
				      "writes to it");
	assert_int_equal(read_some(p, 0, MIB), -1);
	assert_non_null(strstr(err.text, "changed while it was sent"));
	payload_free(p);
}

/* What changes behind the reading is not sent any more, so it is no error. */
static void digests_are_of_what_was_sent(void **state)
{
	struct payload *p = new_payload(SIZE);
	struct digests known;

	(void)state;
	digest_content(HASH_OURS, &known);
	read_range(p, 0, 3 * MIB, MIB);
	write_later("xxxx", 100);
	read_range(p, 3 * MIB, SIZE, MIB);
	assert_int_equal(payload_digests(p, &known, &known, &err), 0);
	payload_free(p);
}

static void what_is_not_computed_is_what_is_known(void **state)
{
	struct payload *p = payload_new(fd, "image.raw", SIZE, HASH_SHA512, &dest, &err);
	struct digests all, known, got;

	(void)state;
	digest_content(HASH_OURS, &all);
	digest_content(HASH_SHA256, &known);
	read_range(p, 0, SIZE, MIB);
	assert_int_equal(payload_digests(p, NULL, &got, &err), 0);
	assert_string_equal(got.sha256, "");
	assert_int_equal(payload_digests(p, &known, &got, &err), 0);
	assert_memory_equal(&got, &all, sizeof got);
	payload_free(p);
}

/* The last one: the flag stays up. */
static void a_signal_ends_an_extra_pass(void **state)
{
	struct payload *p = new_payload(SIZE);
	struct digests d;

	(void)state;
	interrupt_install();
	raise(SIGTERM);
	assert_int_equal(payload_digests(p, NULL, &d, &err), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	payload_free(p);
	payload_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_sent_is_the_file_and_its_digests),
		TEST(progress_is_of_this_pass_and_sent_bytes_of_all),
		TEST(a_pass_begins_anew_at_offset_0_from_anywhere),
		TEST(digests_before_or_in_mid_pass_take_a_pass_of_their_own),
		TEST(nothing_has_digests_too),
		TEST(a_file_cut_short_meanwhile_is_an_error_with_the_place),
		TEST(a_file_that_cannot_be_read_is_an_error_with_the_place),
		TEST(a_file_that_has_changed_is_found_out),
		TEST(a_file_that_is_written_to_while_it_is_sent_is_a_failure),
		TEST(digests_are_of_what_was_sent),
		TEST(what_is_not_computed_is_what_is_known),
		TEST(a_signal_ends_an_extra_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
