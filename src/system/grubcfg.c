// SPDX-License-Identifier: Apache-2.0
#include "system/grubcfg.h"

#include "system/grub_text.h"
#include "system/grubcfg_inner.h"

#include <string.h>

/* A command begins with its name, of which args are what follows. */
typedef void rewriter(struct slice command, struct slice args, struct grubcfg *cfg,
		      struct text *out);

static void put_path(struct slice word, struct grubcfg *cfg, struct text *out)
{
	if (!cfg->cmdline.names)
		text_add(out, word);
	else if (boot_path_rewrite(word, &cfg->paths, out))
		cfg->cmdline.changes |= CHANGE_PATHS;
}

static void rewrite_linux(struct slice command, struct slice args, struct grubcfg *cfg,
			  struct text *out)
{
	struct slice rest = args, path;

	if (!slice_quoted_word(&rest, &path)) {
		text_add(out, command);
		return;
	}
	text_add(out, slice_between(command.at, path.at));
	put_path(path, cfg, out);
	cmdline_rewrite(rest, &cfg->cmdline, out);
}

static void rewrite_paths(struct slice command, struct slice args, struct grubcfg *cfg,
			  struct text *out)
{
	const char *copied = command.at;
	struct slice path;

	while (slice_quoted_word(&args, &path)) {
		text_add(out, slice_between(copied, path.at));
		put_path(path, cfg, out);
		copied = path.at + path.len;
	}
	text_add(out, slice_between(copied, command.at + command.len));
}

/* The bytes between the quotes of a value, or all of it. */
static struct slice inner_value(struct slice value)
{
	char quote = value.len ? value.at[0] : 0;

	if (quote != '"' && quote != '\'')
		return value;
	value = slice_from(value, 1);
	if (value.len && value.at[value.len - 1] == quote)
		value.len--;
	return value;
}

/* A comment may follow them, which must not become part of a word. */
static struct slice trailing_blanks(struct slice command)
{
	size_t n = command.len;

	while (n && (command.at[n - 1] == ' ' || command.at[n - 1] == '\t'))
		n--;
	return slice_from(command, n);
}

/* set kernelopts="...", set prefix=($root)/boot/grub */
static void rewrite_set(struct slice command, struct slice args, struct grubcfg *cfg,
			struct text *out)
{
	const char *sign = args.len ? memchr(args.at, '=', args.len) : NULL;
	struct slice name = { 0 }, value, before, word;

	before = sign ? slice_between(args.at, sign) : args;
	if (!sign || !slice_word(&before, &name)) {
		text_add(out, command);
		return;
	}
	value = slice_between(sign + 1, args.at + args.len);
	if (cfg->cmdline.names && grubcfg_sets_numbered_root(slice_of("set"), args)) {
		struct slice blanks = trailing_blanks(command);

		text_add(out, slice_between(command.at, blanks.at));
		grubcfg_search_after_root(cfg, out);
		text_add(out, blanks);
	} else if (slice_is(name, "kernelopts") || slice_is(name, "default_kernelopts")) {
		value = inner_value(value);
		text_add(out, slice_between(command.at, value.at));
		cmdline_rewrite(value, &cfg->cmdline, out);
		text_add(out, slice_between(value.at + value.len, command.at + command.len));
	} else if (slice_is(name, "prefix") && slice_quoted_word(&value, &word)) {
		text_add(out, slice_between(command.at, word.at));
		put_path(word, cfg, out);
		text_add(out, value);
	} else {
		text_add(out, command);
	}
}

/* A command that does nothing, since no block of a script may be empty. */
static void make_idle(struct slice command, struct slice args, struct grubcfg *cfg,
		      struct text *out)
{
	(void)args;
	if (!cfg->cmdline.names) {
		text_add(out, command);
		return;
	}
	text_puts(out, "true");
	cfg->cmdline.changes |= CHANGE_COMMANDS;
}

static void rewrite_insmod(struct slice command, struct slice args, struct grubcfg *cfg,
			   struct text *out)
{
	struct slice module;

	if (cfg->entries && slice_word(&args, &module) && slice_is(module, "blscfg"))
		make_idle(command, args, cfg, out);
	else
		text_add(out, command);
}

static const char entries_function[] = "ccsnap_entries";

static void rewrite_blscfg(struct slice command, struct slice args, struct grubcfg *cfg,
			   struct text *out)
{
	(void)args;
	if (!cfg->entries || !cfg->cmdline.names) {
		text_add(out, command);
		return;
	}
	if (cfg->has_function)
		text_puts(out, entries_function);
	else
		text_puts(out, *cfg->entries ? cfg->entries : "true");
	cfg->cmdline.changes |= CHANGE_ENTRIES;
}

static const struct {
	const char *name;
	rewriter *rewrite;
} commands[] = {
	{ "linux", rewrite_linux },
	{ "linux16", rewrite_linux },
	{ "linuxefi", rewrite_linux },
	{ "module", rewrite_linux }, /* of Xen: dom0's kernel */
	{ "module2", rewrite_linux },
	{ "initrd", rewrite_paths },
	{ "initrd16", rewrite_paths },
	{ "initrdefi", rewrite_paths },
	{ "configfile", rewrite_paths },
	{ "source", rewrite_paths },
	{ ".", rewrite_paths },
	{ "set", rewrite_set },
	{ "search", grubcfg_rewrite_search },
	{ "search.fs_uuid", grubcfg_rewrite_search },
	{ "search.fs_label", grubcfg_rewrite_search },
	{ "cryptomount", make_idle },
	{ "btrfs-mount-subvol", make_idle },
	{ "insmod", rewrite_insmod },
	{ "blscfg", rewrite_blscfg },
};

/* A command behind its keywords; false when it is none of those above. */
static bool rewrite_named(struct slice command, struct slice name, struct slice args,
			  struct grubcfg *cfg, struct text *out)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (!slice_is(name, commands[i].name))
			continue;
		if (cfg->cmdline.names)
			grubcfg_search_for_numbered(name, args, cfg, out);
		commands[i].rewrite(command, args, cfg, out);
		return true;
	}
	return false;
}

static void rewrite_command(struct slice command, struct grubcfg *cfg, struct text *out)
{
	struct slice named, name, args;

	if (!grubcfg_name(command, &named, &name, &args)) {
		text_add(out, command);
		return;
	}
	text_add(out, slice_between(command.at, named.at));
	if (!rewrite_named(named, name, args, cfg, out))
		text_add(out, named);
}

static void rewrite_commands(struct slice text, struct grubcfg *cfg, struct text *out)
{
	struct slice between, command;

	while (grubscript_command(&text, &between, &command)) {
		text_add(out, between);
		cfg->ahead = text;
		rewrite_command(command, cfg, out);
	}
}

static bool is_section_mark(struct slice line, const char *which)
{
	static const char name[] = " /etc/grub.d/30_os-prober ###";

	line = slice_chomp(line);
	return slice_starts(line, which) && slice_is(slice_from(line, strlen(which)), name);
}

/* What os-prober found are systems on disks that are not in the image. */
static void leave_out_other_systems(struct slice text, struct grubcfg *cfg, struct text *out)
{
	struct slice line;

	while (slice_line(&text, &line)) {
		struct slice rest = text, end;
		bool ends = false, has_any = false;

		text_add(out, line);
		if (!is_section_mark(line, "### BEGIN"))
			continue;
		while (!ends && slice_line(&rest, &end)) {
			ends = is_section_mark(end, "### END");
			has_any |= !ends && slice_chomp(end).len > 0;
		}
		if (!ends)
			break;
		if (has_any) {
			text.len -= (size_t)(end.at - text.at);
			text.at = end.at;
			cfg->cmdline.changes |= CHANGE_OTHER_SYSTEMS;
		}
	}
	text_add(out, text);
}

static size_t count_commands(struct slice text, const char *const *names)
{
	struct slice between, command, name;
	size_t n = 0;

	while (grubscript_command(&text, &between, &command))
		n += grubscript_name(&command, &name) && slice_is_any(name, names);
	return n;
}

static const char *const menu_of_entries[] = { "blscfg", NULL };

/* Entries that are wanted at several places stand in the file once. */
static void begin_with_entries(struct slice text, struct grubcfg *cfg, struct text *out)
{
	cfg->has_function = cfg->entries && *cfg->entries && cfg->cmdline.names &&
			    count_commands(text, menu_of_entries) > 1;
	if (cfg->has_function)
		text_format(out, "function %s {\n%s}\n", entries_function, cfg->entries);
}

void grubcfg_rewrite(struct slice text, struct grubcfg *cfg, struct text *out)
{
	autotext struct text own = { 0 }, stripped = { 0 };

	leave_out_other_systems(text, cfg, &own);
	if (boot_paths_strip(text_slice(&own), cfg->paths.subvolume, &stripped))
		cfg->cmdline.changes |= CHANGE_PATHS;
	begin_with_entries(text_slice(&stripped), cfg, out);
	rewrite_commands(text_slice(&stripped), cfg, out);
	out->failed |= own.failed || stripped.failed;
}

bool grubcfg_uses_blscfg(struct slice text)
{
	return count_commands(text, menu_of_entries) > 0;
}

bool grubcfg_has_menu(struct slice text)
{
	static const char *const names[] = { "blscfg",	 "menuentry",	"linux",      "linux16",
					     "linuxefi", "boot",	"configfile", "source",
					     ".",	 "chainloader", "normal",     NULL };

	return count_commands(text, names) > 0;
}
