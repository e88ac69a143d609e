// SPDX-License-Identifier: Apache-2.0
#include "glance-kit.h"

#define ID   "11111111-1111-4111-8111-111111111111"
#define SIZE 1300000 /* more than a piece */

static struct dest *dest;
static struct service_image *image;
static struct image_info info;
static int fd;
static uint64_t progress;

static void note_progress(void *ctx, uint64_t done)
{
	(void)ctx;
	progress = done;
}

/* An image at the service, and a file for it: zeros in the middle. */
static int prepare(void **state)
{
	const struct dest_config cfg = { .where = "glance" };
	struct hash *hash;
	struct digests d;

	set_up(state);
	cloud.size = SIZE;
	cloud.data = calloc(1, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		cloud.data[i] = i / 200000 == 2 ? 0 : (uint8_t)(i * 7 % 251);
	hash = hash_start(HASH_OURS, &err);
	assert_int_equal(hash_update(hash, cloud.data, SIZE, &err), 0);
	assert_int_equal(hash_finish(hash, &d, &err), 0);
	hash_stop(hash);
	image = put_image(ID, "mine", "active");
	image->size = SIZE;
	set(&image->hash_algo, "sha512");
	set(&image->hash_value, d.sha512);
	info = (struct image_info){ .id = strdup(ID), .name = strdup("mine") };
	fd = open(dir, O_TMPFILE | O_RDWR, 0600);
	dest = dest_open(&cfg, &err);
	dest->progress = note_progress;
	progress = 0;
	return 0;
}

static int finish(void **state)
{
	image_info_free(&info);
	dest_close(dest);
	close(fd);
	return tear_down(state);
}

static int fetch(void)
{
	return dest->ops->fetch(dest, &info, fd, &err);
}

static uint64_t size_of_file(void)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

static void assert_fetched(int rc, const char *requests)
{
	static uint8_t here[SIZE];

	if (rc < 0)
		fail_msg("%s (%s)", err.text, cloud.trace);
	assert_string_equal(cloud.trace, requests);
	assert_int_equal(size_of_file(), SIZE);
	assert_int_equal(io_pread(fd, here, SIZE, 0, NULL), SIZE);
	assert_memory_equal(here, cloud.data, SIZE);
	assert_int_equal(progress, SIZE);
	assert_true(dest->receipt.verified);
}

static void an_image_comes_whole_and_proven(void **state)
{
	struct stat st;

	(void)state;
	assert_fetched(fetch(), "get from0");
	assert_string_equal(info.digests.sha512, image->hash_value);
	assert_int_equal(info.size, SIZE);
	assert_string_equal(dest->receipt.verified_by, "sha512");
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_blocks * 512 < SIZE); /* zeros are holes */
}

static void a_break_is_resumed_where_it_was(void **state)
{
	(void)state;
	cloud.gets[0].bytes = 30000;
	cloud.gets[1].bytes = 100;
	cloud.gets[2].status = 503;
	assert_fetched(fetch(), "get from0 wait from30000 wait from30100 wait from30100");
}

static void tries_that_bring_a_tenth_do_not_count(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++)
		cloud.gets[i].bytes = SIZE / 10;
	assert_int_equal(fetch(), 0);
	assert_int_equal(cloud.get_at, 10);
}

static void tries_that_bring_a_byte_each_come_to_an_end(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++)
		cloud.gets[i].bytes = 1;
	assert_failed(fetch(), ERR_FAILED, "connection broke");
	assert_int_equal(cloud.get_at, 5);
}

static void tries_that_bring_nothing_come_to_an_end(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++)
		cloud.gets[i].status = 503;
	assert_failed(fetch(), ERR_FAILED, "cannot fetch the image: 503");
	assert_string_equal(cloud.trace, "get from0 wait from0 wait from0 wait from0 wait from0");
}

/* Each time from its beginning, and never further. */
static void a_service_that_always_starts_over_comes_to_an_end(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++)
		cloud.gets[i] = (struct get){ .status = 200, .bytes = 1000 };
	assert_failed(fetch(), ERR_FAILED, "connection broke");
	assert_int_equal(cloud.get_at, 5);
}

static void a_whole_image_where_a_part_was_asked_for_is_taken(void **state)
{
	(void)state;
	cloud.gets[0].bytes = 30000;
	cloud.gets[0].has_others = true; /* all of it is replaced */
	cloud.gets[1].status = 200;
	assert_fetched(fetch(), "get from0 wait from30000");
}

static void bytes_that_are_here_already_are_passed_over(void **state)
{
	(void)state;
	cloud.gets[0].bytes = 30000;
	cloud.gets[1].early = 12345;
	assert_fetched(fetch(), "get from0 wait from30000");
}

static void a_wrong_range_is_a_failure(void **state)
{
	static const char *const ranges[] = {
		"bytes 30001-1299999/1300000",
		"bytes 30000-1299999/1300001",
		"bytes 30000-1300000/1300000",
		"bytes 30000-29999/1300000",
		"bytes 30000-1299999/*",
		"bytes 30000-1299999/1300000x",
		"bytes 18446744073709551616-1299999/1300000",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		cloud.get_at = 0;
		cloud.gets[0].bytes = 30000;
		cloud.gets[1].range = ranges[i];
		assert_failed(fetch(), ERR_FAILED, "bytes from 30000 on were asked for");
	}
}

static void too_many_bytes_are_a_failure_and_not_written(void **state)
{
	(void)state;
	cloud.gets[0].extra = 1;
	assert_failed(fetch(), ERR_FAILED, "more than the 1300000 bytes");
	assert_true(size_of_file() <= SIZE);
}

static void too_few_bytes_are_asked_for_again(void **state)
{
	(void)state;
	cloud.size = SIZE - 1; /* of what is sent */
	assert_failed(fetch(), ERR_FAILED, "image " ID);
	cloud.size = SIZE;
}

static void other_bytes_are_a_failure(void **state)
{
	(void)state;
	cloud.gets[0].has_others = true;
	assert_failed(fetch(), ERR_FAILED, "sha512 there");
	assert_false(dest->receipt.verified);
}

static void what_ccsnap_noted_of_it_must_hold(void **state)
{
	(void)state;
	image->properties[0] = NULL;
	info.properties = calloc(2, sizeof *info.properties);
	info.properties[0] = str_format("%s=%064d", PROPERTY_SHA256, 0);
	assert_failed(fetch(), ERR_FAILED, "is not what ccsnap made");
}

static void what_ccsnap_noted_of_it_is_a_proof(void **state)
{
	(void)state;
	assert_int_equal(fetch(), 0);
	info.properties = calloc(2, sizeof *info.properties);
	info.properties[0] = str_format("%s=%s", PROPERTY_SHA256, info.digests.sha256);
	set(&image->hash_algo, NULL);
	set(&image->checksum, NULL);
	assert_int_equal(fetch(), 0);
	assert_string_equal(dest->receipt.verified_by, "sha256");
}

static void without_any_digest_it_is_not_proven(void **state)
{
	char md5[HASH_HEX_MAX + 1];

	(void)state;
	assert_int_equal(fetch(), 0);
	assert_int_equal(hash_file_by_name(fd, "fetched", SIZE, "md5", md5, &err), 1);
	set(&image->hash_algo, NULL);
	set(&image->checksum, md5);
	assert_int_equal(fetch(), 0);
	assert_string_equal(dest->receipt.verified_by, "md5");
	set(&image->checksum, NULL);
	assert_failed(fetch(), ERR_FAILED, "cannot be verified");
}

static void an_image_without_data_is_said_to_be_so(void **state)
{
	(void)state;
	set(&image->status, "deactivated");
	assert_failed(fetch(), ERR_REFUSED, "is deactivated");
	set(&image->status, "queued");
	assert_failed(fetch(), ERR_REFUSED, "is queued and not active");
	set(&image->status, "active");
	image->has_size = false;
	assert_failed(fetch(), ERR_FAILED, "does not tell its size");
	cloud.gets[0].status = 204;
	image->has_size = true;
	assert_failed(fetch(), ERR_FAILED, "has no data of it (status 204)");
	remove_image(image);
	assert_failed(fetch(), ERR_REFUSED, "is gone");
	assert_int_equal(size_of_file(), 0);
}

static void a_refusal_ends_it_at_once(void **state)
{
	(void)state;
	cloud.gets[0].status = 403;
	assert_failed(fetch(), ERR_REFUSED, "image " ID ": cannot fetch the image: 403");
	assert_string_equal(cloud.trace, "get from0");
}

static void an_empty_image_is_fetched_without_asking(void **state)
{
	(void)state;
	image->size = 0;
	set(&image->hash_algo, "md5");
	set(&image->hash_value, "d41d8cd98f00b204e9800998ecf8427e");
	assert_int_equal(fetch(), 0);
	assert_string_equal(cloud.trace, "get");
	assert_int_equal(size_of_file(), 0);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_comes_whole_and_proven),
		TEST(a_break_is_resumed_where_it_was),
		TEST(tries_that_bring_a_tenth_do_not_count),
		TEST(tries_that_bring_a_byte_each_come_to_an_end),
		TEST(tries_that_bring_nothing_come_to_an_end),
		TEST(a_service_that_always_starts_over_comes_to_an_end),
		TEST(a_whole_image_where_a_part_was_asked_for_is_taken),
		TEST(bytes_that_are_here_already_are_passed_over),
		TEST(a_wrong_range_is_a_failure),
		TEST(too_many_bytes_are_a_failure_and_not_written),
		TEST(too_few_bytes_are_asked_for_again),
		TEST(other_bytes_are_a_failure),
		TEST(what_ccsnap_noted_of_it_must_hold),
		TEST(what_ccsnap_noted_of_it_is_a_proof),
		TEST(without_any_digest_it_is_not_proven),
		TEST(an_image_without_data_is_said_to_be_so),
		TEST(a_refusal_ends_it_at_once),
		TEST(an_empty_image_is_fetched_without_asking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
