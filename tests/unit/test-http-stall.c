// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/size.h"

#include <poll.h>

static void assert_stalls(int rc)
{
	assert_no_answer(rc, "no byte in either direction for 1 seconds");
	assert_has(err.text, "127.0.0.1:");
	assert_true(answer.may_retry);
	assert_false(answer.is_certain_unsent);
	assert_took(0.9, 3);
}

static void a_server_that_says_nothing_is_given_up(void **state)
{
	(void)state;
	server_start(&server, serve_silence, NULL);
	reopen(&(struct http_config){ .stall_seconds = 1 });
	start_clock();
	assert_stalls(get(&server, "/"));
	server_stop(&server);
}

static void serve_silence_after_body(struct server *s)
{
	take_head(s);
	take_request_body(s);
	wait_for_end(s);
}

static void a_server_that_takes_the_body_and_says_nothing_is_given_up(void **state)
{
	(void)state;
	server_start(&server, serve_silence_after_body, NULL);
	reopen(&(struct http_config){ .stall_seconds = 1 });
	start_clock();
	assert_stalls(put(&server, 2 * MIB));
	assert_int_equal(answer.sent, 2 * MIB);
	server_stop(&server);
}

static void wait_for_hang_up(struct server *s)
{
	struct pollfd p = { .fd = s->conn, .events = POLLRDHUP };

	poll(&p, 1, 10000);
}

static void serve_without_reading(struct server *s)
{
	take_head(s);
	say(s, "HTTP/1.1 100 Continue\r\n\r\n");
	wait_for_hang_up(s);
}

static void a_server_that_stops_reading_is_given_up(void **state)
{
	(void)state;
	server_start(&server, serve_without_reading, NULL);
	reopen(&(struct http_config){ .stall_seconds = 1 });
	start_clock();
	assert_stalls(put(&server, 64 * MIB));
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_server_that_says_nothing_is_given_up),
		TEST(a_server_that_takes_the_body_and_says_nothing_is_given_up),
		TEST(a_server_that_stops_reading_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
