// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/size.h"

static void assert_uploaded(uint64_t size)
{
	char length[64];

	snprintf(length, sizeof length, "\r\nContent-Length: %llu\r\n", (unsigned long long)size);
	assert_int_equal(put(&server, size), 0);
	assert_int_equal(answer.status, 204);
	assert_int_equal(answer.sent, size);
	assert_has(server.head, length);
	assert_null(strcasestr(server.head, "Transfer-Encoding"));
	assert_int_equal(server.body_bytes, size);
	assert_int_equal(server.body_sum, pattern_sum(size));
}

static void an_upload_goes_whole_and_with_its_length(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 65536, 3 * 65536, 5 * MIB + 1 };

	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		assert_uploaded(sizes[i]);
	server_stop(&server);
}

static void only_a_large_upload_asks_before_it_sends(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	assert_uploaded(1 * MIB);
	assert_false(asks_first(&server));
	assert_uploaded(1 * MIB + 1);
	assert_true(asks_first(&server));
	server_stop(&server);
}

/* Answers without 100 Continue. */
static void serve_without_continue(struct server *s)
{
	while (take_head(s)) {
		take_body(s, content_length(s));
		say(s, s->answer);
	}
}

static void a_server_that_does_not_know_to_be_asked_costs_a_second(void **state)
{
	uint64_t start = clock_ns();

	(void)state;
	server_start(&server, serve_without_continue, NO_CONTENT);
	assert_uploaded(1 * MIB + 1);
	assert_in_range((uintmax_t)(clock_seconds_since(start) * 1000), 500, 2000);
	server_stop(&server);
}

static void serve_417(struct server *s)
{
	while (take_head(s)) {
		if (asks_first(s)) {
			say(s, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
			continue;
		}
		take_body(s, content_length(s));
		say(s, NO_CONTENT);
	}
}

static void a_server_that_refuses_to_be_asked_is_not(void **state)
{
	(void)state;
	server_start(&server, serve_417, NULL);
	assert_uploaded(2 * MIB);
	server_stop(&server);
}

/* --- a refusal before the body is through --- */

#define REFUSAL "HTTP/1.1 413 Large\r\nContent-Length: 12\r\n"
#define MORE	"\r\nquota is ful"

enum { HUGE_ = 1 }; /* GiB */

static void assert_told_early(void)
{
	assert_int_equal(put(&server, HUGE_ * GIB), 0);
	assert_int_equal(answer.status, 413);
	assert_string_equal(answer.body, "quota is ful");
	assert_true(answer.sent < HUGE_ * GIB / 4);
}

static void serve_once_asked(struct server *s)
{
	take_head(s);
	say(s, s->answer);
}

static void a_refusal_to_the_question_saves_the_body(void **state)
{
	(void)state;
	server_start(&server, serve_once_asked, REFUSAL "Connection: close\r\n" MORE);
	assert_told_early();
	assert_int_equal(answer.sent, 0);
	server_stop(&server);
}

static void a_size_over_4_gib_is_told(void **state)
{
	(void)state;
	server_start(&server, serve_once_asked, REFUSAL MORE);
	assert_int_equal(put(&server, 4 * GIB + 1), 0);
	assert_has(server.head, "\r\nContent-Length: 4294967297\r\n");
	assert_int_equal(answer.status, 413);
	server_stop(&server);
}

/* Takes a part of the body and refuses then. */
static void begin_to_take(struct server *s)
{
	take_head(s);
	say(s, "HTTP/1.1 100 Continue\r\n\r\n");
	take_body(s, 3 * MIB);
	say(s, s->answer);
}

static void serve_and_read_on(struct server *s)
{
	begin_to_take(s);
	take_body(s, content_length(s));
}

static void a_refusal_while_the_server_reads_on_ends_the_sending(void **state)
{
	(void)state;
	server_start(&server, serve_and_read_on, REFUSAL MORE);
	assert_told_early();
	server_stop(&server);
}

static void a_refusal_that_closes_ends_the_sending(void **state)
{
	(void)state;
	server_start(&server, serve_and_read_on, REFUSAL "Connection: close\r\n" MORE);
	assert_told_early();
	server_stop(&server);
}

/* Does not close before the body ends. */
static void serve_until_silence(struct server *s)
{
	const struct timeval patience = { .tv_usec = 200000 };

	begin_to_take(s);
	setsockopt(s->conn, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	take_body(s, content_length(s));
}

static void a_refusal_by_a_server_that_waits_for_the_body_ends_the_sending(void **state)
{
	(void)state;
	server_start(&server, serve_until_silence,
		     "HTTP/1.1 413 Large\r\nConnection: close\r\n\r\nquota is ful");
	assert_told_early();
	server_stop(&server);
}

/* Without a length its body ends with the connection. */
static void serve_then_half_close(struct server *s)
{
	begin_to_take(s);
	shutdown(s->conn, SHUT_WR);
	take_body(s, content_length(s));
}

static void a_refusal_of_unknown_length_ends_the_sending(void **state)
{
	(void)state;
	server_start(&server, serve_then_half_close, "HTTP/1.1 413 Large\r\n\r\nquota is ful");
	assert_told_early();
	server_stop(&server);
}

static void serve_then_wait_and_reset(struct server *s)
{
	begin_to_take(s);
	usleep(100000);
	reset(s);
}

static void a_refusal_is_heard_although_the_connection_is_reset(void **state)
{
	(void)state;
	server_start(&server, serve_then_wait_and_reset, REFUSAL MORE);
	assert_told_early();
	server_stop(&server);
}

static void a_refusal_whose_words_are_cut_off_counts(void **state)
{
	(void)state;
	server_start(&server, serve_then_wait_and_reset,
		     "HTTP/1.1 413 Large\r\nContent-Length: 100\r\n\r\nquota");
	assert_int_equal(put(&server, HUGE_ * GIB), 0);
	assert_int_equal(answer.status, 413);
	assert_string_equal(answer.body, "quota");
	server_stop(&server);
}

/* --- connections that break --- */

static void serve_then_reset(struct server *s)
{
	begin_to_take(s);
	reset(s);
}

static void assert_cut(int rc)
{
	assert_no_answer(rc, "ended the connection without an answer, after ");
	assert_has(err.text, "127.0.0.1:");
	assert_true(answer.may_retry);
	assert_false(answer.is_certain_unsent);
}

static void a_reset_in_the_body_may_be_retried(void **state)
{
	(void)state;
	server_start(&server, serve_then_reset, "");
	assert_cut(put(&server, 16 * MIB));
	assert_in_range(answer.sent, 1, 16 * MIB);
	server_stop(&server);
}

static void serve_most(struct server *s)
{
	take_head(s);
	say(s, "HTTP/1.1 100 Continue\r\n\r\n");
	take_body(s, content_length(s) / 100 * 99);
	reset(s);
}

static void a_reset_at_99_percent_may_be_retried(void **state)
{
	(void)state;
	server_start(&server, serve_most, NULL);
	assert_cut(put(&server, 100 * MIB));
	server_stop(&server);
}

/* The first connection is kept after a whole request, and breaks in the second. */
static void serve_get_then_break(struct server *s)
{
	take_head(s);
	say(s, NO_CONTENT);
	take_head(s);
	take_body(s, 1000);
	reset(s);
}

static void a_body_that_has_begun_is_not_sent_again_in_silence(void **state)
{
	(void)state;
	server_start(&server, serve_get_then_break, NULL);
	assert_int_equal(get(&server, "/"), 0);
	assert_cut(put(&server, 1000 * KIB));
	assert_int_equal(server.requests, 2);
	server_stop(&server);
}

static void serve_get_then_close(struct server *s)
{
	take_head(s);
	take_request_body(s);
	say(s, NO_CONTENT);
}

static void a_kept_connection_that_was_closed_costs_nothing(void **state)
{
	(void)state;
	server_start(&server, serve_get_then_close, NULL);
	assert_int_equal(get(&server, "/"), 0);
	usleep(50000);
	assert_uploaded(2 * MIB);
	assert_int_equal(server.connections, 2);
	server_stop(&server);
}

/* --- what we cannot read --- */

static int read_badly(void *ctx, void *buf, size_t len, uint64_t offset, struct err *e)
{
	if (offset + len > 3 * MIB)
		return err_set(e, ERR_FAILED, "image.qcow2: Input/output error at %d", 3145728);
	return read_pattern(ctx, buf, len, offset, e);
}

static void an_error_of_read_is_the_error(void **state)
{
	const struct http_upload upload = { .size = 8 * MIB, .read = read_badly };

	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	assert_int_equal(send_request(&(struct http_request){ .method = "PUT",
							      .url = url_of(&server, "/"),
							      .upload = &upload,
							      .tries = 3 }),
			 -1);
	assert_string_equal(err.text, "image.qcow2: Input/output error at 3145728");
	assert_int_equal(answer.status, 0);
	assert_false(answer.may_retry);
	assert_false(answer.is_certain_unsent);
	assert_int_equal(server.requests, 1);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_upload_goes_whole_and_with_its_length),
		TEST(only_a_large_upload_asks_before_it_sends),
		TEST(a_server_that_does_not_know_to_be_asked_costs_a_second),
		TEST(a_server_that_refuses_to_be_asked_is_not),
		TEST(a_refusal_to_the_question_saves_the_body),
		TEST(a_size_over_4_gib_is_told),
		TEST(a_refusal_while_the_server_reads_on_ends_the_sending),
		TEST(a_refusal_that_closes_ends_the_sending),
		TEST(a_refusal_by_a_server_that_waits_for_the_body_ends_the_sending),
		TEST(a_refusal_of_unknown_length_ends_the_sending),
		TEST(a_refusal_is_heard_although_the_connection_is_reset),
		TEST(a_refusal_whose_words_are_cut_off_counts),
		TEST(a_reset_in_the_body_may_be_retried),
		TEST(a_reset_at_99_percent_may_be_retried),
		TEST(a_body_that_has_begun_is_not_sent_again_in_silence),
		TEST(a_kept_connection_that_was_closed_costs_nothing),
		TEST(an_error_of_read_is_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
