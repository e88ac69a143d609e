// SPDX-License-Identifier: Apache-2.0
#include "config_file.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"

#include <fcntl.h>
#include <ini.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (256 * KIB)
#define BOM	 "\xef\xbb\xbf"
#define BLANKS	 " \t\r\v\f"

/* The file on its way through inih, which asks for lines and calls back with
 * what is in them.
 */
struct reader {
	const char *path, *rest;
	unsigned line;
	config_setter *set;
	void *ctx;
	struct err *err;
	bool failed; /* *err says why */
};

static void fail(struct reader *r, const char *why)
{
	err_set(r->err, ERR_USAGE, "%s:%u: %s", r->path, r->line, why);
	r->failed = true;
}

/* What inih would not hand over as it stands. */
static const char *objection(const char *line, size_t len, size_t cap)
{
	for (size_t i = 1; i < len; i++)
		if (line[i] == ';' && strchr(BLANKS, line[i - 1]))
			return "a value cannot hold ' ;', and a comment needs a line of its own";
	if (len >= cap)
		return "the line is too long; give this option on the command line";
	if (*line == '[' && (len != strlen("[ccsnap]") || strncmp(line, "[ccsnap]", len) != 0))
		return "the only section is [ccsnap]";
	return NULL;
}

/* The next line without the blanks around it: inih takes an indented line for
 * more of the value above.
 */
static char *next_line(char *dst, int cap, void *stream)
{
	struct reader *r = stream;
	const char *start = r->rest, *why;
	size_t len = strcspn(start, "\n");

	if (r->failed || *start == '\0')
		return NULL;
	r->rest = start + len + (start[len] == '\n');
	if (r->line++ == 0 && str_starts(start, BOM)) {
		start += strlen(BOM);
		len -= strlen(BOM);
	}
	while (len > 0 && strchr(BLANKS, *start)) {
		start++;
		len--;
	}
	while (len > 0 && strchr(BLANKS, start[len - 1]))
		len--;
	if (len > 0 && (*start == '#' || *start == ';'))
		len = 0;
	why = objection(start, len, (size_t)cap);
	if (why) {
		fail(r, why);
		return NULL;
	}
	memcpy(dst, start, len);
	dst[len] = '\0';
	return dst;
}

static int on_setting(void *user, const char *section, const char *key, const char *value)
{
	struct reader *r = user;
	size_t len = strlen(value);
	autofree char *where = str_format("%s:%u", r->path, r->line);

	(void)section; /* next_line has seen to it */
	if (!where) {
		err_nomem(r->err);
		r->failed = true;
	} else if (len > 1 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		err_set(r->err, ERR_USAGE, "%s: %s: write the value without quotes", where, key);
		r->failed = true;
	} else if (r->set(r->ctx, where, key, value, r->err) < 0) {
		r->failed = true;
	}
	return !r->failed;
}

int config_read(const char *path, config_setter *set, void *ctx, struct err *err)
{
	struct reader r = { .path = path, .set = set, .ctx = ctx, .err = err };
	size_t len;
	autofree char *text = io_read_file(AT_FDCWD, path, FILE_MAX, &len, err);
	int line;

	if (!text) {
		err->kind = ERR_USAGE;
		return -1;
	}
	if (strlen(text) != len)
		return err_set(err, ERR_USAGE, "%s: this is no text file", path);
	r.rest = text;
	line = ini_parse_stream(next_line, &r, on_setting, &r);
	if (r.failed)
		return -1;
	if (line < 0)
		return err_nomem(err);
	if (line > 0)
		return err_set(err, ERR_USAGE, "%s:%d: this is not KEY = VALUE", path, line);
	return 0;
}

const char *config_system_path(void)
{
	return SYSCONFDIR "/ccsnap/ccsnap.conf";
}

int config_user_path(char **path, struct err *err)
{
	const char *dir = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	*path = NULL;
	if (dir && *dir == '/') /* a relative one is to be ignored, says its specification */
		*path = str_format("%s/ccsnap/ccsnap.conf", dir);
	else if (home && *home == '/')
		*path = str_format("%s/.config/ccsnap/ccsnap.conf", home);
	else
		return 0;
	return *path ? 0 : err_nomem(err);
}
