// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
static const char *output_of(const char *script, const int *fds, size_t fd_count, int listen_fd)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n;
	int out;
	struct child *child = start_shell(script, fds, fd_count, listen_fd, &out);

	while ((n = read(out, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(out);
	child_stop(child);
	return text;
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
		cmocka_unit_test(a_listening_socket_is_announced),
		cmocka_unit_test(the_child_dies_with_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
