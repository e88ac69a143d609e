// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct child *start_shell(const char *script, const int *fds, size_t fd_count, int listen_fd,
				 int *out)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	const struct child_config cfg = {
		.argv = argv,
		.fds = fds,
		.fd_count = fd_count,
		.listen_fd = listen_fd,
		.stdout_fd = out,
	};
	struct err err = { 0 };
	struct child *child = child_start(&cfg, &err);

	if (!child)
		print_error("%s\n", err.text);
	assert_non_null(child);
	return child;
}

/* All that it prints, for the caller to look into. */
static const char *output_with(struct child_config *cfg, const char *script)
{
	static char text[4096];
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct err err = { 0 };
	struct child *child;
	size_t len = 0;
	ssize_t n;
	int out;

	cfg->argv = argv;
	cfg->stdout_fd = &out;
	child = child_start(cfg, &err);
	assert_non_null(child);
	while ((n = read(out, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(out);
	child_stop(child);
	return text;
}

static const char *output_of(const char *script, const int *fds, size_t fd_count, int listen_fd)
{
	struct child_config cfg = { .fds = fds, .fd_count = fd_count, .listen_fd = listen_fd };

	return output_with(&cfg, script);
}

static void last_words_are_the_last_line(void **state)
{
	struct child *child = start_shell("echo one >&2; echo 'two words' >&2; echo >&2; exit 3",
					  NULL, 0, 0, NULL);
	int status = child_wait(child);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_string_equal(child_last_words(child), "two words");
	child_stop(child);
}

static void silence_is_no_words(void **state)
{
	struct child *child = start_shell("exit 0", NULL, 0, 0, NULL);

	(void)state;
	child_wait(child);
	assert_string_equal(child_last_words(child), "");
	child_stop(child);
}

static void a_missing_program_is_named(void **state)
{
	const char *const argv[] = { "no-such-program-anywhere", NULL };
	const struct child_config cfg = { .argv = argv };
	struct err err = { 0 };

	(void)state;
	assert_null(child_start(&cfg, &err));
	assert_int_equal(err.sys_errno, ENOENT);
	assert_non_null(strstr(err.text, "no-such-program-anywhere"));
}

static void much_talk_on_stderr_blocks_nobody(void **state)
{
	struct child *child =
		start_shell("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 5", NULL, 0, 0, NULL);

	(void)state;
	assert_int_equal(WEXITSTATUS(child_wait(child)), 5);
	child_stop(child);
}

static void who_ignores_sigterm_is_killed(void **state)
{
	int out;
	struct child *child = start_shell("trap '' TERM; echo ready; while :; do sleep 1; done",
					  NULL, 0, 0, &out);
	uint64_t start;
	char byte;

	(void)state;
	assert_int_equal(read(out, &byte, 1), 1);
	start = clock_ns();
	child_stop(child);
	assert_true(clock_seconds_since(start) < 10);
	close(out);
}

static void only_the_given_descriptors_are_open(void **state)
{
	int stray = open("/dev/null", O_RDONLY); /* as if inherited: no O_CLOEXEC */
	int given[] = { open("/dev/zero", O_RDONLY | O_CLOEXEC),
			open("/dev/null", O_RDONLY | O_CLOEXEC) };
	const char *text =
		output_of("cd /proc/$$/fd && echo * && readlink 3 && readlink 4", given, 2, 0);

	(void)state;
	assert_true(stray >= 0);
	/* a shell may keep one of its own open while it lists them */
	assert_true(!strncmp(text, "0 1 2 3 4\n", 10) || !strncmp(text, "0 1 2 3 4 5\n", 12));
	assert_non_null(strstr(text, "\n/dev/zero\n/dev/null\n"));
	close(stray);
	close(given[0]);
	close(given[1]);
}

static void descriptors_may_be_given_in_any_order(void **state)
{
	int low = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int high = fcntl(low, F_DUPFD_CLOEXEC, 20);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int given[] = { high, null, low };

	(void)state;
	assert_non_null(strstr(output_of("cd /proc/$$/fd && readlink 3 4 5", given, 3, 0),
			       "/dev/zero\n/dev/null\n/dev/zero\n"));
	close(low);
	close(high);
	close(null);
}

static void secrets_in_the_environment_stay_here(void **state)
{
	const char *text;

	(void)state;
	setenv("OS_PASSWORD", "hunter2", 1);
	setenv("LISTEN_FDNAMES", "x", 1);
	text = output_of("env", NULL, 0, 0);
	assert_null(strstr(text, "hunter2"));
	assert_null(strstr(text, "LISTEN_"));
	assert_non_null(strstr(text, "PATH="));
}

static void given_variables_come_on_top_and_replace(void **state)
{
	const char *const env[] = { "SOURCE_DATE_EPOCH=5", "TZ=UTC0", "EMPTY=", NULL };
	struct child_config cfg = { .env = env };

	(void)state;
	setenv("TZ", "Europe/Berlin", 1);
	assert_string_equal(
		output_with(&cfg,
			    "echo $SOURCE_DATE_EPOCH $TZ ${EMPTY-unset}.; env | grep -c ^TZ="),
		"5 UTC0 .\n1\n");
	assert_non_null(strstr(output_with(&cfg, "env"), "PATH="));
	unsetenv("TZ");
}

static void stdout_may_be_a_file_of_ours(void **state)
{
	const char *const argv[] = { "sh", "-c", "printf hello", NULL };
	int file = memfd_create("out", MFD_CLOEXEC);
	const struct child_config cfg = { .argv = argv, .stdout_file = &file };
	struct err err = { 0 };
	struct child *child = child_start(&cfg, &err);
	char text[16] = "";

	(void)state;
	assert_non_null(child);
	assert_int_equal(child_expect_success(child, &err), 0);
	child_stop(child);
	assert_int_equal(pread(file, text, sizeof text - 1, 0), 5);
	assert_string_equal(text, "hello");
	close(file);
}

static void failure_of(const char *script, struct err *err)
{
	struct child *child = start_shell(script, NULL, 0, 0, NULL);

	assert_int_equal(child_expect_success(child, err), -1);
	child_stop(child);
}

static void a_failure_is_told_in_the_childs_last_words(void **state)
{
	struct err err = { 0 };

	(void)state;
	failure_of("echo one >&2; echo 'sh: no such thing' >&2; exit 7", &err);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_string_equal(err.text, "sh failed with status 7: no such thing");
	failure_of("echo '/bin/sh: in short: no.' >&2; exit 7", &err);
	assert_string_equal(err.text, "sh failed with status 7: in short: no");
	failure_of("echo 'a dash sh: no' >&2; exit 7", &err);
	assert_string_equal(err.text, "sh failed with status 7: a dash sh: no");
	failure_of("exit 1", &err);
	assert_string_equal(err.text, "sh failed with status 1");
	failure_of("kill -KILL $$", &err);
	assert_string_equal(err.text, "sh was killed by signal 9");
}

static void a_signal_to_us_ends_the_wait(void **state)
{
	struct err err = { 0 };
	int status;
	pid_t pid = fork(); /* since the flag is never cleared */

	(void)state;
	if (pid == 0) {
		interrupt_install();
		raise(SIGTERM);
		failure_of("exec sleep 60", &err);
		_exit(err.kind == ERR_INTERRUPTED ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void a_listening_socket_is_announced(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_string_equal(
		output_of("echo $LISTEN_FDS; [ $LISTEN_PID = $$ ] && echo mine", &fd, 1, 1),
		"1\nmine\n");
	close(fd);
}

static void the_child_dies_with_us(void **state)
{
	int ends[2];
	struct pollfd end;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		start_shell("exec sleep 60", &ends[1], 1, 0, NULL);
		_exit(0);
	}
	close(ends[1]);
	waitpid(pid, NULL, 0);
	end = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	assert_int_equal(poll(&end, 1, 10 * 1000), 1); /* the last writer is gone */
	assert_true(end.revents & POLLHUP);
	close(ends[0]);
}

static void an_heir_outlives_us(void **state)
{
	int ends[2];
	char byte = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		const char *const argv[] = { "sh", "-c",
					     "while kill -0 $OURS; do sleep .1; done 2>/dev/null; "
					     "printf x >&3",
					     NULL };
		const struct child_config cfg = {
			.argv = argv, .bond = CHILD_HEIR, .fds = &ends[1], .fd_count = 1
		};
		struct err err = { 0 };
		char ours[20];

		snprintf(ours, sizeof ours, "%d", (int)getpid());
		setenv("OURS", ours, 1);
		_exit(child_start(&cfg, &err) ? 0 : 1);
	}
	close(ends[1]);
	waitpid(pid, NULL, 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(ends[0]);
}

static void an_heir_finds_services_but_no_passwords_and_has_our_stderr(void **state)
{
	const char *const argv[] = { "-", "-c", "echo $XDG_STATE_HOME $OS_PASSWORD $0 >&2", NULL };
	const struct child_config cfg = { .argv = argv, .program = "/bin/sh", .bond = CHILD_HEIR };
	int file = memfd_create("stderr", MFD_CLOEXEC), ours = fcntl(2, F_DUPFD_CLOEXEC, 3);
	struct err err = { 0 };
	struct child *child;
	char text[64] = "";

	(void)state;
	setenv("XDG_STATE_HOME", "/a/farm", 1);
	setenv("OS_PASSWORD", "secret", 1);
	dup2(file, 2);
	child = child_start(&cfg, &err);
	dup2(ours, 2);
	assert_non_null(child);
	assert_int_equal(child_wait(child), 0);
	assert_true(child_has_ended(child));
	assert_string_equal(child_last_words(child), "");
	child_leave(child);
	assert_true(pread(file, text, sizeof text - 1, 0) > 0);
	assert_string_equal(text, "/a/farm -\n");
	unsetenv("XDG_STATE_HOME");
	unsetenv("OS_PASSWORD");
	close(file);
	close(ours);
}

/* What a shell needs to start. */
static const char *const runtime[] = { "/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", NULL };

static int has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* its version */) > 0;
}

/* Files of ours: the first is given to the child, the second is not. */
static void make_two_files(char path[2][64], int fd[2])
{
	for (int i = 0; i < 2; i++) {
		strcpy(path[i], "/tmp/test-child-XXXXXX");
		fd[i] = mkostemp(path[i], O_CLOEXEC);
		assert_true(fd[i] >= 0);
		assert_int_equal(write(fd[i], i ? "secret\n" : "public\n", 7), 7);
	}
}

static void a_confined_child_opens_only_what_it_was_given(void **state)
{
	char path[2][64], script[400];
	struct child_config cfg = { .fd_count = 1, .readable = runtime };
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct err err = { 0 };
	struct child *child;
	int fd[2], out, readonly;
	char text[512] = "";
	size_t len = 0;
	ssize_t n;

	(void)state;
	if (!has_landlock())
		skip();
	make_two_files(path, fd);
	snprintf(script, sizeof script,
		 "cat /proc/self/fd/3; cat %s; cat %s && echo bad; cat /etc/passwd && echo bad; "
		 "ls /tmp && echo bad; echo x >%s && echo bad; echo x >/dev/null && echo end",
		 path[0], path[1], path[0]);
	readonly = open(path[0], O_RDONLY | O_CLOEXEC);
	cfg.argv = argv;
	cfg.fds = &readonly;
	cfg.stdout_fd = &out;
	child = child_start(&cfg, &err);
	assert_non_null(child);
	while ((n = read(out, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	assert_string_equal(text, "public\npublic\nend\n");
	child_stop(child);
	close(out);
	close(readonly);
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		unlink(path[i]);
	}
}

static void a_confined_child_connects_to_nobody(void **state)
{
	const char *const argv[] = { "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/1 || echo refused",
				     NULL };
	struct child_config cfg = { .argv = argv, .readable = runtime };
	struct err err = { 0 };
	struct child *child;
	int out;

	(void)state;
	cfg.stdout_fd = &out;
	child = child_start(&cfg, &err);
	assert_non_null(child);
	child_wait(child);
	if (!strstr(child_last_words(child), "Permission denied")) /* not: connection refused */
		fail_msg("%s", child_last_words(child));
	child_stop(child);
	close(out);
}

static int is_known(const void *ctx, const struct stat *st)
{
	const struct stat *known = ctx;

	return st->st_ino == known->st_ino && st->st_dev == known->st_dev;
}

static void a_file_that_the_child_opened_by_itself_is_found(void **state)
{
	char path[2][64], script[200], byte;
	struct err err = { 0 };
	struct child *child;
	struct stat st;
	int fd[2], out;

	(void)state;
	make_two_files(path, fd);
	assert_int_equal(fstat(fd[0], &st), 0);
	child = start_shell("exec 5</dev/null; echo; exec sleep 60", fd, 1, 0, &out);
	assert_int_equal(read(out, &byte, 1), 1);
	assert_int_equal(child_check_files(child, is_known, &st, &err), 0);
	child_stop(child);
	close(out);
	snprintf(script, sizeof script, "exec 5<%s; echo; exec sleep 60", path[1]);
	child = start_shell(script, fd, 1, 0, &out);
	assert_int_equal(read(out, &byte, 1), 1);
	assert_int_equal(child_check_files(child, is_known, &st, &err), -1);
	assert_non_null(strstr(err.text, path[1]));
	child_stop(child);
	close(out);
	for (int i = 0; i < 2; i++) {
		close(fd[i]);
		unlink(path[i]);
	}
}

/* Room for the pipe, but for no number behind those of many descriptors. */
static void a_start_without_free_descriptors_fails(void **state)
{
	const char *const argv[] = { "true", NULL };
	struct child_config cfg = { .argv = argv, .fd_count = 50 };
	struct rlimit limit, low;
	struct err err = { 0 };
	int fds[50];

	(void)state;
	for (int i = 0; i < 50; i++)
		fds[i] = 0;
	cfg.fds = fds;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = (struct rlimit){ 40, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_null(child_start(&cfg, &err));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_non_null(strstr(err.text, "cannot start true: Too many open files"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_words_are_the_last_line),
		cmocka_unit_test(silence_is_no_words),
		cmocka_unit_test(a_missing_program_is_named),
		cmocka_unit_test(much_talk_on_stderr_blocks_nobody),
		cmocka_unit_test(who_ignores_sigterm_is_killed),
		cmocka_unit_test(only_the_given_descriptors_are_open),
		cmocka_unit_test(descriptors_may_be_given_in_any_order),
		cmocka_unit_test(secrets_in_the_environment_stay_here),
		cmocka_unit_test(given_variables_come_on_top_and_replace),
		cmocka_unit_test(stdout_may_be_a_file_of_ours),
		cmocka_unit_test(a_failure_is_told_in_the_childs_last_words),
		cmocka_unit_test(a_signal_to_us_ends_the_wait),
		cmocka_unit_test(a_listening_socket_is_announced),
		cmocka_unit_test(the_child_dies_with_us),
		cmocka_unit_test(an_heir_outlives_us),
		cmocka_unit_test(an_heir_finds_services_but_no_passwords_and_has_our_stderr),
		cmocka_unit_test(a_confined_child_opens_only_what_it_was_given),
		cmocka_unit_test(a_confined_child_connects_to_nobody),
		cmocka_unit_test(a_file_that_the_child_opened_by_itself_is_found),
		cmocka_unit_test(a_start_without_free_descriptors_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
