/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_TEXT_H
#define CCSNAP_SYSTEM_TEXT_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* Configuration files as text that is taken apart and put together again.  The
 * bytes are anybody's: any of them may be NUL, and a line of any length.
 */
struct err;

/* A piece of somebody else's text; not terminated. */
struct slice {
	const char *at;
	size_t len;
};

struct slice slice_of(const char *s);
struct slice slice_from(struct slice s, size_t start); /* what is behind start bytes */
struct slice slice_between(const char *start, const char *end);
bool slice_is(struct slice s, const char *text);
bool slice_is_any(struct slice s, const char *const *texts); /* ends with NULL */
bool slice_starts(struct slice s, const char *prefix);
bool slice_same(struct slice a, struct slice b);

/* Take the next line off *rest, with its newline if it has one; false at the end. */
bool slice_line(struct slice *rest, struct slice *line);

/* Without the line end ("\n" or "\r\n"). */
struct slice slice_chomp(struct slice line);

/* Take the next word off *rest: up to a blank (space, tab, line end).  False when none is left. */
bool slice_word(struct slice *rest, struct slice *word);

/* As slice_word, but blanks in '...' and "..." and behind a backslash belong to the
 * word, which still has its quotes.
 */
bool slice_quoted_word(struct slice *rest, struct slice *word);

/* Take the next item of a list off *rest: up to separator. */
bool slice_item(struct slice *rest, char separator, struct slice *item);

/* A word without its quotes as a string; false when it does not fit or has a NUL. */
bool slice_unquote(struct slice word, char *dst, size_t cap);

/* As it is; false when it does not fit or has a NUL. */
bool slice_copy(struct slice s, char *dst, size_t cap);

/* What is being written; grows.  Without memory it remembers that, and text_check says so.
 * at is NULL as long as nothing was added, and has a NUL behind its end.
 */
struct text {
	char *at;
	size_t len, cap;
	bool failed;
};

void text_add(struct text *t, struct slice s);
void text_puts(struct text *t, const char *s);
void text_format(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int text_check(const struct text *t, struct err *err);
struct slice text_slice(const struct text *t);
void text_free(struct text *t);

#define autotext CLEANUP(text_free)

#endif
