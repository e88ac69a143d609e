// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/str.h"
#include "quiesce-kit.h"
#include "quiesce/freeze.h"
#include "quiesce/guard.h"
#include "quiesce/record.h"
#include "quiesce/record_inner.h"
#include "quiesce/recover.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* The variable that names the file which all processes share: one that a guard is given. */
#define STAGE "XDG_DATA_HOME"

enum { SOON = 60, NEVER_S = 600, MOMENT_MS = 300 };

/* What the guard's process tells besides. */
struct stage {
	struct world world; /* first */
	atomic_int guard_pid, has_ended, recovered, is_record_clear, is_noted_thawed, reloads;
	char descriptors[256];
};

static struct stage *stage;

static void stage_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_ptr_not_equal(stage, MAP_FAILED);
	world = &stage->world;
}

/* --- quiesce/record.h and recover.h --- */

struct record {
	int fd;
};

static struct record *record_new(int fd)
{
	struct record *r = calloc(1, sizeof *r);

	assert_non_null(r);
	r->fd = fd;
	return r;
}

int record_fd(const struct record *r)
{
	return r->fd;
}

/* The words of /proc/self/fd, in numeric order. */
static void tell_descriptors(void)
{
	for (int fd = 0; fd < 64; fd++) {
		char path[64], target[128] = "";

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof target - 1) > 0)
			snprintf(stage->descriptors + strlen(stage->descriptors), 64, "%d=%.20s ",
				 fd, target);
	}
}

struct record *record_adopt(int fd, struct err *err)
{
	(void)err;
	stage->guard_pid = getpid();
	tell_descriptors();
	assert_true(fcntl(fd, F_GETFD) >= 0);
	return record_new(fd);
}

int record_reload(struct record *r, struct err *err)
{
	(void)r, (void)err;
	stage->reloads++;
	return 0;
}

const struct record_note *record_note(const struct record *r)
{
	static struct record_note note;

	(void)r;
	note.frozen = !stage->is_noted_thawed;
	return &note;
}

bool record_is_clear(const struct record *r)
{
	(void)r;
	return stage->is_record_clear;
}

void record_close(struct record *r)
{
	if (r)
		close(r->fd);
	free(r);
}

int recover_run(struct domain *d, struct record *r, void (*tell)(void *ctx, const char *done),
		void *ctx, struct err *err)
{
	(void)r, (void)tell, (void)ctx;
	if (d && check_alive(d, err) < 0)
		return -1;
	stage->recovered++;
	stage->is_record_clear = 1;
	return 0;
}

/* --- our own side --- */

static char stage_path[] = "/tmp/test-guard-XXXXXX";
static struct virt here;
static struct domain domain = { .virt = &here };
static struct record record;
static struct err err;

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(stage_path, "/tmp/test-guard-XXXXXX");
	fd = mkostemp(stage_path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof *stage), 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(setenv(STAGE, stage_path, 1), 0);
	stage_open(stage_path);
	world_begin(&stage->world);
	record.fd = fd; /* it serves as the record, too */
	err = (struct err){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (stage->guard_pid && !stage->has_ended)
		kill(stage->guard_pid, SIGKILL);
	munmap(stage, sizeof *stage);
	close(record.fd);
	unlink(stage_path);
	return 0;
}

static struct guard *start(unsigned seconds)
{
	struct guard *g = guard_start(&domain, &record, seconds, &err);

	if (!g)
		print_error("%s\n", err.text);
	assert_non_null(g);
	return g;
}

static struct guard *start_armed(unsigned seconds)
{
	struct guard *g = start(seconds);

	assert_int_equal(guard_arm(g, &err), 0);
	world->is_frozen = 1;
	return g;
}

static bool becomes(const atomic_int *value, int wanted)
{
	uint64_t begin = clock_ns();

	while (*value != wanted && clock_seconds_since(begin) < SOON)
		usleep(5000);
	return *value == wanted;
}

/* It stays so for a moment. */
static bool stays(const atomic_int *value, int wanted)
{
	usleep(MOMENT_MS * 1000);
	return *value == wanted;
}

/* A process that arms a guard, asks for a freeze and does nothing more. */
static pid_t start_parent(unsigned seconds, bool is_armed)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct guard *g = is_armed ? start_armed(seconds) : start(seconds);

		if (!g || write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void kill_parent(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* --- tests --- */

static void a_guard_starts_and_stops_and_does_nothing(void **state)
{
	struct guard *g = start(NEVER_S);

	(void)state;
	assert_int_not_equal(stage->guard_pid, getpid());
	guard_stop(g);
	assert_int_equal(stage->has_ended, 1);
	assert_int_equal(world->thaws, 0);
	assert_int_equal(stage->recovered, 0);
}

static void a_guard_has_a_session_and_little_open(void **state)
{
	struct guard *g;
	int stray = open("/etc/passwd", O_RDONLY); /* as if inherited: no O_CLOEXEC */

	(void)state;
	g = start(NEVER_S);
	assert_int_equal(getsid(stage->guard_pid), stage->guard_pid);
	assert_int_equal(strncmp(stage->descriptors, "0=/dev/null 1=/dev/null 2=", 26), 0);
	assert_non_null(strstr(stage->descriptors, " 3=socket:"));
	assert_non_null(strstr(stage->descriptors, " 4=/tmp/test-guard"));
	assert_null(strstr(stage->descriptors, " 5="));
	guard_stop(g);
	close(stray);
}

static void a_guard_that_cannot_start_says_why(void **state)
{
	(void)state;
	world->is_unknown = 1;
	assert_null(guard_start(&domain, &record, NEVER_S, &err));
	assert_string_equal(err.text, "the guard cannot start: no domain of that name");
	world->is_unknown = 0;
	world->is_down = 1;
	assert_null(guard_start(&domain, &record, NEVER_S, &err));
	assert_string_equal(err.text, "the guard cannot start: cannot connect to the fake");
	assert_int_equal(err.kind, ERR_FAILED);
}

static void a_signal_ends_the_wait_for_a_guard(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	world->hangs = 1;
	pid = fork(); /* since the flag is never cleared */
	if (pid == 0) {
		uint64_t begin = clock_ns();

		interrupt_install();
		raise(SIGTERM); /* INT may be ignored by who started us */
		_exit(!guard_start(&domain, &record, NEVER_S, &err) &&
				      err.kind == ERR_INTERRUPTED && clock_seconds_since(begin) < 20
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void an_armed_guard_waits_for_its_deadline(void **state)
{
	struct guard *g = start_armed(NEVER_S);

	(void)state;
	assert_true(stays(&world->thaws, 0));
	assert_int_equal(guard_is_calm(g, &err), 1);
	assert_int_equal(guard_disarm(g, &err), 1);
	guard_stop(g);
	assert_int_equal(stage->has_ended, 1);
	assert_int_equal(world->thaws, 0);
}

static void a_guard_thaws_at_its_deadline(void **state)
{
	struct guard *g = start(1);
	uint64_t begin = clock_ns();

	(void)state;
	assert_int_equal(guard_arm(g, &err), 0);
	world->is_frozen = 1;
	assert_true(becomes(&world->is_frozen, 0));
	assert_true(clock_seconds_since(begin) >= 1);
	assert_int_equal(guard_is_calm(g, &err), 0);
	assert_int_equal(guard_disarm(g, &err), 0);
	assert_int_equal(guard_arm(g, &err), 0);
	assert_int_equal(guard_is_calm(g, &err), 1);
	assert_int_equal(guard_disarm(g, &err), 1);
	guard_stop(g);
	assert_int_equal(stage->recovered, 0);
}

static void a_freeze_that_comes_late_is_thawed_too(void **state)
{
	struct guard *g = start(1);

	(void)state;
	assert_int_equal(guard_arm(g, &err), 0);
	assert_true(becomes(&world->thaws, 1));
	world->is_frozen = 1;
	assert_true(becomes(&world->is_frozen, 0));
	assert_int_equal(guard_disarm(g, &err), 0);
	guard_stop(g);
}

/* It was thawed, and noted, by whoever could not disarm. */
static void what_is_noted_as_thawed_is_thawed_once(void **state)
{
	struct guard *g = start(1);

	(void)state;
	assert_int_equal(guard_arm(g, &err), 0);
	stage->is_noted_thawed = 1;
	assert_true(becomes(&stage->reloads, 1));
	world->is_frozen = 1; /* by somebody else */
	usleep(2500 * 1000);
	assert_int_equal(world->is_frozen, 1);
	assert_int_equal(world->thaws, 1);
	assert_int_equal(stage->reloads, 1);
	stage->is_record_clear = 1;
	guard_stop(g); /* who does not know that leaves it */
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->thaws, 1);
}

static void a_disarmed_guard_never_thaws(void **state)
{
	struct guard *g = start_armed(1);

	(void)state;
	assert_int_equal(guard_disarm(g, &err), 1);
	usleep(2 * 1000 * 1000);
	assert_int_equal(world->thaws, 0);
	assert_int_equal(kill(stage->guard_pid, SIGTERM), 0);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->thaws, 0);
	assert_int_equal(stage->recovered, 0);
	guard_stop(g);
}

static void a_guard_thaws_and_clears_when_its_parent_dies(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);

	(void)state;
	assert_true(stays(&world->is_frozen, 1));
	kill_parent(parent);
	assert_true(becomes(&world->is_frozen, 0));
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(stage->recovered, 1);
}

static void a_freeze_under_way_when_the_parent_dies_is_thawed(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);

	(void)state;
	world->is_frozen = 0;
	world->late_freeze = 3;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->late_freeze, 0);
	assert_int_equal(world->is_frozen, 0);
}

static void a_guard_thaws_when_its_parent_is_stopped(void **state)
{
	pid_t parent = start_parent(1, true);

	(void)state;
	assert_int_equal(kill(parent, SIGSTOP), 0);
	assert_true(becomes(&world->is_frozen, 0));
	assert_int_equal(stage->recovered, 0);
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(stage->recovered, 1);
}

static void a_disarmed_guard_clears_when_its_parent_dies(void **state)
{
	pid_t parent = start_parent(NEVER_S, false);

	(void)state;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(stage->recovered, 1);
	assert_int_equal(world->thaws, 0);
}

static void what_is_clear_is_left_alone_when_the_parent_dies(void **state)
{
	pid_t parent = start_parent(NEVER_S, false);

	(void)state;
	stage->is_record_clear = 1;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(stage->recovered, 0);
}

static void the_lock_is_held_as_long_as_the_guard_lives(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);
	int fd = open(stage_path, O_RDWR | O_CLOEXEC);
	uint64_t begin;

	(void)state;
	world->thaw_fails = ALWAYS;
	close(record.fd);
	record.fd = -1;
	kill_parent(parent);
	assert_true(becomes(&world->is_frozen, 1));
	usleep(MOMENT_MS * 1000);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	world->thaw_fails = 0;
	assert_true(becomes(&stage->has_ended, 1));
	begin = clock_ns();
	while (flock(fd, LOCK_EX | LOCK_NB) < 0 && clock_seconds_since(begin) < SOON)
		usleep(5000);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

static void a_guard_that_is_terminated_thaws_first(void **state)
{
	struct guard *g = start_armed(3);
	int thaws;

	(void)state;
	assert_int_equal(kill(stage->guard_pid, SIGTERM), 0);
	assert_true(becomes(&world->is_frozen, 0));
	assert_int_equal(guard_is_calm(g, &err), 0);
	thaws = world->thaws;
	assert_true(becomes(&stage->has_ended, 1)); /* nobody disarms it */
	assert_int_equal(world->thaws, thaws + 1);
	assert_int_equal(guard_is_calm(g, &err), -1);
	assert_int_equal(stage->recovered, 0);
	guard_stop(g);
}

static void a_terminated_guard_ends_when_it_is_disarmed(void **state)
{
	struct guard *g = start_armed(NEVER_S);

	(void)state;
	assert_int_equal(kill(stage->guard_pid, SIGTERM), 0);
	assert_true(becomes(&world->is_frozen, 0));
	assert_int_equal(guard_disarm(g, &err), 0);
	assert_true(becomes(&stage->has_ended, 1));
	guard_stop(g);
}

static void no_other_signal_ends_a_guard(void **state)
{
	static const int deaf[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE };
	struct guard *g = start_armed(NEVER_S);

	(void)state;
	for (size_t i = 0; i < sizeof deaf / sizeof *deaf; i++)
		assert_int_equal(kill(stage->guard_pid, deaf[i]), 0);
	assert_true(stays(&world->thaws, 0));
	assert_int_equal(guard_is_calm(g, &err), 1);
	assert_int_equal(guard_disarm(g, &err), 1);
	guard_stop(g);
}

static void a_guard_goes_on_while_the_thaw_fails(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);

	(void)state;
	world->thaw_fails = 8;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->is_frozen, 0);
	assert_true(world->thaws >= 9);
}

static void an_answered_thaw_is_not_enough(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);

	(void)state;
	world->status_fails = 3;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_true(world->thaws >= 4);
}

static void a_guard_reaches_a_daemon_that_was_restarted(void **state)
{
	pid_t parent = start_parent(5, true);

	(void)state;
	world->patience = 0;
	world->is_down = 1;
	world->daemon_age++;
	kill_parent(parent);
	assert_true(stays(&world->is_frozen, 1));
	world->is_down = 0;
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->is_frozen, 0);
	assert_int_equal(world->patience, 5); /* which recovery puts back */
	assert_int_equal(stage->recovered, 1);
}

static void what_no_longer_runs_needs_no_thaw(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);

	(void)state;
	world->run_id = -1;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(stage->recovered, 1);
}

static void what_was_started_anew_is_not_thawed(void **state)
{
	pid_t parent = start_parent(NEVER_S, true);

	(void)state;
	world->run_id++;
	world->is_frozen = 0;
	kill_parent(parent);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->thaws, 0);
}

static void a_guard_that_was_killed_is_missed(void **state)
{
	struct guard *g = start_armed(NEVER_S);

	(void)state;
	assert_int_equal(kill(stage->guard_pid, SIGKILL), 0);
	assert_int_equal(guard_is_calm(g, &err), -1);
	assert_true(str_starts(err.text, "the guard "));
	assert_int_equal(guard_thaw(g, &err), -1);
	assert_int_equal(guard_disarm(g, &err), -1);
	guard_stop(g);
	stage->has_ended = 1;
}

static void nobody_waits_for_a_hung_guard_behind_the_deadline(void **state)
{
	struct guard *g = start_armed(1);
	uint64_t begin = clock_ns();

	(void)state;
	assert_int_equal(kill(stage->guard_pid, SIGSTOP), 0);
	assert_int_equal(guard_is_calm(g, &err), 0);
	assert_true(clock_seconds_since(begin) < 30);
	assert_int_equal(kill(stage->guard_pid, SIGCONT), 0);
	world->is_frozen = 0;
	assert_true(becomes(&world->thaws, 1));
	assert_int_equal(guard_disarm(g, &err), 0); /* not the answer that is owed */
	assert_int_equal(guard_arm(g, &err), 0);
	assert_int_equal(guard_is_calm(g, &err), 1);
	assert_int_equal(guard_disarm(g, &err), 1);
	guard_stop(g);
}

static void a_guard_thaws_when_it_is_asked_to(void **state)
{
	struct guard *g = start_armed(NEVER_S);

	(void)state;
	world->thaw_fails = 3;
	world->late_freeze = 7;
	assert_int_equal(guard_thaw(g, &err), 0);
	assert_int_equal(world->late_freeze, 0);
	assert_int_equal(world->is_frozen, 0);
	assert_int_equal(guard_disarm(g, &err), 0);
	guard_stop(g);
	assert_int_equal(stage->has_ended, 1);
}

static void an_armed_guard_cannot_be_stopped(void **state)
{
	struct guard *g = start_armed(NEVER_S);

	(void)state;
	world->thaw_fails = 3;
	guard_stop(g);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(world->is_frozen, 0);
	assert_int_equal(stage->recovered, 1);
}

static void a_guard_that_is_left_clears_what_is_noted(void **state)
{
	struct guard *g = start(NEVER_S);

	(void)state;
	guard_leave(g);
	assert_true(becomes(&stage->has_ended, 1));
	assert_int_equal(stage->recovered, 1);
	assert_int_equal(world->thaws, 0);
}

static void a_guard_knows_how_long_calls_may_take(void **state)
{
	struct guard *g = start(NEVER_S);

	(void)state;
	assert_int_equal(world->expected_patience, NEVER_S);
	guard_stop(g);
}

static int as_guard(int argc, char **argv)
{
	int status;

	stage_open(getenv(STAGE));
	log_set_level(LOG_ERROR);
	status = guard_main(argc, argv);
	stage->has_ended = 1;
	return status;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_guard_starts_and_stops_and_does_nothing),
		TEST(a_guard_has_a_session_and_little_open),
		TEST(a_guard_that_cannot_start_says_why),
		TEST(a_signal_ends_the_wait_for_a_guard),
		TEST(an_armed_guard_waits_for_its_deadline),
		TEST(a_guard_thaws_at_its_deadline),
		TEST(a_freeze_that_comes_late_is_thawed_too),
		TEST(what_is_noted_as_thawed_is_thawed_once),
		TEST(a_disarmed_guard_never_thaws),
		TEST(a_guard_thaws_and_clears_when_its_parent_dies),
		TEST(a_freeze_under_way_when_the_parent_dies_is_thawed),
		TEST(a_guard_thaws_when_its_parent_is_stopped),
		TEST(a_disarmed_guard_clears_when_its_parent_dies),
		TEST(what_is_clear_is_left_alone_when_the_parent_dies),
		TEST(the_lock_is_held_as_long_as_the_guard_lives),
		TEST(a_guard_that_is_terminated_thaws_first),
		TEST(a_terminated_guard_ends_when_it_is_disarmed),
		TEST(no_other_signal_ends_a_guard),
		TEST(a_guard_goes_on_while_the_thaw_fails),
		TEST(an_answered_thaw_is_not_enough),
		TEST(a_guard_reaches_a_daemon_that_was_restarted),
		TEST(what_no_longer_runs_needs_no_thaw),
		TEST(what_was_started_anew_is_not_thawed),
		TEST(a_guard_that_was_killed_is_missed),
		TEST(nobody_waits_for_a_hung_guard_behind_the_deadline),
		TEST(a_guard_thaws_when_it_is_asked_to),
		TEST(an_armed_guard_cannot_be_stopped),
		TEST(a_guard_that_is_left_clears_what_is_noted),
		TEST(a_guard_knows_how_long_calls_may_take),
#undef TEST
	};

	if (argc > 0 && str_equal(argv[0], GUARD_NAME))
		return as_guard(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
