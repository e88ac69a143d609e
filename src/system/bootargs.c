// SPDX-License-Identifier: Apache-2.0
#include "system/bootargs.h"

#include "system/device.h"
#include "system/grubscript.h"
#include "system/names.h"

#include <string.h>
#include <strings.h>

enum { GUID_LEN = 36 };

typedef void rewriter(struct slice value, struct cmdline *c, struct text *out);

/* Ubuntu's way to boot without an initrd. */
static void rewrite_partuuid(struct slice value, struct cmdline *c, struct text *out)
{
	const char *ours = c->names ? c->names->root.partuuid_text : NULL;

	if (!ours || !value.len || memchr(value.at, '$', value.len) ||
	    (value.len == GUID_LEN && strncasecmp(value.at, ours, GUID_LEN) == 0)) {
		text_add(out, value);
		return;
	}
	text_puts(out, ours);
	c->changes |= CHANGE_ROOT;
}

static const struct {
	const char *prefix;
	rewriter *rewrite;
} settings[] = {
	{ "GRUB_CMDLINE_LINUX", cmdline_rewrite },
	{ "GRUB_CMDLINE_XEN", cmdline_rewrite },
	{ "GRUB_FORCE_PARTUUID=", rewrite_partuuid },
};

static rewriter *find_rewriter(struct slice line)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		if (slice_starts(line, settings[i].prefix))
			return settings[i].rewrite;
	return NULL;
}

/* The value at the beginning of text, without its quotes, which may reach over lines. */
static struct slice shell_value(struct slice text)
{
	size_t n = 0;

	if (text.len && (text.at[0] == '"' || text.at[0] == '\'')) {
		size_t all = grubscript_unit(text);
		bool closed = all > 1 && text.at[all - 1] == text.at[0];

		return (struct slice){ text.at + 1, all - (closed ? 2 : 1) };
	}
	while (n < text.len && !strchr(" \t\r\n;#", text.at[n]))
		n++;
	return (struct slice){ text.at, n };
}

void default_grub_rewrite(struct slice text, struct cmdline *c, struct text *out)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		rewriter *rewrite = find_rewriter(line);
		const char *sign = rewrite ? memchr(line.at, '=', line.len) : NULL;
		const char *end = text.at + text.len;
		struct slice value;

		if (!sign) {
			text_add(out, line);
			continue;
		}
		value = shell_value(slice_between(sign + 1, end));
		text_add(out, slice_between(line.at, value.at));
		rewrite(value, c, out);
		text = slice_between(value.at + value.len, end);
	}
}
