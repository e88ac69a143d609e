// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "dest/http_private.h"

#include <fcntl.h>
#include <time.h>

#define BUSY(status) "HTTP/1.1 " status " Busy\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"

/* --- what is logged --- */

static FILE *logged;
static int real_stderr;

static void begin_to_log(enum log_level level)
{
	logged = tmpfile();
	fflush(stderr);
	real_stderr = dup(STDERR_FILENO);
	dup2(fileno(logged), STDERR_FILENO);
	log_set_level(level);
}

/* What was logged (static). */
static const char *end_of_log(void)
{
	static char text[8192];
	ssize_t n;

	fflush(stderr);
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	n = pread(fileno(logged), text, sizeof text - 1, 0);
	text[n < 0 ? 0 : n] = '\0';
	fclose(logged);
	log_set_level(LOG_WARNING);
	return text;
}

/* --- tries --- */

/* Two answers of s->answer, then 204. */
static void serve_busy_twice(struct server *s)
{
	while (take_head(s)) {
		bool is_busy = s->requests <= 2;

		take_request_body(s);
		say(s, is_busy ? s->answer : NO_CONTENT);
	}
}

static int put_in_tries(unsigned tries)
{
	const struct http_upload upload = { .size = 2 * MIB, .read = read_pattern };

	return send_request(&(struct http_request){ .method = "PUT",
						    .url = url_of(&server, "/i?q=hidden"),
						    .upload = &upload,
						    .tries = tries });
}

static void what_may_get_better_is_tried_again_from_the_start(void **state)
{
	char wanted[512];

	(void)state;
	server_start(&server, serve_busy_twice, BUSY("503"));
	begin_to_log(LOG_NOTE);
	assert_int_equal(put_in_tries(5), 0);
	snprintf(wanted, sizeof wanted,
		 "ccsnap: PUT %s: 503 Service Unavailable; trying again in 0 s (2 of 5)\n"
		 "ccsnap: PUT %s: 503 Service Unavailable; trying again in 0 s (3 of 5)\n",
		 url_of(&server, "/i"), url_of(&server, "/i"));
	assert_string_equal(end_of_log(), wanted);
	assert_int_equal(answer.status, 204);
	assert_int_equal(server.requests, 3);
	assert_int_equal(server.body_sum, pattern_sum(2 * MIB));
	server_stop(&server);
}

static void assert_tried(const char *reply, unsigned tries, unsigned times, unsigned status)
{
	server_start(&server, serve_busy_twice, reply);
	assert_int_equal(put_in_tries(tries), 0);
	assert_int_equal(answer.status, status);
	assert_int_equal(server.requests, times);
	server_stop(&server);
}

static void some_errors_are_tried_again_and_others_not(void **state)
{
	(void)state;
	log_set_level(LOG_WARNING);
	assert_tried(BUSY("408"), 3, 3, 204);
	assert_tried(BUSY("429"), 3, 3, 204);
	assert_tried(BUSY("500"), 3, 3, 204);
	assert_tried(BUSY("502"), 3, 3, 204);
	assert_tried(BUSY("504"), 3, 3, 204);
	assert_tried(BUSY("400"), 3, 1, 400);
	assert_tried(BUSY("401"), 3, 1, 401);
	assert_tried(BUSY("409"), 3, 1, 409);
	assert_tried(BUSY("413"), 3, 1, 413);
	assert_tried(BUSY("501"), 3, 1, 501);
}

static void the_last_answer_counts(void **state)
{
	(void)state;
	assert_tried(BUSY("503"), 2, 2, 503);
	assert_string_equal(answer.body, "busy");
	assert_tried(BUSY("503"), 1, 1, 503);
	assert_tried(BUSY("503"), 0, 1, 503);
}

static void serve_reset_then_answer(struct server *s)
{
	take_head(s);
	if (s->connections == 1)
		return;
	take_request_body(s);
	say(s, NO_CONTENT);
}

static void a_lost_connection_is_tried_again(void **state)
{
	(void)state;
	server_start(&server, serve_reset_then_answer, NULL);
	begin_to_log(LOG_NOTE);
	assert_int_equal(put_in_tries(2), 0);
	assert_has(end_of_log(), " bytes were sent; trying again in 1 s (2 of 2)\n");
	assert_int_equal(server.body_sum, pattern_sum(2 * MIB));
	server_stop(&server);
}

/* --- pauses --- */

static void pauses_grow_up_to_a_minute(void **state)
{
	static const unsigned wanted[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
	struct http_backoff backoff = { .tries = 9 };

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_int_equal(http_next_pause(&backoff, NULL), wanted[i]);
}

static unsigned pause_for(const char *retry_after, const char *date)
{
	struct http_field fields[] = { { (char *)"Retry-After", (char *)retry_after },
				       { (char *)"Date", (char *)date } };
	struct http_response r = { .fields = fields, .field_count = date ? 2 : 1 };
	struct http_backoff backoff = { .tries = 1, .pause = 2 };

	return http_next_pause(&backoff, &r);
}

static void the_server_may_say_how_long(void **state)
{
	(void)state;
	assert_int_equal(pause_for("0", NULL), 0);
	assert_int_equal(pause_for("17", NULL), 17);
	assert_int_equal(pause_for("99999999999999999999999", NULL), 600);
	assert_int_equal(pause_for("-5", NULL), 4);
	assert_int_equal(pause_for("soon", NULL), 4);
	assert_int_equal(pause_for("", NULL), 4);
}

static void the_server_may_say_until_when_by_its_own_clock(void **state)
{
	char date[64];
	time_t then = time(NULL) + 100;
	struct tm tm;

	(void)state;
	assert_int_equal(
		pause_for("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:20 GMT"), 17);
	assert_int_equal(pause_for("Sun, 06 Nov 1994 08:49:37 GMT", NULL), 0);
	assert_int_equal(pause_for("Fri, 06 Nov 2993 08:49:37 GMT", NULL), 600);
	gmtime_r(&then, &tm);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	assert_in_range(pause_for(date, NULL), 98, 100);
}

static void waiting_uses_up_the_tries(void **state)
{
	struct http_field fields[] = { { (char *)"Retry-After", (char *)"0" } };
	struct http_response r = { .fields = fields, .field_count = 1 };
	struct http_backoff backoff = { .tries = 2 };

	(void)state;
	err_set(&err, ERR_FAILED, "before");
	assert_int_equal(http_wait(&backoff, &r, &err), 0);
	assert_int_equal(http_wait(&backoff, &r, &err), 0);
	assert_int_equal(http_wait(&backoff, &r, &err), -1);
	assert_string_equal(err.text, "before");
}

/* --- the log --- */

static void a_request_is_one_line_for_debugging_without_secrets(void **state)
{
	static const struct http_header secret[] = { { "X-Auth-Token", "sesame" }, { NULL, NULL } };
	struct http_request request = { .method = "POST",
					.secret_headers = secret,
					.text = "{\"password\": \"sesame\"}" };
	char url[128];
	const char *text;

	(void)state;
	server_start(&server, serve_answer,
		     "HTTP/1.1 201 C\r\nX-Subject-Token: sesame\r\n"
		     "Content-Length: 6\r\n\r\nsesame");
	snprintf(url, sizeof url, "http://u:sesame@127.0.0.1:%u/v3?t=sesame", server.port);
	request.url = url;
	begin_to_log(LOG_DEBUG);
	assert_int_equal(send_request(&request), 0);
	text = end_of_log();
	assert_has(text, "ccsnap: debug: POST http://127.0.0.1:");
	assert_has(text, "/v3: 201 Created after 0.");
	assert_has(text, " s, 22 bytes sent, 6 received\n");
	assert_has_not(text, "sesame");
	assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_may_get_better_is_tried_again_from_the_start),
		TEST(some_errors_are_tried_again_and_others_not),
		TEST(the_last_answer_counts),
		TEST(a_lost_connection_is_tried_again),
		TEST(pauses_grow_up_to_a_minute),
		TEST(the_server_may_say_how_long),
		TEST(the_server_may_say_until_when_by_its_own_clock),
		TEST(waiting_uses_up_the_tries),
		TEST(a_request_is_one_line_for_debugging_without_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
