// SPDX-License-Identifier: Apache-2.0
#include "dest/image_json.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "dest/image_service.h"

#include <jansson.h>
#include <string.h>

/* --- out: what is asked for is valid UTF-8 (service_check_names), so that every failure
 * is one for lack of memory; of several, one is enough to know.
 */

static char *dump(const json_t *json, struct err *err)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	if (!text)
		err_nomem(err);
	return text;
}

static int set_text(json_t *object, const char *key, const char *text)
{
	return text ? json_object_set_new(object, key, json_string(text)) : 0;
}

/* "KEY=VALUE" */
static int set_property(json_t *object, const char *property)
{
	const char *value = property_value(property);
	autofree char *key = strndup(property, strcspn(property, "="));

	return key ? set_text(object, key, value) : -1;
}

static json_t *texts_value(char *const *texts)
{
	json_auto_t *array = json_array();

	for (; texts && *texts; texts++)
		if (json_array_append_new(array, json_string(*texts)) < 0)
			return NULL;
	return steal(&array);
}

char *image_to_json(const struct service_image *wanted, struct err *err)
{
	json_auto_t *object = json_object();
	int rc = 0;

	for (char *const *p = wanted->properties; p && *p; p++)
		rc |= set_property(object, *p);
	rc |= set_text(object, "id", wanted->id);
	rc |= set_text(object, "name", wanted->name);
	rc |= set_text(object, "disk_format", wanted->disk_format);
	rc |= set_text(object, "container_format", wanted->container_format);
	rc |= set_text(object, "visibility", wanted->visibility);
	if (wanted->min_disk)
		rc |= json_object_set_new(object, "min_disk", json_integer(wanted->min_disk));
	if (wanted->is_protected)
		rc |= json_object_set_new(object, "protected", json_true());
	if (wanted->tags && *wanted->tags)
		rc |= json_object_set_new(object, "tags", texts_value(wanted->tags));
	return dump(rc < 0 ? NULL : object, err);
}

/* "/KEY" as a JSON pointer (RFC 6901): ~ is ~0, a slash is ~1. */
static char *pointer_to(const char *key, size_t len)
{
	char *pointer = malloc(2 * len + 2), *out = pointer;

	if (!pointer)
		return NULL;
	*out++ = '/';
	for (; len > 0; len--, key++) {
		*out++ = *key == '~' || *key == '/' ? '~' : *key;
		if (*key == '~' || *key == '/')
			*out++ = *key == '~' ? '0' : '1';
	}
	*out = '\0';
	return pointer;
}

/* "add" also replaces what is there. */
static json_t *change(const char *property, const char *value)
{
	autofree char *pointer = pointer_to(property, strcspn(property, "="));

	return pointer ? json_pack("{s:s, s:s, s:s}", "op", "add", "path", pointer, "value", value)
		       : NULL;
}

char *image_properties_patch(char *const *properties, size_t *count, struct err *err)
{
	json_auto_t *patch = json_array();

	for (; properties && *properties; properties++) {
		const char *value = property_value(*properties);

		if (value && json_array_append_new(patch, change(*properties, value)) < 0)
			return dump(NULL, err);
	}
	*count = json_array_size(patch);
	return dump(patch, err);
}

/* --- in --- */

static int malformed(const char *key, struct err *err)
{
	return err_set(err, ERR_FAILED, "the image service's answer is not as it should be: \"%s\"",
		       key);
}

/* NULL for what is no text, and for one that holds a NUL. */
static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int copy_to(char **out, const char *text, struct err *err)
{
	*out = strdup(text);
	return *out ? 0 : err_nomem(err);
}

/* null and missing are fine. */
static int get_optional(const json_t *image, const char *key, char **out, struct err *err)
{
	const json_t *value = json_object_get(image, key);

	if (value && !json_is_null(value) && !json_is_string(value))
		return malformed(key, err);
	return text_of(value) ? copy_to(out, text_of(value), err) : 0;
}

static int get_text(const json_t *image, const char *key, bool (*is_right)(const char *),
		    char **out, struct err *err)
{
	const char *text = text_of(json_object_get(image, key));

	if (!text || !is_right(text))
		return malformed(key, err);
	return copy_to(out, text, err);
}

static bool is_id(const char *text)
{
	uint8_t uuid[16];

	return uuid_parse(text, uuid);
}

static bool is_word(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

/* Each 9 stands for a digit; a fraction may follow, and a Z. */
static bool is_time(const char *text)
{
	for (const char *p = "9999-99-99T99:99:99"; *p; p++, text++)
		if (*p == '9' ? *text < '0' || *text > '9' : *text != *p)
			return false;
	if (*text == '.')
		text += 1 + strspn(text + 1, "0123456789");
	return str_equal(text, "Z");
}

static int get_size(const json_t *image, const char *key, bool *has, uint64_t *out, struct err *err)
{
	const json_t *value = json_object_get(image, key);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return malformed(key, err);
	*has = true;
	*out = (uint64_t)json_integer_value(value);
	return 0;
}

static int get_protected(const json_t *image, bool *out, struct err *err)
{
	const json_t *value = json_object_get(image, "protected");

	if (value && !json_is_boolean(value))
		return malformed("protected", err);
	*out = json_is_true(value);
	return 0;
}

static int get_tags(const json_t *image, char ***out, struct err *err)
{
	const json_t *tags = json_object_get(image, "tags");
	size_t at = 0;

	if (tags && !json_is_array(tags))
		return malformed("tags", err);
	*out = calloc(json_array_size(tags) + 1, sizeof **out);
	if (!*out)
		return err_nomem(err);
	for (size_t i = 0; i < json_array_size(tags); i++) {
		const json_t *tag = json_array_get(tags, i);

		if (!json_is_string(tag))
			return malformed("tags", err);
		if (text_of(tag) && copy_to(&(*out)[at++], text_of(tag), err) < 0)
			return -1;
	}
	return 0;
}

/* With an = in its key it could not be told from another one with an = in its value. */
static bool is_property(const char *key, const json_t *value)
{
	return text_of(value) && *key && !strchr(key, '=') && !property_is_member(key);
}

static int get_properties(json_t *image, char ***out, struct err *err)
{
	const char *key;
	json_t *value;
	size_t at = 0;

	*out = calloc(json_object_size(image) + 1, sizeof **out);
	if (!*out)
		return err_nomem(err);
	json_object_foreach(image, key, value)
	{
		if (!is_property(key, value))
			continue;
		(*out)[at] = str_format("%s=%s", key, text_of(value));
		if (!(*out)[at++])
			return err_nomem(err);
	}
	return 0;
}

static int get_texts(const json_t *image, struct service_image *out, struct err *err)
{
	if (get_text(image, "id", is_id, &out->id, err) < 0 ||
	    get_text(image, "status", is_word, &out->status, err) < 0 ||
	    get_text(image, "created_at", is_time, &out->created_at, err) < 0)
		return -1;
	if (get_optional(image, "name", &out->name, err) < 0 ||
	    get_optional(image, "disk_format", &out->disk_format, err) < 0 ||
	    get_optional(image, "owner", &out->owner, err) < 0)
		return -1;
	if (get_optional(image, "checksum", &out->checksum, err) < 0 ||
	    get_optional(image, "os_hash_algo", &out->hash_algo, err) < 0 ||
	    get_optional(image, "os_hash_value", &out->hash_value, err) < 0)
		return -1;
	return 0;
}

static int get_image(json_t *image, struct service_image *out, struct err *err)
{
	bool has_virtual_size;

	if (!json_is_object(image))
		return malformed("image", err);
	if (get_texts(image, out, err) < 0)
		return -1;
	if (get_size(image, "size", &out->has_size, &out->size, err) < 0 ||
	    get_size(image, "virtual_size", &has_virtual_size, &out->virtual_size, err) < 0 ||
	    get_protected(image, &out->is_protected, err) < 0)
		return -1;
	if (get_tags(image, &out->tags, err) < 0)
		return -1;
	return get_properties(image, &out->properties, err);
}

static json_t *load(const char *text, size_t size, struct err *err)
{
	json_error_t why;
	json_t *json = json_loadb(text, size, JSON_ALLOW_NUL, &why);

	if (!json)
		err_set(err, ERR_FAILED, "the image service's answer is no JSON: line %d: %s",
			why.line, why.text);
	return json;
}

int image_from_json(const char *text, size_t size, struct service_image *out, struct err *err)
{
	json_auto_t *image = load(text, size, err);

	*out = (struct service_image){ 0 };
	if (!image)
		return -1;
	if (get_image(image, out, err) == 0)
		return 0;
	service_image_free(out);
	return -1;
}

static int add_image(json_t *image, struct service_images *out, struct err *err)
{
	struct service_image *at;

	if (!array_room(out->at, out->cap, out->len + 1))
		return err_nomem(err);
	at = &out->at[out->len++];
	*at = (struct service_image){ 0 };
	return get_image(image, at, err);
}

/* Of "/v2/images?marker=...", which may have any host or path in front, only what follows
 * the question mark counts: the rest we know.
 */
static int get_next(const json_t *page, char **out, struct err *err)
{
	const json_t *value = json_object_get(page, "next");
	const char *query = text_of(value) ? strchr(text_of(value), '?') : NULL;

	*out = NULL;
	if (!value || json_is_null(value))
		return 0;
	if (!query || !query[1])
		return malformed("next", err);
	for (const char *p = query; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '#')
			return malformed("next", err);
	return copy_to(out, query + 1, err);
}

int images_from_json(const char *text, size_t size, struct service_images *out, char **next,
		     struct err *err)
{
	json_auto_t *page = load(text, size, err);
	json_t *images = json_object_get(page, "images");

	*next = NULL;
	if (!page)
		return -1;
	if (!json_is_array(images))
		return malformed("images", err);
	for (size_t i = 0; i < json_array_size(images); i++)
		if (add_image(json_array_get(images, i), out, err) < 0)
			return -1;
	return get_next(page, next, err);
}
