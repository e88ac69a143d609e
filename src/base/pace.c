// SPDX-License-Identifier: Apache-2.0
#include "base/pace.h"

#include "base/clock.h"
#include "base/size.h"

#include <time.h>

#define SECOND_NS  UINT64_C(1000000000)
#define CREDIT_NS  (SECOND_NS / 4)
#define LOOK_UP_NS (SECOND_NS / 20) /* how late a stop may be noticed */

void pace_init(struct pace *p, uint64_t bytes_per_second)
{
	*p = (struct pace){ .bytes_per_second = bytes_per_second };
	atomic_store(&p->due_ns, clock_ns());
}

/* Rounded up, so that many small ones are no faster. */
static uint64_t cost_ns(const struct pace *p, uint64_t bytes)
{
	unsigned __int128 wanted = (unsigned __int128)bytes * SECOND_NS;

	return (uint64_t)((wanted + p->bytes_per_second - 1) / p->bytes_per_second);
}

/* Returns when its turn is over: then the bytes are paid for. */
static uint64_t take_turn(struct pace *p, uint64_t bytes)
{
	uint_fast64_t due = atomic_load(&p->due_ns), end;

	do
		end = MAX(due, clock_ns() - CREDIT_NS) + cost_ns(p, bytes);
	while (!atomic_compare_exchange_weak(&p->due_ns, &due, end));
	return end;
}

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(ns / SECOND_NS),
		.tv_nsec = (long)(ns % SECOND_NS),
	};

	nanosleep(&t, NULL);
}

int pace_wait(struct pace *p, uint64_t bytes, int (*stop)(const void *ctx), const void *ctx)
{
	uint64_t end, now;

	if (p->bytes_per_second == 0)
		return 0;
	end = take_turn(p, bytes);
	while ((now = clock_ns()) < end) {
		if (stop(ctx))
			return -1;
		sleep_ns(MIN(end - now, LOOK_UP_NS));
	}
	return 0;
}
