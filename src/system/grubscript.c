// SPDX-License-Identifier: Apache-2.0
#include "system/grubscript.h"

#include <string.h>

size_t grubscript_unit(struct slice s)
{
	size_t n = 1;
	char end = s.at[0];

	if (s.at[0] == '\\')
		return s.len > 1 ? 2 : 1;
	if (slice_starts(s, "${"))
		end = '}', n = 2;
	else if (end != '\'' && end != '"')
		return 1;
	while (n < s.len && s.at[n] != end)
		n += end == '"' && s.at[n] == '\\' ? 2 : 1;
	return n < s.len ? n + 1 : s.len;
}

static bool ends_word(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '{' || c == '}';
}

static size_t comment_length(struct slice s)
{
	const char *end = memchr(s.at, '\n', s.len);

	return end ? (size_t)(end - s.at) : s.len;
}

bool grubscript_command(struct slice *rest, struct slice *between, struct slice *command)
{
	const char *start = rest->at;
	struct slice s = *rest;

	while (s.len && (ends_word(s.at[0]) || s.at[0] == '#'))
		s = slice_from(s, s.at[0] == '#' ? comment_length(s) : 1);
	*between = slice_between(start, s.at);
	start = s.at;
	while (s.len && (s.at[0] == ' ' || s.at[0] == '\t' || !ends_word(s.at[0]))) {
		if (s.at[0] == '#' && s.at > start && (s.at[-1] == ' ' || s.at[-1] == '\t'))
			break;
		s = slice_from(s, grubscript_unit(s));
	}
	*command = slice_between(start, s.at);
	*rest = s;
	return between->len || command->len;
}

bool grubscript_name(struct slice *rest, struct slice *name)
{
	static const char *const keywords[] = { "if",	 "elif",  "then", "else",
						"while", "until", "do",	  "!" };
	bool again;

	do {
		again = false;
		if (!slice_quoted_word(rest, name))
			return false;
		for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
			again |= slice_is(*name, keywords[i]);
	} while (again);
	return true;
}

void grubscript_quote(const char *s, struct text *out)
{
	text_puts(out, "'");
	for (;;) {
		size_t n = strcspn(s, "'");

		text_add(out, (struct slice){ s, n });
		if (!s[n])
			break;
		text_puts(out, "'\\''");
		s += n + 1;
	}
	text_puts(out, "'");
}
