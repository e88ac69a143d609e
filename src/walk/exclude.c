// SPDX-License-Identifier: Apache-2.0
#include "walk/exclude.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/str.h"
#include "walk/locate.h"
#include "walk/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	FILE_MAX = 16 * 1024 * 1024, /* bytes of a file of patterns */
	READ_MAX = 64 * 1024,
};

#define NO_RULE SIZE_MAX

/* What the image has even when it is excluded: nothing starts without. */
static const char *const needed[] = { "proc", "sys", "dev", "run", "tmp", "var/tmp" };

static const char *const defaults[] = { "proc", "sys", "dev", "run", "tmp" };

/* Beside each struct exclude_use. */
struct rule {
	char *text;
	char *origin;		 /* what a message puts in front: "--exclude", "FILE:12" */
	struct pattern *pattern; /* NULL: it has places */
	bool exists;		 /* of places: there when it was given */
	bool met;		 /* something has its name, whether it left that out or not */
};

/* A path that is left out by name. */
struct place {
	char *path;
	size_t rule;
};

struct excludes {
	struct rule *rules;
	struct exclude_use *uses;
	size_t count, patterns;
	struct place *places; /* sorted by path */
	size_t place_count;
};

CLEANUP_TYPE(struct pattern, pattern, pattern_free)
#define autopattern CLEANUP(pattern_cleanup)

struct excludes *excludes_new(struct err *err)
{
	struct excludes *x = calloc(1, sizeof *x);

	if (!x)
		err_nomem(err);
	return x;
}

void excludes_free(struct excludes *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->count; i++) {
		free(x->rules[i].text);
		free(x->rules[i].origin);
		pattern_free(x->rules[i].pattern);
	}
	for (size_t i = 0; i < x->place_count; i++)
		free(x->places[i].path);
	free(x->rules);
	free(x->uses);
	free(x->places);
	free(x);
}

static int grow(struct excludes *x, struct err *err)
{
	void *rules = reallocarray(x->rules, x->count + 1, sizeof *x->rules), *uses;

	if (!rules)
		return err_nomem(err);
	x->rules = rules;
	uses = reallocarray(x->uses, x->count + 1, sizeof *x->uses);
	if (!uses)
		return err_nomem(err);
	x->uses = uses;
	return 0;
}

/* The last rule from now on; without places or pattern yet. */
static struct rule *add_rule(struct excludes *x, const char *text, const char *origin,
			     struct err *err)
{
	struct rule rule = { .text = strdup(text), .origin = strdup(origin) };

	if (!rule.text || !rule.origin || grow(x, err) < 0) {
		free(rule.text);
		free(rule.origin);
		err_nomem(err);
		return NULL;
	}
	x->rules[x->count] = rule;
	x->uses[x->count] = (struct exclude_use){ .text = rule.text };
	return &x->rules[x->count++];
}

/* The first place whose path is not before this one. */
static size_t places_from(const struct excludes *x, const char *path)
{
	size_t low = 0, high = x->place_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(x->places[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of the last rule. */
static int add_place(struct excludes *x, const char *path, struct err *err)
{
	size_t i = places_from(x, path);
	struct place *grown = reallocarray(x->places, x->place_count + 1, sizeof *grown);
	char *copy = strdup(path);

	if (grown)
		x->places = grown;
	if (!grown || !copy) {
		free(copy);
		return err_nomem(err);
	}
	memmove(grown + i + 1, grown + i, (x->place_count - i) * sizeof *grown);
	grown[i] = (struct place){ copy, x->count - 1 };
	x->place_count++;
	return 0;
}

static bool is_source(const char *path, bool exists)
{
	return path && exists && !*path;
}

static int check_location(const struct location *l, const char *source, const char *text,
			  struct err *err)
{
	if (!l->seen && !l->relative)
		return err_set(err, ERR_USAGE, "--exclude: %s leads out of %s; give a path inside",
			       text, source);
	if (l->seen_exists && l->relative_exists && !str_equal(l->seen, l->relative))
		return err_set(err, ERR_USAGE,
			       "--exclude: %s could mean /%s or /%s, counted from %s, and both "
			       "exist; write that instead, with /..%s in front",
			       text, l->seen, l->relative, source, source);
	if (is_source(l->seen, l->seen_exists) || is_source(l->relative, l->relative_exists))
		return err_set(err, ERR_USAGE,
			       "--exclude: %s is the source itself; name what is inside of it",
			       text[0] ? text : "an empty path");
	return 0;
}

/* What is not there yet may come until the tree is walked: in both readings. */
static int add_location(struct excludes *x, const struct location *l, struct err *err)
{
	bool none = !l->seen_exists && !l->relative_exists;
	bool same = l->seen && l->relative && str_equal(l->seen, l->relative);

	if (l->seen && (l->seen_exists || none) && add_place(x, l->seen, err) < 0)
		return -1;
	if (l->relative && (l->relative_exists || none) && !same)
		return add_place(x, l->relative, err);
	return 0;
}

int excludes_add_path(struct excludes *x, const char *source, const char *text, struct err *err)
{
	autolocation struct location l = { 0 };
	struct rule *rule;

	if (locate(source, text, &l, err) < 0 || check_location(&l, source, text, err) < 0)
		return -1;
	rule = add_rule(x, text, "--exclude", err);
	if (!rule)
		return -1;
	rule->exists = l.seen_exists || l.relative_exists;
	return add_location(x, &l, err);
}

int excludes_add_defaults(struct excludes *x, struct err *err)
{
	for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
		autofree char *text = str_format("/%s", defaults[i]);

		if (!text || !add_rule(x, text, "default", err))
			return err_nomem(err);
		x->uses[x->count - 1].is_default = true;
		if (add_place(x, defaults[i], err) < 0)
			return -1;
	}
	return 0;
}

static int add_pattern(struct excludes *x, const char *text, const char *origin, struct err *err)
{
	autopattern struct pattern *p = NULL;
	struct rule *rule;

	if (pattern_parse(text, &p, err) < 0)
		return err_context(err, "%s: \"%.100s\"", origin, text);
	if (!p)
		return 0;
	rule = add_rule(x, text, origin, err);
	if (!rule)
		return -1;
	rule->pattern = steal(&p);
	x->patterns++;
	return 0;
}

int excludes_add_pattern(struct excludes *x, const char *text, struct err *err)
{
	return add_pattern(x, text, "--exclude-glob", err);
}

/* line: len bytes and a NUL behind. */
static int check_line(const char *line, size_t len, struct err *err)
{
	if (memchr(line, '\0', len))
		return err_set(err, ERR_USAGE, "a NUL byte; patterns are lines of text");
	if (len && line[len - 1] == '\r')
		return err_set(err, ERR_USAGE,
			       "the line ends in a carriage return; convert the file to Unix "
			       "line ends (sed -i 's/\\r$//')");
	if (str_starts(line, "\xef\xbb\xbf"))
		return err_set(err, ERR_USAGE,
			       "a byte order mark in front; save the file without it");
	return 0;
}

static int add_line(struct excludes *x, const char *path, size_t number, const char *line,
		    size_t len, struct err *err)
{
	autofree char *origin = str_format("%s:%zu", path, number);

	if (!origin)
		return err_nomem(err);
	if (check_line(line, len, err) < 0)
		return err_context(err, "%s", origin);
	return add_pattern(x, line, origin, err);
}

/* All there is, at most FILE_MAX + READ_MAX bytes (malloc); NULL with errno. */
static char *read_sequentially(int fd, size_t *len)
{
	autofree char *text = NULL;
	size_t cap = 0;
	ssize_t n = 1;

	for (*len = 0; n > 0 && *len <= FILE_MAX; *len += (size_t)n) {
		if (!array_room(text, cap, *len + READ_MAX + 1))
			return NULL;
		n = read(fd, text + *len, READ_MAX);
		if (n < 0)
			return NULL;
	}
	text[*len] = '\0';
	return steal(&text);
}

/* A pipe will do: a shell's "<(...)" is one. */
static char *read_file(const char *path, size_t *len, struct err *err)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	autofree char *text = fd < 0 ? NULL : read_sequentially(fd, len);
	int saved = errno;

	if (text && *len <= FILE_MAX)
		return steal(&text);
	if (interrupt_check(err) < 0)
		return NULL;
	errno = saved;
	if (text)
		err_set(err, ERR_USAGE, "--exclude-from: %s is longer than %d bytes", path,
			FILE_MAX);
	else
		err_errno(err, ERR_USAGE, "--exclude-from: cannot read %s", path);
	return NULL;
}

int excludes_add_file(struct excludes *x, const char *path, struct err *err)
{
	size_t len, number = 0;
	autofree char *text = read_file(path, &len, err);

	if (!text)
		return -1;
	for (char *line = text, *end; line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		end = end ? end : text + len;
		*end = '\0';
		if (add_line(x, path, ++number, line, (size_t)(end - line), err) < 0)
			return -1;
	}
	return 0;
}

/* By name; of several the user's own counts, whose hits are asked for. */
static size_t rule_of_place(const struct excludes *x, const char *path, bool directory)
{
	size_t found = NO_RULE;

	for (size_t i = places_from(x, path);
	     i < x->place_count && str_equal(x->places[i].path, path); i++) {
		if (!x->uses[x->places[i].rule].is_default)
			return x->places[i].rule;
		if (directory)
			found = x->places[i].rule;
	}
	return found;
}

/* The last pattern that matches, be it to take back. */
static size_t rule_of_pattern(const struct excludes *x, const char *path, bool directory)
{
	for (size_t i = x->patterns ? x->count : 0; i-- > 0;)
		if (x->rules[i].pattern && pattern_matches(x->rules[i].pattern, path, directory))
			return i;
	return NO_RULE;
}

/* Which of two that match leaves out; NO_RULE: it was taken back. */
static size_t rule_that_counts(const struct excludes *x, size_t place, size_t pattern)
{
	if (place != NO_RULE && !x->uses[place].is_default)
		return place;
	if (pattern != NO_RULE && !pattern_takes_back(x->rules[pattern].pattern))
		return pattern;
	return place;
}

/* All rules that name it: none of them hits nothing. */
static void note_met(const struct excludes *x, const char *path, bool directory)
{
	for (size_t i = places_from(x, path);
	     i < x->place_count && str_equal(x->places[i].path, path); i++)
		x->rules[x->places[i].rule].met = true;
	for (size_t i = 0; x->patterns && i < x->count; i++) {
		struct rule *rule = &x->rules[i];

		if (rule->pattern && !rule->met)
			rule->met = pattern_matches(rule->pattern, path, directory);
	}
}

static bool is_needed(const char *path)
{
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (str_equal(needed[i], path))
			return true;
	return false;
}

enum exclude_verdict excludes_match(const struct excludes *x, const char *path, bool directory,
				    size_t *which)
{
	size_t place = rule_of_place(x, path, directory);
	size_t pattern = rule_of_pattern(x, path, directory);

	if (place == NO_RULE && pattern == NO_RULE)
		return EXCLUDE_NO;
	note_met(x, path, directory);
	*which = rule_that_counts(x, place, pattern);
	if (*which == NO_RULE)
		return EXCLUDE_NO;
	return directory && is_needed(path) ? EXCLUDE_CONTENT : EXCLUDE_ALL;
}

void excludes_count(struct excludes *x, size_t which, uint64_t hits, uint64_t bytes)
{
	x->uses[which].hits += hits;
	x->uses[which].bytes += bytes;
}

size_t excludes_uses(const struct excludes *x, const struct exclude_use **uses)
{
	*uses = x->uses;
	return x->count;
}

/* What exists is no slip of the pen, even if nobody came across it: it may lie below
 * what is left out, or on a mount that is skipped.
 */
bool excludes_is_idle(const struct excludes *x, size_t which)
{
	const struct rule *rule = &x->rules[which];

	if (x->uses[which].is_default || x->uses[which].hits || rule->met || rule->exists)
		return false;
	return !rule->pattern || !pattern_takes_back(rule->pattern);
}

int excludes_check_hits(const struct excludes *x, struct err *err)
{
	for (size_t i = 0; i < x->count; i++) {
		const struct rule *rule = &x->rules[i];

		if (!excludes_is_idle(x, i))
			continue;
		if (!rule->pattern)
			return err_set(err, ERR_REFUSED,
				       "--exclude: %s hits nothing; correct it, leave it away, or "
				       "use -f",
				       rule->text);
		return err_set(err, ERR_REFUSED,
			       "%s: \"%s\" hits nothing, unless it lies below what is left "
			       "out already; correct it, leave it away, or use -f",
			       rule->origin, rule->text);
	}
	return 0;
}
