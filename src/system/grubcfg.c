// SPDX-License-Identifier: Apache-2.0
#include "system/grubcfg.h"

#include "base/str.h"
#include "system/device.h"
#include "system/grub_text.h"
#include "system/names.h"

#include <string.h>
#include <strings.h>

enum { WORD_MAX = 1024 };

typedef void rewriter(struct slice command, struct slice args, struct grubcfg *cfg,
		      struct text *out);

static void put_path(struct slice word, struct grubcfg *cfg, struct text *out)
{
	if (!cfg->cmdline.names)
		text_add(out, word);
	else if (boot_paths_rewrite(word, &cfg->paths, out))
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

static void rewrite_initrd(struct slice command, struct slice args, struct grubcfg *cfg,
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
	if (slice_is(name, "kernelopts") || slice_is(name, "default_kernelopts")) {
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

/* One of the image's volumes, by UUID or label? */
static bool is_in_image(const struct names *names, enum device_kind kind, const char *value)
{
	const struct volume_names *const volumes[] = { &names->root, &names->boot, &names->esp };
	struct device device = { .kind = kind };

	if (!slice_copy(slice_of(value), device.value, sizeof device.value))
		return false;
	for (size_t i = 0; i < 3; i++)
		if (device_is(&device, volumes[i]))
			return true;
	return false;
}

static bool was_root(const struct grubcfg *cfg, enum device_kind kind, const char *value)
{
	struct device root = device_parse(cfg->old_root ? cfg->old_root : "");

	return root.kind == kind && strcasecmp(root.value, value) == 0;
}

/* A search for a filesystem: its words of interest. */
struct search {
	struct slice how; /* "--fs-uuid"; len 0: none */
	struct slice name;
	enum device_kind kind;
	bool other_purpose; /* sets a variable that is not for booting */
};

static const struct {
	const char *word;
	enum device_kind kind;
} search_ways[] = {
	{ "--fs-uuid", DEVICE_UUID },
	{ "-u", DEVICE_UUID },
	{ "search.fs_uuid", DEVICE_UUID },
	{ "--label", DEVICE_LABEL },
	{ "-l", DEVICE_LABEL },
	{ "--fs-label", DEVICE_LABEL },
	{ "search.fs_label", DEVICE_LABEL },
};

static void search_word(struct search *search, struct slice word)
{
	static const char *const purposes[] = { "--set=root", "--set=boot", "--set=dev", "--set=" };

	for (size_t i = 0; i < sizeof search_ways / sizeof *search_ways; i++)
		if (slice_is(word, search_ways[i].word)) {
			search->how = word;
			search->kind = search_ways[i].kind;
			return;
		}
	if (slice_starts(word, "--set=")) {
		search->other_purpose = true;
		for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++)
			if (slice_is(word, purposes[i]))
				search->other_purpose = false;
	}
	if (word.at[0] != '-')
		search->name = word;
}

/* "search.fs_uuid NAME VARIABLE HINTS": the name is the first; "search ... NAME": the last. */
static bool search_parse(struct slice command, struct search *out)
{
	struct slice rest = command, word;
	bool dotted;

	*out = (struct search){ 0 };
	if (!grubscript_name(&rest, &word))
		return false;
	search_word(out, word);
	dotted = out->how.len > 0;
	out->name.len = 0;
	while (slice_quoted_word(&rest, &word)) {
		search_word(out, word);
		if (dotted && out->name.len)
			break;
	}
	return out->how.len && out->name.len;
}

static void put_search(const struct search *s, struct slice command, const char *uuid,
		       struct text *out)
{
	const char *how = s->kind == DEVICE_UUID ? NULL
			  : s->how.at[0] == '-'	 ? "--fs-uuid"
						 : "search.fs_uuid";
	const char *name_end = s->name.at + s->name.len;

	text_add(out, slice_between(command.at, s->how.at));
	if (how)
		text_puts(out, how);
	else
		text_add(out, s->how);
	text_add(out, slice_between(s->how.at + s->how.len, s->name.at));
	text_puts(out, uuid);
	text_add(out, slice_between(name_end, command.at + command.len));
}

static void rewrite_search(struct slice command, struct slice args, struct grubcfg *cfg,
			   struct text *out)
{
	const struct names *names = cfg->cmdline.names;
	struct search s;
	char name[WORD_MAX];

	(void)args;
	if (!names || !search_parse(command, &s) || s.other_purpose || s.name.at < s.how.at ||
	    !slice_unquote(s.name, name, sizeof name) || strchr(name, '$') ||
	    is_in_image(names, s.kind, name)) {
		text_add(out, command);
		return;
	}
	put_search(&s, command,
		   was_root(cfg, s.kind, name) ? names->root.uuid_text : cfg->holder->uuid_text,
		   out);
	cfg->cmdline.changes |= CHANGE_SEARCH;
}

/* A command that does nothing, since no block of a script may be empty. */
static void make_idle(struct slice command, struct slice args, struct grubcfg *cfg,
		      struct text *out)
{
	struct slice rest = command, name;

	(void)args;
	if (!cfg->cmdline.names || !grubscript_name(&rest, &name)) {
		text_add(out, command);
		return;
	}
	text_add(out, slice_between(command.at, name.at));
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

static void rewrite_blscfg(struct slice command, struct slice args, struct grubcfg *cfg,
			   struct text *out)
{
	(void)args;
	if (!cfg->entries || !cfg->cmdline.names) {
		text_add(out, command);
		return;
	}
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
	{ "initrd", rewrite_initrd },
	{ "initrd16", rewrite_initrd },
	{ "initrdefi", rewrite_initrd },
	{ "set", rewrite_set },
	{ "search", rewrite_search },
	{ "search.fs_uuid", rewrite_search },
	{ "search.fs_label", rewrite_search },
	{ "cryptomount", make_idle },
	{ "btrfs-mount-subvol", make_idle },
	{ "insmod", rewrite_insmod },
	{ "blscfg", rewrite_blscfg },
};

static void rewrite_command(struct slice command, struct grubcfg *cfg, struct text *out)
{
	struct slice rest = command, name;

	if (grubscript_name(&rest, &name)) {
		for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
			if (!slice_is(name, commands[i].name))
				continue;
			commands[i].rewrite(command, rest, cfg, out);
			return;
		}
	}
	text_add(out, command);
}

static void rewrite_commands(struct slice text, struct grubcfg *cfg, struct text *out)
{
	struct slice between, command;

	while (grubscript_command(&text, &between, &command)) {
		text_add(out, between);
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

void grubcfg_rewrite(struct slice text, struct grubcfg *cfg, struct text *out)
{
	autotext struct text own = { 0 }, stripped = { 0 };

	leave_out_other_systems(text, cfg, &own);
	if (boot_paths_strip(text_slice(&own), cfg->paths.subvolume, &stripped))
		cfg->cmdline.changes |= CHANGE_PATHS;
	rewrite_commands(text_slice(&stripped), cfg, out);
	out->failed |= own.failed || stripped.failed;
}

static bool has_command(struct slice text, const char *const *names)
{
	struct slice between, command, name;

	while (grubscript_command(&text, &between, &command)) {
		if (!grubscript_name(&command, &name))
			continue;
		for (const char *const *n = names; *n; n++)
			if (slice_is(name, *n))
				return true;
	}
	return false;
}

bool grubcfg_uses_blscfg(struct slice text)
{
	static const char *const names[] = { "blscfg", NULL };

	return has_command(text, names);
}

bool grubcfg_has_menu(struct slice text)
{
	static const char *const names[] = { "blscfg",	 "menuentry",	"linux",      "linux16",
					     "linuxefi", "boot",	"configfile", "source",
					     ".",	 "chainloader", "normal",     NULL };

	return has_command(text, names);
}
