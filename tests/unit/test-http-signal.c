// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/interrupt.h"

#include <sys/wait.h>

enum { ENDS, GOES_ON };

/* One run in a process of its own, that gets a signal meanwhile; its exit code. */
static int run_with_signal(int how)
{
	struct http_request request = { .method = "GET",
					.url = server.url,
					.even_if_interrupted = how == GOES_ON,
					.tries = 3 };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		interrupt_install();
		if (send_request(&request) == 0)
			_exit(answer.status == 200 ? 0 : 1);
		_exit(err.kind == ERR_INTERRUPTED && !answer.may_retry ? err_exit_code(&err) : 2);
	}
	usleep(300000);
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_signal_ends_a_transfer_within_a_second_or_so(void **state)
{
	(void)state;
	server_start(&server, serve_silence, NULL);
	start_clock();
	assert_int_equal(run_with_signal(ENDS), 128 + SIGTERM);
	assert_took(0.3, 2);
	server_stop(&server);
}

static void a_signal_does_not_end_what_cleans_up(void **state)
{
	(void)state;
	server_start(&server, serve_slowly, NULL);
	assert_int_equal(run_with_signal(GOES_ON), 0);
	server_stop(&server);
}

static void a_signal_ends_the_pause_between_tries(void **state)
{
	(void)state;
	server_start(&server, serve_answer,
		     "HTTP/1.1 503 Wait\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n");
	start_clock();
	assert_int_equal(run_with_signal(ENDS), 128 + SIGTERM);
	assert_took(0.3, 2);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_signal_ends_a_transfer_within_a_second_or_so),
		TEST(a_signal_does_not_end_what_cleans_up),
		TEST(a_signal_ends_the_pause_between_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
