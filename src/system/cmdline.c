// SPDX-License-Identifier: Apache-2.0
#include "system/cmdline.h"

#include "base/str.h"
#include "system/device.h"
#include "system/mntopts.h"
#include "system/names.h"

#include <stdlib.h>
#include <string.h>

enum { ARGUMENT_MAX = 4096 };

/* Append what is there instead of value, the part behind the "="; the unchanged
 * argument is arg.  True when that differs; nothing appended: it goes.
 */
typedef bool changer(const struct cmdline *c, const char *value, struct text *out);

static bool drop(const struct cmdline *c, const char *value, struct text *out)
{
	(void)c, (void)value, (void)out;
	return true;
}

/* By PARTUUID what was so already: such a kernel may come without an initrd. */
static bool change_root(const struct cmdline *c, const char *value, struct text *out)
{
	const struct volume_names *root = &c->names->root;
	struct device device = device_parse(value);

	if (device_is(&device, root))
		return false;
	if (device.kind == DEVICE_PARTUUID || !c->has_initrd)
		text_format(out, "root=PARTUUID=%s", root->partuuid_text);
	else
		text_format(out, "root=UUID=%s", root->uuid_text);
	return true;
}

static bool change_rootflags(const struct cmdline *c, const char *value, struct text *out)
{
	struct slice options = slice_of(value);
	autotext struct text kept = { 0 };

	(void)c;
	if (!mntopts_filter(options,
			    mntopts_has_subvolume(options) ? MNTOPTS_OTHER : MNTOPTS_ROOTFLAGS,
			    &kept))
		return false;
	if (kept.len)
		text_format(out, "rootflags=%s", kept.at);
	out->failed |= kept.failed;
	return true;
}

static bool change_rootfstype(const struct cmdline *c, const char *value, struct text *out)
{
	struct slice rest = slice_of(value), type;

	(void)c, (void)out;
	while (slice_item(&rest, ',', &type))
		if (slice_is(type, "ext4") || slice_is(type, "auto"))
			return false;
	return true;
}

/* Names that end with "=" or "." stand for all that begin so; the first counts. */
static const struct rule {
	const char *name;
	changer *change;
	unsigned what;
	bool opens_container;
} rules[] = {
	{ "root=", change_root, CHANGE_ROOT, false },
	{ "rootflags=", change_rootflags, CHANGE_ROOTFLAGS, false },
	{ "rootfstype=", change_rootfstype, CHANGE_ROOTFLAGS, false },
	{ "rd.luks.uuid=", drop, CHANGE_CONTAINER, true },
	{ "rd.luks.name=", drop, CHANGE_CONTAINER, true },
	{ "rd.luks.", drop, CHANGE_CONTAINER, false },
	{ "luks.uuid=", drop, CHANGE_CONTAINER, true },
	{ "luks.name=", drop, CHANGE_CONTAINER, true },
	{ "luks.", drop, CHANGE_CONTAINER, false },
	{ "rd_LUKS_UUID=", drop, CHANGE_CONTAINER, true },
	{ "cryptdevice=", drop, CHANGE_CONTAINER, true },
	{ "cryptopts=", drop, CHANGE_CONTAINER, true },
	{ "cryptkey=", drop, CHANGE_CONTAINER, false },
	{ "crypto=", drop, CHANGE_CONTAINER, false },
	{ "crypt_root=", drop, CHANGE_CONTAINER, true },
	{ "rd.lvm.", drop, CHANGE_VOLUMES, false },
	{ "rd_LVM_", drop, CHANGE_VOLUMES, false },
	{ "rd.md.uuid=", drop, CHANGE_VOLUMES, false },
	{ "rd_MD_UUID=", drop, CHANGE_VOLUMES, false },
	{ "rd.dm.uuid=", drop, CHANGE_VOLUMES, false },
	{ "mount.usr=", drop, CHANGE_VOLUMES, false },
	{ "mount.usrfstype=", drop, CHANGE_VOLUMES, false },
	{ "mount.usrflags=", drop, CHANGE_VOLUMES, false },
	{ "zfs=", drop, CHANGE_VOLUMES, false },
	{ "bootfs=", drop, CHANGE_VOLUMES, false },
	{ "boot=zfs", drop, CHANGE_VOLUMES, false },
	{ "resume=", drop, CHANGE_RESUME, false },
	{ "resume_offset=", drop, CHANGE_RESUME, false },
	{ "resumeflags=", drop, CHANGE_RESUME, false },
};

static const struct rule *find_rule(const char *arg)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const char *name = rules[i].name;
		char last = name[strlen(name) - 1];

		if (last == '=' || last == '.' || last == '_' ? str_starts(arg, name)
							      : str_equal(arg, name))
			return &rules[i];
	}
	return NULL;
}

static void look_at(struct cmdline *c, const struct rule *rule, const char *value)
{
	if (rule->opens_container)
		c->names_container = true;
	if (rule->change == change_root && !c->root[0] && strlen(value) < sizeof c->root)
		strcpy(c->root, value);
}

/* As changer. */
static bool change(struct slice word, struct cmdline *c, struct text *out)
{
	char arg[ARGUMENT_MAX];
	const struct rule *rule;
	const char *value;

	if (!slice_unquote(word, arg, sizeof arg) || strpbrk(arg, "$`"))
		return false;
	rule = find_rule(arg);
	if (!rule)
		return false;
	value = arg + strlen(rule->name);
	look_at(c, rule, value);
	if (!c->names || !rule->change(c, value, out))
		return false;
	c->changes |= rule->what;
	return true;
}

/* An argument that goes takes the blanks in front of it along, the first one
 * those behind it.
 */
void cmdline_rewrite(struct slice args, struct cmdline *c, struct text *out)
{
	struct slice rest = args, word, next, ignored;
	const char *copied = args.at;
	bool first = true;

	while (slice_quoted_word(&rest, &word)) {
		autotext struct text instead = { 0 };
		bool changed = change(word, c, &instead), gone = changed && !instead.len;

		out->failed |= instead.failed;
		if (!gone || first)
			text_add(out, slice_between(copied, word.at));
		text_add(out, changed ? text_slice(&instead) : word);
		next = rest;
		copied = gone && first && slice_quoted_word(&next, &ignored) ? ignored.at : rest.at;
		first = first && gone;
	}
	text_add(out, slice_between(copied, args.at + args.len));
}

static const struct {
	unsigned change;
	const char *text;
} change_texts[] = {
	{ CHANGE_ROOT, "root= names the image's root filesystem" },
	{ CHANGE_ROOTFLAGS, "rootflags= and rootfstype= fit ext4" },
	{ CHANGE_CONTAINER, "arguments for an encrypted root left out" },
	{ CHANGE_VOLUMES, "arguments for volumes that are not in the image left out" },
	{ CHANGE_RESUME, "resume= left out" },
	{ CHANGE_SEARCH, "filesystems are searched by the image's UUIDs" },
	{ CHANGE_PATHS, "paths are those in the image" },
	{ CHANGE_OTHER_SYSTEMS, "entries of other systems left out" },
	{ CHANGE_COMMANDS,
	  "commands for containers, subvolumes or modules that are not in the image left out" },
	{ CHANGE_ENTRIES, "boot loader entries are in the menu" },
};

char *boot_changes_text(unsigned changes)
{
	struct text out = { 0 };

	for (size_t i = 0; i < sizeof change_texts / sizeof *change_texts; i++)
		if (changes & change_texts[i].change)
			text_format(&out, "%s%s", out.len ? "; " : "", change_texts[i].text);
	if (!out.at)
		text_puts(&out, "");
	if (out.failed)
		text_free(&out);
	return out.at;
}
