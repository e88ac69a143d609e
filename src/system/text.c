// SPDX-License-Identifier: Apache-2.0
#include "system/text.h"

#include "base/array.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct slice slice_of(const char *s)
{
	return (struct slice){ s, strlen(s) };
}

struct slice slice_from(struct slice s, size_t start)
{
	start = MIN(start, s.len);
	return (struct slice){ s.at + start, s.len - start };
}

struct slice slice_between(const char *start, const char *end)
{
	return (struct slice){ start, (size_t)(end - start) };
}

bool slice_is(struct slice s, const char *text)
{
	return slice_same(s, slice_of(text));
}

bool slice_is_any(struct slice s, const char *const *texts)
{
	for (; *texts; texts++)
		if (slice_is(s, *texts))
			return true;
	return false;
}

bool slice_starts(struct slice s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && memcmp(s.at, prefix, n) == 0;
}

bool slice_same(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct slice skip_blanks(struct slice s)
{
	size_t n = 0;

	while (n < s.len && is_blank(s.at[n]))
		n++;
	return slice_from(s, n);
}

static struct slice take(struct slice *rest, size_t n)
{
	struct slice s = { rest->at, n };

	*rest = slice_from(*rest, n);
	return s;
}

bool slice_line(struct slice *rest, struct slice *line)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->at, '\n', rest->len);
	*line = take(rest, end ? (size_t)(end - rest->at) + 1 : rest->len);
	return true;
}

struct slice slice_chomp(struct slice line)
{
	if (line.len && line.at[line.len - 1] == '\n')
		line.len--;
	if (line.len && line.at[line.len - 1] == '\r')
		line.len--;
	return line;
}

bool slice_word(struct slice *rest, struct slice *word)
{
	size_t n = 0;

	*rest = skip_blanks(*rest);
	while (n < rest->len && !is_blank(rest->at[n]))
		n++;
	*word = take(rest, n);
	return n > 0;
}

/* Bytes up to and including the closing quote that belongs to the one at s. */
static size_t quoted_length(struct slice s)
{
	char quote = s.at[0];
	size_t n = 1;

	while (n < s.len && s.at[n] != quote)
		n += quote == '"' && s.at[n] == '\\' ? 2 : 1;
	return MIN(n + 1, s.len);
}

bool slice_quoted_word(struct slice *rest, struct slice *word)
{
	size_t n = 0;

	*rest = skip_blanks(*rest);
	while (n < rest->len && !is_blank(rest->at[n])) {
		if (rest->at[n] == '\'' || rest->at[n] == '"')
			n += quoted_length(slice_from(*rest, n));
		else
			n += rest->at[n] == '\\' ? 2 : 1;
	}
	*word = take(rest, MIN(n, rest->len));
	return word->len > 0;
}

bool slice_item(struct slice *rest, char separator, struct slice *item)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->at, separator, rest->len);
	*item = take(rest, end ? (size_t)(end - rest->at) : rest->len);
	*rest = slice_from(*rest, 1);
	return true;
}

bool slice_unquote(struct slice word, char *dst, size_t cap)
{
	size_t len = 0;
	char quote = 0;

	for (size_t i = 0; i < word.len; i++) {
		char c = word.at[i];

		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? 0 : c;
			continue;
		}
		if (c == '\\' && quote != '\'' && i + 1 < word.len)
			c = word.at[++i];
		if (c == '\0' || len + 1 >= cap)
			return false;
		dst[len++] = c;
	}
	dst[len] = '\0';
	return true;
}

bool slice_copy(struct slice s, char *dst, size_t cap)
{
	if (s.len >= cap || (s.len && memchr(s.at, '\0', s.len)))
		return false;
	if (s.len)
		memcpy(dst, s.at, s.len);
	dst[s.len] = '\0';
	return true;
}

static bool text_reserve(struct text *t, size_t more)
{
	t->failed = t->failed || !array_room(t->at, t->cap, t->len + more + 1);
	return !t->failed;
}

void text_add(struct text *t, struct slice s)
{
	if (!text_reserve(t, s.len))
		return;
	if (s.len)
		memcpy(t->at + t->len, s.at, s.len);
	t->len += s.len;
	t->at[t->len] = '\0';
}

void text_puts(struct text *t, const char *s)
{
	text_add(t, slice_of(s));
}

void text_format(struct text *t, const char *fmt, ...)
{
	autofree char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		s = NULL;
		t->failed = true;
		return;
	}
	text_add(t, (struct slice){ s, (size_t)n });
}

int text_check(const struct text *t, struct err *err)
{
	return t->failed ? err_nomem(err) : 0;
}

struct slice text_slice(const struct text *t)
{
	return (struct slice){ t->at ? t->at : "", t->len };
}

void text_free(struct text *t)
{
	free(t->at);
	*t = (struct text){ 0 };
}
