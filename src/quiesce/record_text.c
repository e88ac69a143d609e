// SPDX-License-Identifier: Apache-2.0
#include "quiesce/record_text.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "quiesce/record.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADING "# What ccsnap has to undo with a domain; \"ccsnap recover\" does it.\n[ccsnap]\n"
#define CHECK	"check = "
#define PLAIN	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:@+,="

enum { PIECE = 120 }; /* bytes of a value in one line: inih takes 200 for all of it */

/* --- what a note holds --- */

static const struct string_field {
	const char *key;
	size_t at;
	bool is_work; /* with it there is something to undo */
} strings[] = {
	{ "uri", offsetof(struct record_note, uri), false },
	{ "name", offsetof(struct record_note, name), false },
	{ "target", offsetof(struct record_note, target), false },
	{ "scratch-dir", offsetof(struct record_note, scratch_dir), true },
	{ "scratch", offsetof(struct record_note, scratch), true },
	{ "socket", offsetof(struct record_note, socket), true },
	{ "overlay", offsetof(struct record_note, overlay), true },
};

static const struct flag_field {
	const char *key;
	size_t at;
} flags[] = {
	{ "frozen", offsetof(struct record_note, frozen) },
	{ "patience", offsetof(struct record_note, patience) },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char **string_of(const struct record_note *note, size_t i)
{
	return (char **)((uintptr_t)note + strings[i].at);
}

static bool *flag_of(const struct record_note *note, size_t i)
{
	return (bool *)((uintptr_t)note + flags[i].at);
}

bool record_note_is_clear(const struct record_note *note)
{
	for (size_t i = 0; i < COUNT(strings); i++)
		if (strings[i].is_work && *string_of(note, i))
			return false;
	for (size_t i = 0; i < COUNT(flags); i++)
		if (*flag_of(note, i))
			return false;
	return true;
}

void record_note_free(struct record_note *note)
{
	for (size_t i = 0; i < COUNT(strings); i++)
		free(*string_of(note, i));
	*note = (struct record_note){ .run_id = -1 };
}

int record_note_copy(struct record_note *dst, const struct record_note *src, struct err *err)
{
	*dst = *src;
	for (size_t i = 0; i < COUNT(strings); i++)
		*string_of(dst, i) = NULL;
	for (size_t i = 0; i < COUNT(strings); i++) {
		const char *from = *string_of(src, i);

		if (from && !(*string_of(dst, i) = strdup(from))) {
			record_note_free(dst);
			return err_nomem(err);
		}
	}
	return 0;
}

/* --- writing --- */

/* The lines of one value; of an empty one, too. */
static void put_string(FILE *out, const char *key, const char *value)
{
	size_t used = 0;

	fprintf(out, "%s = ", key);
	for (; *value; value++) {
		if (used >= PIECE) {
			fprintf(out, "\n%s = ", key);
			used = 0;
		}
		used += strchr(PLAIN, *value)
				? (size_t)fprintf(out, "%c", *value)
				: (size_t)fprintf(out, "%%%02X", (unsigned char)*value);
	}
	fputc('\n', out);
}

static void put_note(FILE *out, const struct record_note *note)
{
	for (size_t i = 0; i < COUNT(strings); i++)
		if (*string_of(note, i))
			put_string(out, strings[i].key, *string_of(note, i));
	for (size_t i = 0; i < COUNT(flags); i++)
		if (*flag_of(note, i))
			fprintf(out, "%s = yes\n", flags[i].key);
	if (!record_note_is_clear(note))
		fprintf(out, "run-id = %d\n", note->run_id);
}

static struct uuid_text check_of(const char *text, size_t len)
{
	struct uuid_text check;
	uint8_t bytes[16];

	uuid_derive(text, len, "ccsnap record", bytes);
	uuid_format(bytes, check.text);
	return check;
}

char *record_text_make(const struct record_note *note)
{
	autofree char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fputs(HEADING, out);
	put_note(out, note);
	if (fclose(out) != 0)
		return NULL;
	return str_format("%s" CHECK "%s\n", text, check_of(text, len).text);
}

/* --- reading --- */

struct reader {
	struct record_note *note;
	struct err *err;
	bool failed; /* *err says why */
};

static int damaged(struct err *err, const char *why)
{
	return err_set(err, ERR_FAILED, "%s", why);
}

static int append(char **value, const char *more)
{
	char *joined = str_format("%s%s", *value ? *value : "", more);

	if (!joined)
		return -1;
	free(*value);
	*value = joined;
	return 0;
}

/* In place; every piece of it is there. */
static int decode(char *value)
{
	char *to = value;

	for (const char *from = value; *from; from++) {
		int byte = *from == '%' ? str_hex_byte(from + 1) : (unsigned char)*from;

		if (byte <= 0 || (*from != '%' && !strchr(PLAIN, *from)))
			return -1;
		from += *from == '%' ? 2 : 0;
		*to++ = (char)byte;
	}
	*to = '\0';
	return 0;
}

static int read_number(const char *value, int *out)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(value, &end, 10);
	if (errno != 0 || end == value || *end || n < -1 || n > INT_MAX)
		return -1;
	*out = (int)n;
	return 0;
}

static int set_flag(struct reader *r, size_t i, const char *value)
{
	if (!str_equal(value, "yes"))
		return damaged(r->err, "a value is none that ccsnap writes");
	*flag_of(r->note, i) = true;
	return 0;
}

static int set(struct reader *r, const char *key, const char *value)
{
	for (size_t i = 0; i < COUNT(strings); i++)
		if (str_equal(key, strings[i].key))
			return append(string_of(r->note, i), value) < 0 ? err_nomem(r->err) : 0;
	for (size_t i = 0; i < COUNT(flags); i++)
		if (str_equal(key, flags[i].key))
			return set_flag(r, i, value);
	if (!str_equal(key, "run-id"))
		log_debug("a record says %s, which this version does not know", key);
	else if (read_number(value, &r->note->run_id) < 0)
		return damaged(r->err, "its run-id is no number");
	return 0;
}

static int on_setting(void *user, const char *section, const char *key, const char *value)
{
	struct reader *r = user;

	(void)section;
	if (!r->failed)
		r->failed = set(r, key, value) < 0;
	return !r->failed;
}

static int read_lines(const char *text, struct record_note *out, struct err *err)
{
	struct reader r = { .note = out, .err = err };
	int line = ini_parse_string(text, on_setting, &r);

	if (r.failed)
		return -1;
	if (line < 0)
		return err_nomem(err);
	if (line > 0)
		return damaged(err, "a line is not KEY = VALUE");
	for (size_t i = 0; i < COUNT(strings); i++)
		if (*string_of(out, i) && decode(*string_of(out, i)) < 0)
			return damaged(err, "a value is none that ccsnap writes");
	return 0;
}

/* The part that the check is made from (malloc), NULL when it is another. */
static char *checked_part(const char *text)
{
	const char *line = strstr(text, "\n" CHECK), *check;
	struct uuid_text again;
	size_t len;

	if (!line)
		return NULL;
	len = (size_t)(line + 1 - text);
	check = text + len + strlen(CHECK);
	again = check_of(text, len);
	if (!str_starts(check, again.text) || check[strlen(again.text)] != '\n')
		return NULL;
	return strndup(text, len);
}

int record_text_read(const char *text, struct record_note *out, struct err *err)
{
	autofree char *part = NULL;

	*out = (struct record_note){ .run_id = -1 };
	if (text[strspn(text, " \t\r\n")] == '\0')
		return 0;
	part = checked_part(text);
	if (!part)
		return damaged(err, "it is not whole, or somebody has changed it");
	if (read_lines(part, out, err) == 0)
		return 0;
	record_note_free(out);
	return -1;
}
