/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOCK_H
#define CCSNAP_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds: for durations only. */
uint64_t clock_ns(void);

static inline double clock_seconds_since(uint64_t start_ns)
{
	return (double)(clock_ns() - start_ns) / 1e9;
}

/* A pause for those who look again and again; a signal ends it early, so that its flag is seen at
 * once (base/interrupt.h).  Who has to wait that long looks at the clock.
 */
void clock_sleep_ms(unsigned ms);

/* The same; the next one takes twice as long, up to that. */
static inline void clock_sleep_longer_ms(unsigned *ms, unsigned most)
{
	clock_sleep_ms(*ms);
	*ms = *ms < most / 2 ? 2 * *ms : most;
}

/* CPU seconds, user and system, of this process and its reaped children. */
double clock_cpu_seconds(void);

/* The time of day as RFC 3339 in UTC: 2026-01-31T23:59:59Z. */
struct clock_text {
	char text[32];
};
struct clock_text clock_now(void);

#endif
