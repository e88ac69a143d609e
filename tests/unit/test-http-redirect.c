// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/size.h"

static struct server other;
static char redirect[512];

static const struct http_header secret[] = { { "X-Auth-Token", "sesame" }, { NULL, NULL } };
static const struct http_header plain[] = { { "X-Plain", "yes" }, { NULL, NULL } };

static const char *redirect_to(int status, const char *url)
{
	snprintf(redirect, sizeof redirect,
		 "HTTP/1.1 %d Elsewhere\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, url);
	return redirect;
}

/* The first request at a server gets s->answer, the others a 204. */
static void serve_answer_once(struct server *s)
{
	while (take_head(s)) {
		bool is_first = s->requests == 1;

		take_request_body(s);
		say(s, is_first ? s->answer : NO_CONTENT);
	}
}

static int send_secretly(const char *method, const char *text)
{
	return send_request(&(struct http_request){ .method = method,
						    .url = url_of(&server, "/a/b"),
						    .headers = plain,
						    .secret_headers = secret,
						    .text = text });
}

static void start_both(int status)
{
	server_start(&other, serve_answer, NO_CONTENT);
	server_start(&server, serve_answer_once, redirect_to(status, url_of(&other, "/there")));
}

static void stop_both(void)
{
	server_stop(&server);
	server_stop(&other);
}

static void reading_follows_every_redirect(void **state)
{
	static const int statuses[] = { 301, 302, 303, 307, 308 };

	(void)state;
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		start_both(statuses[i]);
		assert_int_equal(send_secretly(i % 2 ? "HEAD" : "GET", NULL), 0);
		assert_int_equal(answer.status, 204);
		assert_string_equal(answer.url, url_of(&other, "/there"));
		assert_true(str_starts(other.head, i % 2 ? "HEAD /there " : "GET /there "));
		stop_both();
	}
}

static void secrets_stay_at_their_origin(void **state)
{
	(void)state;
	start_both(307);
	assert_int_equal(send_secretly("GET", NULL), 0);
	assert_has(server.head, "X-Auth-Token: sesame");
	assert_has(other.head, "X-Plain: yes");
	assert_has_not(other.head, "sesame");
	stop_both();
}

static void a_password_in_the_url_stays_at_its_origin(void **state)
{
	char url[128];

	(void)state;
	start_both(307);
	snprintf(url, sizeof url, "http://u:p@127.0.0.1:%u/", server.port);
	assert_int_equal(send_request(&(struct http_request){ .method = "GET", .url = url }), 0);
	assert_has(server.head, "Authorization: Basic");
	assert_has_not(other.head, "Authorization");
	stop_both();
}

static void secrets_go_on_at_the_same_origin(void **state)
{
	(void)state;
	server_start(&server, serve_answer_once, redirect_to(302, "../c?d#e"));
	assert_int_equal(send_secretly("GET", NULL), 0);
	assert_has(server.head, "GET /c?d HTTP/1.1");
	assert_has(server.head, "X-Auth-Token: sesame");
	server_stop(&server);
}

static void method_and_body_are_kept(void **state)
{
	(void)state;
	start_both(308);
	assert_int_equal(send_secretly("POST", "hello"), 0);
	assert_has(other.head, "POST /there HTTP/1.1");
	assert_int_equal(other.body_bytes, 5);
	stop_both();
}

static void an_upload_begins_anew_where_it_is_sent_on(void **state)
{
	(void)state;
	start_both(307);
	assert_int_equal(put(&server, 3 * MIB), 0);
	assert_int_equal(answer.status, 204);
	assert_has(other.head, "PUT /there HTTP/1.1");
	assert_int_equal(other.body_bytes, 3 * MIB);
	assert_int_equal(other.body_sum, pattern_sum(3 * MIB));
	stop_both();
}

static void a_redirect_that_would_change_the_method_is_an_answer(void **state)
{
	(void)state;
	start_both(302);
	assert_int_equal(send_secretly("POST", "hello"), 0);
	assert_int_equal(answer.status, 302);
	assert_int_equal(other.requests, 0);
	http_error(&answer, "POST", &err);
	assert_has(err.text, "POST: 302 Found: it points to http://127.0.0.1:");
	stop_both();
}

static void a_redirect_to_nowhere_is_an_answer(void **state)
{
	static const char *const nowhere[] = { "ftp://127.0.0.1/", "file:///etc/passwd", "http://",
					       "javascript:x" };

	(void)state;
	for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
		server_start(&server, serve_answer, redirect_to(301, nowhere[i]));
		assert_int_equal(get(&server, "/"), 0);
		assert_int_equal(answer.status, 301);
		assert_int_equal(server.requests, 1);
		server_stop(&server);
	}
}

static void a_circle_ends_after_five(void **state)
{
	(void)state;
	server_start(&server, serve_answer, redirect_to(307, "/round?secret=1"));
	assert_no_answer(get(&server, "/"), "more than 5 redirects");
	assert_false(answer.may_retry);
	assert_has_not(err.text, "secret");
	assert_int_equal(server.requests, 6);
	server_stop(&server);
}

static void a_place_that_is_not_there_is_named(void **state)
{
	unsigned port;
	char url[64];

	(void)state;
	close(listen_on_loopback(&port, 1));
	snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
	server_start(&server, serve_answer, redirect_to(307, url));
	assert_no_answer(get(&server, "/"), url + strlen("http://"));
	assert_true(answer.may_retry);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reading_follows_every_redirect),
		TEST(secrets_stay_at_their_origin),
		TEST(a_password_in_the_url_stays_at_its_origin),
		TEST(secrets_go_on_at_the_same_origin),
		TEST(method_and_body_are_kept),
		TEST(an_upload_begins_anew_where_it_is_sent_on),
		TEST(a_redirect_that_would_change_the_method_is_an_answer),
		TEST(a_redirect_to_nowhere_is_an_answer),
		TEST(a_circle_ends_after_five),
		TEST(a_place_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
