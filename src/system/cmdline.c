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

/* Arguments that go only with another root than the image's. */
enum condition {
	ALWAYS,
	ROOT_REPLACED, /* root= names something else */
	ROOT_WAS_NFS,  /* and that was a directory of an NFS server */
};

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
	enum condition when;
} rules[] = {
	{ "root=", change_root, CHANGE_ROOT, false, ALWAYS },
	{ "rootflags=", change_rootflags, CHANGE_ROOTFLAGS, false, ALWAYS },
	{ "rootfstype=", change_rootfstype, CHANGE_ROOTFLAGS, false, ALWAYS },
	{ "rd.luks.uuid=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "rd.luks.name=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "rd.luks.", drop, CHANGE_CONTAINER, false, ALWAYS },
	{ "luks.uuid=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "luks.name=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "luks.", drop, CHANGE_CONTAINER, false, ALWAYS },
	{ "rd_LUKS_UUID=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "cryptdevice=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "cryptopts=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "cryptkey=", drop, CHANGE_CONTAINER, false, ALWAYS },
	{ "crypto=", drop, CHANGE_CONTAINER, false, ALWAYS },
	{ "crypt_root=", drop, CHANGE_CONTAINER, true, ALWAYS },
	{ "rd.lvm.", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "rd_LVM_", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "rd.md.uuid=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "rd_MD_UUID=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "rd.dm.uuid=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "mount.usr=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "mount.usrfstype=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "mount.usrflags=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "zfs=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "bootfs=", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "boot=zfs", drop, CHANGE_VOLUMES, false, ALWAYS },
	{ "resume=", drop, CHANGE_RESUME, false, ALWAYS },
	{ "resume_offset=", drop, CHANGE_RESUME, false, ALWAYS },
	{ "resumeflags=", drop, CHANGE_RESUME, false, ALWAYS },
	{ "nfsroot=", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "nfsrootdebug", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "boot=nfs", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "ip=", drop, CHANGE_NETWORK_ROOT, false, ROOT_WAS_NFS },
	{ "nfsaddrs=", drop, CHANGE_NETWORK_ROOT, false, ROOT_WAS_NFS },
	{ "netroot=", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "rd.iscsi.", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "iscsi_", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "overlayroot=", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "real_root=", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "boot=live", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "boot=casper", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
	{ "rd.live.", drop, CHANGE_NETWORK_ROOT, false, ROOT_REPLACED },
};

static bool is_unwanted(const struct cmdline *c, const char *arg)
{
	for (const char *const *name = c->unwanted; name && *name; name++)
		if (str_ends(*name, "=") ? str_starts(arg, *name) : str_equal(arg, *name))
			return true;
	return false;
}

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
	if (rule->change == change_rootflags && !c->subvolume[0])
		mntopts_subvolume(slice_of(value), c->subvolume, sizeof c->subvolume);
}

/* What there is to know of all arguments before the first one is changed. */
struct circumstances {
	bool has_root, has_noresume;
	enum condition root; /* what became of it */
};

static enum condition root_condition(const struct names *names, const char *root)
{
	struct device device = device_parse(root);

	if (device_is(&device, &names->root))
		return ALWAYS;
	return str_starts(root, "nfs") || str_equal(root, "/dev/nfs") ? ROOT_WAS_NFS
								      : ROOT_REPLACED;
}

static struct circumstances look_around(const struct cmdline *c, struct slice args)
{
	struct circumstances found = { .root = ALWAYS };
	bool names_nfs = false;
	struct slice word;
	char arg[ARGUMENT_MAX];

	while (slice_quoted_word(&args, &word)) {
		if (!slice_unquote(word, arg, sizeof arg))
			continue;
		found.has_noresume |= str_equal(arg, "noresume");
		names_nfs |= str_starts(arg, "nfsroot=") || str_equal(arg, "boot=nfs");
		if (!str_starts(arg, "root="))
			continue;
		found.has_root = true;
		if (!strpbrk(arg, "$`"))
			found.root = root_condition(c->names, arg + strlen("root="));
	}
	if (!found.has_root && c->old_root && *c->old_root)
		found.root = root_condition(c->names, c->old_root);
	if (names_nfs && found.root == ROOT_REPLACED)
		found.root = ROOT_WAS_NFS;
	return found;
}

/* As changer. */
static bool change(struct slice word, enum condition root, struct cmdline *c, struct text *out)
{
	char arg[ARGUMENT_MAX];
	const struct rule *rule;
	const char *value;

	if (!slice_unquote(word, arg, sizeof arg) || strpbrk(arg, "$`"))
		return false;
	if (is_unwanted(c, arg)) {
		c->changes |= CHANGE_UNWANTED;
		return true;
	}
	rule = find_rule(arg);
	if (!rule)
		return false;
	value = arg + strlen(rule->name);
	look_at(c, rule, value);
	if (!c->names || rule->when > root || !rule->change(c, value, out))
		return false;
	c->changes |= rule->what;
	return true;
}

/* An argument that goes takes the blanks in front of it along, the first one
 * those behind it.
 */
void cmdline_rewrite(struct slice args, struct cmdline *c, struct text *out)
{
	const struct circumstances around =
		c->names ? look_around(c, args) : (struct circumstances){ 0 };
	struct slice rest = args, word, next, ignored;
	const char *copied = args.at;
	bool first = true;

	while (slice_quoted_word(&rest, &word)) {
		autotext struct text instead = { 0 };
		bool changed = change(word, around.root, c, &instead),
		     gone = changed && !instead.len;

		out->failed |= instead.failed;
		if (!gone || first)
			text_add(out, slice_between(copied, word.at));
		text_add(out, changed ? text_slice(&instead) : word);
		next = rest;
		copied = gone && first && slice_quoted_word(&next, &ignored) ? ignored.at : rest.at;
		first = first && gone;
	}
	if (c->wants_noresume && around.has_root && !around.has_noresume) {
		text_puts(out, " noresume");
		c->changes |= CHANGE_NORESUME;
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
	{ CHANGE_NETWORK_ROOT, "arguments for a root by network or from a live medium left out" },
	{ CHANGE_NORESUME, "noresume, since the initrd would wait for a swap space that is not in "
			   "the image" },
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
