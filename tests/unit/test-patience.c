// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECONDS = 1 }; /* what is waited for */

static struct patience *patience;
static struct err err;

static int begin(void **state)
{
	(void)state;
	patience = patience_begin(&err);
	return patience ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	patience_end(patience);
	return 0;
}

static int answer(void *ctx, struct err *e)
{
	const int *n = ctx;

	return *n < 0 ? err_set(e, ERR_REFUSED, "no") : *n;
}

static void the_work_says_what_comes_of_it(void **state)
{
	int good = 7, bad = -1;

	(void)state;
	assert_int_equal(patience_run(patience, answer, &good, SECONDS, NULL, "x", &err), 7);
	assert_int_equal(patience_run(patience, answer, &bad, SECONDS, NULL, "x", &err), -1);
	assert_string_equal(err.text, "no");
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_false(patience_is_lost(patience));
}

/* Work that shows signs of life for a while, and then ends or hangs. */
struct beating {
	atomic_uint_fast64_t pulse;
	double seconds;
	bool hangs;
};

static int beat(void *ctx, struct err *e)
{
	struct beating *b = ctx;
	uint64_t start = clock_ns();

	(void)e;
	while (clock_seconds_since(start) < b->seconds) {
		atomic_fetch_add(&b->pulse, 1);
		usleep(10000);
	}
	while (b->hangs)
		pause();
	return 0;
}

static void work_that_gets_on_is_waited_for(void **state)
{
	struct beating b = { .seconds = 2.5 * SECONDS };

	(void)state;
	assert_int_equal(patience_run(patience, beat, &b, SECONDS, &b.pulse, "x", &err), 0);
	assert_false(patience_is_lost(patience));
}

static void assert_given_up(struct beating *b)
{
	assert_int_equal(patience_run(patience, beat, b, SECONDS, &b->pulse, "what hung", &err),
			 -1);
	assert_true(patience_is_lost(patience));
	assert_string_equal(err.text, "what hung: no answer for 1 seconds (see --stall-timeout)");
}

static void work_that_stands_still_is_given_up(void **state)
{
	static struct beating b = { .hangs = true }; /* the thread's for ever */

	(void)state;
	assert_given_up(&b);
}

static void work_that_comes_to_stand_still_is_given_up(void **state)
{
	static struct beating b = { .seconds = 0.3, .hangs = true };

	(void)state;
	assert_given_up(&b);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_work_says_what_comes_of_it),
		TEST(work_that_gets_on_is_waited_for),
		TEST(work_that_stands_still_is_given_up),
		TEST(work_that_comes_to_stand_still_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
