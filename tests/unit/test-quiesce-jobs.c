// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce_inner.h"

#include "virt-kit.h"

#include "base/clock.h"
#include "base/size.h"
#include "quiesce/record.h"
#include "quiesce/scratch.h"
#include "virt/chain.h"
#include "virt/overlay.h"

#include <sys/syscall.h>

static struct hardware hardware;
static struct virt_disk disk;
static struct quiesce q;

/* --- what the kit has not ------------------------------------------------------------- */

static const char *below, *format_below; /* our overlay, in the XML */

static struct chain_layer layer(const char *source, const char *format)
{
	return (struct chain_layer){ .kind = strdup("file"),
				     .source = strdup(source),
				     .format = strdup(format) };
}

int overlay_chain(struct domain *d, const char *target, enum overlay_view which, struct chain *out,
		  struct err *e)
{
	*out = (struct chain){ 0 };
	assert_string_equal(target, "vda");
	assert_int_equal(which, OVERLAY_NOW);
	if (!answers(d, e))
		return -1;
	out->layers = calloc(3, sizeof *out->layers);
	out->layers[out->count++] = layer(record_note(q.cfg.record)->overlay, "qcow2");
	out->layers[out->count++] = layer(below, format_below);
	out->layers[out->count++] = layer("/images/vm.raw", "raw");
	return 0;
}

static atomic_int readings_ended;

static void end_reading(void *reader)
{
	assert_ptr_equal(reader, &disk);
	readings_ended++;
}

/* A look for room: its filesystem hangs, and ours is a clock on which that takes no time; or it is
 * slow, and then there is none left.
 */
static atomic_bool looks_hang, looks_are_slow, is_looking;

int statfs(const char *path, struct statfs *out)
{
	is_looking = looks_hang || looks_are_slow;
	if (looks_are_slow) {
		usleep(300 * 1000);
		world.free_bytes = 1;
	}
	while (looks_hang) {
		now_ns += 1000000000;
		usleep(1000);
	}
	return (int)syscall(SYS_statfs, path, out);
}

static void start(const struct quiesce_ops *ops)
{
	struct record *r = record_open(UUID, 0, &err);

	if (!r)
		fail_msg("%s", err.text);
	hardware = (struct hardware){ 0 };
	disk = (struct virt_disk){
		.target = (char *)"vda",
		.device = (char *)"disk",
		.kind = (char *)"file",
		.source = (char *)"/images/vm.raw",
		.format = (char *)"raw",
	};
	q = (struct quiesce){
		.contact = { .given = &given, .run_id = world.run_id },
		.ops = ops,
		.cfg = {
			.domain = &given,
			.hardware = &hardware,
			.disk = &disk,
			.record = r,
			.scratch_dir = dir,
			.end_reading = end_reading,
			.reader = &disk,
		},
	};
	below = disk.source;
	format_below = disk.format;
	readings_ended = 0;
	looks_hang = looks_are_slow = is_looking = false;
}

static int begin_backup(void **state)
{
	int rc = make_world(state);

	start(&backup_ops);
	return rc;
}

static int begin_snapshot(void **state)
{
	int rc = make_world(state);

	start(&snapshot_ops);
	return rc;
}

static int end(void **state)
{
	q.ops->close(&q);
	contact_end(&q.contact);
	record_close(q.cfg.record);
	assert_int_equal(world.opened, 0);
	return remove_state(state);
}

#define BACKUP(claim)	cmocka_unit_test_setup_teardown(claim, begin_backup, end)
#define SNAPSHOT(claim) cmocka_unit_test_setup_teardown(claim, begin_snapshot, end)

static void prepare_or_fail(void)
{
	if (q.ops->prepare(&q, &err) != 0)
		fail_msg("%s", err.text);
}

static struct quiesce_view view;

static void hold_or_fail(void)
{
	prepare_or_fail();
	if (q.ops->get_ready(&q, &err) != 0 || q.ops->begin(&q, &err) != 0 ||
	    q.ops->view(&q, &view, &err) < 0)
		fail_msg("%s", err.text);
}

static int begin(void)
{
	return q.ops->get_ready(&q, &err) < 0 ? -1 : q.ops->begin(&q, &err);
}

static void check_or_fail(void)
{
	if (q.ops->check(&q, &err) < 0)
		fail_msg("%s", err.text);
}

static void release_or_fail(void)
{
	if (q.ops->release(&q, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_refused(const char *words)
{
	err = (struct err){ 0 };
	assert_int_equal(q.ops->prepare(&q, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_says(words);
	assert_true(record_is_clear(q.cfg.record));
}

static void assert_broken(const char *words)
{
	err = (struct err){ 0 };
	assert_int_equal(q.ops->check(&q, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_says(words);
}

/* The files, the record, the job. */
static void assert_nothing_is_left(void)
{
	char command[128];

	assert_true(record_is_clear(q.cfg.record));
	snprintf(command, sizeof command, "! ls -d '%s'/ccsnap-* 2>/dev/null", dir);
	assert_int_equal(system(command), 0);
	assert_false(world.overlay_is_used);
}

/* --- both --- */

static void a_place_without_room_refuses(void **state)
{
	(void)state;
	q.cfg.scratch_bytes = UINT64_MAX / 2;
	assert_refused("--scratch-dir");
}

static void a_job_of_somebody_else_refuses_at_once(void **state)
{
	uint64_t begun = clock_ns();

	(void)state;
	set_job("backup", "/x/socket", "/x/scratch");
	assert_refused("/x/scratch");
	q.ops->close(&q);
	set_job("migration", "", "");
	assert_refused("migration");
	assert_int_equal(world.aborts, 0);
	assert_true(clock_seconds_since(begun) < 20); /* libvirt would wait for 30 */
}

static void a_job_on_the_disk_refuses(void **state)
{
	(void)state;
	disk.mirror = (char *)"copy";
	assert_refused("copy");
}

static void what_stands_in_the_record_already_stays(void **state)
{
	const struct record_note before = { .run_id = 4, .patience = true };

	(void)state;
	assert_int_equal(record_write(q.cfg.record, &before, &err), 0);
	prepare_or_fail();
	assert_true(record_note(q.cfg.record)->patience);
	assert_int_equal(record_note(q.cfg.record)->run_id, 4);
	assert_string_equal(record_note(q.cfg.record)->name, "vm");
	assert_string_equal(record_note(q.cfg.record)->uri, "qemu:///system");
	release_or_fail();
	assert_true(record_note(q.cfg.record)->patience);
	assert_null(record_note(q.cfg.record)->scratch_dir);
	assert_null(record_note(q.cfg.record)->target);
}

static void release_works_twice_and_before_anything(void **state)
{
	(void)state;
	release_or_fail();
	prepare_or_fail();
	release_or_fail();
	release_or_fail();
	assert_nothing_is_left();
}

static void close_after_prepare_leaves_no_files(void **state)
{
	(void)state;
	prepare_or_fail();
	q.ops->close(&q);
	record_clear(q.cfg.record, &err);
	assert_nothing_is_left();
}

static void a_domain_that_was_shut_down_is_told(void **state)
{
	(void)state;
	hold_or_fail();
	check_or_fail();
	world.run_id = -1;
	world.kind[0] = '\0';
	assert_broken("vm was shut down during the capture");
}

static void a_domain_that_was_started_anew_is_told(void **state)
{
	(void)state;
	hold_or_fail();
	world.run_id++;
	world.kind[0] = '\0';
	assert_broken("vm was restarted during the capture");
}

static void a_domain_that_is_gone_is_told(void **state)
{
	(void)state;
	hold_or_fail();
	world.daemon = 2;
	world.exists = false;
	assert_broken("was shut down");
}

static void a_daemon_that_was_restarted_is_asked_anew(void **state)
{
	(void)state;
	hold_or_fail();
	world.daemon = 0;
	world.daemon_comes_back_after = 3;
	check_or_fail();
	assert_int_equal(world.daemon, 2);
	check_or_fail();
	assert_int_equal(world.opened, 1);
	world.daemon = 3; /* and again */
	release_or_fail();
	assert_nothing_is_left();
}

/* --- room --- */

static bool has_given_up(void)
{
	return world.aborts + readings_ended > 0;
}

static bool has_begun_to_look(void)
{
	return is_looking;
}

/* The thread's clock is the real one. */
static void wait_until(bool (*is_so)(void))
{
	for (int i = 0; i < 60 * 100 && !is_so(); i++)
		usleep(10 * 1000);
	assert_true(is_so());
}

static void before_the_room_runs_out_the_capture_is_given_up(void **state)
{
	(void)state;
	world.free_bytes = 400 * MIB;
	hold_or_fail();
	world.free_bytes = 99 * MIB;
	wait_until(has_given_up);
	assert_broken("for the guest");
	assert_says("--scratch-dir with more room");
	assert_says(scratch_dir(q.scratch));
	assert_int_equal(world.resumes, 0);
	assert_int_equal(world.merges, 0); /* what is read cannot be written to */
	release_or_fail();
	assert_int_equal(world.aborts + world.merges, 1);
	assert_nothing_is_left();
}

static void of_much_room_a_part_is_enough(void **state)
{
	(void)state;
	world.free_bytes = 10 * TIB;
	hold_or_fail();
	world.free_bytes = 200 * MIB;
	usleep(300 * 1000);
	check_or_fail();
	release_or_fail();
}

static void a_guest_that_was_stopped_for_it_goes_on(void **state)
{
	(void)state;
	hold_or_fail();
	world.is_stopped = true;
	wait_until(has_given_up);
	assert_broken("for the guest");
	release_or_fail();
	assert_int_equal(world.resumes, 1);
	assert_int_equal(world.aborts + world.merges, 1);
	assert_nothing_is_left();
}

static void release_lets_a_stopped_guest_go_on(void **state)
{
	(void)state;
	hold_or_fail();
	world.is_stopped = true;
	release_or_fail();
	assert_int_equal(world.resumes, 1);
	assert_nothing_is_left();
}

static void a_look_that_hangs_holds_up_nobody(void **state)
{
	(void)state;
	hold_or_fail();
	looks_hang = true;
	wait_until(has_begun_to_look);
	release_or_fail();
	looks_hang = false;
	assert_int_equal(world.aborts + world.merges, 1);
	assert_nothing_is_left();
}

/* A look that comes back after the end tells nothing: all is being undone. */
static void behind_the_end_nothing_is_given_up(void **state)
{
	(void)state;
	hold_or_fail();
	looks_are_slow = true;
	wait_until(has_begun_to_look);
	release_or_fail();
	assert_int_equal(world.free_bytes, 1);
	assert_int_equal(readings_ended, 0);
	assert_nothing_is_left();
}

static void a_guest_that_cannot_go_on_is_told(void **state)
{
	(void)state;
	hold_or_fail();
	world.is_stopped = world.resume_fails = true;
	assert_int_equal(q.ops->release(&q, &err), -1);
	assert_says("virsh -c qemu:///system resume " UUID);
	assert_false(record_is_clear(q.cfg.record));
	world.resume_fails = false;
	release_or_fail();
	assert_int_equal(world.resumes, 1);
	assert_nothing_is_left();
}

/* --- backup jobs --- */

static void the_view_is_what_the_job_was_asked_for(void **state)
{
	struct stat st;

	(void)state;
	hold_or_fail();
	assert_string_equal(world.job_socket, view.socket);
	assert_string_equal(world.job_export, view.export_name);
	assert_string_equal(view.export_name, "vda");
	assert_null(view.path);
	assert_int_equal(stat(view.socket, &st), 0);
}

static void it_is_noted_before_it_is_begun(void **state)
{
	const struct record_note *note;

	(void)state;
	prepare_or_fail();
	note = record_note(q.cfg.record);
	assert_string_equal(note->target, "vda");
	assert_string_equal(note->scratch_dir, scratch_dir(q.scratch));
	assert_string_equal(note->scratch, scratch_file(q.scratch));
	assert_string_equal(note->socket, scratch_socket(q.scratch));
	assert_null(note->overlay);
	assert_string_equal(world.kind, "");
	assert_false(file_is_there(note->scratch)); /* libvirt wants to make it */
}

static void release_ends_the_job(void **state)
{
	(void)state;
	hold_or_fail();
	release_or_fail();
	assert_int_equal(world.aborts, 1);
	assert_nothing_is_left();
	release_or_fail();
	assert_int_equal(world.aborts, 1);
}

static void a_job_that_cannot_be_is_no_failure(void **state)
{
	(void)state;
	world.begin_says = 1;
	prepare_or_fail();
	assert_int_equal(begin(), 1);
	release_or_fail();
	assert_int_equal(world.aborts, 0);
	assert_nothing_is_left();
}

/* Its begin failed, say because the daemon did not answer in time, and began it then. */
static void a_job_that_comes_late_is_ended_all_the_same(void **state)
{
	(void)state;
	prepare_or_fail();
	world.begin_says = -1;
	assert_int_equal(begin(), -1);
	set_job("backup", scratch_socket(q.scratch), scratch_file(q.scratch));
	world.finds_until_job = 4;
	release_or_fail();
	assert_int_equal(world.aborts, 1);
	assert_nothing_is_left();
}

static void release_ends_no_job_but_ours(void **state)
{
	(void)state;
	hold_or_fail();
	set_job("backup", "/x/socket", "/x/scratch");
	assert_broken("ended by somebody else");
	release_or_fail();
	assert_int_equal(world.aborts, 0);
	assert_nothing_is_left();
}

static void a_job_that_ended_is_told_with_its_reason(void **state)
{
	(void)state;
	hold_or_fail();
	world.kind[0] = '\0';
	world.why_ended = "";
	assert_broken("ended by somebody else");
	world.why_ended = "internal error: something broke";
	assert_broken("ended early: internal error: something broke");
	world.why_ended = "Could not write: No space left on device";
	assert_broken("ran full");
	assert_says("--scratch-dir");
	assert_says(scratch_dir(q.scratch));
}

static void a_job_that_does_not_end_keeps_files_and_record(void **state)
{
	(void)state;
	hold_or_fail();
	world.abort_fails = true;
	assert_int_equal(q.ops->release(&q, &err), -1);
	assert_says("domjobabort");
	assert_string_equal(record_note(q.cfg.record)->scratch, world.job_scratch);
	assert_true(file_is_there(world.job_scratch));
	world.abort_fails = false;
	release_or_fail();
	assert_nothing_is_left();
}

static void close_leaves_what_a_job_needs(void **state)
{
	(void)state;
	hold_or_fail();
	world.abort_fails = true;
	assert_int_equal(q.ops->release(&q, &err), -1);
	q.ops->close(&q);
	assert_true(file_is_there(world.job_scratch));
	assert_true(file_is_there(world.job_socket));
	assert_false(record_is_clear(q.cfg.record));
}

static void the_job_of_a_domain_that_went_needs_no_end(void **state)
{
	(void)state;
	hold_or_fail();
	world.run_id = -1;
	release_or_fail();
	assert_int_equal(world.aborts, 0);
	assert_nothing_is_left();
}

static void the_job_of_a_domain_that_is_gone_needs_no_end(void **state)
{
	(void)state;
	hold_or_fail();
	world.daemon = 2;
	world.exists = false;
	release_or_fail();
	assert_nothing_is_left();
}

static void a_daemon_that_stays_away_leaves_the_record(void **state)
{
	uint64_t begun = clock_ns();

	(void)state;
	hold_or_fail();
	world.daemon = 0;
	assert_int_equal(q.ops->release(&q, &err), -1);
	assert_true(clock_ns() - begun > UINT64_C(15) * 1000000000);
	assert_true(clock_ns() - begun < UINT64_C(30) * 1000000000);
	assert_says("may still have our backup job");
	assert_int_equal(err.kind, ERR_FAILED); /* something was done */
	assert_false(record_is_clear(q.cfg.record));
}

/* --- snapshots --- */

static void the_base_is_what_is_read(void **state)
{
	(void)state;
	hold_or_fail();
	assert_string_equal(view.path, "/images/vm.raw");
	assert_string_equal(view.format, "raw");
	assert_null(view.socket);
}

static void assert_no_view(void)
{
	prepare_or_fail();
	assert_int_equal(begin(), 0);
	assert_int_equal(q.ops->view(&q, &view, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_says("its layers were changed by somebody else");
	release_or_fail();
	assert_nothing_is_left();
	q.ops->close(&q);
}

static void a_layer_that_came_between_is_not_passed_over(void **state)
{
	(void)state;
	below = "/images/vm.since";
	assert_no_view();
	below = disk.source;
	format_below = "qcow2";
	assert_no_view();
}

static void the_overlay_is_noted_before_it_is_made(void **state)
{
	const struct record_note *note;

	(void)state;
	prepare_or_fail();
	note = record_note(q.cfg.record);
	assert_true(str_starts(note->overlay, note->scratch_dir));
	assert_string_equal(note->target, "vda");
	assert_null(note->scratch);
	assert_false(file_is_there(note->overlay));
}

static void release_merges_and_removes_the_overlay(void **state)
{
	(void)state;
	hold_or_fail();
	release_or_fail();
	assert_int_equal(world.merges, 1);
	assert_nothing_is_left();
}

static void an_overlay_that_cannot_be_merged_stays_and_is_told(void **state)
{
	autofree char *overlay = NULL;

	(void)state;
	hold_or_fail();
	overlay = strdup(record_note(q.cfg.record)->overlay);
	world.merge_fails = true;
	assert_int_equal(q.ops->release(&q, &err), -1);
	assert_says("by hand: virsh blockcommit");
	assert_says("do not remove it");
	assert_string_equal(record_note(q.cfg.record)->overlay, overlay);
	q.ops->close(&q);
	assert_true(file_is_there(overlay));
}

static void an_overlay_that_nobody_began_is_only_a_name(void **state)
{
	(void)state;
	prepare_or_fail();
	release_or_fail();
	assert_int_equal(world.merges, 0);
	assert_nothing_is_left();
}

static void a_snapshot_that_failed_is_looked_for(void **state)
{
	(void)state;
	prepare_or_fail();
	world.overlay_begin_says = -1;
	assert_int_equal(begin(), -1);
	put_file(record_note(q.cfg.record)->overlay, "", 0600);
	world.looks_until_used = 4; /* the daemon was late */
	release_or_fail();
	assert_int_equal(world.merges, 1);
	assert_nothing_is_left();
}

static void a_merge_by_somebody_else_ends_the_point_in_time(void **state)
{
	(void)state;
	hold_or_fail();
	check_or_fail();
	world.overlay_is_used = false;
	assert_broken("merged by somebody else");
	release_or_fail();
	assert_nothing_is_left();
}

static void the_overlay_of_a_domain_that_is_gone_is_kept(void **state)
{
	autofree char *overlay = NULL;

	(void)state;
	hold_or_fail();
	overlay = strdup(record_note(q.cfg.record)->overlay);
	world.daemon = 2;
	world.exists = false;
	assert_int_equal(q.ops->release(&q, &err), -1);
	assert_says("keep it");
	q.ops->close(&q);
	assert_true(file_is_there(overlay));
	world.overlay_is_used = false;
}

static void a_disk_that_no_snapshot_can_show_is_refused(void **state)
{
	(void)state;
	disk.kind = (char *)"network";
	assert_refused("file or block device");
	q.ops->close(&q);
	disk.kind = (char *)"block";
	disk.format = NULL;
	assert_refused("format");
	q.ops->close(&q);
	disk.format = (char *)"qcow2";
	disk.has_backing = true;
	assert_refused("--allow-backing");
	q.ops->close(&q);
	q.cfg.allow_backing = true;
	prepare_or_fail();
	q.ops->close(&q);
	record_clear(q.cfg.record, &err);
	world.place = VIRT_OVER_SSH;
	assert_refused("on the hypervisor only");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BACKUP(a_place_without_room_refuses),
		SNAPSHOT(a_place_without_room_refuses),
		BACKUP(a_job_of_somebody_else_refuses_at_once),
		SNAPSHOT(a_job_of_somebody_else_refuses_at_once),
		BACKUP(a_job_on_the_disk_refuses),
		SNAPSHOT(a_job_on_the_disk_refuses),
		BACKUP(what_stands_in_the_record_already_stays),
		SNAPSHOT(what_stands_in_the_record_already_stays),
		BACKUP(release_works_twice_and_before_anything),
		SNAPSHOT(release_works_twice_and_before_anything),
		BACKUP(close_after_prepare_leaves_no_files),
		SNAPSHOT(close_after_prepare_leaves_no_files),
		BACKUP(a_domain_that_was_shut_down_is_told),
		SNAPSHOT(a_domain_that_was_shut_down_is_told),
		BACKUP(a_domain_that_was_started_anew_is_told),
		SNAPSHOT(a_domain_that_was_started_anew_is_told),
		BACKUP(a_domain_that_is_gone_is_told),
		SNAPSHOT(a_domain_that_is_gone_is_told),
		BACKUP(a_daemon_that_was_restarted_is_asked_anew),
		SNAPSHOT(a_daemon_that_was_restarted_is_asked_anew),
		BACKUP(before_the_room_runs_out_the_capture_is_given_up),
		SNAPSHOT(before_the_room_runs_out_the_capture_is_given_up),
		BACKUP(of_much_room_a_part_is_enough),
		SNAPSHOT(of_much_room_a_part_is_enough),
		BACKUP(a_guest_that_was_stopped_for_it_goes_on),
		SNAPSHOT(a_guest_that_was_stopped_for_it_goes_on),
		BACKUP(release_lets_a_stopped_guest_go_on),
		SNAPSHOT(release_lets_a_stopped_guest_go_on),
		BACKUP(a_look_that_hangs_holds_up_nobody),
		SNAPSHOT(a_look_that_hangs_holds_up_nobody),
		SNAPSHOT(behind_the_end_nothing_is_given_up),
		BACKUP(a_guest_that_cannot_go_on_is_told),
		BACKUP(the_view_is_what_the_job_was_asked_for),
		BACKUP(it_is_noted_before_it_is_begun),
		BACKUP(release_ends_the_job),
		BACKUP(a_job_that_cannot_be_is_no_failure),
		BACKUP(a_job_that_comes_late_is_ended_all_the_same),
		BACKUP(release_ends_no_job_but_ours),
		BACKUP(a_job_that_ended_is_told_with_its_reason),
		BACKUP(a_job_that_does_not_end_keeps_files_and_record),
		BACKUP(close_leaves_what_a_job_needs),
		BACKUP(the_job_of_a_domain_that_went_needs_no_end),
		BACKUP(the_job_of_a_domain_that_is_gone_needs_no_end),
		BACKUP(a_daemon_that_stays_away_leaves_the_record),
		SNAPSHOT(the_base_is_what_is_read),
		SNAPSHOT(a_layer_that_came_between_is_not_passed_over),
		SNAPSHOT(the_overlay_is_noted_before_it_is_made),
		SNAPSHOT(release_merges_and_removes_the_overlay),
		SNAPSHOT(an_overlay_that_cannot_be_merged_stays_and_is_told),
		SNAPSHOT(an_overlay_that_nobody_began_is_only_a_name),
		SNAPSHOT(a_snapshot_that_failed_is_looked_for),
		SNAPSHOT(a_merge_by_somebody_else_ends_the_point_in_time),
		SNAPSHOT(the_overlay_of_a_domain_that_is_gone_is_kept),
		SNAPSHOT(a_disk_that_no_snapshot_can_show_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
