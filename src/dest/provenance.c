// SPDX-License-Identifier: Apache-2.0
#include "dest/provenance.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"

#include <assert.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#define PREFIX "provenance-"

/* Of a real number: as many digits as always come back the same. */
#define DUMP_FLAGS (JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15))

static void json_cleanup(json_t **json)
{
	json_decref(*json);
}
#define autojson CLEANUP(json_cleanup)

/* Why a member becomes no property. */
enum reason { ODD_NAME, LONG_VALUE, TOO_MANY, REASONS };

struct list {
	char **at; /* room for PROVENANCE_MEMBERS_MAX, and a NULL */
	size_t len;
	struct {
		size_t count;
		char *first; /* key */
	} left_out[REASONS];
};

static void list_free(struct list *list)
{
	for (size_t i = 0; i < list->len; i++)
		free(list->at[i]);
	for (size_t i = 0; i < REASONS; i++)
		free(list->left_out[i].first);
	free(list->at);
}
#define autolist CLEANUP(list_free)

/* One that no destination refuses: image services take no characters of 4 bytes, and no
 * blank at the end.
 */
static bool is_proper_key(const char *key)
{
	size_t len = strlen(key), n;

	if (len == 0 || strlen(PREFIX) + len > PROVENANCE_KEY_MAX || key[len - 1] == ' ')
		return false;
	for (; *key; key += n) {
		n = str_utf8_len(key);
		if (n == 0 || n == 4 || *key == '=' || str_is_control(key))
			return false;
	}
	return true;
}

/* NULL when out of memory. */
static char *text_of(const json_t *value)
{
	if (json_is_null(value))
		return strdup("");
	return json_is_string(value) ? strdup(json_string_value(value))
				     : json_dumps(value, DUMP_FLAGS);
}

static int leave_out(struct list *list, enum reason reason, const char *key, struct err *err)
{
	if (list->left_out[reason].count++ == 0)
		list->left_out[reason].first = strdup(key);
	return list->left_out[reason].first ? 0 : err_nomem(err);
}

static void tell_left_out(const struct list *list)
{
	static const char *const why[REASONS] = {
		[ODD_NAME] = "the name is empty, longer than 255 bytes with \"" PREFIX
			     "\" in front, or has characters that not every image service takes",
		[LONG_VALUE] = "the value is longer than 4096 bytes",
		[TOO_MANY] = "64 are the most",
	};

	for (size_t i = 0; i < REASONS; i++)
		if (list->left_out[i].count)
			log_warn(
				"/opt/chameleon/provenance.json: the image does not get %zu of its "
				"entries, \"%.60s\" the first: %s",
				list->left_out[i].count, list->left_out[i].first, why[i]);
}

static_assert(PROVENANCE_KEY_MAX == 255 && PROVENANCE_VALUE_MAX == 4096 &&
		      PROVENANCE_MEMBERS_MAX == 64,
	      "the texts above tell these numbers");

static int add(struct list *list, const char *key, const char *value, struct err *err)
{
	if (!is_proper_key(key))
		return leave_out(list, ODD_NAME, key, err);
	if (strlen(value) > PROVENANCE_VALUE_MAX)
		return leave_out(list, LONG_VALUE, key, err);
	if (list->len == PROVENANCE_MEMBERS_MAX)
		return leave_out(list, TOO_MANY, key, err);
	list->at[list->len] = str_format(PREFIX "%s=%s", key, value);
	if (!list->at[list->len])
		return err_nomem(err);
	list->len++;
	return 0;
}

static int add_member(struct list *list, const char *key, const json_t *value, struct err *err)
{
	autofree char *text = NULL;

	if (str_starts(key, "chameleon-supported"))
		return 0;
	text = text_of(value);
	if (!text)
		return err_nomem(err);
	return *text ? add(list, key, text, err) : 0;
}

static json_t *parse(const char *json, size_t len, struct err *err)
{
	autojson json_t *object = NULL;
	json_error_t why;

	if (len > PROVENANCE_MAX) {
		err_set(err, ERR_FAILED, "it is larger than %s", size_format(PROVENANCE_MAX).text);
		return NULL;
	}
	object = json_loadb(json, len, 0, &why);
	if (!object)
		err_set(err, ERR_FAILED, "line %d: %s", why.line, why.text);
	else if (!json_is_object(object))
		err_set(err, ERR_FAILED, "line 1: it is no JSON object");
	return json_is_object(object) ? steal(&object) : NULL;
}

char **provenance_properties(const char *json, size_t len, struct err *err)
{
	autojson json_t *object = parse(json, len, err);
	struct list autolist list = { 0 };
	const char *key;
	json_t *value;

	if (!object)
		return NULL;
	list.at = calloc(PROVENANCE_MEMBERS_MAX + 1, sizeof *list.at);
	if (!list.at) {
		err_nomem(err);
		return NULL;
	}
	json_object_foreach(object, key, value)
	{
		if (add_member(&list, key, value, err) < 0)
			return NULL;
	}
	tell_left_out(&list);
	list.len = 0;
	return steal(&list.at);
}
