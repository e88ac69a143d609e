// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/size.h"

static void serve_reading_slowly(struct server *s)
{
	take_head(s);
	say(s, "HTTP/1.1 100 Continue\r\n\r\n");
	for (int i = 0; i < 6; i++) {
		usleep(250000);
		take_body(s, content_length(s) / 6);
	}
	say(s, NO_CONTENT);
}

static void a_server_that_reads_slowly_is_waited_for(void **state)
{
	(void)state;
	server_start(&server, serve_reading_slowly, NULL);
	reopen(&(struct http_config){ .stall_seconds = 1 });
	assert_int_equal(put(&server, 12 * MIB), 0);
	assert_int_equal(answer.status, 204);
	server_stop(&server);
}

static void a_server_that_is_only_slow_is_waited_for(void **state)
{
	(void)state;
	server_start(&server, serve_slowly, NULL);
	reopen(&(struct http_config){ .stall_seconds = 1 });
	assert_int_equal(get(&server, "/"), 0);
	assert_int_equal(answer.body_len, 5);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_server_that_reads_slowly_is_waited_for),
		TEST(a_server_that_is_only_slow_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
