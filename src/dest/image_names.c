// SPDX-License-Identifier: Apache-2.0
#include "dest/image_service.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/image_json.h"

#include <stdio.h>
#include <string.h>

/* Glance's schema, its defaults for image_property_quota and image_tag_quota, and MySQL's
 * TEXT, in bytes.
 */
#define NAME_MAX_CHARS	255
#define VALUE_MAX_BYTES 65535
#define PROPERTIES_MAX	128
#define TAGS_MAX	128
#define RESERVED_PREFIX "os_glance_"
#define SHOWN_MAX_CHARS 40

/* What an image has besides properties, and what Glance keeps for itself. */
static const char *const members[] = {
	"checksum",	"container_format",
	"created_at",	"deleted",
	"deleted_at",	"direct_url",
	"disk_format",	"file",
	"id",		"location",
	"locations",	"min_disk",
	"min_ram",	"name",
	"os_hash_algo", "os_hash_value",
	"os_hidden",	"owner",
	"protected",	"schema",
	"self",		"size",
	"status",	"stores",
	"tags",		"updated_at",
	"virtual_size", "visibility",
	NULL,
};

bool property_is_member(const char *key)
{
	for (const char *const *member = members; *member; member++)
		if (str_equal(*member, key))
			return true;
	return false;
}

const char *property_value(const char *property)
{
	const char *equals = strchr(property, '=');

	return equals && equals[1] ? equals + 1 : NULL;
}

bool texts_hold(char *const *texts, const char *wanted)
{
	for (; texts && *texts; texts++)
		if (str_equal(*texts, wanted))
			return true;
	return false;
}

bool properties_hold(char *const *properties, char *const *wanted)
{
	for (; wanted && *wanted; wanted++)
		if (property_value(*wanted) && !texts_hold(properties, *wanted))
			return false;
	return true;
}

/* --- texts --- */

/* A text of ours to be checked, and what messages call it. */
struct text {
	const char *kind; /* "name", "tag" */
	const char *at;
	size_t len;
};

/* As much of it as fits in a message. */
static int shown_len(const struct text *t)
{
	size_t at = 0, n;

	for (int chars = 0; at < t->len && chars < SHOWN_MAX_CHARS; chars++, at += n) {
		n = str_utf8_len(t->at + at);
		if (n == 0)
			n = 1;
	}
	return (int)(at < t->len ? at : t->len);
}

static int refuse(const struct text *t, const char *why, struct err *err)
{
	return err_set(err, ERR_REFUSED, "%s \"%.*s%s\": %s", t->kind, shown_len(t), t->at,
		       (size_t)shown_len(t) < t->len ? "..." : "", why);
}

/* Well-formed UTF-8 of at most so many characters; Glance takes none of 4 bytes anywhere,
 * since MySQL's utf8 has none.
 */
static int check_text(const struct text *t, size_t max_chars, struct err *err)
{
	size_t chars = 0, n;
	char why[64];

	for (size_t at = 0; at < t->len; at += n, chars++) {
		n = str_utf8_len(t->at + at);
		if (n == 0)
			return refuse(t, "it is not valid UTF-8", err);
		if (n == 4)
			return refuse(t,
				      "the image service takes no characters of 4 bytes "
				      "(emoji and the like)",
				      err);
	}
	snprintf(why, sizeof why, "it is longer than %zu characters", max_chars);
	return chars > max_chars ? refuse(t, why, err) : 0;
}

static int check_name(const char *kind, const char *name, struct err *err)
{
	struct text t = { kind, name, strlen(name) };

	return check_text(&t, NAME_MAX_CHARS, err);
}

/* --- properties --- */

/* PATCH takes blanks off the ends of a key, so that it would change another property. */
static bool has_blank_ends(const struct text *key)
{
	static const char blanks[] = " \t\n\v\f\r";

	return strchr(blanks, key->at[0]) || strchr(blanks, key->at[key->len - 1]);
}

static int check_key(const struct text *key, struct err *err)
{
	char name[64];

	if (key->len == 0)
		return refuse(key, "it has no name", err);
	if (check_text(key, NAME_MAX_CHARS, err) < 0)
		return -1;
	if (has_blank_ends(key))
		return refuse(key, "its name begins or ends with a blank", err);
	snprintf(name, sizeof name, "%.*s", (int)key->len, key->at);
	if (str_starts(name, RESERVED_PREFIX) ||
	    (key->len < sizeof name && property_is_member(name)))
		return refuse(key, "the image service keeps this name for itself", err);
	return 0;
}

static int check_property(const char *property, struct err *err)
{
	const char *value = property_value(property);
	struct text key = { "property", property, strcspn(property, "=") };
	struct text content = { "value", value, strlen(value) };

	if (check_key(&key, err) < 0)
		return -1;
	if (content.len > VALUE_MAX_BYTES)
		return refuse(&key, "its value is longer than 65535 bytes", err);
	if (check_text(&content, VALUE_MAX_BYTES, err) == 0)
		return 0;
	return err_context(err, "property %.*s", shown_len(&key), key.at);
}

static int check_properties(char *const *properties, struct err *err)
{
	size_t count = 0;

	for (; properties && *properties; properties++) {
		if (!property_value(*properties))
			continue;
		if (check_property(*properties, err) < 0)
			return -1;
		count++;
	}
	if (count <= PROPERTIES_MAX)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%zu properties are more than the %d that an image may have", count,
		       PROPERTIES_MAX);
}

static int check_tags(char *const *tags, struct err *err)
{
	size_t count = 0;

	for (; tags && tags[count]; count++)
		if (check_name("tag", tags[count], err) < 0)
			return -1;
	if (count <= TAGS_MAX)
		return 0;
	return err_set(err, ERR_REFUSED, "%zu tags are more than the %d that an image may have",
		       count, TAGS_MAX);
}

int service_check_names(const char *name, char *const *properties, char *const *tags,
			struct err *err)
{
	if (name && check_name("name", name, err) < 0)
		return -1;
	if (check_properties(properties, err) < 0)
		return -1;
	return check_tags(tags, err);
}
