// SPDX-License-Identifier: Apache-2.0
#include "dest/provenance.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"

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

struct list {
	char **at; /* room for PROVENANCE_MEMBERS_MAX, and a NULL */
	size_t len, omitted;
};

static void list_free(struct list *list)
{
	for (size_t i = 0; i < list->len; i++)
		free(list->at[i]);
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

static int add(struct list *list, const char *key, const char *value, struct err *err)
{
	if (list->len == PROVENANCE_MEMBERS_MAX || !is_proper_key(key) ||
	    strlen(value) > PROVENANCE_VALUE_MAX) {
		list->omitted++;
		return 0;
	}
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
	if (list.omitted)
		log_warn("%zu members of /opt/chameleon/provenance.json are no properties: more "
			 "than %d, names above %d bytes or of odd characters, values above "
			 "%d bytes",
			 list.omitted, PROVENANCE_MEMBERS_MAX, PROVENANCE_KEY_MAX,
			 PROVENANCE_VALUE_MAX);
	list.len = 0;
	return steal(&list.at);
}
