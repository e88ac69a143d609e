// SPDX-License-Identifier: Apache-2.0
#include "walk/pattern.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Runs of components, separated by "**": the first begins where the path begins, the
 * last ends where it ends, and those between take the first place that fits.
 */
struct pattern {
	bool takes_back, directories_only;
	size_t count;
	size_t first_end;  /* components before the first "**"; count when there is none */
	size_t last_start; /* behind the last "**" */
	char *text;	   /* holds the components */
	const char *component[];
};

CLEANUP_TYPE(struct pattern, pattern, pattern_free)
#define autopattern CLEANUP(pattern_cleanup)

static const char *const classes[] = { "alnum", "alpha", "blank", "cntrl", "digit", "graph",
				       "lower", "print", "punct", "space", "upper", "xdigit" };

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	free(p->text);
	free(p);
}

bool pattern_takes_back(const struct pattern *p)
{
	return p->takes_back;
}

/* s: at "[:" inside of brackets.  Behind ":]", or NULL for no class. */
static const char *skip_class(const char *s)
{
	const char *end = strstr(s + 2, ":]");

	for (size_t i = 0; end && i < sizeof classes / sizeof *classes; i++)
		if (strlen(classes[i]) == (size_t)(end - s - 2) && str_starts(s + 2, classes[i]))
			return end + 2;
	return NULL;
}

/* s: at "[".  Behind the "]" that belongs to it, or NULL. */
static const char *skip_brackets(const char *s)
{
	s++;
	if (*s == '!' || *s == '^')
		s++;
	if (*s == ']')
		s++;
	while (s && *s && *s != ']') {
		if (s[0] == '[' && s[1] == ':')
			s = skip_class(s);
		else if (s[0] == '[' && (s[1] == '.' || s[1] == '='))
			return NULL;
		else if (s[0] == '\\')
			s = s[1] ? s + 2 : NULL;
		else
			s++;
	}
	return s && *s ? s + 1 : NULL;
}

static int check_component(const char *s, struct err *err)
{
	if (str_equal(s, "**"))
		return 0;
	if (str_equal(s, ".") || str_equal(s, ".."))
		return err_set(err, ERR_USAGE,
			       "\".\" and \"..\" match nothing in a pattern; leave them out, "
			       "a leading slash is the source's root");
	while (*s) {
		if (s[0] == '*' && s[1] == '*')
			return err_set(err, ERR_USAGE,
				       "\"**\" must stand alone between slashes; write \"*\" "
				       "for any characters of one name");
		if (s[0] == '\\' && !s[1])
			return err_set(err, ERR_USAGE,
				       "a backslash at the end of a name escapes nothing; "
				       "write \"\\\\\" for the character itself");
		if (s[0] == '[' && !skip_brackets(s))
			return err_set(
				err, ERR_USAGE,
				"\"[\" without its \"]\", or with something in between that "
				"has no meaning there; write \"\\[\" for the character itself");
		s = s[0] == '[' ? skip_brackets(s) : s + (s[0] == '\\' ? 2 : 1);
	}
	return 0;
}

/* Components of p->text, which is cut at its slashes. */
static int split(struct pattern *p, bool anchored, struct err *err)
{
	char *save = NULL;

	if (!anchored)
		p->component[p->count++] = "**";
	for (char *s = strtok_r(p->text, "/", &save); s; s = strtok_r(NULL, "/", &save)) {
		if (check_component(s, err) < 0)
			return -1;
		p->component[p->count++] = s;
	}
	/* What is below a directory, but not itself. */
	if (str_equal(p->component[p->count - 1], "**"))
		p->component[p->count++] = "*";
	return 0;
}

static void find_runs(struct pattern *p)
{
	p->first_end = p->count;
	for (size_t i = p->count; i-- > 0;) {
		if (!str_equal(p->component[i], "**"))
			continue;
		if (p->first_end == p->count)
			p->last_start = i + 1;
		p->first_end = i;
	}
}

static size_t count_slashes(const char *s)
{
	size_t n = 0;

	while ((s = strchr(s, '/'))) {
		n++;
		s++;
	}
	return n;
}

static int check_text(const char *text, struct err *err)
{
	if (strlen(text) > PATTERN_MAX)
		return err_set(err, ERR_USAGE, "a pattern of more than %d bytes", PATTERN_MAX);
	if (*text && !text[strspn(text, " \t")])
		return err_set(err, ERR_USAGE,
			       "nothing but blanks; write \"[ ]\" for a name that is a blank");
	return 0;
}

int pattern_parse(const char *text, struct pattern **out, struct err *err)
{
	autopattern struct pattern *p = NULL;
	bool takes_back = *text == '!';
	size_t len;

	*out = NULL;
	if (!*text || *text == '#')
		return 0;
	text += takes_back;
	if (check_text(text, err) < 0)
		return -1;
	for (len = strlen(text); len && text[len - 1] == '/';)
		len--;
	if (!len)
		return err_set(err, ERR_USAGE, "names nothing below the source's root");
	/* Up to one component more than slashes, "**" in front and "*" behind. */
	p = calloc(1, sizeof *p + (count_slashes(text) + 3) * sizeof *p->component);
	if (!p || !(p->text = strndup(text, len)))
		return err_nomem(err);
	p->takes_back = takes_back;
	p->directories_only = text[len] == '/';
	if (split(p, strchr(p->text, '/') != NULL, err) < 0)
		return -1;
	find_runs(p);
	*out = steal(&p);
	return 0;
}

/* Names of a tree are bytes, and this program sets no locale: fnmatch takes them so. */
static bool name_matches(const char *pattern, const char *name, size_t len)
{
	char copy[PATH_MAX]; /* the kernel has no longer ones */

	if (len >= sizeof copy)
		return false;
	memcpy(copy, name, len);
	copy[len] = '\0';
	return fnmatch(pattern, copy, 0) == 0;
}

static const char *next_name(const char *at)
{
	at = strchrnul(at, '/');
	return *at ? at + 1 : at;
}

/* Components [i, end) at the names from at on: behind them, or NULL. */
static const char *match_run(const struct pattern *p, size_t i, size_t end, const char *at)
{
	for (; i < end; i++) {
		if (!*at || !name_matches(p->component[i], at, strcspn(at, "/")))
			return NULL;
		at = next_name(at);
	}
	return at;
}

static const char *find_run(const struct pattern *p, size_t i, size_t end, const char *at)
{
	const char *behind = match_run(p, i, end, at);

	while (!behind && *at) {
		at = next_name(at);
		behind = match_run(p, i, end, at);
	}
	return behind;
}

/* Where the last count names of a path begin; NULL when it has less. */
static const char *last_names(const char *path, size_t count)
{
	const char *at = path + strlen(path);

	for (; count && at > path; count--) {
		if (at[-1] == '/')
			at--;
		while (at > path && at[-1] != '/')
			at--;
	}
	return count ? NULL : at;
}

static size_t run_end(const struct pattern *p, size_t i)
{
	while (!str_equal(p->component[i], "**"))
		i++;
	return i;
}

bool pattern_matches(const struct pattern *p, const char *path, bool directory)
{
	const char *at, *tail;
	size_t end;

	if (p->directories_only && !directory)
		return false;
	at = match_run(p, 0, p->first_end, path);
	if (!at || p->first_end == p->count)
		return at && !*at;
	tail = last_names(path, p->count - p->last_start);
	if (!tail || !match_run(p, p->last_start, p->count, tail))
		return false;
	for (size_t i = p->first_end + 1; i < p->last_start; i = end + 1) {
		end = run_end(p, i);
		at = find_run(p, i, end, at);
		if (!at)
			return false;
	}
	return at <= tail;
}
