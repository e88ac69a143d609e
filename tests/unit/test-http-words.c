// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include "base/secret.h"
#include "dest/http_private.h"

static void assert_words(unsigned status, const char *body, const char *wanted)
{
	struct http_response r = { .status = status,
				   .body = strdup(body),
				   .body_len = strlen(body) };

	assert_int_equal(http_error(&r, "WHAT", &err), -1);
	assert_string_equal(err.text, wanted);
	assert_int_equal(err.kind, status / 100 == 4 ? ERR_REFUSED : ERR_FAILED);
	free(r.body);
}

static void an_answer_without_words_is_its_status(void **state)
{
	(void)state;
	assert_words(503, "", "WHAT: 503 Service Unavailable");
	assert_words(599, " \n", "WHAT: 599");
	assert_words(403, "403 Forbidden", "WHAT: 403 Forbidden");
	assert_words(400, "{}", "WHAT: 400 Bad Request: {}");
	assert_int_equal(http_error(&(struct http_response){ .status = 404 }, "WHAT", &err), -1);
	assert_string_equal(err.text, "WHAT: 404 Not Found");
}

static void json_of_the_services_is_its_message(void **state)
{
	(void)state;
	assert_words(401,
		     "{\"error\":{\"code\":401,\"message\":\"The request you have made requires "
		     "authentication.\",\"title\":\"Unauthorized\"}}\n",
		     "WHAT: 401 Unauthorized: The request you have made requires authentication.");
	assert_words(403, "{\"forbidden\": {\"message\": \"Not yours\", \"code\": 403}}",
		     "WHAT: 403 Forbidden: Not yours");
	assert_words(409, " {\"message\": \"There\\nalready\\u0007\", \"code\": \"409 Conflict\"}",
		     "WHAT: 409 Conflict: There already\\x07");
	assert_words(400, "{\"error\": \"invalid\"}", "WHAT: 400 Bad Request: invalid");
}

static void json_that_is_something_else_is_shown(void **state)
{
	(void)state;
	assert_words(400, "{\"a\": [1,\n 2]}", "WHAT: 400 Bad Request: {\"a\": [1, 2]}");
	assert_words(400, "{\"message\": 5, \"b\": null}",
		     "WHAT: 400 Bad Request: {\"message\": 5, \"b\": null}");
	assert_words(500, "{\"message", "WHAT: 500 Internal Server Error: {\"message");
}

static void html_is_its_text(void **state)
{
	(void)state;
	assert_words(403,
		     "<html>\n <head>\n  <title>403 Forbidden</title>\n </head>\n <body>\n"
		     "  <h1>403 Forbidden</h1>\n  You are not authorized to complete "
		     "publicize_image action.<br /><br />\n\n\n </body>\n</html>",
		     "WHAT: 403 Forbidden: You are not authorized to complete publicize_image "
		     "action.");
	assert_words(502,
		     "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad "
		     "Gateway</h1></center><hr><center>nginx/1.22.1</center></body></html>",
		     "WHAT: 502 Bad Gateway: nginx/1.22.1");
	assert_words(400, "<HTML><HEADER>a</HEADER><style>x{}</style>&lt;b&gt; &amp;lt; &x;",
		     "WHAT: 400 Bad Request: a <b> &lt; &x;");
	assert_words(400, "<html><head>never closed", "WHAT: 400 Bad Request");
	assert_words(400, "<", "WHAT: 400 Bad Request");
}

static void plain_text_is_one_line(void **state)
{
	(void)state;
	assert_words(413, "413 Request Entity Too Large\n\nImage exceeds the  storage quota.\n\n  ",
		     "WHAT: 413 Content Too Large: Image exceeds the storage quota.");
	assert_words(500, "a\033[31m\xff\xc2\x9b",
		     "WHAT: 500 Internal Server Error: a\\x1b[31m\\xff\\xc2\\x9b");
}

static void long_words_are_cut_between_characters(void **state)
{
	char body[70001];

	(void)state;
	for (size_t i = 0; i < 70000; i += 2)
		memcpy(body + i, "\xc3\xa9", 2);
	body[70000] = '\0';
	http_error(&(struct http_response){ .status = 400, .body = body, .body_len = 70000 }, "W",
		   &err);
	assert_true(strlen(err.text) < 330);
	assert_true(str_ends(err.text, "\xc3\xa9..."));
}

static void some_errors_may_get_better(void **state)
{
	static const unsigned better[] = { 408, 429, 500, 502, 503, 504 };
	unsigned count = 0;

	(void)state;
	for (unsigned status = 0; status < 1000; status++)
		count += http_may_get_better(&(struct http_response){ .status = status });
	assert_int_equal(count, 6);
	for (size_t i = 0; i < 6; i++)
		assert_true(http_may_get_better(&(struct http_response){ .status = better[i] }));
}

/* Whatever is cut or made shorter afterwards. */
static void secrets_are_covered_before_words_are_changed(void **state)
{
	autosecret char *blanks = secret_new("correct  horse  battery");
	autosecret char *token = secret_new("tok-0123456789-TOKEN");
	autosecret char *entity = secret_new("five > \"four\"");
	char long_body[400];

	(void)state;
	assert_true(blanks && token && entity);
	snprintf(long_body, sizeof long_body, "%288s %s", "x", token);
	assert_int_equal(http_error(&(struct http_response){ .status = 400, .body = long_body },
				    "WHAT", &err),
			 -1);
	assert_null(strstr(err.text, "tok"));
	assert_words(400, "no correct  horse  battery", "WHAT: 400 Bad Request: no ****");
	assert_words(400, "{\"message\": \"tok-0123456789-TOKEN\"}", "WHAT: 400 Bad Request: ****");
	assert_words(400, "<p>five &gt; &quot;four&quot;</p>", "WHAT: 400 Bad Request: ****");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_without_words_is_its_status),
		cmocka_unit_test(json_of_the_services_is_its_message),
		cmocka_unit_test(json_that_is_something_else_is_shown),
		cmocka_unit_test(html_is_its_text),
		cmocka_unit_test(plain_text_is_one_line),
		cmocka_unit_test(long_words_are_cut_between_characters),
		cmocka_unit_test(secrets_are_covered_before_words_are_changed),
		cmocka_unit_test(some_errors_may_get_better),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
