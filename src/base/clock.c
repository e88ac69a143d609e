// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <sys/resource.h>
#include <time.h>

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void clock_sleep_ms(unsigned ms)
{
	const struct timespec pause = { .tv_sec = (time_t)(ms / 1000),
					.tv_nsec = (long)(ms % 1000) * 1000000L };

	nanosleep(&pause, NULL);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

double clock_cpu_seconds(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds(self.ru_utime) + seconds(self.ru_stime) + seconds(children.ru_utime) +
	       seconds(children.ru_stime);
}

struct clock_text clock_now(void)
{
	struct clock_text s;
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(s.text, sizeof s.text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return s;
}
