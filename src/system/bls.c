// SPDX-License-Identifier: Apache-2.0
#include "system/bls.h"

#include "system/grub_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 4096, VERSION_MAX = 256 };

/* Split "key value"; false for comments and lines without a value. */
static bool split_line(struct slice line, struct slice *key, struct slice *value)
{
	*value = slice_chomp(line);
	if (!slice_word(value, key) || key->at[0] == '#')
		return false;
	return true;
}

static void put_paths(struct slice value, const struct boot_paths *paths, unsigned *changes,
		      struct text *out)
{
	const char *copied = value.at;
	struct slice word;

	while (slice_word(&value, &word)) {
		text_add(out, slice_between(copied, word.at));
		if (boot_path_rewrite(word, paths, out))
			*changes |= CHANGE_PATHS;
		copied = word.at + word.len;
	}
	text_add(out, slice_between(copied, value.at + value.len));
}

static void rewrite_line(struct slice line, struct cmdline *c, const struct boot_paths *paths,
			 struct text *out)
{
	autotext struct text stripped = { 0 };
	struct slice key, value;

	if (!split_line(line, &key, &value)) {
		text_add(out, line);
	} else if (slice_is(key, "options")) {
		text_add(out, slice_between(line.at, value.at));
		cmdline_rewrite(value, c, out);
		text_add(out, slice_between(value.at + value.len, line.at + line.len));
	} else if (c->names && (slice_is(key, "linux") || slice_is(key, "initrd"))) {
		if (boot_paths_strip(line, paths->subvolume, &stripped))
			c->changes |= CHANGE_PATHS;
		line = text_slice(&stripped);
		split_line(line, &key, &value);
		text_add(out, slice_between(line.at, value.at));
		put_paths(value, paths, &c->changes, out);
		text_add(out, slice_between(value.at + value.len, line.at + line.len));
		out->failed |= stripped.failed;
	} else {
		text_add(out, line);
	}
}

void bls_rewrite(struct slice text, struct cmdline *c, const struct boot_paths *paths,
		 struct text *out)
{
	struct slice line;

	while (slice_line(&text, &line))
		rewrite_line(line, c, paths, out);
}

bool bls_value(struct slice text, const char *name, char *dst, size_t cap)
{
	struct slice line, key, value;

	dst[0] = '\0';
	while (slice_line(&text, &line)) {
		if (!split_line(line, &key, &value) || !slice_is(key, name))
			continue;
		while (value.len && (value.at[0] == ' ' || value.at[0] == '\t'))
			value = slice_from(value, 1);
		if (slice_copy(value, dst, cap))
			return true;
		dst[0] = '\0';
		return false;
	}
	return false;
}

static int compare_entries(const void *a, const void *b)
{
	const struct bls_entry *x = a, *y = b;
	char version_x[VERSION_MAX], version_y[VERSION_MAX];
	int order;

	bls_value(x->text, "version", version_x, sizeof version_x);
	bls_value(y->text, "version", version_y, sizeof version_y);
	order = strverscmp(version_y, version_x);
	return order ? order : strverscmp(y->id, x->id);
}

void bls_sort(struct bls_entry *entries, size_t count)
{
	if (count)
		qsort(entries, count, sizeof *entries, compare_entries);
}

/* The name in "$name" or "${name}"; false when word is anything else. */
static bool variable_name(const char *word, char *dst, size_t cap)
{
	size_t len = strlen(word), n = 0;
	bool braces = word[0] == '$' && word[1] == '{' && word[len - 1] == '}';
	const char *name = word + (braces ? 2 : 1);

	if (word[0] != '$')
		return false;
	len -= braces ? 3 : 1;
	while (n < len && (isalnum((unsigned char)name[n]) || name[n] == '_'))
		n++;
	return len > 0 && n == len && slice_copy((struct slice){ name, len }, dst, cap);
}

/* Needs no quotes in a script. */
static bool is_plain(const char *word)
{
	return *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789_-.,:/=@%+^")] == '\0';
}

static void put_word(const char *word, struct text *out)
{
	text_puts(out, " ");
	if (is_plain(word))
		text_puts(out, word);
	else
		grubscript_quote(word, out);
}

/* Words of a line as words of a script; *grubenv NULL: variables have been looked up. */
static void put_words(struct slice value, const struct slice *grubenv, struct text *out)
{
	char word[WORD_MAX], name[64];
	struct slice raw, found;

	while (slice_quoted_word(&value, &raw)) {
		if (!slice_unquote(raw, word, sizeof word))
			continue;
		if (!variable_name(word, name, sizeof name))
			put_word(word, out);
		else if (grubenv && grubenv_get(*grubenv, name, &found))
			put_words(found, NULL, out);
		else
			text_format(out, " %s", word);
	}
}

/* All lines with that key, as arguments of one command. */
static void put_command(struct slice text, const char *name, const struct slice *grubenv,
			struct text *out)
{
	struct slice line, key, value;

	while (slice_line(&text, &line))
		if (split_line(line, &key, &value) && slice_is(key, name))
			put_words(value, grubenv, out);
}

/* Without a variable, which might have it? */
static bool lacks_root(struct slice text)
{
	struct slice line, key, value, word;

	while (slice_line(&text, &line)) {
		if (!split_line(line, &key, &value) || !slice_is(key, "options"))
			continue;
		while (slice_quoted_word(&value, &word))
			if (slice_starts(word, "root=") || slice_starts(word, "\"root=") ||
			    memchr(word.at, '$', word.len))
				return false;
	}
	return true;
}

/* Unrestricted: on a machine without a console nobody could give a password, and
 * without one the entry can still not be edited.
 */
void bls_menuentry(const struct bls_entry *entry, struct slice grubenv, struct text *out)
{
	char title[WORD_MAX], kernel[WORD_MAX];
	autotext struct text initrds = { 0 };

	bls_value(entry->text, "title", title, sizeof title);
	bls_value(entry->text, "linux", kernel, sizeof kernel);
	if (!kernel[0])
		return;
	text_puts(out, "menuentry ");
	grubscript_quote(title[0] ? title : entry->id, out);
	text_puts(out, " --unrestricted --id ");
	grubscript_quote(entry->id, out);
	text_puts(out, " {\n");
	if (entry->volume_uuid)
		text_format(out, "\tsearch --no-floppy --fs-uuid --set=root %s\n",
			    entry->volume_uuid);
	text_puts(out, "\tlinux ");
	grubscript_quote(kernel, out);
	put_command(entry->text, "options", &grubenv, out);
	if (entry->root_uuid && lacks_root(entry->text))
		text_format(out, " root=UUID=%s", entry->root_uuid);
	put_command(entry->text, "initrd", &grubenv, &initrds);
	if (initrds.len)
		text_format(out, "\n\tinitrd%s", initrds.at);
	text_puts(out, "\n}\n");
	out->failed |= initrds.failed;
}
