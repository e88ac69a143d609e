// SPDX-License-Identifier: Apache-2.0
#include "report/progress.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MS UINT64_C(1000000) /* in nanoseconds */

enum { LINE_MAX_LEN = 320, BAR_MIN = 10, BAR_MAX = 40, WIDTH_UNKNOWN = 80 };

struct progress {
	enum progress_style style;

	/* Guards the terminal's line and all below against a log line of another
	 * thread.  Taken inside the log's own lock (hide, show), and nothing is
	 * logged while it is held, so the order is always log, then this.
	 */
	pthread_mutex_t lock;
	char phase[32]; /* "": none yet */
	uint64_t total, done;
	uint64_t shown_at, shown_done; /* the newest line: when (ns), how far */
	bool drawn;		       /* there is a bar on the terminal now */
	bool broken;		       /* nobody reads: say no more */

	/* Bytes a second, smoothed over the last seconds. */
	uint64_t rate, measured_at, measured_done;
};

int progress_style_parse(const char *word, enum progress_style *style)
{
	const char *term = getenv("TERM");
	bool can = isatty(STDERR_FILENO) && term && *term && !str_equal(term, "dumb");

	if (str_equal(word, "auto"))
		*style = can ? PROGRESS_BAR : PROGRESS_NONE;
	else if (str_equal(word, "bar"))
		*style = PROGRESS_BAR;
	else if (str_equal(word, "json"))
		*style = PROGRESS_JSON;
	else if (str_equal(word, "none"))
		*style = PROGRESS_NONE;
	else
		return -1;
	return 0;
}

/* Straight to the descriptor: an error on the way stays out of stdio, where
 * it would spoil what is printed later.
 */
static void say(struct progress *p, const char *text, size_t len)
{
	int fd = p->style == PROGRESS_JSON ? STDOUT_FILENO : STDERR_FILENO;

	while (len > 0 && !p->broken) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			p->broken = true;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

/* --- how fast --- */

/* Weighs what came in the last interval by its length against about three
 * seconds of the past.
 */
static void measure(struct progress *p, uint64_t now)
{
	uint64_t ms = (now - p->measured_at) / MS, past_ms = 3000, now_rate;

	if (ms < (p->rate ? 100 : 1))
		return;
	now_rate = (p->done - p->measured_done) * 1000 / ms;
	if (p->rate == 0)
		past_ms = 0;
	p->rate = (p->rate * past_ms + now_rate * ms) / (past_ms + ms);
	p->measured_at = now;
	p->measured_done = p->done;
}

static bool eta_known(const struct progress *p)
{
	return p->rate > 0 || p->done == p->total;
}

static uint64_t eta_seconds(const struct progress *p)
{
	uint64_t left = p->total - p->done;

	return left ? (left - 1) / p->rate + 1 : 0;
}

/* --- a bar on a terminal --- */

/* Asked anew for each bar, so that a resized window gets one that fits. */
static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_UNKNOWN;
	return size.ws_col;
}

/* In the background the terminal is somebody else's. */
static bool terminal_is_ours(void)
{
	pid_t owner = tcgetpgrp(STDERR_FILENO);

	return owner < 0 || owner == getpgrp();
}

static void format_eta(const struct progress *p, char *text, size_t cap)
{
	unsigned long long s = eta_known(p) ? eta_seconds(p) : 0;

	if (!eta_known(p) || s > 99 * 3600)
		snprintf(text, cap, "ETA --:--");
	else if (s >= 3600)
		snprintf(text, cap, "ETA %llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(text, cap, "ETA %llu:%02llu", s / 60, s % 60);
}

static unsigned percent(const struct progress *p)
{
	if (p->total == 0)
		return 100;
	/* a disk of 2^64/100 bytes and more would overflow */
	return (unsigned)(p->total > UINT64_MAX / 100 ? p->done / (p->total / 100)
						      : p->done * 100 / p->total);
}

static void format_bar(const struct progress *p, char *text, size_t cells)
{
	size_t full = cells * percent(p) / 100;

	text[0] = '[';
	memset(text + 1, '#', full);
	memset(text + 1 + full, '.', cells - full);
	memcpy(text + 1 + cells, "] ", 3);
}

/* As many parts as fit into width, the most wanted first. */
static size_t format_line(const struct progress *p, char *line, size_t width)
{
	char head[64], bytes[64], rate[64], eta[32], bar[BAR_MAX + 4] = "";
	size_t room = MIN(width, (size_t)LINE_MAX_LEN) - 1;

	snprintf(head, sizeof head, "%s %3u%%  ", p->phase, percent(p));
	snprintf(bytes, sizeof bytes, "%s / %s  ", size_format(p->done).text,
		 size_format(p->total).text);
	snprintf(rate, sizeof rate, "%s/s  ", size_format(p->rate).text);
	format_eta(p, eta, sizeof eta);
	if (strlen(head) + strlen(bytes) > room)
		bytes[0] = '\0';
	if (strlen(head) + strlen(bytes) + strlen(eta) > room)
		eta[0] = '\0';
	if (!*eta || strlen(head) + strlen(bytes) + strlen(rate) + strlen(eta) > room)
		rate[0] = '\0';
	room -= MIN(room, strlen(head) + strlen(bytes) + strlen(rate) + strlen(eta));
	if (room >= BAR_MIN + 3)
		format_bar(p, bar, MIN(room - 3, (size_t)BAR_MAX));
	snprintf(line, LINE_MAX_LEN, "%s%s%s%s%s", head, bar, bytes, rate, eta);
	line[MIN(width, (size_t)LINE_MAX_LEN) - 1] = '\0';
	return strlen(line);
}

static void draw(struct progress *p)
{
	char line[LINE_MAX_LEN + 8] = "\r";
	size_t width = terminal_width(), len;

	if (!terminal_is_ours() || width < 2)
		return;
	len = 1 + format_line(p, line + 1, width);
	memcpy(line + len, "\033[K", 3);
	say(p, line, len + 3);
	p->drawn = true;
}

static void wipe(struct progress *p)
{
	if (p->drawn)
		say(p, "\r\033[K", 4);
	p->drawn = false;
}

static void hide(void *ctx)
{
	struct progress *p = ctx;

	pthread_mutex_lock(&p->lock);
	wipe(p);
}

static void show(void *ctx)
{
	struct progress *p = ctx;

	if (*p->phase)
		draw(p);
	pthread_mutex_unlock(&p->lock);
}

/* --- one JSON object a line --- */

/* Phases are words of ours, so nothing needs escaping. */
static void print_json(struct progress *p)
{
	char line[LINE_MAX_LEN], eta[24] = "null";
	int len;

	if (eta_known(p))
		snprintf(eta, sizeof eta, "%llu", (unsigned long long)eta_seconds(p));
	len = snprintf(line, sizeof line,
		       "{\"phase\":\"%s\",\"done_bytes\":%llu,\"total_bytes\":%llu,"
		       "\"bytes_per_second\":%llu,\"eta_seconds\":%s}\n",
		       p->phase, (unsigned long long)p->done, (unsigned long long)p->total,
		       (unsigned long long)p->rate, eta);
	say(p, line, (size_t)len);
}

/* --- when --- */

static void print_now(struct progress *p, uint64_t now)
{
	if (p->style == PROGRESS_JSON)
		print_json(p);
	else
		draw(p);
	p->shown_at = now;
	p->shown_done = p->done;
}

/* The last line of a phase, unless it is out already. */
static void end_phase(struct progress *p)
{
	uint64_t now = clock_ns();

	if (!*p->phase || p->style != PROGRESS_JSON || p->shown_done == p->done)
		return;
	measure(p, now);
	print_now(p, now);
}

struct progress *progress_start(enum progress_style style)
{
	struct progress *p = style == PROGRESS_NONE ? NULL : calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->style = style;
	pthread_mutex_init(&p->lock, NULL);
	if (style == PROGRESS_BAR)
		log_set_bar(hide, show, p);
	return p;
}

void progress_phase(struct progress *p, const char *phase, uint64_t total)
{
	uint64_t now = clock_ns();

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	end_phase(p);
	snprintf(p->phase, sizeof p->phase, "%s", phase);
	p->total = total;
	p->done = p->measured_done = p->rate = 0;
	p->measured_at = now;
	print_now(p, now);
	pthread_mutex_unlock(&p->lock);
}

void progress_update(void *progress, uint64_t done)
{
	struct progress *p = progress;
	uint64_t now;

	if (!p)
		return;
	now = clock_ns();
	pthread_mutex_lock(&p->lock);
	p->done = MAX(p->done, MIN(done, p->total));
	if (now - p->shown_at >= (p->style == PROGRESS_JSON ? 500 * MS : 200 * MS)) {
		measure(p, now);
		print_now(p, now);
	}
	pthread_mutex_unlock(&p->lock);
}

void progress_stop(struct progress *p)
{
	if (!p)
		return;
	if (p->style == PROGRESS_BAR)
		log_set_bar(NULL, NULL, NULL);
	end_phase(p);
	wipe(p);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
