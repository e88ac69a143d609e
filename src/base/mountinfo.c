// SPDX-License-Identifier: Apache-2.0
#include "base/mountinfo.h"

#include "base/err.h"
#include "base/io.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

enum { TABLE_MAX = 128 * 1024 * 1024 }; /* bytes: more than all the mounts a kernel allows */

void mountinfo_free(struct mountinfo *info)
{
	free(info->text);
	free(info->lines);
	*info = (struct mountinfo){ 0 };
}

int mountinfo_unescape(char *s)
{
	char *to = s;

	while (*s) {
		int byte = *s == '\\' ? str_octal_byte(s + 1) : -1;

		if (byte == 0)
			return -1;
		*to++ = byte < 0 ? *s : (char)byte;
		s += byte < 0 ? 1 : 4;
	}
	*to = '\0';
	return 0;
}

/* The next field; fields are separated by one blank each and may be empty, as the
 * device of "mount -t tmpfs ''".  NULL behind the last.
 */
static char *next_field(char **rest)
{
	return strsep(rest, " ");
}

static bool parse_number(const char *s, char end, uint64_t max, uint64_t *n, const char **behind)
{
	char *stop;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*n = strtoull(s, &stop, 10);
	*behind = stop;
	return !errno && *n <= max && *stop == end;
}

static bool parse_id(const char *s, uint64_t *id)
{
	return s && parse_number(s, '\0', UINT64_MAX, id, &s);
}

static bool parse_device(const char *s, struct mountinfo_line *line)
{
	uint64_t major, minor;

	if (!s || !parse_number(s, ':', UINT32_MAX, &major, &s) ||
	    !parse_number(s + 1, '\0', UINT32_MAX, &minor, &s))
		return false;
	line->major = (uint32_t)major;
	line->minor = (uint32_t)minor;
	return true;
}

/* Behind the optional fields, of which there may be any number. */
static bool skip_optional(char **rest)
{
	char *field;

	do {
		field = next_field(rest);
	} while (field && !str_equal(field, "-"));
	return field;
}

static bool parse_line(char *text, struct mountinfo_line *line)
{
	if (!parse_id(next_field(&text), &line->id) ||
	    !parse_id(next_field(&text), &line->parent) || !parse_device(next_field(&text), line))
		return false;
	line->root = next_field(&text);
	line->point = next_field(&text);
	if (!skip_optional(&text))
		return false;
	line->fstype = next_field(&text);
	line->device = next_field(&text);
	line->options = text; /* some filesystems leave blanks in it */
	return line->options && *line->fstype && *line->root && *line->point == '/' &&
	       mountinfo_unescape(line->root) == 0 && mountinfo_unescape(line->point) == 0 &&
	       mountinfo_unescape(line->fstype) == 0 && mountinfo_unescape(line->device) == 0 &&
	       mountinfo_unescape(line->options) == 0;
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static int parse_table(const char *path, size_t len, struct mountinfo *info, struct err *err)
{
	char *rest = info->text, *line;

	if (strlen(info->text) != len)
		return err_set(err, ERR_FAILED, "%s has a NUL byte in it: no table of mounts",
			       path);
	info->lines = calloc(count_lines(info->text, len), sizeof *info->lines);
	if (!info->lines)
		return err_nomem(err);
	while ((line = strsep(&rest, "\n")) && (*line || rest))
		if (!parse_line(line, &info->lines[info->count++]))
			return err_set(err, ERR_FAILED,
				       "line %zu of %s is no line of a table of mounts",
				       info->count, path);
	return 0;
}

int mountinfo_read(const char *path, struct mountinfo *out, struct err *err)
{
	automountinfo struct mountinfo info = { 0 };
	size_t len;

	info.text = io_read_file(AT_FDCWD, path, TABLE_MAX, &len, err);
	if (!info.text || parse_table(path, len, &info, err) < 0)
		return -1;
	*out = info;
	info = (struct mountinfo){ 0 };
	return 0;
}
