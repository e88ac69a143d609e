// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "quiesce-kit.h"
#include "quiesce/guard.h"
#include "quiesce/quiesce_inner.h"
#include "quiesce/record.h"

#include <signal.h>

/* The story with all that it tells to do faked: what is said here is the order of things. */

/* --- time: nobody sleeps -------------------------------------------------------------------- */

static uint64_t now_ns;

uint64_t clock_ns(void)
{
	return now_ns += 1000;
}

double clock_cpu_seconds(void)
{
	return 0;
}

struct clock_text clock_now(void)
{
	return (struct clock_text){ "" };
}

void clock_sleep_ms(unsigned ms)
{
	now_ns += ms * UINT64_C(1000000);
}

/* --- signals ---------------------------------------------------------------------------------- */

static int looks_until_signal; /* ALWAYS: none comes */

int interrupt_pending(void)
{
	return looks_until_signal == 0 ? SIGTERM : 0;
}

int interrupt_check(struct err *err)
{
	if (looks_until_signal > 0)
		looks_until_signal--;
	return looks_until_signal == 0 ? err_set(err, ERR_INTERRUPTED, "interrupted") : 0;
}

void interrupt_install(void)
{
}

/* --- the record --------------------------------------------------------------------------------
 */

static struct record {
	struct record_note note;
	int writes_fail; /* so many from now is the one that does; 0: none */
} record;

int record_fd(const struct record *r)
{
	(void)r;
	return -1;
}

const struct record_note *record_note(const struct record *r)
{
	return &r->note;
}

int record_write(struct record *r, const struct record_note *note, struct err *err)
{
	if (r->writes_fail != 0) {
		r->writes_fail -= r->writes_fail > 0;
		if (r->writes_fail == 0)
			return err_set(err, ERR_FAILED, "cannot write");
	}
	assert_string_equal(note->uri, KIT_URI);
	assert_string_equal(note->name, "vm");
	assert_int_equal(note->run_id, 7);
	r->note = *note;
	said("note(%s%s)", note->frozen ? "f" : "", note->patience ? "p" : "");
	return 0;
}

int record_clear(struct record *r, struct err *err)
{
	(void)err;
	said("clear");
	r->note = (struct record_note){ .run_id = -1 };
	return 0;
}

/* --- the guard ----------------------------------------------------------------------------------
 */

struct guard {
	bool is_armed;
};

static struct guard the_guard;
static struct {
	bool cannot_start, cannot_arm, cannot_thaw;
	int calm, disarm; /* what it answers */
	bool is_left;	  /* stopped while armed: it goes on */
} guard;

struct guard *guard_start(struct domain *d, const struct record *r, unsigned freeze_seconds,
			  struct err *err)
{
	(void)d, (void)r;
	assert_int_equal(freeze_seconds, 10);
	said("guard");
	if (!guard.cannot_start)
		return &the_guard;
	err_set(err, ERR_FAILED, "no guard");
	return NULL;
}

int guard_arm(struct guard *g, struct err *err)
{
	said("arm");
	assert_true(record.note.frozen); /* before it can be */
	assert_false(world->is_frozen);
	g->is_armed = true;
	return guard.cannot_arm ? err_set(err, ERR_FAILED, "guard lost") : 0;
}

int guard_is_calm(struct guard *g, struct err *err)
{
	said("calm");
	assert_true(g->is_armed);
	return guard.calm < 0 ? err_set(err, ERR_FAILED, "guard lost") : guard.calm;
}

int guard_disarm(struct guard *g, struct err *err)
{
	said("disarm");
	assert_false(world->is_frozen);
	if (guard.disarm < 0)
		return err_set(err, ERR_FAILED, "guard lost");
	g->is_armed = false;
	return guard.disarm;
}

int guard_thaw(struct guard *g, struct err *err)
{
	said("guard-thaw");
	assert_true(g->is_armed);
	if (guard.cannot_thaw)
		return err_set(err, ERR_FAILED, "the guard cannot thaw it either");
	world->is_frozen = 0;
	return 0;
}

void guard_stop(struct guard *g)
{
	if (!g)
		return;
	said("stop");
	guard.is_left = g->is_armed;
}

void guard_leave(struct guard *g)
{
	if (!g)
		return;
	said("leave");
	guard.is_left = true;
}

/* --- the methods --------------------------------------------------------------------------------
 */

static struct {
	int prepare[2], ready, begin[2]; /* what they return, for backup and snapshot */
	bool has_begun, cannot_release;
	void (*at_begin)(void); /* what happens meanwhile */
} method;

static int is_snapshot(const struct quiesce *q)
{
	return q->ops == &snapshot_ops;
}

static const char *initial(const struct quiesce *q)
{
	return is_snapshot(q) ? "s" : "b";
}

static int answer(int rc, const char *what, struct err *err)
{
	if (rc != 0)
		err_set(err, rc > 0 ? ERR_REFUSED : ERR_FAILED, "%s", what);
	return rc;
}

static int prepare(struct quiesce *q, struct err *err)
{
	said("%s.prepare", initial(q));
	return answer(method.prepare[is_snapshot(q)], "cannot prepare", err);
}

static int get_ready(struct quiesce *q, struct err *err)
{
	assert_false(world->is_frozen);
	said("%s.ready", initial(q));
	return answer(method.ready, "cannot get ready", err);
}

static int begin(struct quiesce *q, struct err *err)
{
	int rc = method.begin[is_snapshot(q)];

	said("%s.begin", initial(q));
	method.has_begun = rc <= 0; /* a failure may leave something, too */
	if (method.at_begin)
		method.at_begin();
	return answer(rc, "cannot begin", err);
}

static int view(struct quiesce *q, struct quiesce_view *out, struct err *err)
{
	(void)err;
	said("%s.view", initial(q));
	assert_false(world->is_frozen);
	*out = (struct quiesce_view){ .socket = "socket" };
	return 0;
}

static int check(struct quiesce *q, struct err *err)
{
	(void)err;
	said("%s.check", initial(q));
	q->scratch_used = 12345;
	return 0;
}

static int release(struct quiesce *q, struct err *err)
{
	said("%s.release", initial(q));
	if (method.cannot_release)
		return err_set(err, ERR_FAILED, "cannot release");
	method.has_begun = false;
	return 0;
}

static void close_method(struct quiesce *q)
{
	(void)q;
	said("close");
}

#define OPS                                                                                        \
	.prepare = prepare, .get_ready = get_ready, .begin = begin, .view = view, .check = check,  \
	.release = release, .close = close_method

const struct quiesce_ops backup_ops = { .name = "backup-job", OPS };
const struct quiesce_ops snapshot_ops = { .name = "snapshot", OPS };

/* --- our own side
 * --------------------------------------------------------------------------------- */

static struct world the_world;
static struct virt here;
static struct domain domain = { .virt = &here };
static struct quiesce_config cfg;
static struct quiesce *q;
static struct quiesce_view seen;
static struct err err;
static char warnings[2000];

static void keep_warning(void *ctx, const char *warning)
{
	(void)ctx;
	strncat(warnings, warning, sizeof warnings - strlen(warnings) - 2);
	strcat(warnings, "\n");
}

static int set_up(void **state)
{
	(void)state;
	world_begin(&the_world);
	here = (struct virt){ 0 };
	record = (struct record){ .note.run_id = -1 };
	memset(&guard, 0, sizeof guard);
	memset(&method, 0, sizeof method);
	guard.calm = guard.disarm = 1;
	the_guard.is_armed = false;
	looks_until_signal = ALWAYS;
	cfg = (struct quiesce_config){ .domain = &domain, .record = &record, .freeze_seconds = 10 };
	err = (struct err){ 0 };
	seen = (struct quiesce_view){ 0 };
	warnings[0] = '\0';
	log_set_level(LOG_ERROR);
	log_set_sink(keep_warning, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	quiesce_close(steal(&q));
	return 0;
}

static void begin_story(enum quiesce_wish wish)
{
	cfg.wish = wish;
	q = quiesce_open(&cfg, &err);
	if (!q)
		print_error("%s\n", err.text);
	assert_non_null(q);
	world->said[0] = '\0';
}

static int hold(void)
{
	return quiesce_hold(q, &seen, &err);
}

static void expect_said(const char *words)
{
	size_t len = strlen(world->said);

	if (len > 0)
		world->said[len - 1] = '\0'; /* the blank */
	assert_string_equal(world->said, words);
	world->said[0] = '\0';
}

static void expect_released(void)
{
	struct err why = { 0 };

	assert_int_equal(quiesce_release(q, &why), 0);
	assert_false(world->is_frozen);
	assert_int_equal(world->patience, 0);
	assert_false(method.has_begun);
	assert_false(record.note.frozen || record.note.patience);
	assert_null(q->guard);
}

/* What open says and does of the agent. */
#define PROBED "note(p) patience=10 probe patience-back note() "

/* From the freeze to the answer of the guard, and from the thaw on. */
#define FROZEN "patience=10 status b.ready note(fp) arm freeze b.begin calm "
#define THAWED "thaw status disarm note(p) patience-back note() "

/* --- opening --- */

static void a_freeze_is_probed_for_and_nothing_is_changed(void **state)
{
	(void)state;
	cfg.wish = QUIESCE_REQUIRE;
	q = quiesce_open(&cfg, &err);
	assert_non_null(q);
	expect_said(PROBED "b.prepare");
	assert_int_equal(world->patience, 0);
	quiesce_close(steal(&q));
	expect_said("b.release clear close");
}

static void without_a_wish_to_freeze_no_agent_is_asked(void **state)
{
	(void)state;
	cfg.wish = QUIESCE_OFF;
	q = quiesce_open(&cfg, &err);
	assert_non_null(q);
	expect_said("b.prepare");
}

static void expect_refused(const char *why)
{
	cfg.wish = QUIESCE_REQUIRE;
	assert_null(quiesce_open(&cfg, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
	assert_int_equal(world->freezes + world->thaws, 0);
	assert_int_equal(world->patience, 0);
	assert_false(record.note.patience);
}

static void a_required_freeze_is_refused_where_it_cannot_be(void **state)
{
	(void)state;
	world->is_absent = 1;
	expect_refused("cannot be frozen: the agent will not; mend that");
	set_up(NULL);
	world->cannot_freeze = 1;
	expect_refused("cannot be frozen: the agent will not");
	set_up(NULL);
	world->state = DOMAIN_PAUSED;
	expect_refused("cannot be frozen: it is paused by a user");
	set_up(NULL);
	world->is_frozen_by_others = 1;
	expect_refused("frozen by somebody else");
	set_up(NULL);
	world->patience_fails = 1;
	expect_refused("cannot be frozen: patience denied");
	set_up(NULL);
	record.writes_fail = 1;
	expect_refused("cannot write");
}

/* Opens, holds and releases with auto; why it was not quiesced. */
static const char *why_not(void)
{
	begin_story(QUIESCE_AUTO);
	assert_int_equal(hold(), 0);
	assert_false(quiesce_outcome(q)->quiesced);
	assert_int_equal(quiesce_outcome(q)->filesystems, 0);
	assert_non_null(strstr(warnings, "as after a power cut"));
	assert_non_null(strstr(warnings, quiesce_outcome(q)->why_not));
	return quiesce_outcome(q)->why_not;
}

static void what_cannot_be_frozen_is_captured_without(void **state)
{
	(void)state;
	world->is_absent = 1;
	assert_string_equal(why_not(), "the agent will not");
	expect_said("guard b.ready b.begin b.view");
	assert_string_equal(quiesce_outcome(q)->method, "backup-job");
	assert_true(quiesce_outcome(q)->frozen_ms < 0);
	assert_null(quiesce_outcome(q)->thawed_by);
	expect_released();
}

static void what_others_have_frozen_stays_frozen(void **state)
{
	(void)state;
	world->is_frozen_by_others = 1; /* a thaw fails the test */
	assert_non_null(strstr(why_not(), "frozen by somebody else"));
	assert_int_equal(world->freezes, 0);
	expect_released();
	tear_down(NULL);

	set_up(NULL);
	begin_story(QUIESCE_AUTO);
	world->is_frozen_by_others = 1; /* since then */
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) patience=10 status b.ready b.begin patience-back note() b.view");
	expect_released();
	tear_down(NULL);

	set_up(NULL);
	begin_story(QUIESCE_REQUIRE);
	world->is_frozen_by_others = 1;
	assert_int_equal(hold(), -1);
	assert_non_null(strstr(err.text, "frozen by somebody else"));
	assert_int_equal(world->freezes, 0);
	expect_released();
}

static void a_lost_daemon_is_an_error_whatever_is_wished(void **state)
{
	(void)state;
	here.daemon_age = 1;
	cfg.wish = QUIESCE_AUTO;
	assert_null(quiesce_open(&cfg, &err));
	assert_int_equal(err.kind, ERR_FAILED);
}

static void the_next_method_is_taken_where_one_cannot(void **state)
{
	(void)state;
	method.prepare[0] = 1;
	cfg.wish = QUIESCE_OFF;
	q = quiesce_open(&cfg, &err);
	assert_non_null(q);
	expect_said("b.prepare close s.prepare");
	assert_int_equal(hold(), 0);
	assert_string_equal(quiesce_outcome(q)->method, "snapshot");
	expect_released();
}

static void where_no_method_can_nothing_is_done(void **state)
{
	(void)state;
	method.prepare[0] = method.prepare[1] = 1;
	cfg.wish = QUIESCE_OFF;
	assert_null(quiesce_open(&cfg, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	expect_said("b.prepare close s.prepare close clear");
}

static void a_method_that_fails_is_not_replaced(void **state)
{
	(void)state;
	method.prepare[0] = -1;
	cfg.wish = QUIESCE_OFF;
	assert_null(quiesce_open(&cfg, &err));
	expect_said("b.prepare b.release clear close");
}

/* --- the instant --- */

static void the_order_is_its_safety(void **state)
{
	const struct quiesce_outcome *o;

	(void)state;
	begin_story(QUIESCE_REQUIRE);
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) " FROZEN THAWED "b.view");
	o = quiesce_outcome(q);
	assert_true(o->quiesced);
	assert_int_equal(o->filesystems, 2);
	assert_string_equal(o->thawed_by, "ccsnap");
	assert_string_equal(o->method, "backup-job");
	assert_string_equal(o->why_not, "");
	assert_true(o->frozen_ms > 0 && o->frozen_ms < 1);
	assert_string_equal(warnings, "");
	assert_string_equal(seen.socket, "socket");
	assert_int_equal(world->patience, 0);
	assert_int_equal(quiesce_check(q, &err), 0);
	assert_int_equal(quiesce_scratch_used(q), 12345);
	expect_said("b.check");
	expect_released();
	expect_said("b.release clear stop");
	expect_released(); /* twice */
	quiesce_close(steal(&q));
	expect_said("close");
}

static void without_a_wish_the_guard_watches_the_job_only(void **state)
{
	(void)state;
	begin_story(QUIESCE_OFF);
	assert_int_equal(hold(), 0);
	expect_said("guard b.ready b.begin b.view");
	assert_string_equal(quiesce_outcome(q)->why_not, "");
	assert_string_equal(warnings, "");
	expect_released();
}

static void trimming_comes_before_all_that_hurries(void **state)
{
	(void)state;
	cfg.wants_trim = true;
	begin_story(QUIESCE_AUTO);
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) patience=300 trim " FROZEN THAWED "b.view");
	assert_true(quiesce_outcome(q)->trimmed);
	expect_released();
}

static void a_trim_that_fails_is_a_warning(void **state)
{
	(void)state;
	cfg.wants_trim = true;
	world->trim_fails = 1;
	begin_story(QUIESCE_REQUIRE);
	assert_int_equal(hold(), 0);
	assert_false(quiesce_outcome(q)->trimmed);
	assert_true(quiesce_outcome(q)->quiesced);
	assert_non_null(strstr(warnings, "not trimmed before the capture: trim failed"));
	tear_down(NULL);

	set_up(NULL);
	cfg.wants_trim = true;
	world->cannot_trim = 1;
	begin_story(QUIESCE_OFF);
	assert_int_equal(hold(), 0);
	expect_said("guard b.ready b.begin b.view");
	assert_non_null(strstr(warnings, "not trimmed"));
	tear_down(NULL);

	set_up(NULL);
	cfg.wants_trim = true;
	world->patience_fails = 1;
	begin_story(QUIESCE_OFF);
	assert_int_equal(hold(), 0);
	assert_string_equal(quiesce_outcome(q)->why_not, ""); /* nobody asked */
}

static void without_a_guard_nothing_begins(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	guard.cannot_start = true;
	assert_int_equal(hold(), -1);
	expect_said("guard b.release");
	expect_released();
}

static void a_guard_that_cannot_be_armed_keeps_from_freezing(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	guard.cannot_arm = true;
	assert_int_equal(hold(), -1);
	assert_int_equal(world->freezes, 0);
	assert_string_equal(err.text, "guard lost");
	expect_released();
}

static void what_cannot_be_noted_is_not_done(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	record.writes_fail = 2; /* the second: frozen */
	assert_int_equal(hold(), -1);
	assert_int_equal(world->freezes, 0);
	expect_released();
}

static void a_failed_freeze_is_thawed_for_certain(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->freeze_fails = 1;
	world->freezes_all_the_same = 1;
	assert_int_equal(hold(), -1);
	expect_said("guard note(p) patience=10 status b.ready note(fp) arm freeze calm " THAWED
		    "b.release");
	assert_int_equal(err.kind, ERR_FAILED);
	assert_string_equal(err.text, "the domain vm was not frozen: freeze failed");
	assert_true(quiesce_outcome(q)->frozen_ms > 0);
	expect_released();
}

static void after_a_failed_freeze_auto_begins_without(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	world->freeze_fails = 1;
	world->freezes_all_the_same = 1;
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) patience=10 status b.ready note(fp) arm freeze calm "
		    "thaw status disarm note(p) b.begin patience-back note() b.view");
	assert_false(quiesce_outcome(q)->quiesced);
	assert_string_equal(quiesce_outcome(q)->why_not, "freeze failed");
	assert_string_equal(quiesce_outcome(q)->thawed_by, "ccsnap");
	assert_non_null(strstr(warnings, "power cut: freeze failed"));
	expect_released();
}

static void to_freeze_nothing_is_no_freeze(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	world->freeze_count = world->thaw_count = 0;
	assert_int_equal(hold(), 0);
	assert_false(quiesce_outcome(q)->quiesced);
	assert_non_null(strstr(quiesce_outcome(q)->why_not, "no filesystem"));
	assert_int_equal(world->thaws, 1);
	tear_down(NULL);

	set_up(NULL);
	begin_story(QUIESCE_REQUIRE);
	world->freeze_count = 0;
	assert_int_equal(hold(), -1);
	expect_released();
}

static void fewer_thawed_than_frozen_is_a_warning(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->freeze_count = 3;
	assert_int_equal(hold(), 0);
	assert_true(quiesce_outcome(q)->quiesced);
	assert_non_null(strstr(warnings, "thawed 2 of the 3 filesystems"));
}

static void a_beginning_that_fails_leaves_nothing(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	method.begin[0] = -1;
	assert_int_equal(hold(), -1);
	expect_said("guard note(p) " FROZEN THAWED "b.release");
	assert_string_equal(err.text, "cannot begin");
	assert_false(method.has_begun);
	expect_released();
}

static void a_method_that_cannot_begin_gives_way_to_the_next(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	method.begin[0] = 1;
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) " FROZEN "thaw status disarm note(p) b.release close s.prepare "
		    "patience=10 status s.ready note(fp) arm freeze s.begin calm " THAWED "s.view");
	assert_true(quiesce_outcome(q)->quiesced);
	assert_string_equal(quiesce_outcome(q)->method, "snapshot");
	expect_released();
}

static void when_no_method_can_begin_it_fails(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	method.begin[0] = method.begin[1] = 1;
	assert_int_equal(hold(), -1);
	assert_string_equal(err.text, "cannot begin");
	assert_int_equal(err.kind, ERR_FAILED); /* a refusal would say that nothing was done */
	assert_null(quiesce_outcome(q)->method);
	assert_false(quiesce_outcome(q)->quiesced);
	assert_int_equal(world->thaws, 2);
	expect_released();
}

static void what_cannot_be_made_ready_freezes_nothing(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	method.ready = -1;
	assert_int_equal(hold(), -1);
	assert_string_equal(err.text, "cannot get ready");
	expect_said("guard note(p) patience=10 status b.ready patience-back note() b.release");
	assert_int_equal(world->thaws, 0);
	expect_released();
}

static void a_thaw_that_fails_is_tried_again(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->thaw_fails = 2;
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) " FROZEN "thaw thaw status thaw status disarm note(p) "
		    "patience-back note() b.view");
	assert_true(quiesce_outcome(q)->quiesced);
	assert_true(quiesce_outcome(q)->frozen_ms >= 50);
	assert_string_equal(warnings, "");
	expect_released();
}

static void fail_the_next_look(void)
{
	world->status_fails = 1;
}

static void a_second_thaw_says_nothing_of_how_many_were_frozen(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	method.at_begin = fail_the_next_look;
	assert_int_equal(hold(), 0);
	assert_int_equal(world->thaws, 2);
	assert_string_equal(warnings, "");
	expect_released();
}

static void restart_daemon(void)
{
	world->daemon_age++;
}

static void a_dead_connection_leaves_the_thaw_to_the_guard(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	method.at_begin = restart_daemon;
	guard.disarm = 0;
	assert_int_equal(hold(), 0);
	assert_string_equal(quiesce_outcome(q)->thawed_by, "guard");
	assert_true(quiesce_outcome(q)->frozen_ms < 1000);
	expect_released();
	assert_int_equal(world->opens, 1); /* for what only we can put back */
}

static void a_thaw_that_is_not_seen_is_tried_again(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->late_freeze = 2; /* after the look before the freeze */
	assert_int_equal(hold(), 0);
	expect_said("guard note(p) " FROZEN "thaw status thaw status disarm note(p) "
		    "patience-back note() b.view");
	expect_released();
}

static void the_guard_is_asked_when_we_cannot_thaw(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->thaw_fails = ALWAYS;
	guard.disarm = 0;
	assert_int_equal(hold(), 0);
	assert_non_null(strstr(world->said, "guard-thaw disarm"));
	assert_true(quiesce_outcome(q)->quiesced);
	assert_string_equal(quiesce_outcome(q)->thawed_by, "guard");
	assert_true(quiesce_outcome(q)->frozen_ms >= 30000);
	expect_released();
}

static void what_nobody_can_thaw_is_left_to_the_guard(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	world->thaw_fails = ALWAYS;
	guard.cannot_thaw = true;
	assert_int_equal(hold(), -1);
	assert_true(str_starts(err.text, "domain vm: cannot thaw its filesystems: thaw failed; the "
					 "guard cannot thaw it either; by hand: virsh -c " KIT_URI
					 " domfsthaw " KIT_UUID));
	assert_true(record.note.frozen);
	assert_int_equal(world->patience, 10); /* for whoever goes on */
	assert_int_equal(quiesce_release(q, &err), -1);
	assert_non_null(strstr(err.text, "domfsthaw"));
	assert_true(record.note.frozen);
	quiesce_close(steal(&q));
	assert_true(guard.is_left);
	assert_non_null(strstr(world->said, "leave"));
}

static void what_could_not_be_thawed_is_thawed_by_release(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	world->thaw_fails = ALWAYS;
	guard.cannot_thaw = true;
	assert_int_equal(hold(), -1);
	world->thaw_fails = 0;
	expect_released();
	assert_false(guard.is_left);
}

static void a_guard_that_stepped_in_spoils_a_required_freeze(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	guard.calm = guard.disarm = 0;
	assert_int_equal(hold(), -1);
	expect_said("guard note(p) " FROZEN THAWED "b.release");
	assert_int_equal(err.kind, ERR_FAILED);
	assert_non_null(strstr(err.text, "--freeze-timeout"));
	assert_string_equal(quiesce_outcome(q)->thawed_by, "guard");
	expect_released();
}

static void a_guard_that_stepped_in_leaves_auto_what_was_begun(void **state)
{
	(void)state;
	guard.calm = guard.disarm = 0;
	world->thaw_count = 0;
	assert_non_null(strstr(why_not(), "before the point in time"));
	assert_null(strstr(warnings, "filesystems"));
	expect_said("guard note(p) " FROZEN THAWED "b.view");
	assert_string_equal(quiesce_outcome(q)->method, "backup-job");
	assert_string_equal(quiesce_outcome(q)->thawed_by, "guard");
	assert_true(method.has_begun);
	expect_released();
}

static void a_guard_that_died_in_the_freeze_fails_the_hold(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	guard.calm = guard.disarm = -1;
	assert_int_equal(hold(), -1);
	expect_said("guard note(p) " FROZEN THAWED "b.release");
	assert_non_null(strstr(err.text, "guard lost"));
	expect_released();
}

static void a_guard_that_died_after_the_thaw_is_a_warning(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	guard.disarm = -1;
	assert_int_equal(hold(), 0);
	assert_true(quiesce_outcome(q)->quiesced);
	assert_non_null(strstr(warnings, "ccsnap recover"));
	expect_released();
}

static void a_signal_is_obeyed_before_the_freeze(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	looks_until_signal = 1;
	assert_int_equal(hold(), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	assert_int_equal(world->freezes, 0);
	expect_released();
}

static void a_signal_is_obeyed_after_a_failed_freeze(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	world->freeze_fails = 1;
	looks_until_signal = 2;
	assert_int_equal(hold(), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	assert_null(strstr(world->said, "b.begin"));
	expect_released();
}

static void send_signal(void)
{
	looks_until_signal = 1; /* the next is the one after the thaw */
}

static void a_signal_in_the_freeze_is_obeyed_after_the_thaw(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	method.at_begin = send_signal;
	assert_int_equal(hold(), -1);
	assert_int_equal(err.kind, ERR_INTERRUPTED);
	expect_said("guard note(p) " FROZEN THAWED "b.release");
	expect_released();
}

static void a_guard_that_stepped_in_and_died_has_thawed(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	guard.calm = 0;
	guard.disarm = -1;
	assert_int_equal(hold(), 0);
	assert_string_equal(quiesce_outcome(q)->thawed_by, "guard");
	expect_released();
}

static void why_it_failed_at_first_is_forgotten_when_it_was_frozen(void **state)
{
	(void)state;
	begin_story(QUIESCE_AUTO);
	world->status_fails = 1;
	method.begin[0] = 1;
	assert_int_equal(hold(), 0);
	assert_true(quiesce_outcome(q)->quiesced);
	assert_string_equal(quiesce_outcome(q)->why_not, "");
	expect_released();
}

/* --- undoing --- */

static void what_cannot_be_released_is_told_once_and_stays_noted(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	assert_int_equal(hold(), 0);
	method.cannot_release = true;
	assert_int_equal(quiesce_release(q, &err), -1);
	assert_string_equal(err.text, "cannot release");
	world->said[0] = '\0';
	quiesce_close(steal(&q));
	expect_said("close leave"); /* it goes on with it */
}

static void what_could_not_be_released_can_be_later(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	assert_int_equal(hold(), 0);
	method.cannot_release = true;
	assert_int_equal(quiesce_release(q, &err), -1);
	method.cannot_release = false;
	expect_released();
}

static void patience_that_could_not_be_put_back_is_by_release(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	assert_int_equal(hold(), 0);
	record.note.patience = true;
	world->patience = 10;
	world->patience_fails = 1;
	assert_int_equal(quiesce_release(q, &err), -1);
	assert_non_null(strstr(err.text, "guest-agent-timeout"));
	assert_true(record.note.patience);
	expect_released();
}

static void release_reaches_a_daemon_that_was_restarted(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->thaw_fails = ALWAYS;
	guard.cannot_thaw = true;
	assert_int_equal(hold(), -1);
	world->thaw_fails = 0;
	world->daemon_age++;
	world->patience = 0;
	world->said[0] = '\0';
	expect_released();
	assert_int_equal(world->opens, 1);
	expect_said("patience=10 thaw status disarm note(p) patience-back note() b.release clear "
		    "stop");
}

static void a_daemon_that_stays_away_is_no_refusal(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	assert_int_equal(hold(), 0);
	record.note.patience = true;
	world->is_down = 1;
	assert_int_equal(quiesce_release(q, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	world->is_down = 0;
	expect_released();
}

static void a_domain_that_went_away_has_nothing_to_undo(void **state)
{
	(void)state;
	begin_story(QUIESCE_REQUIRE);
	world->thaw_fails = ALWAYS;
	guard.cannot_thaw = true;
	assert_int_equal(hold(), -1);
	world->run_id = -1;
	world->is_frozen = world->patience = 0;
	assert_int_equal(quiesce_release(q, &err), 0);
}

/* --- all at once --- */

enum { FREEZE, BEGIN, CALM, DISARM, THAW, WRITE, SIGNAL, WISH, KINDS };

static const int variants[KINDS] = {
	[FREEZE] = 4, [BEGIN] = 3, [CALM] = 3,	 [DISARM] = 3,
	[THAW] = 4,   [WRITE] = 7, [SIGNAL] = 4, [WISH] = 2,
};

static void apply(const int *v)
{
	world->freeze_fails = v[FREEZE] == 1 || v[FREEZE] == 2;
	world->freezes_all_the_same = v[FREEZE] == 2;
	world->freeze_count = v[FREEZE] == 3 ? 0 : 2;
	method.begin[0] = v[BEGIN] - 1;
	guard.calm = v[CALM] - 1;
	guard.disarm = v[DISARM] - 1;
	world->thaw_fails = v[THAW] == 3 ? ALWAYS : v[THAW];
	guard.cannot_thaw = v[THAW] == 3 && v[BEGIN] == 0;
	record.writes_fail = v[WRITE];
	looks_until_signal = v[SIGNAL] ? v[SIGNAL] : ALWAYS;
}

/* Behind every word "arm" that was followed by a freeze, one of thawing. */
static void expect_a_thaw_behind_each_freeze(void)
{
	for (const char *at = world->said; (at = strstr(at, " freeze ")); at++) {
		const char *thaw = strstr(at, "thaw "), *next = strstr(at + 1, " freeze ");

		assert_non_null(thaw);
		assert_true(!next || thaw < next);
	}
}

static void try_variant(const int *v)
{
	const struct quiesce_outcome *o;
	int rc;

	set_up(NULL);
	begin_story(v[WISH] ? QUIESCE_REQUIRE : QUIESCE_AUTO);
	apply(v);
	rc = hold();
	o = quiesce_outcome(q);
	expect_a_thaw_behind_each_freeze();
	assert_int_equal(world->is_frozen, record.note.frozen && world->is_frozen);
	if (rc == 0) {
		assert_false(world->is_frozen);
		assert_true(method.has_begun);
		assert_true(o->quiesced || (v[WISH] == 0 && *o->why_not && *warnings));
		assert_true(!o->quiesced || (o->filesystems == 2 && v[CALM] == 2));
	} else {
		assert_true(err.kind != ERR_NONE && *err.text);
		assert_false(o->quiesced || method.has_begun);
	}
	world->thaw_fails = record.writes_fail = 0;
	expect_released();
	quiesce_close(steal(&q));
}

static void however_it_goes_nothing_stays_frozen(void **state)
{
	int v[KINDS] = { 0 }, at;

	(void)state;
	do {
		try_variant(v);
		for (at = 0; at < KINDS && ++v[at] == variants[at]; at++)
			v[at] = 0;
	} while (at < KINDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_freeze_is_probed_for_and_nothing_is_changed),
		TEST(without_a_wish_to_freeze_no_agent_is_asked),
		TEST(a_required_freeze_is_refused_where_it_cannot_be),
		TEST(what_cannot_be_frozen_is_captured_without),
		TEST(what_others_have_frozen_stays_frozen),
		TEST(a_lost_daemon_is_an_error_whatever_is_wished),
		TEST(the_next_method_is_taken_where_one_cannot),
		TEST(where_no_method_can_nothing_is_done),
		TEST(a_method_that_fails_is_not_replaced),
		TEST(the_order_is_its_safety),
		TEST(without_a_wish_the_guard_watches_the_job_only),
		TEST(trimming_comes_before_all_that_hurries),
		TEST(a_trim_that_fails_is_a_warning),
		TEST(without_a_guard_nothing_begins),
		TEST(a_guard_that_cannot_be_armed_keeps_from_freezing),
		TEST(what_cannot_be_noted_is_not_done),
		TEST(a_failed_freeze_is_thawed_for_certain),
		TEST(after_a_failed_freeze_auto_begins_without),
		TEST(to_freeze_nothing_is_no_freeze),
		TEST(fewer_thawed_than_frozen_is_a_warning),
		TEST(a_beginning_that_fails_leaves_nothing),
		TEST(a_method_that_cannot_begin_gives_way_to_the_next),
		TEST(when_no_method_can_begin_it_fails),
		TEST(what_cannot_be_made_ready_freezes_nothing),
		TEST(a_thaw_that_fails_is_tried_again),
		TEST(a_thaw_that_is_not_seen_is_tried_again),
		TEST(the_guard_is_asked_when_we_cannot_thaw),
		TEST(what_nobody_can_thaw_is_left_to_the_guard),
		TEST(what_could_not_be_thawed_is_thawed_by_release),
		TEST(a_guard_that_stepped_in_spoils_a_required_freeze),
		TEST(a_guard_that_stepped_in_leaves_auto_what_was_begun),
		TEST(a_guard_that_died_in_the_freeze_fails_the_hold),
		TEST(a_guard_that_died_after_the_thaw_is_a_warning),
		TEST(a_signal_is_obeyed_before_the_freeze),
		TEST(a_signal_is_obeyed_after_a_failed_freeze),
		TEST(a_signal_in_the_freeze_is_obeyed_after_the_thaw),
		TEST(a_second_thaw_says_nothing_of_how_many_were_frozen),
		TEST(a_dead_connection_leaves_the_thaw_to_the_guard),
		TEST(a_guard_that_stepped_in_and_died_has_thawed),
		TEST(why_it_failed_at_first_is_forgotten_when_it_was_frozen),
		TEST(what_cannot_be_released_is_told_once_and_stays_noted),
		TEST(what_could_not_be_released_can_be_later),
		TEST(patience_that_could_not_be_put_back_is_by_release),
		TEST(release_reaches_a_daemon_that_was_restarted),
		TEST(a_daemon_that_stays_away_is_no_refusal),
		TEST(a_domain_that_went_away_has_nothing_to_undo),
		TEST(however_it_goes_nothing_stays_frozen),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
