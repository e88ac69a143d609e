/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_LOG_H
#define CCSNAP_LOG_H

#include <stddef.h>

/* One line a call on stderr, from any thread.  Bytes that could steer a
 * terminal are shown as \xNN, since names come from images and trees.
 */
enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTE, LOG_DEBUG };

/* What is above this level is not printed; warnings reach the sink anyway. */
void log_set_level(enum log_level max);

/* Called for every warning, under the log's lock: for the report.  Nothing
 * in the sink may log.
 */
void log_set_sink(void (*sink)(void *ctx, const char *warning), void *ctx);

/* Called before and after a line is printed, so that a progress bar can get
 * out of the way; NULL for none.
 */
void log_set_bar(void (*hide)(void *ctx), void (*show)(void *ctx), void *ctx);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Copy text into dst (cap bytes, always terminated) with control characters,
 * Unicode's too, and bytes that are not UTF-8 as \xNN.  Returns dst.
 */
char *log_printable(char *dst, size_t cap, const char *text);

#endif
