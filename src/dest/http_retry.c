// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "dest/http_private.h"

#include <ctype.h>
#include <time.h>

enum { PAUSE_MAX = 60, RETRY_AFTER_MAX = 600, LOOK_UP_MS = 100 };

int http_date(const char *text, time_t *out)
{
	*out = text ? curl_getdate(text, NULL) : -1;
	return *out < 0 ? -1 : 0;
}

/* A date is compared with the server's own clock, if it tells its time. */
static long seconds_until(const struct http_response *r, const char *date)
{
	time_t then, now;

	if (http_date(date, &then) < 0)
		return -1;
	if (http_date(http_header_of(r, "Date"), &now) < 0)
		now = time(NULL);
	return then > now ? then - now : 0;
}

/* What the server asks for (RFC 9110 10.2.3): seconds or a date; -1: nothing. */
static long retry_after(const struct http_response *r)
{
	const char *text = r ? http_header_of(r, "Retry-After") : NULL;
	long seconds = 0;

	if (!text || !*text)
		return -1;
	if (!isdigit((unsigned char)*text))
		return seconds_until(r, text);
	for (; isdigit((unsigned char)*text) && seconds <= RETRY_AFTER_MAX; text++)
		seconds = seconds * 10 + (*text - '0');
	return seconds;
}

unsigned http_next_pause(struct http_backoff *backoff, const struct http_response *r)
{
	long asked = retry_after(r);

	backoff->pause = backoff->pause ? MIN(backoff->pause * 2, PAUSE_MAX) : 1;
	return asked < 0 ? backoff->pause : (unsigned)MIN(asked, RETRY_AFTER_MAX);
}

int http_sleep(unsigned seconds, enum http_patience how, struct err *err)
{
	uint64_t start = clock_ns();

	for (;;) {
		if (how == HTTP_UNTIL_SIGNAL && interrupt_check(err) < 0)
			return -1;
		if (clock_seconds_since(start) >= seconds)
			return 0;
		clock_sleep_ms(LOOK_UP_MS);
	}
}

int http_wait(struct http_backoff *backoff, const struct http_response *r, struct err *err)
{
	if (backoff->tries == 0)
		return -1;
	backoff->tries--;
	return http_sleep(http_next_pause(backoff, r), HTTP_UNTIL_SIGNAL, err);
}
