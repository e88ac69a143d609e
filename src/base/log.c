// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/secret.h"
#include "base/str.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below and stderr */
static enum log_level max_level = LOG_NOTE;
static void (*sink_fn)(void *ctx, const char *warning);
static void *sink_ctx;
static void (*bar_hide)(void *ctx), (*bar_show)(void *ctx);
static void *bar_ctx;

static const char *const prefix[] = {
	[LOG_ERROR] = "ccsnap: ",
	[LOG_WARNING] = "ccsnap: warning: ",
	[LOG_NOTE] = "ccsnap: ",
	[LOG_DEBUG] = "ccsnap: debug: ",
};

void log_set_level(enum log_level max)
{
	max_level = max;
}

void log_set_sink(void (*sink)(void *ctx, const char *warning), void *ctx)
{
	pthread_mutex_lock(&lock);
	sink_fn = sink;
	sink_ctx = ctx;
	pthread_mutex_unlock(&lock);
}

void log_set_bar(void (*hide)(void *ctx), void (*show)(void *ctx), void *ctx)
{
	pthread_mutex_lock(&lock);
	bar_hide = hide;
	bar_show = show;
	bar_ctx = ctx;
	pthread_mutex_unlock(&lock);
}

char *log_printable(char *dst, size_t cap, const char *text)
{
	size_t at = 0;

	while (*text && at + 5 < cap) {
		size_t n = str_utf8_len(text);

		if (n == 0 || str_is_steering(text)) {
			at += (size_t)snprintf(dst + at, cap - at, "\\x%02x", (unsigned char)*text);
			text++;
		} else {
			while (n-- > 0)
				dst[at++] = *text++;
		}
	}
	dst[at] = '\0';
	return dst;
}

static void emit(enum log_level level, const char *fmt, va_list ap)
{
	char text[2048], shown[4096];

	if (level > max_level && level != LOG_WARNING)
		return;
	secret_format(text, sizeof text, fmt, ap);
	pthread_mutex_lock(&lock);
	if (level == LOG_WARNING && sink_fn)
		sink_fn(sink_ctx, text);
	if (level <= max_level) {
		if (bar_hide)
			bar_hide(bar_ctx);
		fprintf(stderr, "%s%s\n", prefix[level], log_printable(shown, sizeof shown, text));
		if (bar_show)
			bar_show(bar_ctx);
	}
	pthread_mutex_unlock(&lock);
}

#define LOG_FUNCTION(name, level)                                                                  \
	void name(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, fmt);                                                                 \
		emit(level, fmt, ap);                                                              \
		va_end(ap);                                                                        \
	}

LOG_FUNCTION(log_error, LOG_ERROR)
LOG_FUNCTION(log_warn, LOG_WARNING)
LOG_FUNCTION(log_note, LOG_NOTE)
LOG_FUNCTION(log_debug, LOG_DEBUG)
