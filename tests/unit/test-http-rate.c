// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

static void an_upload_keeps_to_its_rate(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	reopen(&(struct http_config){ .limit_rate = 300000, .stall_seconds = 20 });
	start_clock();
	assert_int_equal(put(&server, 300000), 0);
	assert_took(0.6, 4);
	server_stop(&server);
}

/* libcurl rests after each buffer: it must not rest for longer than the stall limit. */
static void a_low_rate_is_no_stall(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	reopen(&(struct http_config){ .limit_rate = 4000, .stall_seconds = 1 });
	start_clock();
	assert_int_equal(put(&server, 6000), 0);
	assert_took(0.9, 4);
	server_stop(&server);
}

static void serve_800000_bytes(struct server *s)
{
	char *text = calloc(1, 800001);

	memset(text, 'x', 800000);
	take_head(s);
	say(s, "HTTP/1.1 200 OK\r\nContent-Length: 800000\r\n\r\n");
	say(s, text);
	free(text);
}

static void a_download_keeps_to_its_rate(void **state)
{
	(void)state;
	server_start(&server, serve_800000_bytes, NULL);
	reopen(&(struct http_config){ .limit_rate = 400000, .stall_seconds = 20 });
	start_clock();
	assert_int_equal(get(&server, "/"), 0);
	assert_int_equal(answer.body_len, 800000);
	assert_took(0.8, 3.5);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_upload_keeps_to_its_rate),
		TEST(a_low_rate_is_no_stall),
		TEST(a_download_keeps_to_its_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
