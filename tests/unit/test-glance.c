// SPDX-License-Identifier: Apache-2.0
#include "glance-kit.h"

/* What comes before and after in a run in which the service is well. */
#define BEFORE "list room list create "
#define AFTER  " set"

static struct dest *dest;

/* Of the image's id, once the image is active. */
static bool no_room_for_the_id;

char *strdup(const char *text)
{
	const struct service_image *image = &cloud.at[0];

	if (no_room_for_the_id && cloud.count > 0 && image->id && image->status &&
	    text != image->id && str_equal(text, image->id) && str_equal(image->status, "active"))
		return NULL;
	return strndup(text, strlen(text));
}

static int finish(void **state)
{
	no_room_for_the_id = false;
	dest_close(dest);
	dest = NULL;
	return tear_down(state);
}

static int wrong_kind_of_end(void)
{
	return dest->receipt.verified || dest->receipt.cleanup != CLEANUP_DONE || cloud.count > 0 ||
	       count_notes() > 0;
}

/* It failed, and nothing is left. */
static void assert_cleaned_up(int rc, enum err_kind kind, const char *words)
{
	assert_failed(rc, kind, words);
	assert_false(wrong_kind_of_end());
	assert_non_null(dest->receipt.image_id);
}

static void assert_arrived(int rc, const char *requests)
{
	if (rc < 0)
		fail_msg("%s (%s)", err.text, cloud.trace);
	assert_string_equal(cloud.trace, requests);
	assert_int_equal(cloud.count, 1);
	assert_string_equal(cloud.at[0].id, dest->receipt.image_id);
	assert_string_equal(cloud.at[0].status, "active");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_NOTHING);
	assert_int_equal(count_notes(), 0);
}

/* --- the plain way --- */

static void an_upload_is_created_sent_proven_and_completed(void **state)
{
	struct service_image *image = &cloud.at[0];

	(void)state;
	assert_arrived(run(&dest), BEFORE "put get" AFTER);
	assert_true(dest->receipt.verified);
	assert_string_equal(dest->receipt.verified_by, "sha512");
	assert_int_equal(dest->receipt.attempts, 1);
	assert_int_equal(dest->receipt.sent_bytes, strlen(CONTENT));
	assert_string_equal(image->name, "mine");
	assert_string_equal(image->disk_format, "raw");
	assert_string_equal(image->container_format, "bare");
	assert_int_equal(image->min_disk, 2);
	assert_string_equal(image->properties[0], "k=v");
	assert_true(str_starts(image->properties[1], PROPERTY_SHA256 "="));
	assert_string_equal(warnings, "");
}

static void the_image_is_noted_here_before_the_service_hears_of_it(void **state)
{
	(void)state;
	assert_int_equal(run(&dest), 0);
	assert_int_equal(cloud.notes_at_create, 1);
	assert_int_equal(count_notes(), 0);
}

static void protection_comes_last(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.make_protected = true;
	assert_arrived(run_with(&cfg, &dest), BEFORE "put get" AFTER " protect");
	assert_true(cloud.at[0].is_protected);
}

/* --- what may get better --- */

static void what_is_still_queued_is_sent_again(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .status = 503, .becomes = "queued" };
	cloud.puts[1] = (struct put){ .status = 401, .becomes = "queued" };
	cloud.puts[2] = (struct put){ .becomes = "queued", .cut = true };
	assert_arrived(run(&dest), BEFORE "put wait get put wait get put wait get put get" AFTER);
	assert_int_equal(dest->receipt.attempts, 4);
	assert_int_equal(dest->receipt.sent_bytes, 3 * strlen(CONTENT) + strlen(CONTENT) / 2);
}

static void an_active_image_whose_answer_was_lost_is_proven(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .status = 0, .becomes = "active" };
	assert_arrived(run(&dest), BEFORE "put wait get" AFTER);
	assert_true(dest->receipt.verified);
}

static void nothing_is_ever_sent_into_an_image_that_is_stuck(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .becomes = "saving", .cut = true };
	cloud.puts[1] = (struct put){ .becomes = "killed", .cut = true };
	cloud.puts[2] = (struct put){ .becomes = "", .cut = true };
	assert_arrived(run(&dest), BEFORE "put wait get delete create put wait get delete create "
					  "put wait get delete create put get" AFTER);
	assert_int_equal(dest->receipt.attempts, 4);
}

static void a_service_that_has_all_of_it_may_finish(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .status = 504, .becomes = "saving" };
	cloud.statuses[0] = "saving";
	cloud.statuses[1] = "saving";
	cloud.statuses[2] = "active";
	assert_arrived(run(&dest), BEFORE "put wait get get get" AFTER);
	assert_int_equal(dest->receipt.attempts, 1);
}

static void one_that_never_finishes_is_deleted_and_made_anew(void **state)
{
	uint64_t start = slept_ns;

	(void)state;
	cloud.puts[0] = (struct put){ .status = 504, .becomes = "saving" };
	assert_int_equal(run(&dest), 0);
	assert_int_equal(dest->receipt.attempts, 2);
	assert_int_equal(cloud.count, 1);
	assert_in_range((slept_ns - start) / 1000000000, 60, 80);
}

static void tries_come_to_an_end(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++)
		cloud.puts[i] = (struct put){ .status = 503, .becomes = "queued" };
	assert_cleaned_up(run(&dest), ERR_FAILED, "cannot send the image: 503 the service's words");
	assert_int_equal(dest->receipt.attempts, 5);
}

static void a_refusal_ends_it_at_once(void **state)
{
	static const unsigned refusals[] = { 400, 409, 410, 413, 415 };

	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		dest_close(dest);
		cloud.put_at = 0;
		cloud.puts[0] = (struct put){ .status = refusals[i], .becomes = "queued" };
		assert_cleaned_up(run(&dest), ERR_FAILED, "the service's words");
		assert_int_equal(dest->receipt.attempts, 1);
	}
}

static void what_cannot_get_better_ends_it_at_once(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .becomes = "queued", .is_final = true };
	assert_cleaned_up(run(&dest), ERR_FAILED, "put: the connection broke");
	assert_int_equal(dest->receipt.attempts, 1);
}

/* --- waiting --- */

static void a_service_that_is_slow_or_away_is_waited_for(void **state)
{
	(void)state;
	cloud.statuses[0] = "saving";
	cloud.statuses[1] = "!";
	cloud.statuses[2] = "active";
	assert_arrived(run(&dest), BEFORE "put get get get" AFTER);
}

static void an_image_that_never_gets_active_is_given_up(void **state)
{
	uint64_t start = slept_ns;

	(void)state;
	cloud.puts[0] = (struct put){ .status = 204, .becomes = "saving" };
	assert_cleaned_up(run(&dest), ERR_FAILED, "is still not active (saving) 300 seconds");
	assert_in_range((slept_ns - start) / 1000000000, 300, 320);
}

static void an_image_that_ends_otherwise_is_a_clear_error(void **state)
{
	static const char *const ends[][2] = {
		{ "killed", "could not store it (killed)" },
		{ "deactivated", "has been deactivated" },
		{ "deleted", "somebody has deleted it" },
		{ "pending_delete", "somebody has deleted it" },
		{ "", "somebody has deleted it" },
		{ "strange", "the status \"strange\", which is not known" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		dest_close(dest);
		cloud.put_at = 0;
		cloud.puts[0] = (struct put){ .status = 204, .becomes = ends[i][0] };
		assert_cleaned_up(run(&dest), ERR_FAILED, ends[i][1]);
	}
}

/* --- proof --- */

static void wrong_bytes_are_sent_once_more(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .status = 204, .value = "abcd" };
	assert_arrived(run(&dest), BEFORE "put get delete create put get" AFTER);
	assert_true(dest->receipt.verified);
	assert_words(warnings, "sent once more");
}

static void wrong_bytes_twice_are_a_failure_that_tells_both_values(void **state)
{
	(void)state;
	cloud.puts[0] = cloud.puts[1] = (struct put){ .status = 204, .value = "abcd" };
	assert_cleaned_up(run(&dest), ERR_FAILED, "sha512 there abcd, here ");
	assert_null(dest->receipt.verified_by);
	cloud.put_at = 0;
	cloud.puts[0] = cloud.puts[1] = (struct put){ .status = 204, .size = 7 };
	dest_close(dest);
	assert_cleaned_up(run(&dest), ERR_FAILED, "has 7 bytes, here are 53");
}

static void digests_are_known_in_either_case_and_by_several_names(void **state)
{
	static const struct {
		struct put put;
		const char *by;
	} cases[] = {
		{ { .shout = true }, "sha512" },
		{ { .algo = "SHA512" }, "sha512" },
		{ { .algo = "sha256" }, "sha256" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		dest_close(dest);
		while (cloud.count > 0)
			remove_image(&cloud.at[0]);
		cloud.put_at = 0;
		cloud.puts[0] = cases[i].put;
		assert_int_equal(run(&dest), 0);
		assert_string_equal(dest->receipt.verified_by, cases[i].by);
		assert_int_equal(dest->receipt.attempts, 1);
	}
}

static void digest_of_content(const char *algorithm, char hex[HASH_HEX_MAX + 1])
{
	autofree char *path = str_format("%s/content", dir);
	autoclose int fd = open(path, O_RDWR | O_CREAT, 0600);

	assert_int_equal(io_pwrite(fd, CONTENT, strlen(CONTENT), 0), 0);
	assert_int_equal(hash_file_by_name(fd, path, strlen(CONTENT), algorithm, hex, &err), 1);
}

static void a_digest_that_we_did_not_compute_is_computed_for_it(void **state)
{
	char hex[HASH_HEX_MAX + 1];

	(void)state;
	digest_of_content("sha3_256", hex);
	cloud.puts[0] = (struct put){ .algo = "sha3_256", .value = hex };
	assert_arrived(run(&dest), BEFORE "put get" AFTER);
	assert_string_equal(dest->receipt.verified_by, "sha3_256");
}

static void an_md5_will_do_where_there_is_nothing_better(void **state)
{
	char hex[HASH_HEX_MAX + 1];

	(void)state;
	digest_of_content("md5", hex);
	cloud.puts[0] = (struct put){ .algo = "sha9000", .value = "00", .checksum = hex };
	assert_arrived(run(&dest), BEFORE "put get" AFTER);
	assert_string_equal(dest->receipt.verified_by, "md5");
}

static void a_wrong_md5_is_not_what_was_made(void **state)
{
	(void)state;
	cloud.puts[0] = cloud.puts[1] = (struct put){ .algo = "", .checksum = "00" };
	assert_cleaned_up(run(&dest), ERR_FAILED, "md5 there 00, here ");
}

static void without_a_digest_it_is_unverified_and_said_so(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .algo = "" };
	assert_arrived(run(&dest), BEFORE "put get" AFTER);
	assert_false(dest->receipt.verified);
	assert_null(dest->receipt.verified_by);
	assert_words(warnings, "unverified");
}

static void a_conversion_is_a_clear_failure(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .format = "vmdk" };
	assert_cleaned_up(run(&dest), ERR_FAILED, "has made vmdk of the raw that was sent");
	assert_int_equal(dest->receipt.attempts, 1);
}

/* --- imports --- */

static void an_import_stages_first(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.upload_method = "import";
	assert_arrived(run_with(&cfg, &dest), BEFORE "stage import get" AFTER);
	assert_true(dest->receipt.verified);
}

static void a_service_without_the_direct_way_gets_an_import(void **state)
{
	static const unsigned refusals[] = { 403, 404, 405, 501 };

	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		dest_close(dest);
		while (cloud.count > 0)
			remove_image(&cloud.at[0]);
		cloud.put_at = 0;
		cloud.trace[0] = '\0';
		cloud.puts[0] = (struct put){ .status = refusals[i], .becomes = "queued" };
		assert_arrived(run(&dest), BEFORE "put get stage import get" AFTER);
	}
}

static void nothing_is_imported_when_that_was_not_asked_for_or_cannot_be(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cloud.puts[0] = (struct put){ .status = 403, .becomes = "queued" };
	cfg.upload_method = "direct";
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, "403 the service's words");
	dest_close(dest);
	cloud.put_at = 0;
	cloud.cannot_import = true;
	assert_cleaned_up(run(&dest), ERR_FAILED, "403 the service's words");
	dest_close(dest);
	cloud.put_at = 0;
	cloud.cannot_import = false;
	cloud.puts[0] = (struct put){ .status = 404, .becomes = "" };
	assert_cleaned_up(run(&dest), ERR_FAILED, "404 the service's words");
}

static void a_failed_import_tells_the_services_reason(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.upload_method = "import";
	cloud.import_failure = "it has a backing file";
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, "import failed: it has a backing");
	dest_close(dest);
	cloud.import_fails = true;
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, "import: 403");
}

/* --- the end of what fails --- */

static void a_create_that_fails_leaves_nothing(void **state)
{
	(void)state;
	cloud.create_fails = true;
	assert_cleaned_up(run(&dest), ERR_FAILED, "create: 403");
}

static void a_create_that_never_got_there_leaves_nothing_to_delete(void **state)
{
	(void)state;
	cloud.create_unsent = cloud.delete_fails = true;
	assert_failed(run(&dest), ERR_FAILED, "create: cannot connect");
	assert_null(strstr(err.text, "left there"));
	assert_string_equal(cloud.trace, "list room list create");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_NOTHING);
	assert_null(dest->receipt.image_id);
	assert_int_equal(count_notes(), 0);
}

static void out_of_memory_at_the_end_leaves_nothing(void **state)
{
	(void)state;
	no_room_for_the_id = true;
	assert_cleaned_up(run(&dest), ERR_FAILED, "memory");
}

static void an_image_whose_create_was_not_answered_is_deleted(void **state)
{
	(void)state;
	cloud.create_answer_lost = true;
	assert_cleaned_up(run(&dest), ERR_FAILED, "create: no answer");
	assert_string_equal(cloud.trace, BEFORE "get delete");
}

static void an_image_that_comes_late_is_waited_for_and_deleted(void **state)
{
	(void)state;
	cloud.create_answer_lost = true;
	cloud.create_late = 5;
	assert_cleaned_up(run(&dest), ERR_FAILED, "create: no answer");
	assert_string_equal(cloud.trace, BEFORE "get get get get get get delete");
}

static void an_image_that_may_still_come_is_looked_for_by_the_next_run(void **state)
{
	uint64_t start = slept_ns;

	(void)state;
	cloud.create_answer_lost = true;
	cloud.create_late = 1000;
	assert_failed(
		run(&dest), ERR_FAILED,
		"may still appear there, since its making was not answered; the next run will look");
	assert_in_range((slept_ns - start) / 1000000000, 14, 16);
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
	assert_int_equal(count_notes(), 1);
	dest_close(dest);
	remove_image(&cloud.at[0]);
	cloud.create_answer_lost = false;
	cloud.create_late = 1;
	assert_int_equal(run(&dest), 0);
	assert_int_equal(count_notes(), 1); /* it is young */
	assert_string_equal(warnings, "");
}

static void an_image_being_imported_is_deleted_when_that_has_ended(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.upload_method = "import";
	cloud.statuses[0] = "deactivated"; /* what the run fails of */
	for (int i = 1; i < 9; i++)
		cloud.statuses[i] = "importing";
	cloud.statuses[9] = "active";
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, "deactivated");
	assert_int_equal(cloud.status_at, 10);
}

static void an_import_that_does_not_end_is_left_to_the_next_run(void **state)
{
	struct dest_config cfg = config_of();
	uint64_t start;

	(void)state;
	cfg.upload_method = "import";
	cfg.stall_seconds = 10;
	cloud.puts[0] = (struct put){ .status = 504, .becomes = "importing" };
	start = slept_ns;
	assert_failed(run_with(&cfg, &dest), ERR_FAILED, "it is still being imported");
	assert_in_range((slept_ns - start) / 1000000000, 40, 60);
	assert_null(strstr(cloud.trace, "delete"));
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
	assert_int_equal(count_notes(), 1);
}

static void a_protection_that_was_not_answered_is_lifted(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.make_protected = cloud.protect_answer_lost = true;
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, "protect: no answer");
	assert_string_equal(cloud.trace, BEFORE "put get set protect get unprotect delete");
}

static void an_image_that_cannot_be_completed_is_deleted(void **state)
{
	(void)state;
	cloud.set_fails = true;
	assert_cleaned_up(run(&dest), ERR_FAILED, "set: 500");
}

static void what_cannot_be_deleted_is_left_to_the_next_run(void **state)
{
	(void)state;
	cloud.puts[0] = (struct put){ .status = 413, .becomes = "queued" };
	cloud.delete_fails = true;
	assert_failed(run(&dest), ERR_FAILED, "413 the service's words; image ");
	assert_words(err.text, dest->receipt.image_id);
	assert_words(err.text, "(delete: 503");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_FAILED);
	assert_int_equal(cloud.count, 1);
	assert_int_equal(count_notes(), 1);
	dest_close(dest);
	cloud.delete_fails = false;
	cloud.trace[0] = '\0';
	assert_arrived(run(&dest), "get delete " BEFORE "put get" AFTER);
}

static void with_keep_failed_it_is_kept_for_good(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.keep_failed = true;
	cloud.puts[0] = (struct put){ .status = 413, .becomes = "queued" };
	assert_failed(run_with(&cfg, &dest), ERR_FAILED, "is kept");
	assert_int_equal(dest->receipt.cleanup, CLEANUP_KEPT);
	assert_int_equal(cloud.count, 1);
	assert_int_equal(count_notes(), 0);
}

static int interrupted_run(bool *when)
{
	struct dest_config cfg = config_of();

	signal(SIGTERM, SIG_DFL);
	interrupt_install();
	*when = cfg.make_protected = true;
	if (run_with(&cfg, &dest) == 0 || err.kind != ERR_INTERRUPTED || err.sys_errno != SIGTERM)
		return 1;
	return wrong_kind_of_end() || cloud.deleted_when != SERVICE_KEEP_ON ? 2 : 0;
}

static void assert_interrupted_run_leaves_nothing(bool *when)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(interrupted_run(when));
	assert_int_equal(wait_for(pid), 0);
}

static void a_signal_leaves_nothing(void **state)
{
	(void)state;
	assert_interrupted_run_leaves_nothing(&cloud.signal_at_put);
}

static void a_signal_while_the_image_is_made_leaves_nothing(void **state)
{
	(void)state;
	cloud.create_answer_lost = true;
	cloud.create_late = 5;
	assert_interrupted_run_leaves_nothing(&cloud.signal_at_create);
}

static void a_signal_while_the_image_is_protected_leaves_nothing(void **state)
{
	(void)state;
	assert_interrupted_run_leaves_nothing(&cloud.signal_at_protect);
}

/* --- the file that stays --- */

static void a_kept_file_is_there_though_the_upload_failed(void **state)
{
	autofree char *path = str_format("%s/kept.raw", dir);
	autofree char *hint = str_format("ccsnap upload %s mine --to=glance:lab and the same "
					 "--property, --tag and --series",
					 path);
	struct dest_config cfg = config_of();
	autofree char *text = NULL;

	(void)state;
	cfg.keep_path = path;
	cloud.puts[0] = (struct put){ .status = 413, .becomes = "queued" };
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, hint);
	assert_true(dest->receipt.is_kept);
	assert_string_equal(dest->path, path);
	text = io_read_file(AT_FDCWD, path, 100, NULL, &err);
	assert_string_equal(text, CONTENT);
}

static void the_hint_is_a_line_for_a_shell(void **state)
{
	autofree char *path = str_format("%s/it's mine.raw", dir);
	autofree char *hint = str_format("ccsnap upload '%s/it'\\''s mine.raw' 'a name' "
					 "--to=glance:lab",
					 dir);
	struct dest_config cfg = config_of();

	(void)state;
	cfg.keep_path = path;
	cfg.image_name = "a name";
	cloud.puts[0] = (struct put){ .status = 413, .becomes = "queued" };
	assert_cleaned_up(run_with(&cfg, &dest), ERR_FAILED, hint);
}

static void a_file_that_is_written_to_meanwhile_is_named_and_not_left_there(void **state)
{
	struct image_info info = { .format = strdup("raw"), .size = strlen(CONTENT) + 1 };
	const struct dest_config cfg = config_of();
	int fd, rc;

	(void)state;
	dest = dest_open(&cfg, &err);
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(io_pwrite(fd, CONTENT, strlen(CONTENT), 0), 0);
	rc = dest->ops->publish(dest, &info, &err);
	image_info_free(&info);
	assert_cleaned_up(rc, ERR_FAILED, "the image's file became shorter");
}

static void a_finished_file_is_sent_as_it_is(void **state)
{
	struct image_info info = { .format = strdup("raw"), .size = strlen(CONTENT) };
	struct dest_config cfg = config_of();
	autofree char *path = str_format("%s/content", dir);
	char hex[HASH_HEX_MAX + 1];
	autoclose int fd = -1;

	(void)state;
	digest_of_content("sha512", hex);
	snprintf(info.digests.sha512, sizeof info.digests.sha512, "%s", hex);
	fd = open(path, O_RDONLY);
	cfg.work_dir = "/nonexistent";
	dest = dest_open(&cfg, &err);
	dest->ops->adopt(dest, fd);
	assert_int_equal(dest->ops->check(dest, info.size, &err), 0);
	assert_int_equal(dest->ops->publish(dest, &info, &err), 0);
	assert_string_equal(info.id, dest->receipt.image_id);
	assert_true(str_starts(info.file, ENDPOINT "/v2/images/"));
	assert_string_equal(info.digests.sha512, hex);
	assert_int_equal(strlen(info.digests.sha256), 64);
	image_info_free(&info);
}

static void a_file_that_is_not_what_it_was_is_a_failure(void **state)
{
	struct image_info info = { .format = strdup("raw"), .size = strlen(CONTENT) };
	struct dest_config cfg = config_of();
	int fd, rc;

	(void)state;
	memset(info.digests.sha256, '0', 64);
	dest = dest_open(&cfg, &err);
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(io_pwrite(fd, CONTENT, strlen(CONTENT), 0), 0);
	memset(info.digests.sha512, '0', 128);
	rc = dest->ops->publish(dest, &info, &err);
	image_info_free(&info);
	assert_cleaned_up(rc, ERR_FAILED, "has changed");
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_upload_is_created_sent_proven_and_completed),
		TEST(the_image_is_noted_here_before_the_service_hears_of_it),
		TEST(protection_comes_last),
		TEST(what_is_still_queued_is_sent_again),
		TEST(an_active_image_whose_answer_was_lost_is_proven),
		TEST(nothing_is_ever_sent_into_an_image_that_is_stuck),
		TEST(a_service_that_has_all_of_it_may_finish),
		TEST(one_that_never_finishes_is_deleted_and_made_anew),
		TEST(tries_come_to_an_end),
		TEST(a_refusal_ends_it_at_once),
		TEST(what_cannot_get_better_ends_it_at_once),
		TEST(a_service_that_is_slow_or_away_is_waited_for),
		TEST(an_image_that_never_gets_active_is_given_up),
		TEST(an_image_that_ends_otherwise_is_a_clear_error),
		TEST(wrong_bytes_are_sent_once_more),
		TEST(wrong_bytes_twice_are_a_failure_that_tells_both_values),
		TEST(digests_are_known_in_either_case_and_by_several_names),
		TEST(a_digest_that_we_did_not_compute_is_computed_for_it),
		TEST(an_md5_will_do_where_there_is_nothing_better),
		TEST(a_wrong_md5_is_not_what_was_made),
		TEST(without_a_digest_it_is_unverified_and_said_so),
		TEST(a_conversion_is_a_clear_failure),
		TEST(an_import_stages_first),
		TEST(a_service_without_the_direct_way_gets_an_import),
		TEST(nothing_is_imported_when_that_was_not_asked_for_or_cannot_be),
		TEST(a_failed_import_tells_the_services_reason),
		TEST(a_create_that_fails_leaves_nothing),
		TEST(a_create_that_never_got_there_leaves_nothing_to_delete),
		TEST(out_of_memory_at_the_end_leaves_nothing),
		TEST(an_image_whose_create_was_not_answered_is_deleted),
		TEST(an_image_that_comes_late_is_waited_for_and_deleted),
		TEST(an_image_that_may_still_come_is_looked_for_by_the_next_run),
		TEST(an_image_being_imported_is_deleted_when_that_has_ended),
		TEST(an_import_that_does_not_end_is_left_to_the_next_run),
		TEST(a_protection_that_was_not_answered_is_lifted),
		TEST(an_image_that_cannot_be_completed_is_deleted),
		TEST(what_cannot_be_deleted_is_left_to_the_next_run),
		TEST(with_keep_failed_it_is_kept_for_good),
		TEST(a_signal_leaves_nothing),
		TEST(a_signal_while_the_image_is_made_leaves_nothing),
		TEST(a_signal_while_the_image_is_protected_leaves_nothing),
		TEST(a_kept_file_is_there_though_the_upload_failed),
		TEST(the_hint_is_a_line_for_a_shell),
		TEST(a_file_that_is_written_to_meanwhile_is_named_and_not_left_there),
		TEST(a_finished_file_is_sent_as_it_is),
		TEST(a_file_that_is_not_what_it_was_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
