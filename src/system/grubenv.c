// SPDX-License-Identifier: Apache-2.0
#include "system/grubenv.h"

#include <string.h>

static const char signature[] = "# GRUB Environment Block\n";

bool grubenv_get(struct slice text, const char *name, struct slice *value)
{
	size_t len = strlen(name);
	struct slice line;

	if (!slice_starts(text, signature))
		return false;
	while (slice_line(&text, &line)) {
		line = slice_chomp(line);
		if (!slice_starts(line, name) || line.len == len || line.at[len] != '=')
			continue;
		*value = slice_from(line, len + 1);
		return true;
	}
	return false;
}

/* Without what fills it up. */
static struct slice used_part(struct slice text)
{
	while (text.len && text.at[text.len - 1] == '#')
		text.len--;
	return text;
}

bool grubenv_rewrite(struct slice text, struct cmdline *c, struct text *out)
{
	struct slice used = used_part(text), value;
	autotext struct text block = { 0 };

	if (!grubenv_get(used, "kernelopts", &value)) {
		text_add(out, text);
		return slice_starts(text, signature);
	}
	text_add(&block, slice_between(used.at, value.at));
	cmdline_rewrite(value, c, &block);
	text_add(&block, slice_between(value.at + value.len, used.at + used.len));
	out->failed |= block.failed;
	if (block.len > text.len)
		return false;
	while (block.len < text.len && !block.failed)
		text_puts(&block, "#");
	text_add(out, text_slice(&block));
	return true;
}
