// SPDX-License-Identifier: Apache-2.0
#include "dest/url.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

static void assert_text(char *got, const char *wanted)
{
	if (!wanted) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, wanted);
	free(got);
}

static void urls_of_http_and_https_are_fine(void **state)
{
	static const char *const good[] = { "http://h",
					    "https://h/",
					    "HTTPS://H:1/x?y#z",
					    "http://127.0.0.1:9292/v2",
					    "http://[::1]:5000/v3/",
					    "https://u:p@h/a%20b",
					    "https://h/a/../b" };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (url_check(good[i], "U", ERR_USAGE, &err) < 0)
			fail_msg("%s: %s", good[i], err.text);
}

static void anything_else_is_refused_without_showing_it(void **state)
{
	static const char *const bad[] = { "",
					   "pw",
					   "h:5000/pw",
					   "/pw",
					   "ftp://h/pw",
					   "http://",

					   "//h/pw",
					   "http://h:pw/",
					   "http://h/ pw",
					   "http://h/\npw",
					   "http://[::1/pw",
					   "http://h:99999/pw",
					   "file:///pw" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		enum err_kind kind = i % 2 ? ERR_USAGE : ERR_REFUSED;

		if (url_check(bad[i], "OS_AUTH_URL", kind, &err) == 0)
			fail_msg("%s is fine", bad[i]);
		assert_int_equal(err.kind, kind);
		assert_true(str_starts(err.text, "OS_AUTH_URL: "));
		assert_null(strstr(err.text, "pw"));
	}
}

static void joining_leaves_one_slash(void **state)
{
	(void)state;
	assert_text(url_join("http://h", "v2"), "http://h/v2");
	assert_text(url_join("http://h//", "//v2/images?a=b"), "http://h/v2/images?a=b");
	assert_text(url_join("http://h/image?x=/y#z", "/v2"), "http://h/image/v2");
	assert_text(url_join("http://h/p", ""), "http://h/p/");
}

static void a_reference_is_resolved_where_it_stands(void **state)
{
	(void)state;
	assert_text(url_resolve("http://h/a/b?c", "/v2/images?marker=1"),
		    "http://h/v2/images?marker=1");
	assert_text(url_resolve("http://h/a/b?c", "d"), "http://h/a/d");
	assert_text(url_resolve("http://h/a/b", "../d"), "http://h/d");
	assert_text(url_resolve("http://h/a/b", "?d"), "http://h/a/b?d");
	assert_text(url_resolve("https://h/a", "//g/d"), "https://g/d");
	assert_text(url_resolve("http://h/a", "https://g:1/d"), "https://g:1/d");
	assert_text(url_resolve("http://h/a", "/b c"), "http://h/b%20c");
}

static void a_reference_to_no_http_is_none(void **state)
{
	(void)state;
	assert_text(url_resolve("http://h/a", "ftp://h/"), NULL);
	assert_text(url_resolve("http://h/a", "file:///etc/passwd"), NULL);
	assert_text(url_resolve("http://h/a", "http://"), NULL);
	assert_text(url_resolve("http://h/a", "/b\r\nX: 1"), NULL);
	assert_text(url_resolve("nothing", "/b"), NULL);
}

static void an_origin_is_scheme_host_and_port(void **state)
{
	(void)state;
	assert_true(url_same_origin("http://h/a", "http://h/b?c"));
	assert_true(url_same_origin("http://h", "HTTP://H:80/"));
	assert_true(url_same_origin("https://h:443", "https://u:p@h"));
	assert_true(url_same_origin("http://[::1]/", "http://[0:0::1]/"));
	assert_false(url_same_origin("http://h", "https://h"));
	assert_false(url_same_origin("https://h:80", "http://h:80"));
	assert_false(url_same_origin("http://h", "http://h:8080"));
	assert_false(url_same_origin("http://h", "http://h.evil"));
	assert_false(url_same_origin("http://h", "http://h@evil/"));
	assert_false(url_same_origin("nothing", "nothing"));
}

static void text_is_escaped_into_one_segment(void **state)
{
	(void)state;
	assert_text(url_escape("a-b_c.d~1"), "a-b_c.d~1");
	assert_text(url_escape("a b/c?d=e&f#%"), "a%20b%2Fc%3Fd%3De%26f%23%25");
	assert_text(url_escape("\xc3\xa9\n"), "%C3%A9%0A");
	assert_text(url_escape(""), "");
	assert_text(url_escape("."), "%2E");
	assert_text(url_escape(".."), "%2E%2E");
	assert_text(url_escape("..."), "...");
}

static void messages_show_nothing_secret(void **state)
{
	(void)state;
	assert_text(url_for_messages("https://u:p@h:1/a/b?c=d#e"), "https://h:1/a/b");
	assert_text(url_for_messages("https://u@h/a"), "https://h/a");
	assert_text(url_for_messages("http://h"), "http://h/");
	assert_text(url_for_messages("http://u:p w@h/"), "(no URL)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_of_http_and_https_are_fine),
		cmocka_unit_test(anything_else_is_refused_without_showing_it),
		cmocka_unit_test(joining_leaves_one_slash),
		cmocka_unit_test(a_reference_is_resolved_where_it_stands),
		cmocka_unit_test(a_reference_to_no_http_is_none),
		cmocka_unit_test(an_origin_is_scheme_host_and_port),
		cmocka_unit_test(text_is_escaped_into_one_segment),
		cmocka_unit_test(messages_show_nothing_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
