// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/size.h"

/* --- answers --- */

static void an_answer_has_its_status_headers_and_body(void **state)
{
	(void)state;
	server_start(&server, serve_answer,
		     "HTTP/1.1 200 Fine\r\nX-One: 1\r\nX-Two:  a b \t\r\nx-one: 2\r\nX-None:\r\n"
		     "Content-Length: 5\r\n\r\nhello");
	assert_int_equal(get(&server, "/a?b=c"), 0);
	assert_int_equal(answer.status, 200);
	assert_string_equal(http_header_of(&answer, "x-ONE"), "2");
	assert_string_equal(http_header_of(&answer, "X-Two"), "a b");
	assert_string_equal(http_header_of(&answer, "X-None"), "");
	assert_null(http_header_of(&answer, "X-Three"));
	assert_string_equal(answer.body, "hello");
	assert_int_equal(answer.body_len, 5);
	assert_string_equal(answer.url, url_of(&server, "/a?b=c"));
	assert_true(str_starts(server.head, "GET /a?b=c HTTP/1.1\r\n"));
	server_stop(&server);
}

static void an_answer_without_a_body_has_an_empty_one(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	assert_int_equal(get(&server, "/"), 0);
	assert_string_equal(answer.body, "");
	assert_int_equal(answer.body_len, 0);
	server_stop(&server);
}

static void serve_zeros(struct server *s)
{
	static const char zeros[65536];

	take_head(s);
	say(s, "HTTP/1.1 200 OK\r\n\r\n");
	while (send(s->conn, zeros, sizeof zeros, MSG_NOSIGNAL) > 0)
		;
}

static void an_answer_without_end_is_refused(void **state)
{
	(void)state;
	server_start(&server, serve_zeros, NULL);
	assert_no_answer(get(&server, "/"), "the answer is larger than 4 MiB");
	assert_has(err.text, "127.0.0.1:");
	assert_false(answer.may_retry);
	assert_true(answer.body_len <= HTTP_BODY_MAX);
	server_stop(&server);
}

static void serve_headers(struct server *s)
{
	take_head(s);
	say(s, "HTTP/1.1 200 OK\r\n");
	while (send(s->conn, "X-Again: and again\r\n", 20, MSG_NOSIGNAL) > 0)
		;
}

static void a_head_without_end_is_refused(void **state)
{
	(void)state;
	server_start(&server, serve_headers, NULL);
	assert_no_answer(get(&server, "/"), "127.0.0.1:");
	assert_has(err.text, "larger than");
	assert_false(answer.may_retry);
	server_stop(&server);
}

static void serve_once(struct server *s)
{
	take_head(s);
	say(s, s->answer);
}

static void what_is_no_http_is_no_answer(void **state)
{
	(void)state;
	server_start(&server, serve_once, "SSH-2.0-OpenSSH_9.2\r\n");
	assert_no_answer(get(&server, "/"), "127.0.0.1:");
	assert_false(answer.may_retry);
	assert_false(answer.is_certain_unsent);
	server_stop(&server);
}

static void an_answer_that_is_cut_off_is_none(void **state)
{
	(void)state;
	server_start(&server, serve_once, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhell");
	assert_no_answer(get(&server, "/"), "ended the connection after 4 bytes of its answer");
	assert_true(answer.may_retry);
	server_stop(&server);
}

/* --- requests --- */

static void assert_sent(const char *method, const char *text, const char *line, const char *length)
{
	const struct http_request request = { .method = method,
					      .url = url_of(&server, "/x"),
					      .text = text };

	assert_int_equal(send_request(&request), 0);
	assert_int_equal(answer.status, 204);
	assert_true(str_starts(server.head, line));
	if (length)
		assert_has(server.head, length);
	else
		assert_null(strcasestr(server.head, "Content-Length"));
	assert_null(strcasestr(server.head, "Content-Type"));
	assert_null(strcasestr(server.head, "Expect"));
}

static void a_method_is_sent_with_the_length_of_its_body(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	assert_sent("GET", NULL, "GET /x HTTP/1.1\r\n", NULL);
	assert_sent("HEAD", NULL, "HEAD /x HTTP/1.1\r\n", NULL);
	assert_sent("DELETE", NULL, "DELETE /x HTTP/1.1\r\n", NULL);
	assert_sent("POST", NULL, "POST /x HTTP/1.1\r\n", "\r\nContent-Length: 0\r\n");
	assert_sent("PATCH", "[1]", "PATCH /x HTTP/1.1\r\n", "\r\nContent-Length: 3\r\n");
	assert_int_equal(server.body_bytes, 3);
	assert_int_equal(server.connections, 1);
	server_stop(&server);
}

static void headers_are_sent_as_they_are(void **state)
{
	static const struct http_header plain[] = { { "Content-Type", "application/json" },
						    { "X-Empty", "" },
						    { "X-Not", NULL },
						    { NULL, NULL } };
	static const struct http_header secret[] = { { "X-Auth-Token", "abc" }, { NULL, NULL } };
	struct http_request request = { .method = "POST",
					.url = NULL,
					.headers = plain,
					.secret_headers = secret,
					.text = "{}" };

	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	request.url = url_of(&server, "/");
	assert_int_equal(send_request(&request), 0);
	assert_has(server.head, "\r\nContent-Type: application/json\r\n");
	assert_has(server.head, "\r\nX-Empty:\r\n");
	assert_has(server.head, "\r\nX-Auth-Token: abc\r\n");
	assert_has(server.head, "\r\nUser-Agent: ccsnap/");
	assert_has_not(server.head, "X-Not");
	server_stop(&server);
}

static void assert_refused_header(const char *name, const char *value)
{
	const struct http_header secret[] = { { name, value }, { NULL, NULL } };
	const struct http_request request = { .method = "GET",
					      .url = url_of(&server, "/"),
					      .secret_headers = secret };

	assert_int_equal(send_request(&request), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_true(answer.is_certain_unsent);
	assert_false(answer.may_retry);
	assert_has_not(err.text, "hidden");
}

static void a_header_that_would_be_two_is_refused(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	assert_refused_header("X-A", "hidden\r\nX-B: 1");
	assert_refused_header("X-A", "hidden\n");
	assert_refused_header("X-A\r\nX-B", "hidden");
	assert_refused_header("X A", "hidden");
	assert_refused_header("X-A:", "hidden");
	assert_refused_header("", "hidden");
	assert_int_equal(server.connections, 0);
	server_stop(&server);
}

static void a_url_or_method_that_is_none_is_refused(void **state)
{
	static const char *const bad[] = {
		"ftp://h/",	      "h/path", "http://", "http://h/a b", "http://h/\r\nX: 1",
		"file:///etc/passwd", ""
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct http_request request = { .method = "GET", .url = bad[i] };

		assert_int_equal(send_request(&request), -1);
		assert_int_equal(err.kind, ERR_USAGE);
		assert_false(answer.may_retry);
		assert_null(strchr(err.text, '\n'));
	}
	assert_int_equal(
		send_request(&(struct http_request){ .method = "GET /\r\n", .url = "http://h/" }),
		-1);
	assert_int_equal(err.kind, ERR_REFUSED);
}

static void user_and_password_of_a_url_go_as_basic_and_are_not_told(void **state)
{
	char url[128];

	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	snprintf(url, sizeof url, "http://us%%40er:pa%%3Ass@127.0.0.1:%u/p#f", server.port);
	assert_int_equal(send_request(&(struct http_request){ .method = "GET", .url = url }), 0);
	assert_has(server.head, "\r\nAuthorization: Basic dXNAZXI6cGE6c3M=\r\n");
	assert_string_equal(answer.url, url_of(&server, "/p"));
	server_stop(&server);
}

static void half_a_pair_of_credentials_goes_as_basic_too(void **state)
{
	static const char *const cases[][2] = {
		{ "abc", "YWJjOg==" },
		{ "abc:", "YWJjOg==" },
		{ ":pw", "OnB3" },
		{ "ab:%C3%A4-", "YWI6w6Qt" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		autofree char *url = NULL, *header = NULL;

		server_start(&server, serve_answer, NO_CONTENT);
		url = str_format("http://%s@127.0.0.1:%u/", cases[i][0], server.port);
		header = str_format("\r\nAuthorization: Basic %s\r\n", cases[i][1]);
		assert_int_equal(
			send_request(&(struct http_request){ .method = "GET", .url = url }), 0);
		assert_has(server.head, header);
		server_stop(&server);
	}
}

static void dots_in_a_path_are_sent_as_they_are(void **state)
{
	(void)state;
	server_start(&server, serve_answer, NO_CONTENT);
	assert_int_equal(get(&server, "/a/../b/%2E%2E"), 0);
	assert_has(server.head, "GET /a/../b/%2E%2E HTTP/1.1");
	server_stop(&server);
}

static void neither_cookies_nor_netrc_are_used(void **state)
{
	char home[] = "/tmp/ccsnap-test-http.XXXXXX", path[64];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(home));
	snprintf(path, sizeof path, "%s/.netrc", home);
	f = fopen(path, "w");
	fputs("machine 127.0.0.1 login a password b\ndefault login a password b\n", f);
	fclose(f);
	setenv("HOME", home, 1);
	server_start(&server, serve_answer,
		     "HTTP/1.1 204 No Content\r\nSet-Cookie: a=b; Path=/\r\n\r\n");
	assert_int_equal(get(&server, "/"), 0);
	assert_int_equal(get(&server, "/"), 0);
	assert_null(strcasestr(server.heads, "\r\nCookie:"));
	assert_null(strcasestr(server.heads, "\r\nAuthorization:"));
	server_stop(&server);
	unlink(path);
	rmdir(home);
}

static void a_kept_connection_that_was_closed_is_made_anew(void **state)
{
	(void)state;
	server_start(&server, serve_once, NO_CONTENT);
	assert_int_equal(get(&server, "/1"), 0);
	usleep(50000);
	assert_int_equal(get(&server, "/2"), 0);
	assert_int_equal(server.connections, 2);
	assert_int_equal(server.requests, 2);
	server_stop(&server);
}

/* --- downloads --- */

struct sink {
	unsigned status, begun;
	char text[64];
	size_t len;
	bool is_full;
};

static int sink_begin(void *ctx, const struct http_response *head, struct err *e)
{
	struct sink *s = ctx;

	(void)e;
	assert_int_equal(s->len, 0);
	assert_non_null(http_header_of(head, "X-Head"));
	s->status = head->status;
	s->begun++;
	return 0;
}

static int sink_write(void *ctx, const void *buf, size_t len, struct err *e)
{
	struct sink *s = ctx;

	if (s->is_full)
		return err_set(e, ERR_FAILED, "the disk is full");
	assert_true(s->len + len <= sizeof s->text);
	memcpy(s->text + s->len, buf, len);
	s->len += len;
	return 0;
}

static int download(struct sink *sink, unsigned tries)
{
	const struct http_download to = { sink_begin, sink_write, sink };

	return send_request(&(struct http_request){
		.method = "GET", .url = url_of(&server, "/"), .download = &to, .tries = tries });
}

static void a_download_gets_the_head_and_then_the_body(void **state)
{
	struct sink sink = { 0 };

	(void)state;
	server_start(&server, serve_answer,
		     "HTTP/1.1 206 P\r\nX-Head: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n");
	assert_int_equal(download(&sink, 1), 0);
	assert_int_equal(sink.status, 206);
	assert_int_equal(sink.begun, 1);
	assert_memory_equal(sink.text, "abcde", 5);
	assert_int_equal(answer.received, 5);
	assert_string_equal(answer.body, "");
	assert_null(http_header_of(&answer, "X-Trailer"));
	server_stop(&server);
}

static void an_empty_download_begins_too(void **state)
{
	struct sink sink = { 0 };

	(void)state;
	server_start(&server, serve_answer,
		     "HTTP/1.1 200 OK\r\nX-Head: 1\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(download(&sink, 1), 0);
	assert_int_equal(sink.begun, 1);
	assert_int_equal(sink.len, 0);
	server_stop(&server);
}

static void the_body_of_an_error_is_kept_and_not_downloaded(void **state)
{
	struct sink sink = { 0 };

	(void)state;
	server_start(&server, serve_answer, "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone");
	assert_int_equal(download(&sink, 1), 0);
	assert_int_equal(sink.begun + sink.len, 0);
	assert_string_equal(answer.body, "gone");
	server_stop(&server);
}

static void an_error_of_write_is_the_error(void **state)
{
	struct sink sink = { .is_full = true };

	(void)state;
	server_start(&server, serve_answer,
		     "HTTP/1.1 200 OK\r\nX-Head: 1\r\nContent-Length: 4\r\n\r\nabcd");
	assert_int_equal(download(&sink, 3), -1);
	assert_string_equal(err.text, "the disk is full");
	assert_false(answer.may_retry);
	assert_int_equal(server.requests, 1);
	server_stop(&server);
}

static void a_download_that_has_begun_is_not_begun_again(void **state)
{
	struct sink sink = { 0 };

	(void)state;
	server_start(&server, serve_once,
		     "HTTP/1.1 200 OK\r\nX-Head: 1\r\nContent-Length: 9\r\n\r\nabcd");
	assert_no_answer(download(&sink, 3), "after 4 bytes of its answer");
	assert_true(answer.may_retry);
	assert_int_equal(answer.received, 4);
	assert_int_equal(server.requests, 1);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_answer_has_its_status_headers_and_body),
		TEST(an_answer_without_a_body_has_an_empty_one),
		TEST(an_answer_without_end_is_refused),
		TEST(a_head_without_end_is_refused),
		TEST(what_is_no_http_is_no_answer),
		TEST(an_answer_that_is_cut_off_is_none),
		TEST(a_method_is_sent_with_the_length_of_its_body),
		TEST(headers_are_sent_as_they_are),
		TEST(a_header_that_would_be_two_is_refused),
		TEST(a_url_or_method_that_is_none_is_refused),
		TEST(user_and_password_of_a_url_go_as_basic_and_are_not_told),
		TEST(half_a_pair_of_credentials_goes_as_basic_too),
		TEST(dots_in_a_path_are_sent_as_they_are),
		TEST(neither_cookies_nor_netrc_are_used),
		TEST(a_kept_connection_that_was_closed_is_made_anew),
		TEST(a_download_gets_the_head_and_then_the_body),
		TEST(an_empty_download_begins_too),
		TEST(the_body_of_an_error_is_kept_and_not_downloaded),
		TEST(an_error_of_write_is_the_error),
		TEST(a_download_that_has_begun_is_not_begun_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
