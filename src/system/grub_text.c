// SPDX-License-Identifier: Apache-2.0
#include "system/grub_text.h"

#include "base/cleanup.h"
#include "base/size.h"
#include "base/str.h"
#include "system/device.h"
#include "system/names.h"

#include <string.h>

/* --- the script language ------------------------------------------------------ */

/* Bytes that belong together at the beginning of s: a quoted string, a variable
 * in braces, an escaped byte, or one byte.
 */
static size_t grubscript_unit(struct slice s)
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

/* --- the environment block ---------------------------------------------------- */

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

	if (!slice_starts(text, signature))
		return false;
	if (!grubenv_get(used, "kernelopts", &value)) {
		text_add(out, text);
		return true;
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

/* --- etc/default/grub --------------------------------------------------------- */

typedef void rewriter(struct slice value, struct cmdline *c, struct text *out);

/* A name of the root's: ours when it is anything else. */
static void rewrite_name(struct slice value, const char *kind, const char *ours, struct cmdline *c,
			 struct text *out)
{
	autofree char *spec = str_format("%s%.*s", kind, (int)MIN(value.len, 256), value.at);
	struct device device = device_parse(spec ? spec : "");

	if (!value.len || memchr(value.at, '$', value.len) || device_is(&device, &c->names->root)) {
		text_add(out, value);
		return;
	}
	text_puts(out, ours);
	c->changes |= CHANGE_ROOT;
}

/* Ubuntu's way to boot without an initrd is GRUB_FORCE_PARTUUID. */
static void rewrite_partuuid(struct slice value, struct cmdline *c, struct text *out)
{
	rewrite_name(value, "PARTUUID=", c->names->root.partuuid_text, c, out);
}

static void rewrite_uuid(struct slice value, struct cmdline *c, struct text *out)
{
	rewrite_name(value, "UUID=", c->names->root.uuid_text, c, out);
}

static void rewrite_device(struct slice value, struct cmdline *c, struct text *out)
{
	autofree char *ours = str_format("/dev/disk/by-uuid/%s", c->names->root.uuid_text);

	out->failed |= !ours;
	rewrite_name(value, "", ours ? ours : "", c, out);
}

static const struct {
	const char *prefix;
	rewriter *rewrite;
} settings[] = {
	{ "GRUB_CMDLINE_LINUX", cmdline_rewrite },    { "GRUB_CMDLINE_XEN", cmdline_rewrite },
	{ "GRUB_FORCE_PARTUUID=", rewrite_partuuid }, { "GRUB_DEVICE_PARTUUID=", rewrite_partuuid },
	{ "GRUB_DEVICE_UUID=", rewrite_uuid },	      { "GRUB_DEVICE=", rewrite_device },
};

/* Behind the blanks and the "export" that may be in front of a setting. */
static struct slice skip_export(struct slice line)
{
	struct slice rest = line, word;

	if (!slice_word(&rest, &word))
		return line;
	if (slice_is(word, "export") && !slice_word(&rest, &word))
		return line;
	return slice_between(word.at, line.at + line.len);
}

static rewriter *find_rewriter(struct slice line)
{
	line = skip_export(line);
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
		if (rewrite == cmdline_rewrite || c->names)
			rewrite(value, c, out);
		else
			text_add(out, value);
		text = slice_between(value.at + value.len, end);
	}
}

/* --- a grub.cfg made here ----------------------------------------------------- */

/* Each command that a GRUB may lack, or that needs a serial port, is asked for with "if". */
void menu_begin(const struct menu_config *cfg, struct text *out)
{
	text_puts(out, "# Made by ccsnap: there was no grub.cfg.\n"
		       "set default=0\n"
		       "set timeout=1\n"
		       "if serial --unit=0 --speed=115200; then\n"
		       "\tterminal_input console serial\n"
		       "\tterminal_output console serial\n"
		       "fi\n");
	text_format(out, "search --no-floppy --fs-uuid --set=root %s\n", cfg->volume_uuid);
}

void menu_entry(const struct menu_config *cfg, const struct menu_kernel *kernel, struct text *out)
{
	text_puts(out, "menuentry ");
	grubscript_quote(kernel->title, out);
	text_puts(out, " --id ");
	grubscript_quote(kernel->title, out);
	text_format(out, " {\n\tsearch --no-floppy --fs-uuid --set=root %s\n\tlinux ",
		    kernel->volume_uuid);
	grubscript_quote(kernel->kernel, out);
	if (kernel->initrd)
		text_format(out, " root=UUID=%s", cfg->root_uuid);
	else
		text_format(out, " root=PARTUUID=%s", cfg->partuuid);
	text_format(out, " ro console=tty0 console=%s\n", cfg->serial_console);
	if (kernel->initrd) {
		text_puts(out, "\tinitrd ");
		grubscript_quote(kernel->initrd, out);
		text_puts(out, "\n");
	}
	text_puts(out, "}\n");
}
