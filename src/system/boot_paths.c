// SPDX-License-Identifier: Apache-2.0
#include "system/boot_paths.h"

#include "base/str.h"
#include "system/cmdline.h"

#include <string.h>

enum { PATH_MAX_LEN = 4096 };

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

/* Bytes in front of the path: quotes and "(hd0,gpt2)". */
static size_t path_start(struct slice word)
{
	size_t n = 0;

	while (n < word.len && word.at[n] != '/') {
		const char *end = NULL;

		if (word.at[n] == '(')
			end = memchr(word.at + n, ')', word.len - n);
		else if (word.at[n] != '\'' && word.at[n] != '"')
			return word.len;
		n = end ? (size_t)(end - word.at) + 1 : n + 1;
	}
	return n;
}

static bool is_there(const struct boot_paths *paths, const char *path)
{
	return paths->exists(paths->ctx, path);
}

bool boot_paths_rewrite(struct slice word, const struct boot_paths *paths, struct text *out)
{
	static const char boot[] = "/boot";
	size_t start = path_start(word), skip = 0;
	const char *insert = "";
	char path[PATH_MAX_LEN], below[PATH_MAX_LEN + sizeof boot];

	if (start < word.len && paths->exists && word.at[word.len - 1] != '\\' &&
	    slice_unquote(slice_from(word, start), path, sizeof path) && !strchr(path, '$') &&
	    !is_there(paths, path)) {
		strcpy(stpcpy(below, boot), path);
		if (is_there(paths, below))
			insert = boot;
		else if (str_starts(path, "/boot/") && is_there(paths, path + strlen(boot)))
			skip = strlen(boot);
	}
	text_add(out, (struct slice){ word.at, start });
	text_puts(out, insert);
	text_add(out, slice_from(word, start + skip));
	return *insert || skip;
}
