// SPDX-License-Identifier: Apache-2.0
#include "quiesce/recover.h"

#include "virt-kit.h"

#include "base/interrupt.h"
#include "quiesce/record.h"

#include <signal.h>

static char scratch_dir[200], scratch[220], socket_path[220], overlay[220];
static char told[2000];
static bool is_interrupted;

int interrupt_check(struct err *e)
{
	return is_interrupted ? err_set(e, ERR_INTERRUPTED, "interrupted") : 0;
}

int interrupt_pending(void)
{
	return is_interrupted ? SIGINT : 0;
}

static int begin(void **state)
{
	int rc = make_world(state);

	snprintf(scratch_dir, sizeof scratch_dir, "%s/ccsnap-abcdef", dir);
	snprintf(scratch, sizeof scratch, "%s/scratch", scratch_dir);
	snprintf(socket_path, sizeof socket_path, "%s/socket", scratch_dir);
	snprintf(overlay, sizeof overlay, "%s/overlay", scratch_dir);
	told[0] = '\0';
	is_interrupted = false;
	return rc < 0 ? rc : mkdir(scratch_dir, 0700);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, remove_state)

static struct record *open_record(void)
{
	struct record *r = record_open(UUID, 0, &err);

	if (!r)
		fail_msg("%s", err.text);
	return r;
}

static void leave(const struct record_note *note)
{
	struct record *r = open_record();

	assert_int_equal(record_write(r, note, &err), 0);
	record_close(r);
}

static struct record_note backup_note(void)
{
	return (struct record_note){
		.uri = (char *)"qemu:///system",
		.name = (char *)"vm",
		.run_id = 4,
		.target = (char *)"vda",
		.scratch_dir = scratch_dir,
		.scratch = scratch,
		.socket = socket_path,
	};
}

static struct record_note snapshot_note(void)
{
	struct record_note note = backup_note();

	note.scratch = note.socket = NULL;
	note.overlay = overlay;
	return note;
}

static void note_told(void *ctx, const char *done)
{
	(void)ctx;
	snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", done);
}

/* As the next run does. */
static int recover(void)
{
	struct record *r = open_record();
	int rc;

	err = (struct err){ 0 };
	rc = recover_run(&given, r, note_told, NULL, &err);
	assert_int_equal(record_is_clear(r), rc == 0);
	record_close(r);
	return rc;
}

static void recover_or_fail(void)
{
	if (recover() < 0)
		fail_msg("%s", err.text);
}

static void assert_told(const char *words)
{
	if (!strstr(told, words))
		fail_msg("'%s' was not told: %s", words, told);
}

/* --- what is ours --- */

static void nothing_written_is_nothing_done(void **state)
{
	(void)state;
	world.is_frozen = true;
	set_job("backup", "/x/socket", "/x/scratch");
	recover_or_fail();
	assert_int_equal(world.thaws + world.aborts + world.resets + world.merges, 0);
	assert_string_equal(told, "");
	assert_true(file_is_there(scratch_dir));
}

static void a_freeze_of_a_dead_run_is_thawed(void **state)
{
	const struct record_note note = { .run_id = 4, .frozen = true, .patience = true };

	(void)state;
	leave(&note);
	world.is_frozen = true;
	world.patience = 5;
	recover_or_fail();
	assert_false(world.is_frozen);
	assert_int_equal(world.patience, 0);
	assert_told("thawed 2 filesystems");
}

static void a_freeze_ends_with_the_start_that_was_frozen(void **state)
{
	const struct record_note note = { .run_id = 3, .frozen = true, .patience = true };

	(void)state;
	leave(&note);
	world.is_frozen = true; /* by somebody else, since */
	recover_or_fail();
	assert_int_equal(world.thaws, 0);
	assert_int_equal(world.resets, 0);
}

static void an_unknown_start_is_thawed_to_be_sure(void **state)
{
	const struct record_note note = { .run_id = -1, .frozen = true };

	(void)state;
	leave(&note);
	recover_or_fail();
	assert_int_equal(world.thaws, 1);
}

static void our_job_is_ended_and_its_files_go(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	set_job("backup", socket_path, scratch);
	put_file(socket_path, "", 0600);
	put_file(scratch, "", 0600);
	recover_or_fail();
	assert_int_equal(world.aborts, 1);
	assert_false(file_is_there(scratch_dir));
	assert_told("ended the backup job of the disk vda");
	assert_told(scratch_dir);
}

static void a_guest_that_was_stopped_for_lack_of_room_goes_on(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	set_job("backup", socket_path, scratch);
	world.is_stopped = true;
	recover_or_fail();
	assert_int_equal(world.resumes, 1);
}

static void a_guest_on_an_overlay_without_room_goes_on_once_it_is_merged(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600);
	world.overlay_is_used = true;
	world.is_stopped = true;
	recover_or_fail();
	assert_int_equal(world.resumes, 1);
	assert_false(file_is_there(overlay));
}

static void a_guest_that_we_have_not_stopped_stays_stopped(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	world.is_stopped = true; /* there is no job of ours */
	recover_or_fail();
	assert_int_equal(world.resumes, 0);
	mkdir(scratch_dir, 0700);
	leave(&note);
	set_job("backup", socket_path, scratch);
	world.is_stopped_by_another_disk = true;
	recover_or_fail();
	assert_int_equal(world.aborts, 1);
	assert_int_equal(world.resumes, 0);
}

/* --- where it was done --- */

static int recover_over(struct virt *v)
{
	struct record *r = open_record();
	int rc;

	err = (struct err){ 0 };
	rc = recover_uuid(v, UUID, r, note_told, NULL, &err);
	assert_int_equal(record_is_clear(r), rc == 0);
	record_close(r);
	return rc;
}

static void leave_a_job(void)
{
	const struct record_note note = backup_note();

	leave(&note);
	set_job("backup", socket_path, scratch);
}

static void a_record_is_undone_at_its_own_uri(void **state)
{
	struct virt elsewhere = { .daemon = 1, .elsewhere = "qemu:///session" };

	(void)state;
	leave_a_job();
	assert_int_equal(recover_over(&elsewhere), 0);
	assert_int_equal(world.aborts, 1);
	assert_int_equal(world.opened, 0);
	mkdir(scratch_dir, 0700);
	leave_a_job();
	assert_int_equal(recover_over(&given_virt), 0);
	mkdir(scratch_dir, 0700);
	leave_a_job();
	assert_int_equal(recover_over(NULL), 0);
	assert_int_equal(world.aborts, 3);
}

static void what_was_done_where_nothing_answers_stays_on_record(void **state)
{
	struct virt elsewhere = { .daemon = 1, .elsewhere = "qemu:///session" };

	(void)state;
	leave_a_job();
	world.daemon = 0;
	assert_int_equal(recover_over(&elsewhere), -1);
	assert_says("qemu:///system");
	assert_true(file_is_there(scratch_dir));
}

/* --- domains that are gone --- */

static void of_a_domain_that_is_gone_only_files_are_removed(void **state)
{
	struct record_note note = backup_note();
	struct record *r;

	(void)state;
	note.frozen = note.patience = true;
	leave(&note);
	put_file(scratch, "", 0600);
	world.exists = false;
	assert_int_equal(recover_over(&given_virt), 0);
	assert_false(file_is_there(scratch_dir));
	assert_int_equal(world.thaws + world.aborts + world.resets, 0);
	leave(&note);
	r = open_record();
	assert_int_equal(recover_run(NULL, r, note_told, NULL, &err), 0);
	assert_true(record_is_clear(r));
	record_close(r);
}

static void an_overlay_of_a_domain_that_is_gone_stays(void **state)
{
	struct record_note note = snapshot_note();

	(void)state;
	note.frozen = true;
	leave(&note);
	put_file(overlay, "data", 0600);
	world.exists = false;
	assert_int_equal(recover_over(&given_virt), -1);
	assert_says(overlay);
	assert_says("it is kept");
	assert_true(file_is_there(overlay));
	assert_int_equal(unlink(overlay), 0); /* the user has looked */
	assert_int_equal(recover_over(&given_virt), 0);
	assert_false(file_is_there(scratch_dir));
}

static void one_of_the_two_paths_is_enough_to_know_it(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	set_job("backup", socket_path, "");
	recover_or_fail();
	assert_int_equal(world.aborts, 1);
	mkdir(scratch_dir, 0700);
	leave(&note);
	set_job("backup", "", scratch);
	recover_or_fail();
	assert_int_equal(world.aborts, 2);
}

/* The daemon goes on with a call whose caller was killed. */
static void a_job_that_is_still_being_begun_is_waited_for(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	set_job("backup", socket_path, scratch);
	world.finds_until_job = 5;
	world.finds_that_fail = 5; /* as libvirt does at that moment */
	recover_or_fail();
	assert_int_equal(world.aborts, 1);
}

static void the_jobs_of_others_are_left_alone(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	set_job("backup", "/x/socket", "/x/scratch");
	recover_or_fail();
	assert_int_equal(world.aborts, 0);
	assert_string_equal(world.kind, "backup");
	mkdir(scratch_dir, 0700);
	leave(&note);
	set_job("migration", "", "");
	recover_or_fail();
	assert_int_equal(world.aborts, 0);
}

/* Whatever kind it says it is. */
static void only_a_backup_job_is_ended(void **state)
{
	const struct record_note note = backup_note();

	(void)state;
	leave(&note);
	set_job("snapshot", socket_path, scratch);
	recover_or_fail();
	assert_int_equal(world.aborts, 0);
}

static void a_job_that_does_not_end_stays_on_record(void **state)
{
	struct record_note note = backup_note();
	struct record *r;

	(void)state;
	note.frozen = true;
	leave(&note);
	set_job("backup", socket_path, scratch);
	put_file(scratch, "", 0600);
	world.abort_fails = true;
	assert_int_equal(recover(), -1);
	assert_says("virsh -c qemu:///system domjobabort " UUID);
	assert_true(file_is_there(scratch));
	r = open_record();
	assert_false(record_note(r)->frozen); /* that much is done */
	assert_string_equal(record_note(r)->scratch, scratch);
	record_close(r);
	world.abort_fails = false;
	recover_or_fail();
	assert_false(file_is_there(scratch_dir));
}

static void what_cannot_be_thawed_keeps_nothing_else_from_being_undone(void **state)
{
	struct record_note note = backup_note();
	struct record *r;

	(void)state;
	note.frozen = note.patience = true;
	leave(&note);
	set_job("backup", socket_path, scratch);
	world.thaw_fails = true;
	assert_int_equal(recover(), -1);
	assert_says("virsh -c qemu:///system domfsthaw " UUID);
	assert_int_equal(world.aborts, 1);
	assert_int_equal(world.resets, 1);
	assert_false(file_is_there(scratch_dir));
	r = open_record();
	assert_true(record_note(r)->frozen);
	assert_null(record_note(r)->scratch);
	record_close(r);
}

static void the_first_of_several_failures_is_told(void **state)
{
	struct record_note note = backup_note();

	(void)state;
	note.frozen = note.patience = true;
	leave(&note);
	world.thaw_fails = world.reset_fails = true;
	assert_int_equal(recover(), -1);
	assert_says("domfsthaw");
}

static void of_a_domain_that_is_off_only_files_remain(void **state)
{
	struct record_note note = backup_note();

	(void)state;
	note.frozen = note.patience = true;
	leave(&note);
	put_file(socket_path, "", 0600);
	world.run_id = -1;
	recover_or_fail();
	assert_int_equal(world.thaws + world.aborts + world.resets, 0);
	assert_false(file_is_there(scratch_dir));
}

static void an_unreachable_daemon_leaves_all_on_record(void **state)
{
	struct record_note note = backup_note();

	(void)state;
	note.frozen = true;
	leave(&note);
	put_file(scratch, "", 0600);
	world.daemon = 0;
	assert_int_equal(recover(), -1);
	assert_true(file_is_there(scratch));
}

/* The guard's copy is from before the run wrote anything. */
static void what_was_written_since_is_seen(void **state)
{
	struct record *r = open_record();
	int copy = dup(record_fd(r));
	struct record *guards = record_adopt(copy, &err);
	const struct record_note note = backup_note();

	(void)state;
	assert_int_equal(record_write(r, &note, &err), 0);
	record_close(r);
	set_job("backup", socket_path, scratch);
	assert_int_equal(recover_run(&given, guards, NULL, NULL, &err), 0);
	assert_int_equal(world.aborts, 1);
	record_close(guards);
}

static void over_ssh_there_are_no_files_here(void **state)
{
	struct record_note note = backup_note();

	(void)state;
	note.scratch_dir = NULL;
	leave(&note);
	put_file(scratch, "", 0600); /* of that name by chance */
	set_job("backup", socket_path, scratch);
	recover_or_fail();
	assert_int_equal(world.aborts, 1);
	assert_true(file_is_there(scratch));
}

static void a_strange_directory_on_record_is_left_alone(void **state)
{
	struct record_note note = backup_note();

	(void)state;
	note.scratch_dir = dir;
	leave(&note);
	assert_int_equal(recover(), -1);
	assert_says("left alone");
	assert_true(file_is_there(scratch_dir));
}

/* --- overlays --- */

static void an_overlay_in_use_is_merged_and_removed(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600);
	world.overlay_is_used = true;
	recover_or_fail();
	assert_int_equal(world.merges, 1);
	assert_false(file_is_there(scratch_dir));
	assert_told("merged and removed");
}

static void an_overlay_that_cannot_be_merged_stays(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600);
	world.overlay_is_used = world.merge_fails = true;
	assert_int_equal(recover(), -1);
	assert_says("do not remove it");
	assert_says("by hand: virsh blockcommit vda");
	assert_true(file_is_there(overlay));
}

static void an_overlay_of_which_nothing_is_known_stays(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600);
	world.overlay_use_is_unknown = true;
	assert_int_equal(recover(), -1);
	assert_says("do not remove it");
	assert_true(file_is_there(overlay));
}

/* The domain is off, and would start with it. */
static void an_overlay_of_the_next_start_stays(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600);
	world.run_id = -1;
	world.overlay_is_used = world.merge_fails = true;
	assert_int_equal(recover(), -1);
	assert_true(file_is_there(overlay));
}

/* Nobody can tell whether it was merged: a transient domain may have ended with it, and the number
 * of its start may have come again.
 */
static void an_overlay_that_no_disk_has_stays(void **state)
{
	struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600);
	assert_int_equal(recover(), -1);
	assert_int_equal(world.merges, 0);
	assert_says("may hold what it wrote last");
	assert_says("then remove it");
	assert_true(file_is_there(overlay));
	assert_int_equal(unlink(overlay), 0); /* the user has looked */
	recover_or_fail();
	assert_false(file_is_there(scratch_dir));
	note.run_id = world.run_id = -1;
	mkdir(scratch_dir, 0700);
	leave(&note);
	put_file(overlay, "data", 0600);
	assert_int_equal(recover(), -1);
	assert_true(file_is_there(overlay));
}

static void a_snapshot_that_is_still_being_made_is_waited_for(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	put_file(overlay, "data", 0600); /* the daemon makes it first */
	world.looks_until_used = 5;
	recover_or_fail();
	assert_int_equal(world.merges, 1);
	assert_false(file_is_there(overlay));
}

static void what_is_no_file_is_not_removed_for_an_overlay(void **state)
{
	const struct record_note note = snapshot_note();

	(void)state;
	leave(&note);
	assert_int_equal(symlink("/etc/passwd", overlay), 0);
	assert_int_equal(recover(), -1);
	assert_true(file_is_there(overlay));
}

/* --- others --- */

static char *others(const struct record_note *note)
{
	struct record *r = open_record();
	char *what = NULL;

	if (note)
		assert_int_equal(record_write(r, note, &err), 0);
	if (recover_others(&given, r, &what, &err) < 0)
		fail_msg("%s", err.text);
	record_close(r);
	return what;
}

static void nobody_elses_is_nothing(void **state)
{
	struct record_note note = backup_note();
	autofree char *first = others(NULL);
	autofree char *second = NULL;

	(void)state;
	assert_null(first);
	note.frozen = true;
	world.is_frozen = true;
	set_job("backup", socket_path, scratch);
	second = others(&note);
	assert_null(second);
	assert_int_equal(world.aborts + world.thaws, 0);
}

static void the_jobs_of_others_are_named(void **state)
{
	struct record_note note = backup_note();
	autofree char *backup = NULL, *other = NULL;

	(void)state;
	set_job("backup", "/x/socket", "/x/scratch");
	backup = others(&note);
	assert_non_null(strstr(backup, "/x/scratch"));
	set_job("migration", "", "");
	other = others(&note);
	assert_non_null(strstr(other, "migration"));
	assert_int_equal(world.aborts, 0);
}

/* Whether a freeze stands in the way is the capture's business. */
static void a_freeze_of_others_is_no_obstacle(void **state)
{
	autofree char *what = NULL;

	(void)state;
	world.is_frozen = true;
	what = others(NULL);
	assert_null(what);
	assert_true(world.is_frozen);
}

static void without_a_record_nothing_is_ours(void **state)
{
	autofree char *what = NULL;

	(void)state;
	set_job("backup", "/x/socket", "/x/scratch");
	assert_int_equal(recover_others(&given, NULL, &what, &err), 0);
	assert_non_null(strstr(what, "not begun"));
}

static void of_a_domain_that_is_off_nothing_is_asked(void **state)
{
	autofree char *what = NULL;

	(void)state;
	world.run_id = -1;
	set_job("backup", "/x/socket", "/x/scratch");
	what = others(NULL);
	assert_null(what);
}

static void a_dead_daemon_tells_nothing(void **state)
{
	struct record *r = open_record();
	char *what;

	(void)state;
	world.daemon = 0;
	assert_int_equal(recover_others(&given, r, &what, &err), -1);
	record_close(r);
}

/* --- a libvirt that cannot tell --- */

static unsigned seconds_of_recovery(void)
{
	uint64_t start = now_ns;

	leave_a_job();
	world.finds_that_fail = 1000;
	recover();
	return (unsigned)((now_ns - start) / 1000000000);
}

static void what_cannot_be_asked_is_asked_for_seconds(void **state)
{
	(void)state;
	assert_in_range(seconds_of_recovery(), 1, 20);
	assert_int_equal(world.aborts, 0);
}

/* libvirt may notice late that its QEMU has ended. */
static void of_a_domain_that_shuts_down_an_answer_is_awaited(void **state)
{
	(void)state;
	world.is_shutting_down = true;
	assert_in_range(seconds_of_recovery(), 60, 200);
	assert_int_equal(world.aborts, 1);
}

static void a_signal_ends_a_question_but_no_undoing(void **state)
{
	char *what;

	(void)state;
	world.finds_that_fail = 3;
	is_interrupted = true;
	assert_int_equal(recover_others(&given, NULL, &what, &err), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	assert_int_equal(world.finds_that_fail, 2);
	leave_a_job();
	recover_or_fail();
	assert_int_equal(world.aborts, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_written_is_nothing_done),
		TEST(a_freeze_of_a_dead_run_is_thawed),
		TEST(a_freeze_ends_with_the_start_that_was_frozen),
		TEST(an_unknown_start_is_thawed_to_be_sure),
		TEST(our_job_is_ended_and_its_files_go),
		TEST(a_guest_that_was_stopped_for_lack_of_room_goes_on),
		TEST(a_guest_on_an_overlay_without_room_goes_on_once_it_is_merged),
		TEST(a_guest_that_we_have_not_stopped_stays_stopped),
		TEST(a_record_is_undone_at_its_own_uri),
		TEST(what_was_done_where_nothing_answers_stays_on_record),
		TEST(of_a_domain_that_is_gone_only_files_are_removed),
		TEST(an_overlay_of_a_domain_that_is_gone_stays),
		TEST(one_of_the_two_paths_is_enough_to_know_it),
		TEST(a_job_that_is_still_being_begun_is_waited_for),
		TEST(the_jobs_of_others_are_left_alone),
		TEST(only_a_backup_job_is_ended),
		TEST(a_job_that_does_not_end_stays_on_record),
		TEST(what_cannot_be_thawed_keeps_nothing_else_from_being_undone),
		TEST(the_first_of_several_failures_is_told),
		TEST(of_a_domain_that_is_off_only_files_remain),
		TEST(an_unreachable_daemon_leaves_all_on_record),
		TEST(what_was_written_since_is_seen),
		TEST(over_ssh_there_are_no_files_here),
		TEST(a_strange_directory_on_record_is_left_alone),
		TEST(an_overlay_in_use_is_merged_and_removed),
		TEST(an_overlay_that_cannot_be_merged_stays),
		TEST(an_overlay_of_which_nothing_is_known_stays),
		TEST(an_overlay_of_the_next_start_stays),
		TEST(an_overlay_that_no_disk_has_stays),
		TEST(a_snapshot_that_is_still_being_made_is_waited_for),
		TEST(what_is_no_file_is_not_removed_for_an_overlay),
		TEST(nobody_elses_is_nothing),
		TEST(the_jobs_of_others_are_named),
		TEST(a_freeze_of_others_is_no_obstacle),
		TEST(without_a_record_nothing_is_ours),
		TEST(of_a_domain_that_is_off_nothing_is_asked),
		TEST(a_dead_daemon_tells_nothing),
		TEST(what_cannot_be_asked_is_asked_for_seconds),
		TEST(of_a_domain_that_shuts_down_an_answer_is_awaited),
		TEST(a_signal_ends_a_question_but_no_undoing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
