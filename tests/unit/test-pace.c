// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/pace.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

enum { SECOND_NS = 1000 * 1000 * 1000 };

/* How much may get through in a time: what the header promises. */
#define CREDIT_SECONDS 0.25

static struct pace pace;

static int never(const void *ctx)
{
	(void)ctx;
	return 0;
}

static int always(const void *ctx)
{
	(void)ctx;
	return 1;
}

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void without_a_limit_nobody_waits(void **state)
{
	(void)state;
	pace_init(&pace, 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(pace_wait(&pace, UINT64_MAX / 2, always, NULL), 0);
}

/* Threads that share a pace, and what they have moved. */
struct crowd {
	uint64_t start_ns, rate, each;
	atomic_uint_fast64_t moved;
	atomic_bool too_fast;
};

static void *move_much(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < 20; i++) {
		double most;

		pace_wait(&pace, crowd->each, never, NULL);
		atomic_fetch_add(&crowd->moved, crowd->each);
		most = clock_seconds_since(crowd->start_ns) * (double)crowd->rate;
		if ((double)atomic_load(&crowd->moved) > most)
			crowd->too_fast = true;
	}
	return NULL;
}

static void threads_together_are_no_faster_than_the_rate(void **state)
{
	struct crowd crowd = { .rate = 10 * 1000 * 1000, .each = 100 * 1000 };
	pthread_t threads[4];

	(void)state;
	crowd.start_ns = clock_ns();
	pace_init(&pace, crowd.rate);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, move_much, &crowd);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(crowd.moved, 4 * 20 * crowd.each);
	assert_false(crowd.too_fast);
}

static void a_pause_is_made_up_for_by_a_quarter_of_a_second(void **state)
{
	const uint64_t rate = 1000 * 1000;
	uint64_t start, moved = 0;

	(void)state;
	pace_init(&pace, rate);
	sleep_ms(1000);
	start = clock_ns();
	for (int i = 0; i < 60; i++) {
		assert_int_equal(pace_wait(&pace, 10 * 1000, never, NULL), 0);
		moved += 10 * 1000;
		assert_true((double)moved <=
			    (double)rate * (CREDIT_SECONDS + clock_seconds_since(start)));
	}
}

/* By what is owed: the clock is not asked for. */
static void small_amounts_are_no_faster(void **state)
{
	uint64_t start;

	(void)state;
	pace_init(&pace, UINT64_C(3) * SECOND_NS / 2);
	start = pace.due_ns;
	for (int i = 0; i < 1000; i++)
		pace_wait(&pace, 1, never, NULL);
	assert_true(pace.due_ns - start >= 1000 * 2 / 3);
}

static void large_amounts_are_paid_for_in_full(void **state)
{
	uint64_t start;

	(void)state;
	pace_init(&pace, 1000);
	start = pace.due_ns;
	assert_int_equal(pace_wait(&pace, UINT64_C(1) << 32, always, NULL), -1);
	assert_true(pace.due_ns - start >= (UINT64_C(1) << 32) / 1000 * SECOND_NS);
}

static atomic_bool is_over;

static int over(const void *ctx)
{
	(void)ctx;
	return is_over;
}

static void *end_soon(void *arg)
{
	(void)arg;
	sleep_ms(200);
	is_over = true;
	return NULL;
}

static void a_long_wait_can_be_ended(void **state)
{
	uint64_t start = clock_ns();
	pthread_t thread;

	(void)state;
	pace_init(&pace, 1);
	is_over = false;
	pthread_create(&thread, NULL, end_soon, NULL);
	assert_int_equal(pace_wait(&pace, 1000 * 1000, over, NULL), -1);
	pthread_join(thread, NULL);
	assert_true(clock_seconds_since(start) < 20);
}

static void *wait_first(void *arg)
{
	(void)arg;
	pace_wait(&pace, 300, never, NULL);
	return NULL;
}

static void who_waits_first_goes_first(void **state)
{
	pthread_t thread;
	uint64_t start;

	(void)state;
	pace_init(&pace, 1000);
	start = pace.due_ns;
	pthread_create(&thread, NULL, wait_first, NULL);
	while (pace.due_ns == start)
		sleep_ms(1);
	pace_wait(&pace, 100, never, NULL);
	assert_true(clock_ns() - start >= SECOND_NS / 10 * 4);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_limit_nobody_waits),
		cmocka_unit_test(threads_together_are_no_faster_than_the_rate),
		cmocka_unit_test(a_pause_is_made_up_for_by_a_quarter_of_a_second),
		cmocka_unit_test(small_amounts_are_no_faster),
		cmocka_unit_test(large_amounts_are_paid_for_in_full),
		cmocka_unit_test(a_long_wait_can_be_ended),
		cmocka_unit_test(who_waits_first_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
