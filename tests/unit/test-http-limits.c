// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

/* --- in all --- */

static void a_transfer_that_takes_too_long_in_all_is_given_up(void **state)
{
	(void)state;
	server_start(&server, serve_slowly, NULL);
	reopen(&(struct http_config){ .stall_seconds = 20, .total_seconds = 1 });
	start_clock();
	assert_no_answer(get(&server, "/"), "not done in 1 seconds (see --upload-timeout)");
	assert_false(answer.may_retry);
	assert_took(0.9, 2);
	server_stop(&server);
}

static void a_request_has_a_limit_of_its_own(void **state)
{
	(void)state;
	server_start(&server, serve_silence, NULL);
	start_clock();
	assert_no_answer(send_request(&(struct http_request){
				 .method = "GET", .url = server.url, .total_seconds = 1 }),
			 "not done in 1 seconds");
	assert_took(0.9, 2);
	server_stop(&server);
}

/* --- connections that are not made --- */

static void a_port_that_nobody_listens_on_is_told(void **state)
{
	unsigned port;
	char url[64];

	(void)state;
	close(listen_on_loopback(&port, 1));
	snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
	assert_no_answer(send_request(&(struct http_request){ .method = "GET", .url = url }),
			 "does not take connections: Connection refused");
	assert_has(err.text, "127.0.0.1:");
	assert_true(answer.may_retry);
	assert_true(answer.is_certain_unsent);
}

static void a_host_that_does_not_exist_is_told(void **state)
{
	(void)state;
	assert_no_answer(send_request(&(struct http_request){
				 .method = "GET", .url = "http://no-such-host.invalid/" }),
			 "no-such-host.invalid:80 cannot be found");
	assert_true(answer.is_certain_unsent);
}

/* A listener whose queue is full does not answer a SYN. */
static int fill_queue(unsigned *port, int *conns, size_t count)
{
	int listener = listen_on_loopback(port, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	a.sin_port = htons((uint16_t)*port);
	for (size_t i = 0; i < count; i++) {
		conns[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(conns[i], (struct sockaddr *)&a, sizeof a);
	}
	return listener;
}

static void a_connection_that_is_not_made_is_given_up(void **state)
{
	int conns[4], listener;
	unsigned port;
	char url[64];

	(void)state;
	listener = fill_queue(&port, conns, 4);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
	reopen(&(struct http_config){ .connect_seconds = 1 });
	start_clock();
	assert_no_answer(send_request(&(struct http_request){ .method = "GET", .url = url }),
			 "no connection in 1 seconds (see --connect-timeout)");
	assert_true(answer.may_retry);
	assert_true(answer.is_certain_unsent);
	assert_took(0.9, 2.5);
	for (size_t i = 0; i < 4; i++)
		close(conns[i]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_transfer_that_takes_too_long_in_all_is_given_up),
		TEST(a_request_has_a_limit_of_its_own),
		TEST(a_port_that_nobody_listens_on_is_told),
		TEST(a_host_that_does_not_exist_is_told),
		TEST(a_connection_that_is_not_made_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
