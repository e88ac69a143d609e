// SPDX-License-Identifier: Apache-2.0
#include "option_table.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/dest.h"
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void option_accepted(const struct option_def *def, char *text, size_t cap)
{
	size_t len = 0;

	if (def->describe) {
		def->describe(text, cap);
	} else if (def->accepted) {
		snprintf(text, cap, "%s", def->accepted);
	} else if (def->choice) {
		for (size_t i = 0; def->choice(i) && len < cap; i++)
			len += (size_t)snprintf(text + len, cap - len, "%s%s", i ? ", " : "",
						def->choice(i));
	} else if (def->type == OPTION_FLAG) {
		snprintf(text, cap, "yes, no, true, false, 1, 0");
	} else {
		snprintf(text, cap, "a whole number from %llu to %llu",
			 (unsigned long long)def->min, (unsigned long long)def->max);
	}
}

int option_shown_length(const char *value)
{
	enum { MOST = 80 };
	size_t len = strnlen(value, MOST + 1), begin = len;

	if (len <= MOST)
		return (int)len;
	for (len = begin = MOST; begin > MOST - 4 && ((unsigned char)value[begin] & 0xc0) == 0x80;)
		begin--;
	return (int)(str_utf8_len(value + begin) > len - begin ? begin : len);
}

int option_refuse(const char *shown, const char *value, const char *accepted, struct err *err)
{
	autofree char *fit = dest_for_messages(value); /* it may be a URL with a password */
	int most = option_shown_length(fit ? fit : "");

	if (*value == '\0')
		return err_set(err, ERR_USAGE, "%s: the value is empty; accepted: %s", shown,
			       accepted);
	return err_set(err, ERR_USAGE, "%s: '%.*s%s' is not accepted; accepted: %s", shown, most,
		       fit ? fit : "", strlen(fit ? fit : "") > (size_t)most ? "..." : "",
		       accepted);
}

static int refuse(const struct option_def *def, const char *shown, const char *value,
		  struct err *err)
{
	char accepted[256];

	option_accepted(def, accepted, sizeof accepted);
	return option_refuse(shown, value, accepted, err);
}

static bool is_choice(const struct option_def *def, const char *value)
{
	if (!def->choice)
		return true;
	for (size_t i = 0; def->choice(i); i++)
		if (str_equal(def->choice(i), value))
			return true;
	return false;
}

/* Digits only: no sign, no blank, no base, no overflow. */
static int parse_number(const char *text, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno || *end ? -1 : 0;
}

static int parse_integer(const char *text, int *number)
{
	bool negative = *text == '-';
	uint64_t n;

	if (parse_number(text + (negative || *text == '+'), &n) < 0 || n >= -OPTION_UNSET)
		return -1;
	*number = negative ? -(int)n : (int)n;
	return 0;
}

static int parse_bool(const char *text, bool *yes)
{
	static const char *const words[] = { "no", "yes", "false", "true", "0", "1" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (str_equal(text, words[i])) {
			*yes = i % 2;
			return 0;
		}
	}
	return -1;
}

/* A count is yes, no, or how often. */
static int store_count(uint64_t *field, const struct option_def *def, const char *value)
{
	uint64_t n;
	bool yes;

	if (!value) {
		*field += *field < def->max;
		return 0;
	}
	if (parse_number(value, &n) == 0) {
		if (n > def->max)
			return -1;
	} else if (parse_bool(value, &yes) == 0) {
		n = yes;
	} else {
		return -1;
	}
	*field = n;
	return 0;
}

static int store_text(char **field, const char *value, struct err *err)
{
	char *copy = strdup(value);

	if (!copy)
		return err_nomem(err);
	free(*field);
	*field = copy;
	return 0;
}

static int append(char ***list, const char *value, struct err *err)
{
	autofree char *copy = strdup(value);
	size_t n = 0;
	char **grown;

	while (*list && (*list)[n])
		n++;
	grown = copy ? reallocarray(*list, n + 2, sizeof *grown) : NULL;
	if (!grown)
		return err_nomem(err);
	*list = grown;
	grown[n] = steal(&copy);
	grown[n + 1] = NULL;
	return 0;
}

static bool in_range(const struct option_def *def, uint64_t n)
{
	return def->max == 0 || (n >= def->min && n <= def->max);
}

int option_store(struct options *opt, const struct option_def *def, const char *shown,
		 const char *value, struct err *err)
{
	void *field = (char *)opt + def->offset;
	bool good = true;
	uint64_t n = 0;

	if (value &&
	    (*value == '\0' || !is_choice(def, value) || (def->check && !def->check(value))))
		return refuse(def, shown, value, err);
	switch (def->type) {
	case OPTION_TEXT:
	case OPTION_CHOICE:
		return store_text(field, value, err);
	case OPTION_LIST:
		return append(field, value, err);
	case OPTION_FLAG:
		if (value)
			good = parse_bool(value, field) == 0;
		else
			*(bool *)field = true;
		break;
	case OPTION_COUNT:
		good = store_count(field, def, value) == 0;
		break;
	case OPTION_INTEGER:
		good = parse_integer(value, field) == 0;
		break;
	case OPTION_NUMBER:
	case OPTION_SIZE:
		good = (def->type == OPTION_SIZE ? size_parse : parse_number)(value, &n) == 0 &&
		       in_range(def, n);
		if (good)
			*(uint64_t *)field = n;
		break;
	}
	return good ? 0 : refuse(def, shown, value, err);
}

void option_reset(struct options *opt, const struct option_def *def)
{
	void *field = (char *)opt + def->offset;

	switch (def->type) {
	case OPTION_FLAG:
		*(bool *)field = false;
		break;
	case OPTION_TEXT:
	case OPTION_CHOICE:
		free(*(char **)field);
		*(char **)field = NULL;
		break;
	case OPTION_LIST:
		str_list_free(*(char ***)field);
		*(char ***)field = NULL;
		break;
	case OPTION_INTEGER:
		*(int *)field = OPTION_UNSET;
		break;
	case OPTION_COUNT:
	case OPTION_NUMBER:
	case OPTION_SIZE:
		*(uint64_t *)field = def->initial;
		break;
	}
}
