// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void sizes_take_units_and_nothing_else(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "512", 512 },
		{ "4K", 4 * KIB },
		{ "4k", 4 * KIB },
		{ "64KiB", 64 * KIB },
		{ "2m", 2 * MIB },
		{ "10GiB", 10 * GIB },
		{ "16T", 16 * TIB },
		{ "18446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = {
		"",    "-1",   "+1",   " 1",	"1 K", "K",	    "1X",
		"1KB", "1.5G", "0x10", "1KiBs", "1KK", "99999999P", "18446744073709551616"
	};
	uint64_t n;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(size_parse(good[i].text, &n), 0);
		assert_true(n == good[i].bytes);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(size_parse(bad[i], &n), -1);
}

static void sizes_read_well(void **state)
{
	(void)state;
	assert_string_equal(size_format(0).text, "0 B");
	assert_string_equal(size_format(1023).text, "1023 B");
	assert_string_equal(size_format(4096).text, "4 KiB");
	assert_string_equal(size_format(GIB * 27 / 10).text, "2.7 GiB");
	assert_string_equal(size_format(GIB * 8).text, "8 GiB");
	assert_string_equal(size_format(UINT64_MAX).text, "16384 PiB");
}

static void bytes_that_are_no_utf8_stand_as_hex(void **state)
{
	static const char *const pairs[][2] = {
		{ "plain", "plain" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "a\xff"
		  "b",
		  "a\\xffb" },
		{ "\xc3", "\\xc3" },
		{ "\xc0\xaf", "\\xc0\\xaf" },			/* overlong */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },		/* surrogate */
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
	};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		char *s = str_to_utf8(pairs[i][0]);

		assert_string_equal(s, pairs[i][1]);
		free(s);
	}
}

static void messages_cannot_steer_a_terminal(void **state)
{
	char out[64], tiny[8];

	(void)state;
	assert_string_equal(log_printable(out, sizeof out, "a\033[2J\n\x7f\xff"),
			    "a\\x1b[2J\\x0a\\x7f\\xff");
	/* C1 controls, and line ends of Unicode, but not what lies beside them */
	assert_string_equal(log_printable(out, sizeof out, "\xc2\x80\xc2\x9b\x32J\xc2\x9f\xc2\xa0"),
			    "\\xc2\\x80\\xc2\\x9b2J\\xc2\\x9f\xc2\xa0");
	assert_string_equal(
		log_printable(out, sizeof out,
			      "\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xaa"),
		"\xe2\x80\xa7\\xe2\\x80\\xa8\\xe2\\x80\\xa9\xe2\x80\xaf\xe2\x81\xaa");
	/* what turns the direction of writing */
	assert_string_equal(log_printable(out, sizeof out, "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c"),
			    "\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xd8\\x9c");
	log_printable(tiny, sizeof tiny, "\033\033\033\033");
	assert_true(strlen(tiny) < sizeof tiny);
}

static void errors_say_where_and_map_to_exit_codes(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_exit_code(&err), 0);
	errno = ENOENT;
	assert_int_equal(err_errno(&err, ERR_FAILED, "cannot open %s", "x"), -1);
	err_context(&err, "source");
	assert_string_equal(err.text, "source: cannot open x: No such file or directory");
	assert_int_equal(err_exit_code(&err), 1);
	err_set(&err, ERR_USAGE, "u");
	assert_int_equal(err_exit_code(&err), 2);
	err_set(&err, ERR_REFUSED, "r");
	assert_int_equal(err_exit_code(&err), 4);
	err_set(&err, ERR_BUSY, "b");
	assert_int_equal(err_exit_code(&err), 75);
	err_set(&err, ERR_INTERRUPTED, "i");
	err.sys_errno = SIGTERM;
	assert_int_equal(err_exit_code(&err), 143);
}

static void long_messages_are_cut_not_overrun(void **state)
{
	char big[4000];
	struct err err;

	(void)state;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	err_set(&err, ERR_FAILED, "%s", big);
	err_context(&err, "%s", big);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void uuids_are_version_4_and_differ(void **state)
{
	struct uuid_text a, b;
	struct err err;

	(void)state;
	assert_int_equal(uuid_random(&a, &err), 0);
	assert_int_equal(uuid_random(&b, &err), 0);
	assert_int_equal(strlen(a.text), 36);
	assert_int_equal(a.text[14], '4');
	assert_non_null(strchr("89ab", a.text[19]));
	assert_string_not_equal(a.text, b.text);
}

static void times_are_rfc3339(void **state)
{
	struct clock_text t = clock_now();

	(void)state;
	assert_int_equal(strlen(t.text), 20);
	assert_int_equal(t.text[10], 'T');
	assert_int_equal(t.text[19], 'Z');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_take_units_and_nothing_else),
		cmocka_unit_test(sizes_read_well),
		cmocka_unit_test(bytes_that_are_no_utf8_stand_as_hex),
		cmocka_unit_test(messages_cannot_steer_a_terminal),
		cmocka_unit_test(errors_say_where_and_map_to_exit_codes),
		cmocka_unit_test(long_messages_are_cut_not_overrun),
		cmocka_unit_test(uuids_are_version_4_and_differ),
		cmocka_unit_test(times_are_rfc3339),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
