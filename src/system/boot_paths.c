// SPDX-License-Identifier: Apache-2.0
#include "system/boot_paths.h"

#include "base/str.h"
#include "system/cmdline.h"

#include <string.h>

enum { PATH_MAX_LEN = 4096, COMPONENTS_MAX = 16 };

/* A path begins at the beginning of a word, or behind a quote, "=" or ")". */
static bool may_begin_path(const char *start, const char *at)
{
	return at == start || strchr(" \t\n='\")", at[-1]);
}

static bool strip_prefix(struct slice text, const char *prefix, size_t len, struct text *out)
{
	const char *copied = text.at, *end = text.at + text.len, *at = text.at;
	bool any = false;

	while ((at = memmem(at, (size_t)(end - at), prefix, len))) {
		if (at + len < end && at[len] == '/' && may_begin_path(text.at, at)) {
			text_add(out, slice_between(copied, at));
			copied = at + len;
			any = true;
		}
		at += len;
	}
	text_add(out, slice_between(copied, end));
	return any;
}

/* Of "/@/.snapshots/1/snapshot", "/@" as well: GRUB's own directory is often another subvolume. */
bool boot_paths_strip(struct slice text, const char *subvolume, struct text *out)
{
	autotext struct text once = { 0 };
	size_t len = subvolume ? strlen(subvolume) : 0, first;
	bool any;

	if (len < 2 || subvolume[0] != '/') {
		text_add(out, text);
		return false;
	}
	first = 1 + strcspn(subvolume + 1, "/");
	any = strip_prefix(text, subvolume, len, &once);
	if (first < len)
		any |= strip_prefix(text_slice(&once), subvolume, first, out);
	else
		text_add(out, text_slice(&once));
	out->failed |= once.failed;
	return any;
}

/* --- where a path leads -------------------------------------------------------- */

bool boot_device_is_numbered(const char *device)
{
	static const char *const kinds[] = { "ahci",   "ata",	    "usb", "ieee1275/",
					     "lvmid/", "lvm/",	    "md",  "nvme",
					     "crypto", "hostdisk/", NULL };

	if (strchr(device, '$'))
		return false;
	if (str_starts(device, "hd"))
		return device[2] >= '0' && device[2] <= '9';
	for (const char *const *kind = kinds; *kind; kind++)
		if (str_starts(device, *kind))
			return true;
	return false;
}

/* A word's parts: quotes and "(hd0,gpt2)", and the path behind them. */
struct parts {
	struct slice device; /* with its parentheses; len 0: none */
	size_t start;	     /* of the path */
	char path[PATH_MAX_LEN];
};

/* Bytes in front of the path, word.len when there is none. */
static size_t path_start(struct slice word, struct slice *device)
{
	size_t n = 0;

	*device = (struct slice){ 0 };
	while (n < word.len && word.at[n] != '/') {
		const char *end = NULL;

		if (word.at[n] == '(')
			end = memchr(word.at + n, ')', word.len - n);
		else if (word.at[n] != '\'' && word.at[n] != '"')
			return word.len;
		if (end)
			*device = slice_between(word.at + n, end + 1);
		n = end ? (size_t)(end - word.at) + 1 : n + 1;
	}
	return n;
}

/* False when it has no path that could be looked for. */
static bool split(struct slice word, struct parts *out)
{
	out->start = path_start(word, &out->device);
	return out->start < word.len && word.at[word.len - 1] != '\\' &&
	       slice_unquote(slice_from(word, out->start), out->path, sizeof out->path) &&
	       !strchr(out->path, '$');
}

static bool is_numbered(struct slice device)
{
	char name[256];

	return device.len > 2 &&
	       slice_copy((struct slice){ device.at + 1, device.len - 2 }, name, sizeof name) &&
	       boot_device_is_numbered(name);
}

bool boot_path_is_numbered(struct slice word)
{
	struct slice device;

	path_start(word, &device);
	return is_numbered(device);
}

/* What it takes to come from a path to something that is there. */
struct way {
	enum boot_volume volume;
	const char *insert;
	size_t skip;
};

static bool exists_below_boot(const struct boot_paths *paths, const char *path)
{
	char below[PATH_MAX_LEN + sizeof "/boot"];

	strcpy(stpcpy(below, "/boot"), path);
	return paths->exists(paths->ctx, paths->volume, below);
}

/* A subvolume, or a filesystem's mount point, may be any number of components. */
static bool find_detour(const struct boot_paths *paths, const char *path, struct way *out)
{
	const char *at = path;

	out->volume = paths->volume;
	for (unsigned n = 0; n <= COMPONENTS_MAX && at && at[1]; n++) {
		out->skip = (size_t)(at - path);
		out->insert = "";
		if (n > 0 && paths->exists(paths->ctx, paths->volume, at))
			return true;
		out->insert = "/boot";
		if (exists_below_boot(paths, at))
			return true;
		at = strchr(at + 1, '/');
	}
	return false;
}

static bool find_way(const struct boot_paths *paths, const char *path, bool anywhere,
		     struct way *out)
{
	if (!paths->exists)
		return false;
	*out = (struct way){ .volume = paths->volume, .insert = "" };
	if (paths->exists(paths->ctx, paths->volume, path))
		return true;
	for (unsigned v = 0; anywhere && v < BOOT_VOLUMES; v++) {
		out->volume = (enum boot_volume)v;
		if (paths->exists(paths->ctx, out->volume, path))
			return true;
	}
	return find_detour(paths, path, out);
}

enum boot_volume boot_path_volume(struct slice word, const struct boot_paths *paths)
{
	struct parts parts;
	struct way way;

	return split(word, &parts) && find_way(paths, parts.path, true, &way) ? way.volume
									      : BOOT_VOLUMES;
}

/* What is in front of the path; single quotes would take "$root" as it stands. */
static void put_front(struct slice word, const struct parts *parts, bool numbered, struct text *out)
{
	const char *path = word.at + parts->start;

	if (!numbered) {
		text_add(out, slice_between(word.at, path));
		return;
	}
	text_puts(out, "($root)");
	text_add(out, slice_between(word.at, parts->device.at));
	text_add(out, slice_between(parts->device.at + parts->device.len, path));
}

/* Bytes of the path are bytes of the word as long as nothing in it is escaped. */
static bool can_skip(struct slice word, const struct parts *parts, size_t skip)
{
	return word.len - parts->start > skip &&
	       memcmp(word.at + parts->start, parts->path, skip) == 0;
}

bool boot_path_rewrite(struct slice word, const struct boot_paths *paths, struct text *out)
{
	struct parts parts;
	struct way way;
	bool numbered;

	if (!split(word, &parts) || !find_way(paths, parts.path, is_numbered(parts.device), &way) ||
	    !can_skip(word, &parts, way.skip)) {
		text_add(out, word);
		return false;
	}
	numbered = is_numbered(parts.device);
	put_front(word, &parts, numbered, out);
	text_puts(out, way.insert);
	text_add(out, slice_from(word, parts.start + way.skip));
	return numbered || *way.insert || way.skip;
}
