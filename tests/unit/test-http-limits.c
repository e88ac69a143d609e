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
			 " cannot be reached: Connection refused");
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

static void one_failure_does_not_spoil_the_next_request(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	send_request(
		&(struct http_request){ .method = "GET", .url = "http://no-such-host.invalid/" });
	assert_int_equal(get(&server, "/"), 0);
	server_stop(&server);
}

static void a_proxy_that_is_not_there_is_told(void **state)
{
	unsigned port;
	char url[64];

	(void)state;
	close(listen_on_loopback(&port, 1));
	snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
	setenv("http_proxy", url, 1);
	unsetenv("no_proxy");
	assert_no_answer(send_request(&(struct http_request){ .method = "GET",
							      .url = "http://example.org/" }),
			 "example.org:80 cannot be reached: Failed to connect to 127.0.0.1");
}

static void a_proxy_of_the_environment_is_used(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	setenv("http_proxy", server.url, 1);
	unsetenv("no_proxy");
	assert_int_equal(send_request(&(struct http_request){ .method = "GET",
							      .url = "http://example.org/a" }),
			 0);
	assert_has(server.head, "GET http://example.org/a HTTP/1.1\r\n");
	server_stop(&server);
}

static void a_tunnel_gets_no_header_of_ours(void **state)
{
	static const struct http_header secret[] = { { "X-Auth-Token", "sesame" }, { NULL, NULL } };

	(void)state;
	server_start(&server, serve_answer, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
	setenv("https_proxy", server.url, 1);
	unsetenv("no_proxy");
	assert_no_answer(send_request(&(struct http_request){ .method = "GET",
							      .url = "https://example.org/",
							      .secret_headers = secret }),
			 "example.org:443 cannot be reached: CONNECT tunnel failed, response 407");
	assert_true(answer.is_certain_unsent);
	assert_has(server.head, "CONNECT example.org:443 ");
	assert_has_not(server.head, "sesame");
	server_stop(&server);
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
	reopen(&(struct http_config){ .connect_seconds = 1, .has_own_limits = true });
	assert_no_answer(send_request(&(struct http_request){ .method = "GET", .url = url }),
			 "no connection in 1 seconds");
	assert_null(strstr(err.text, "--"));
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
		TEST(one_failure_does_not_spoil_the_next_request),
		TEST(a_proxy_that_is_not_there_is_told),
		TEST(a_proxy_of_the_environment_is_used),
		TEST(a_tunnel_gets_no_header_of_ours),
		TEST(a_connection_that_is_not_made_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
