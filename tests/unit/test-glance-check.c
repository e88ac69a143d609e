// SPDX-License-Identifier: Apache-2.0
#include "glance-kit.h"

#define ID1   "11111111-1111-4111-8111-111111111111"
#define ID2   "22222222-2222-4222-8222-222222222222"
#define ID3   "33333333-3333-4333-8333-333333333333"
#define NEED  1000
#define HEX64 "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"

static struct dest *dest;

static int finish(void **state)
{
	dest_close(dest);
	dest = NULL;
	return tear_down(state);
}

static int check_with(const struct dest_config *cfg, uint64_t need)
{
	dest_close(dest);
	dest = dest_open(cfg, &err);
	assert_non_null(dest);
	return dest->ops->check(dest, need, &err);
}

static int check(uint64_t need)
{
	const struct dest_config cfg = config_of();

	return check_with(&cfg, need);
}

/* --- before anything is read --- */

static void a_check_changes_nothing_and_asks_once(void **state)
{
	(void)state;
	assert_int_equal(check(0), 0);
	assert_int_equal(dest->ops->check(dest, NEED, &err), 0);
	assert_string_equal(cloud.trace, "list room");
	assert_int_equal(cloud.logins, 1);
	assert_int_equal(count_in(dir, ""), 0);
	assert_true(dest->free_known && dest->free_bytes > NEED);
}

static void what_needs_no_answer_is_refused_before_logging_in(void **state)
{
	char *properties[] = { (char *)"os_glance_x=y", NULL };
	struct dest_config cfg = config_of();

	(void)state;
	dest = dest_open(&cfg, &err);
	dest->properties = properties;
	assert_failed(dest->ops->check(dest, 0, &err), ERR_REFUSED, "os_glance_x=y is reserved");
	cfg.work_dir = "/nonexistent";
	assert_failed(check_with(&cfg, 0), ERR_REFUSED, "/nonexistent");
	assert_int_equal(cloud.logins, 0);
}

static void a_log_in_that_fails_is_tried_once(void **state)
{
	const struct dest_config cfg = config_of();

	(void)state;
	cloud.login_fails = true;
	dest = dest_open(&cfg, &err);
	dest->ops->tidy(dest);
	assert_failed(dest->ops->check(dest, 0, &err), ERR_REFUSED, "wrong password");
	assert_failed(dest->ops->check(dest, 0, &err), ERR_REFUSED, "wrong password");
	assert_int_equal(cloud.logins, 1);
}

static void a_token_without_a_project_is_refused(void **state)
{
	(void)state;
	cloud.no_project = true;
	assert_failed(check(0), ERR_REFUSED, "set OS_PROJECT_NAME");
}

static void a_format_that_the_service_does_not_take_is_refused(void **state)
{
	(void)state;
	cloud.no_format = true;
	assert_failed(check(0), ERR_REFUSED, "raw is not taken here");
}

static void an_import_that_is_not_offered_is_refused(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.upload_method = "import";
	cloud.cannot_import = true;
	assert_failed(check_with(&cfg, 0), ERR_REFUSED, "use --upload-method=direct");
}

static void a_quota_that_is_too_small_is_refused_and_told(void **state)
{
	(void)state;
	cloud.room = 4096;
	assert_int_equal(check(4096), 0);
	assert_int_equal(dest->free_bytes, 4096);
	assert_failed(check(4097), ERR_REFUSED, "4.0 KiB");
	assert_int_equal(dest->free_bytes, 4096);
}

static void two_clouds_are_one_too_many(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.cloud = "other";
	assert_null(dest_open(&cfg, &err));
	assert_failed(-1, ERR_USAGE, "name two clouds");
	cfg.cloud = "lab";
	dest = dest_open(&cfg, &err);
	assert_string_equal(dest->name, "glance:lab image mine");
	dest_close(dest);
	cfg.where = "glance";
	dest = dest_open(&cfg, &err);
	assert_string_equal(dest->name, "glance:lab image mine");
}

/* --- tokens --- */

static void a_fixed_token_that_ends_at_once_is_refused(void **state)
{
	(void)state;
	cloud.token_seconds = 59;
	assert_int_equal(check(NEED), 0);
	cloud.token_is_fixed = true;
	assert_failed(check(NEED), ERR_REFUSED, "expires in 59 seconds and cannot be renewed");
}

static void a_fixed_token_that_ends_too_early_is_said_once(void **state)
{
	const uint64_t large = UINT64_C(20000000) * 3600; /* an hour to send, 24 minutes to read */
	struct dest_config cfg = config_of();

	(void)state;
	cloud.token_is_fixed = true;
	cloud.token_seconds = 3700;
	cfg.work_dir = "/";
	dest = dest_open(&cfg, &err);
	dest->ops->adopt(dest, 0);
	assert_int_equal(dest->ops->check(dest, large, &err), 0);
	assert_string_equal(warnings, ""); /* there is nothing to read */
	cloud.token_seconds = 3500;
	assert_int_equal(dest->ops->check(dest, large, &err), 0);
	assert_words(warnings, "expires in 58 minutes");
	warnings[0] = '\0';
	assert_int_equal(dest->ops->check(dest, large, &err), 0);
	assert_string_equal(warnings, "");
}

static void a_limited_rate_makes_it_longer(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cloud.token_is_fixed = true;
	cloud.token_seconds = 600;
	cfg.limit_rate = 1;
	assert_int_equal(check_with(&cfg, NEED), 0);
	assert_words(warnings, "expires in 10 minutes");
}

/* --- the same name --- */

static void an_existing_name_is_refused_with_its_id(void **state)
{
	static const char *const there[] = { "active", "queued", "saving", "deactivated" };

	(void)state;
	put_image(ID1, "mine", "active");
	for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
		set(&cloud.at[0].status, there[i]);
		assert_failed(check(0), ERR_REFUSED, "glance:lab image mine exists (" ID1 ", ");
		assert_words(err.text, "use --overwrite");
	}
	set(&cloud.at[0].status, "killed");
	assert_int_equal(check(0), 0);
}

static void other_names_and_other_projects_do_not_matter(void **state)
{
	(void)state;
	put_image(ID1, "Mine", "active");
	set(&put_image(ID2, "mine", "active")->owner, "another");
	assert_int_equal(check(0), 0);
}

static void overwriting_removes_what_is_older_when_the_new_is_proven(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	put_image(ID1, "mine", "active");
	put_image(ID2, "MINE", "active");
	put_image(ID3, "mine", "saving");
	cfg.overwrite = true;
	assert_int_equal(run_with(&cfg, &dest), 0);
	assert_string_equal(cloud.trace, "list room list create put get set list delete");
	assert_null(image_of(ID1));
	assert_non_null(image_of(ID2));
	assert_non_null(image_of(ID3));
	assert_int_equal(cloud.count, 3);
}

static void overwriting_that_fails_leaves_what_was_there(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	put_image(ID1, "mine", "active");
	cfg.overwrite = true;
	cloud.puts[0] = cloud.puts[1] = (struct put){ .status = 204, .value = "abcd" };
	assert_failed(run_with(&cfg, &dest), ERR_FAILED, "sha512");
	assert_int_equal(cloud.count, 1);
	assert_non_null(image_of(ID1));
}

static void what_is_replaced_but_cannot_be_removed_is_a_warning(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	put_image(ID1, "mine", "active");
	cfg.overwrite = true;
	cloud.delete_fails = true;
	assert_int_equal(run_with(&cfg, &dest), 0);
	assert_words(warnings, "image " ID1 " was replaced, but may stay: delete: 503");
	dest_close(dest);
	cloud.delete_refused = true;
	assert_int_equal(run_with(&cfg, &dest), 0);
	assert_words(warnings, "image " ID1 " was replaced, but stays: delete: 403");
}

static int interrupted_overwrite(void)
{
	struct dest_config cfg = config_of();

	signal(SIGTERM, SIG_DFL);
	interrupt_install();
	cfg.overwrite = cloud.signal_at_set = true;
	if (run_with(&cfg, &dest) < 0)
		return 1;
	return image_of(ID1) || *warnings ? 2 : 0;
}

static void what_is_replaced_is_removed_after_a_signal_too(void **state)
{
	pid_t pid;

	(void)state;
	put_image(ID1, "mine", "active");
	pid = fork();
	if (pid == 0)
		_exit(interrupted_overwrite());
	assert_int_equal(wait_for(pid), 0);
}

static void when_nothing_tells_what_is_older_it_is_said_that_it_stays(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	put_image(ID1, "mine", "active");
	cfg.overwrite = true;
	cloud.hides_newest = true;
	assert_int_equal(run_with(&cfg, &dest), 0);
	assert_words(warnings, "older images of that name stay: the image service does not list");
	assert_words(warnings, dest->receipt.image_id);
	assert_non_null(image_of(ID1));
}

static void a_protected_image_is_never_overwritten(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	put_image(ID1, "mine", "active")->is_protected = true;
	cfg.overwrite = true;
	assert_failed(check_with(&cfg, 0), ERR_REFUSED, "is protected (" ID1 ")");
}

/* --- what killed runs left --- */

static void leave_note(const char *id)
{
	const struct upload_note note = {
		.image_id = id, .endpoint = ENDPOINT, .project_id = PROJECT, .name = "mine"
	};
	pid_t pid = fork();

	if (pid == 0)
		_exit(uploads_begin(uploads_open(&err), &note, &err) < 0);
	assert_int_equal(wait_for(pid), 0);
}

static void tidy(void)
{
	const struct dest_config cfg = config_of();

	dest_close(dest);
	dest = dest_open(&cfg, &err);
	dest->ops->tidy(dest);
}

static void the_image_of_a_killed_run_is_deleted(void **state)
{
	(void)state;
	put_image(ID1, "mine", "saving");
	put_image(ID2, "mine", "saving");
	leave_note(ID1);
	tidy();
	assert_null(image_of(ID1));
	assert_non_null(image_of(ID2));
	assert_int_equal(count_notes(), 0);
}

static void a_protection_of_a_killed_run_is_lifted(void **state)
{
	(void)state;
	put_image(ID1, "mine", "active")->is_protected = true;
	leave_note(ID1);
	tidy();
	assert_null(image_of(ID1));
	assert_int_equal(count_notes(), 0);
}

/* As if its run was so many seconds ago. */
static void age_note(const char *id, time_t seconds)
{
	autofree char *path = str_format("%s/uploads/%s.json", dir, id);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = time(NULL) - seconds } };

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void an_image_that_a_killed_run_asked_for_may_still_come(void **state)
{
	(void)state;
	leave_note(ID1);
	tidy();
	age_note(ID1, 3500);
	tidy();
	age_note(ID1, -86400); /* the clock was set back */
	tidy();
	assert_int_equal(count_notes(), 1);
	assert_string_equal(warnings, "");
	put_image(ID1, "mine", "queued");
	tidy();
	assert_null(image_of(ID1));
	assert_int_equal(count_notes(), 0);
}

static void an_image_that_did_not_come_in_an_hour_never_does(void **state)
{
	(void)state;
	leave_note(ID1);
	age_note(ID1, 3700);
	tidy();
	assert_int_equal(count_notes(), 0);
}

static void an_image_being_imported_is_left_to_a_later_run(void **state)
{
	(void)state;
	put_image(ID1, "mine", "importing");
	leave_note(ID1);
	tidy();
	assert_non_null(image_of(ID1));
	assert_int_equal(count_notes(), 1);
	assert_words(warnings, "it is still being imported");
	cloud.import_failure = "its task failed";
	tidy();
	assert_null(image_of(ID1));
	assert_int_equal(count_notes(), 0);
}

/* --- one run for a name at a time --- */

static struct dest *other;

static void reserve_by_other(void)
{
	const struct dest_config cfg = config_of();
	int fd;

	other = dest_open(&cfg, &err);
	assert_int_equal(other->ops->check(other, 0, &err), 0);
	assert_int_equal(other->ops->reserve(other, &fd, &err), 0);
}

static void end_other(void)
{
	while_asleep = NULL;
	dest_close(other);
}

static void complete_other(void)
{
	put_image(ID1, "mine", "active");
	end_other();
}

static void a_name_that_another_run_sends_is_busy(void **state)
{
	struct dest_config cfg = config_of();
	uint64_t start = slept_ns;

	(void)state;
	reserve_by_other();
	assert_failed(run(&dest), ERR_BUSY,
		      "glance:lab image mine: another run sends an image of that name; wait for "
		      "it with --lock-wait");
	dest_close(dest);
	cfg.lock_wait_seconds = 7;
	assert_failed(run_with(&cfg, &dest), ERR_BUSY, "--lock-wait");
	assert_in_range((slept_ns - start) / 1000000000, 7, 8);
	dest_close(dest);
	cfg.image_name = "another";
	assert_int_equal(run_with(&cfg, &dest), 0);
	end_other();
	assert_int_equal(count_locks(), 0);
}

static void a_name_is_waited_for_and_looked_at_again(void **state)
{
	struct dest_config cfg = config_of();

	(void)state;
	cfg.lock_wait_seconds = 7;
	reserve_by_other();
	while_asleep = end_other;
	assert_int_equal(run_with(&cfg, &dest), 0);
	dest_close(dest);
	remove_image(&cloud.at[0]);
	reserve_by_other();
	while_asleep = complete_other;
	assert_failed(run_with(&cfg, &dest), ERR_REFUSED, "exists (" ID1 ", active)");
	assert_int_equal(cloud.count, 1);
}

static void a_finished_file_takes_its_name_when_it_is_sent(void **state)
{
	struct image_info info = { .format = NULL };
	const struct dest_config cfg = config_of();

	(void)state;
	dest = dest_open(&cfg, &err);
	dest->ops->adopt(dest, 0);
	assert_int_equal(dest->ops->check(dest, 0, &err), 0);
	reserve_by_other();
	assert_failed(dest->ops->publish(dest, &info, &err), ERR_BUSY, "--lock-wait");
	complete_other();
	assert_failed(dest->ops->publish(dest, &info, &err), ERR_REFUSED, "exists");
}

static void what_cannot_be_deleted_now_is_noted_still(void **state)
{
	(void)state;
	put_image(ID1, "mine", "saving");
	leave_note(ID1);
	cloud.delete_fails = true;
	tidy();
	assert_int_equal(count_notes(), 1);
	assert_words(warnings, "could not be deleted: delete: 503");
	cloud.login_fails = true;
	tidy();
	assert_int_equal(count_notes(), 1);
}

/* --- listing --- */

static struct image_list list_of(const struct image_filter *filter)
{
	const struct dest_config cfg = { .where = "glance:lab" };
	struct image_list list;

	dest_close(dest);
	dest = dest_open(&cfg, &err);
	assert_int_equal(dest->ops->list(dest, filter, &list, &err), 0);
	return list;
}

static size_t count_of(const struct image_filter *filter)
{
	struct image_list list = list_of(filter);
	size_t count = list.len;

	image_list_free(&list);
	return count;
}

static void a_list_tells_what_the_service_does(void **state)
{
	struct service_image *image = put_image(ID1, "mine", "active");
	struct image_list list;

	(void)state;
	image->size = 42;
	image->is_protected = true;
	image->tags[0] = strdup("nightly");
	image->properties[0] = strdup(PROPERTY_SHA256 "=" HEX64);
	set(&image->hash_algo, "sha512");
	set(&image->hash_value, HEX64 HEX64);
	list = list_of(&(struct image_filter){ 0 });
	assert_int_equal(list.len, 1);
	assert_string_equal(dest->name, "glance:lab");
	assert_string_equal(list.at[0].id, ID1);
	assert_string_equal(list.at[0].name, "mine");
	assert_string_equal(list.at[0].file, ENDPOINT "/v2/images/" ID1 "/file");
	assert_string_equal(list.at[0].format, "raw");
	assert_string_equal(list.at[0].status, "active");
	assert_string_equal(list.at[0].tags[0], "nightly");
	assert_string_equal(list.at[0].created_at, "2026-01-31T23:59:59Z");
	assert_int_equal(list.at[0].size, 42);
	assert_true(list.at[0].is_protected);
	assert_null(list.at[0].compression);
	assert_true(str_starts(list.at[0].digests.sha256, "0123456789abcdef0"));
	assert_int_equal(strlen(list.at[0].digests.sha512), 128);
	image_list_free(&list);
}

static void a_digest_that_is_none_is_not_shown(void **state)
{
	struct service_image *image = put_image(ID1, "mine", "active");
	struct image_list list;

	(void)state;
	image->properties[0] = strdup(PROPERTY_SHA256 "=" HEX64 "0");
	set(&image->hash_algo, "sha256");
	set(&image->hash_value, HEX64 HEX64);
	list = list_of(&(struct image_filter){ 0 });
	assert_string_equal(list.at[0].digests.sha256, "");
	assert_string_equal(list.at[0].digests.sha512, "");
	image_list_free(&list);
}

/* This service sorts out nothing. */
static void filters_hold_whatever_the_service_does(void **state)
{
	struct service_image *image = put_image(ID1, "mine", "active");

	(void)state;
	image->properties[0] = strdup(PROPERTY_SERIES "=s");
	image->tags[0] = strdup("t");
	put_image(ID2, "Mine", "active");
	set(&put_image(ID3, "mine", "active")->owner, "another");
	assert_int_equal(count_of(&(struct image_filter){ 0 }), 2);
	assert_int_equal(count_of(&(struct image_filter){ .name = "mine" }), 1);
	assert_int_equal(count_of(&(struct image_filter){ .series = "s" }), 1);
	assert_int_equal(count_of(&(struct image_filter){ .series = "S" }), 0);
	assert_int_equal(count_of(&(struct image_filter){ .tag = "t" }), 1);
	assert_int_equal(count_of(&(struct image_filter){ .id = ID2 }), 1);
}

/* Nova's: it has all properties of the image that the instance was started from. */
static void a_snapshot_of_an_instance_is_not_ours(void **state)
{
	struct service_image *image = put_image(ID1, "mine", "active");
	struct image_list list;

	(void)state;
	image->properties[0] = strdup(PROPERTY_SERIES "=s");
	image->properties[1] = strdup("base_image_ref=" ID2);
	image->properties[2] = strdup(PROPERTY_SHA256 "=" HEX64);
	list = list_of(&(struct image_filter){ 0 });
	assert_null(image_property(&list.at[0], PROPERTY_SERIES));
	assert_string_equal(image_property(&list.at[0], "base_image_ref"), ID2);
	assert_string_equal(list.at[0].digests.sha256, "");
	image_list_free(&list);
	assert_int_equal(count_of(&(struct image_filter){ .series = "s" }), 0);
}

static void an_image_of_another_project_is_found_by_its_id(void **state)
{
	(void)state;
	set(&put_image(ID1, "shared", "active")->owner, "another");
	assert_int_equal(count_of(&(struct image_filter){ .name = "shared" }), 0);
	assert_int_equal(count_of(&(struct image_filter){ .id = ID1 }), 1);
}

static void an_image_without_a_name_is_listed(void **state)
{
	struct image_list list;

	(void)state;
	put_image(ID1, NULL, "queued");
	list = list_of(&(struct image_filter){ 0 });
	assert_string_equal(list.at[0].name, "");
	image_list_free(&list);
}

static void removing_takes_the_image_and_no_protected_one(void **state)
{
	struct service_image *image = put_image(ID1, "mine", "active");
	struct image_list list = list_of(&(struct image_filter){ 0 });

	(void)state;
	image->is_protected = true;
	assert_failed(dest->ops->remove(dest, &list.at[0], &err), ERR_REFUSED, "protected");
	image->is_protected = false;
	assert_int_equal(dest->ops->remove(dest, &list.at[0], &err), 0);
	assert_int_equal(cloud.count, 0);
	assert_int_equal(dest->ops->remove(dest, &list.at[0], &err), 0);
	image_list_free(&list);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_check_changes_nothing_and_asks_once),
		TEST(what_needs_no_answer_is_refused_before_logging_in),
		TEST(a_log_in_that_fails_is_tried_once),
		TEST(a_token_without_a_project_is_refused),
		TEST(a_format_that_the_service_does_not_take_is_refused),
		TEST(an_import_that_is_not_offered_is_refused),
		TEST(a_quota_that_is_too_small_is_refused_and_told),
		TEST(two_clouds_are_one_too_many),
		TEST(a_fixed_token_that_ends_at_once_is_refused),
		TEST(a_fixed_token_that_ends_too_early_is_said_once),
		TEST(a_limited_rate_makes_it_longer),
		TEST(an_existing_name_is_refused_with_its_id),
		TEST(other_names_and_other_projects_do_not_matter),
		TEST(overwriting_removes_what_is_older_when_the_new_is_proven),
		TEST(overwriting_that_fails_leaves_what_was_there),
		TEST(what_is_replaced_but_cannot_be_removed_is_a_warning),
		TEST(what_is_replaced_is_removed_after_a_signal_too),
		TEST(when_nothing_tells_what_is_older_it_is_said_that_it_stays),
		TEST(a_protected_image_is_never_overwritten),
		TEST(the_image_of_a_killed_run_is_deleted),
		TEST(a_protection_of_a_killed_run_is_lifted),
		TEST(an_image_that_a_killed_run_asked_for_may_still_come),
		TEST(an_image_that_did_not_come_in_an_hour_never_does),
		TEST(an_image_being_imported_is_left_to_a_later_run),
		TEST(a_name_that_another_run_sends_is_busy),
		TEST(a_name_is_waited_for_and_looked_at_again),
		TEST(a_finished_file_takes_its_name_when_it_is_sent),
		TEST(what_cannot_be_deleted_now_is_noted_still),
		TEST(a_list_tells_what_the_service_does),
		TEST(a_digest_that_is_none_is_not_shown),
		TEST(filters_hold_whatever_the_service_does),
		TEST(a_snapshot_of_an_instance_is_not_ours),
		TEST(an_image_of_another_project_is_found_by_its_id),
		TEST(an_image_without_a_name_is_listed),
		TEST(removing_takes_the_image_and_no_protected_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
