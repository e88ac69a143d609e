// SPDX-License-Identifier: Apache-2.0
#include "system/grubcfg_inner.h"

#include "base/size.h"
#include "system/device.h"
#include "system/grub_text.h"
#include "system/names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 1024, AHEAD_MAX = 2048 };

/* --- the search command ------------------------------------------------------- */

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
	struct device root = device_parse(cfg->cmdline.old_root ? cfg->cmdline.old_root : "");

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

static void search_option(struct search *search, struct slice word)
{
	static const char *const purposes[] = { "--set=root", "--set=boot", "--set=dev",
						"--set=", NULL };

	for (size_t i = 0; i < sizeof search_ways / sizeof *search_ways; i++)
		if (slice_is(word, search_ways[i].word)) {
			search->how = word;
			search->kind = search_ways[i].kind;
			return;
		}
	if (slice_starts(word, "--set="))
		search->other_purpose = !slice_is_any(word, purposes);
}

/* Is the word behind this option its value? */
static bool takes_next(struct slice option)
{
	return slice_is(option, "-h") ||
	       (slice_starts(option, "--hint") && !memchr(option.at, '=', option.len));
}

/* The name is the first word that is no option, as grub_cmd_search has it. */
static bool search_parse(struct slice command, struct search *out)
{
	struct slice rest = command, word;

	*out = (struct search){ 0 };
	if (!slice_quoted_word(&rest, &word))
		return false;
	search_option(out, word); /* search.fs_uuid */
	while (slice_quoted_word(&rest, &word)) {
		if (word.at[0] != '-') {
			if (!out->name.len)
				out->name = word;
		} else if (takes_next(word)) {
			slice_quoted_word(&rest, &word);
		} else {
			search_option(out, word);
		}
	}
	return out->how.len && out->name.len;
}

/* Name and option may stand in either order. */
static void put_search(const struct search *s, struct slice command, const char *uuid,
		       struct text *out)
{
	const char *how = s->how.at[0] == '-' ? "--fs-uuid" : "search.fs_uuid";
	bool name_first = s->name.at < s->how.at;
	struct slice first = name_first ? s->name : s->how;
	struct slice second = name_first ? s->how : s->name;
	struct slice as_it_is = s->how;

	if (s->kind != DEVICE_UUID)
		as_it_is = slice_of(how);
	text_add(out, slice_between(command.at, first.at));
	text_add(out, name_first ? slice_of(uuid) : as_it_is);
	text_add(out, slice_between(first.at + first.len, second.at));
	text_add(out, name_first ? as_it_is : slice_of(uuid));
	text_add(out, slice_between(second.at + second.len, command.at + command.len));
}

void grubcfg_rewrite_search(struct slice command, struct slice args, struct grubcfg *cfg,
			    struct text *out)
{
	const struct names *names = cfg->cmdline.names;
	struct search s;
	char name[WORD_MAX];

	(void)args;
	if (!names || !search_parse(command, &s) || s.other_purpose ||
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

/* --- partitions by number ----------------------------------------------------- */

static const char *volume_uuid(const struct grubcfg *cfg, enum boot_volume volume)
{
	const struct names *names = cfg->cmdline.names;

	if (volume == BOOT_VOLUME_ROOT)
		return names->root.uuid_text;
	if (volume == BOOT_VOLUME_ESP && names->esp.present)
		return names->esp.uuid_text;
	return cfg->holder->uuid_text;
}

static void put_search_command(enum boot_volume volume, struct grubcfg *cfg, struct text *out)
{
	text_format(out, "search --no-floppy --fs-uuid --set=root %s", volume_uuid(cfg, volume));
	cfg->cmdline.changes |= CHANGE_SEARCH;
}

/* "root='hd0,gpt2'" */
static bool is_assignment(struct slice word)
{
	size_t n = 0;

	while (n < word.len && (isalnum((unsigned char)word.at[n]) || word.at[n] == '_'))
		n++;
	return n > 0 && n < word.len && word.at[n] == '=';
}

bool grubcfg_name(struct slice command, struct slice *named, struct slice *name, struct slice *args)
{
	*args = command;
	if (!grubscript_name(args, name))
		return false;
	*named = slice_between(name->at, command.at + command.len);
	if (is_assignment(*name)) {
		*name = slice_of("set");
		*args = *named;
	}
	return true;
}

/* Without the "prefix=" of "set prefix=..."; len 0 when it sets anything else. */
static struct slice path_of_setting(struct slice word)
{
	static const char prefix[] = "prefix=";

	return slice_starts(word, prefix) ? slice_from(word, strlen(prefix))
					  : slice_from(word, word.len);
}

/* Take the next word off *args that is a path for this command. */
static bool next_path(struct slice name, struct slice *args, struct slice *path)
{
	static const char *const loaders[] = { "linux",	    "linux16",	  "linuxefi",	"initrd",
					       "initrd16",  "initrdefi",  "module",	"module2",
					       "multiboot", "multiboot2", "configfile", "source",
					       ".",	    NULL };
	bool is_set = slice_is(name, "set");

	if ((!is_set && !slice_is_any(name, loaders)) || !slice_quoted_word(args, path))
		return false;
	if (is_set)
		*path = path_of_setting(*path);
	if (!slice_starts(name, "initrd"))
		*args = slice_from(*args, args->len);
	return path->len > 0;
}

void grubcfg_search_for_numbered(struct slice name, struct slice args, struct grubcfg *cfg,
				 struct text *out)
{
	struct slice path;

	while (next_path(name, &args, &path)) {
		enum boot_volume volume;

		if (!boot_path_is_numbered(path))
			continue;
		volume = boot_path_volume(path, &cfg->paths);
		if (volume == BOOT_VOLUMES)
			continue;
		put_search_command(volume, cfg, out);
		text_puts(out, "; ");
		return;
	}
}

bool grubcfg_sets_numbered_root(struct slice name, struct slice args)
{
	static const char root[] = "root=";
	char value[WORD_MAX];
	size_t len;
	struct slice word;

	if (!slice_is(name, "set") || !slice_quoted_word(&args, &word) ||
	    !slice_starts(word, root) ||
	    !slice_unquote(slice_from(word, strlen(root)), value, sizeof value))
		return false;
	len = strlen(value);
	if (value[0] != '(' || value[len - 1] != ')')
		return boot_device_is_numbered(value);
	value[len - 1] = '\0';
	return boot_device_is_numbered(value + 1);
}

static bool has_word(struct slice command, const char *const *list)
{
	struct slice word;

	while (slice_quoted_word(&command, &word))
		if (slice_is_any(word, list))
			return true;
	return false;
}

/* Whoever sets root to a partition by its number means the one with what is loaded
 * next.  False when a search follows, which will find it, or when what is
 * loaded is another boot loader.
 */
static bool wants_search(const struct grubcfg *cfg, enum boot_volume *volume)
{
	static const char *const sets_root[] = { "--set=root", "--set", "-s", "root", NULL };
	struct slice text = { cfg->ahead.at, MIN(cfg->ahead.len, AHEAD_MAX) };
	struct slice between, command, named, name, args, path;
	bool same_block = true;

	*volume = BOOT_VOLUME_KERNELS;
	while (grubscript_command(&text, &between, &command)) {
		same_block = same_block && !memchr(between.at, '{', between.len) &&
			     !memchr(between.at, '}', between.len);
		if (!grubcfg_name(command, &named, &name, &args))
			continue;
		if (same_block &&
		    (slice_is(name, "chainloader") || grubcfg_sets_numbered_root(name, args) ||
		     (slice_starts(name, "search") && has_word(args, sets_root))))
			return false;
		if (!next_path(name, &args, &path))
			continue;
		*volume = boot_path_volume(path, &cfg->paths);
		if (*volume != BOOT_VOLUMES)
			return true;
		*volume = BOOT_VOLUME_KERNELS;
	}
	return true;
}

void grubcfg_search_after_root(struct grubcfg *cfg, struct text *out)
{
	enum boot_volume volume;

	if (!wants_search(cfg, &volume))
		return;
	text_puts(out, "; ");
	put_search_command(volume, cfg, out);
}
