// SPDX-License-Identifier: Apache-2.0
#include "dest/manifest.h"

#include "base/err.h"
#include "base/str.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA "ccsnap.manifest/1"

static void json_cleanup(json_t **json)
{
	json_decref(*json);
}
#define autojson CLEANUP(json_cleanup)

/* --- out --- */

/* Any bytes, by the one rule for names, or null for none; NULL when out of memory. */
static json_t *text_value(const char *text)
{
	autofree char *utf8 = text ? str_to_utf8(text) : NULL;

	if (!text)
		return json_null();
	return utf8 ? json_string(utf8) : NULL;
}

static json_t *properties_value(char *const *properties)
{
	autojson json_t *object = json_object();

	for (; properties && *properties; properties++) {
		autofree char *pair = str_to_utf8(*properties);
		char *value = pair ? strchr(pair, '=') : NULL;

		if (!pair)
			return NULL;
		if (value)
			*value++ = '\0';
		if (json_object_set_new(object, pair, json_string(value ? value : "")) < 0)
			return NULL;
	}
	return steal(&object);
}

static json_t *checkpoints_value(const struct checkpoints *c)
{
	autojson json_t *object = json_object(), *prefixes = json_array();

	for (size_t i = 0; i < c->count; i++)
		if (json_array_append_new(prefixes, json_string(c->prefix[i])) < 0)
			return NULL;
	if (json_object_set_new(object, "step_bytes", json_integer((json_int_t)c->step)) < 0 ||
	    json_object_set(object, "sha256_prefixes", prefixes) < 0)
		return NULL;
	return steal(&object);
}

/* Of several failures (all for lack of memory) one is enough to know. */
static json_t *manifest_object(const struct image_info *info)
{
	autojson json_t *m = json_object();
	int rc = 0;

	rc |= json_object_set_new(m, "schema", json_string(SCHEMA));
	rc |= json_object_set_new(m, "id", text_value(info->id));
	rc |= json_object_set_new(m, "name", text_value(info->name));
	rc |= json_object_set_new(m, "file", text_value(info->file));
	rc |= json_object_set_new(m, "format", text_value(info->format));
	rc |= json_object_set_new(m, "compression", text_value(info->compression));
	rc |= json_object_set_new(m, "created_at", text_value(info->created_at));
	rc |= json_object_set_new(m, "size_bytes", json_integer((json_int_t)info->size));
	rc |= json_object_set_new(m, "virtual_size_bytes",
				  json_integer((json_int_t)info->virtual_size));
	rc |= json_object_set_new(m, "sha256", text_value(info->digests.sha256));
	rc |= json_object_set_new(m, "sha512", text_value(info->digests.sha512));
	rc |= json_object_set_new(m, "checkpoints", checkpoints_value(&info->digests.checkpoints));
	rc |= json_object_set_new(m, "properties", properties_value(info->properties));
	return rc < 0 ? NULL : steal(&m);
}

static char *dump(const json_t *json, enum manifest_layout layout, struct err *err)
{
	size_t flags = layout == MANIFEST_ONE_LINE ? JSON_COMPACT : JSON_INDENT(2);
	autofree char *text = json ? json_dumps(json, flags) : NULL;
	char *line = text ? str_format("%s\n", text) : NULL;

	if (!line)
		err_nomem(err);
	return line;
}

char *manifest_to_json(const struct image_info *info, struct err *err)
{
	autojson json_t *object = manifest_object(info);
	autofree char *text = dump(object, MANIFEST_INDENTED, err);

	if (text && strlen(text) > MANIFEST_MAX) {
		err_set(err, ERR_FAILED,
			"the manifest would be longer than %zu bytes; "
			"give fewer or shorter properties",
			MANIFEST_MAX);
		return NULL;
	}
	return steal(&text);
}

static json_t *tags_value(char *const *tags)
{
	autojson json_t *array = json_array();

	for (; *tags; tags++)
		if (json_array_append_new(array, text_value(*tags)) < 0)
			return NULL;
	return steal(&array);
}

/* What a service does not tell is null. */
static int forget_unknown(json_t *m, const struct image_info *info)
{
	int rc = 0;

	if (info->size == 0)
		rc |= json_object_set_new(m, "size_bytes", json_null());
	if (info->virtual_size == 0)
		rc |= json_object_set_new(m, "virtual_size_bytes", json_null());
	if (!*info->digests.sha256)
		rc |= json_object_set_new(m, "sha256", json_null());
	if (!*info->digests.sha512)
		rc |= json_object_set_new(m, "sha512", json_null());
	return rc;
}

/* What only a service tells. */
static int add_service(json_t *m, const struct image_info *info)
{
	int rc = 0;

	if (info->status) {
		rc |= json_object_set_new(m, "status", text_value(info->status));
		rc |= json_object_set_new(m, "protected", json_boolean(info->is_protected));
	}
	if (info->tags)
		rc |= json_object_set_new(m, "tags", tags_value(info->tags));
	if (info->hash_algo)
		rc |= json_object_set_new(m, "hash_algo", text_value(info->hash_algo));
	if (info->hash_value)
		rc |= json_object_set_new(m, "hash_value", text_value(info->hash_value));
	return rc;
}

/* For people and scripts, not for a store. */
static json_t *listed_object(const struct image_info *info)
{
	autojson json_t *m = manifest_object(info);

	if (!m || json_object_del(m, "checkpoints") < 0 || forget_unknown(m, info) < 0 ||
	    add_service(m, info) < 0)
		return NULL;
	return steal(&m);
}

char *manifest_list_to_json(const struct image_list *list, struct err *err)
{
	autojson json_t *array = json_array();

	for (size_t i = 0; i < list->len; i++) {
		if (json_array_append_new(array, listed_object(&list->at[i])) < 0) {
			err_nomem(err);
			return NULL;
		}
	}
	return dump(array, MANIFEST_INDENTED, err);
}

char *manifest_fetched_to_json(const struct image_info *info, const char *path,
			       const char *verified_by, enum manifest_layout layout,
			       struct err *err)
{
	autojson json_t *m = listed_object(info);

	if (m && (json_object_set_new(m, "path", text_value(path)) < 0 ||
		  json_object_set_new(m, "verified_by", text_value(verified_by)) < 0)) {
		err_nomem(err);
		return NULL;
	}
	return dump(m, layout, err);
}

/* --- in --- */

/* Each pattern char stands for one of the text: x a lower-case hex digit, 9 a
 * digit, all else itself.
 */
static bool matches(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++) {
		if (*pattern == 'x'   ? !*text || !strchr("0123456789abcdef", *text)
		    : *pattern == '9' ? *text < '0' || *text > '9'
				      : *text != *pattern)
			return false;
	}
	return !*text;
}

static bool is_id(const char *text)
{
	return matches(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

static bool is_time(const char *text)
{
	return matches(text, "9999-99-99T99:99:99Z");
}

static bool is_hex(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789abcdef") == len;
}

static bool is_sha256(const char *text)
{
	return is_hex(text, 64);
}

static bool is_sha512(const char *text)
{
	return is_hex(text, 128);
}

/* Of a format or a compression: one we may not know yet, but a word. */
static bool is_word(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len > 0 && len <= 32 && !text[len];
}

static bool is_file_name(const char *text)
{
	return *text && !strchr(text, '/') && !str_equal(text, ".") && !str_equal(text, "..");
}

static bool is_schema(const char *text)
{
	return str_equal(text, SCHEMA);
}

/* Borrowed from the object; NULL with err. */
static const char *get_text(const json_t *m, const char *key, bool (*is_right)(const char *),
			    struct err *err)
{
	const char *text = json_string_value(json_object_get(m, key));

	if (text && is_right(text))
		return text;
	err_set(err, ERR_FAILED, "\"%s\" is missing or not as it should be", key);
	return NULL;
}

static int copy_text(const json_t *m, const char *key, bool (*is_right)(const char *), char **out,
		     struct err *err)
{
	const char *text = get_text(m, key, is_right, err);

	if (!text)
		return -1;
	*out = strdup(text);
	return *out ? 0 : err_nomem(err);
}

static int get_size(const json_t *m, const char *key, uint64_t *out, struct err *err)
{
	const json_t *value = json_object_get(m, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return err_set(err, ERR_FAILED, "\"%s\" is missing or not a size", key);
	*out = (uint64_t)json_integer_value(value);
	return 0;
}

static int get_digests(const json_t *m, struct digests *out, struct err *err)
{
	const char *sha256 = get_text(m, "sha256", is_sha256, err);
	const char *sha512 = sha256 ? get_text(m, "sha512", is_sha512, err) : NULL;

	if (!sha512)
		return -1;
	strcpy(out->sha256, sha256);
	strcpy(out->sha512, sha512);
	return 0;
}

static bool is_checkpoint(const char *text)
{
	return is_hex(text, CHECKPOINT_DIGITS);
}

static int get_checkpoints(const json_t *m, struct checkpoints *out, struct err *err)
{
	const json_t *object = json_object_get(m, "checkpoints");
	const json_t *prefixes = json_object_get(object, "sha256_prefixes");

	if (!json_is_array(prefixes) || json_array_size(prefixes) > CHECKPOINTS_MAX)
		return err_set(err, ERR_FAILED, "\"checkpoints\" is missing or too long");
	if (get_size(object, "step_bytes", &out->step, err) < 0)
		return -1;
	if (out->step == 0)
		return err_set(err, ERR_FAILED, "\"step_bytes\" is 0");
	for (; out->count < json_array_size(prefixes); out->count++) {
		const char *text = json_string_value(json_array_get(prefixes, out->count));

		if (!text || !is_checkpoint(text))
			return err_set(err, ERR_FAILED, "\"sha256_prefixes\" holds no digest");
		strcpy(out->prefix[out->count], text);
	}
	return 0;
}

static int get_properties(json_t *m, char ***out, struct err *err)
{
	json_t *object = json_object_get(m, "properties"), *value;
	const char *key;
	size_t at = 0;

	if (!json_is_object(object))
		return err_set(err, ERR_FAILED, "\"properties\" is missing or not an object");
	*out = calloc(json_object_size(object) + 1, sizeof **out);
	if (!*out)
		return err_nomem(err);
	json_object_foreach(object, key, value)
	{
		if (!json_is_string(value) || !*key || strchr(key, '='))
			return err_set(err, ERR_FAILED, "\"properties\" holds more than texts");
		(*out)[at] = str_format("%s=%s", key, json_string_value(value));
		if (!(*out)[at++])
			return err_nomem(err);
	}
	return 0;
}

static int get_info(json_t *m, struct image_info *out, struct err *err)
{
	if (!json_is_object(m))
		return err_set(err, ERR_FAILED, "it is not a JSON object");
	if (!get_text(m, "schema", is_schema, err))
		return -1;
	if (copy_text(m, "id", is_id, &out->id, err) < 0 ||
	    copy_text(m, "name", is_file_name, &out->name, err) < 0 ||
	    copy_text(m, "file", is_file_name, &out->file, err) < 0 ||
	    copy_text(m, "format", is_word, &out->format, err) < 0 ||
	    copy_text(m, "compression", is_word, &out->compression, err) < 0 ||
	    copy_text(m, "created_at", is_time, &out->created_at, err) < 0)
		return -1;
	if (get_size(m, "size_bytes", &out->size, err) < 0 ||
	    get_size(m, "virtual_size_bytes", &out->virtual_size, err) < 0)
		return -1;
	if (get_digests(m, &out->digests, err) < 0 ||
	    get_checkpoints(m, &out->digests.checkpoints, err) < 0)
		return -1;
	return get_properties(m, &out->properties, err);
}

static int parse(const char *text, size_t len, struct image_info *out, struct err *err)
{
	json_error_t why;
	autojson json_t *m = NULL;

	if (len > MANIFEST_MAX)
		return err_set(err, ERR_FAILED, "it is longer than %zu bytes", MANIFEST_MAX);
	m = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!m)
		return err_set(err, ERR_FAILED, "line %d: %s", why.line, why.text);
	return get_info(m, out, err);
}

int manifest_from_json(const char *text, size_t len, const char *source, struct image_info *out,
		       struct err *err)
{
	memset(out, 0, sizeof *out);
	if (parse(text, len, out, err) == 0)
		return 0;
	image_info_free(out);
	return err_context(err, "%s is not a manifest of ours", source);
}
