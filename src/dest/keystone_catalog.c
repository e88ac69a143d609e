// SPDX-License-Identifier: Apache-2.0
#include "dest/keystone_inner.h"

#include "base/err.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* Which entries: NULL means whichever. */
struct wish {
	const char *type, *region, *interface;
};

static bool fits(const char *wanted, const char *there)
{
	return !wanted || (there && str_equal(wanted, there));
}

static bool is_wanted(const struct catalog_entry *entry, const struct wish *wish)
{
	return fits(wish->type, entry->type) && fits(wish->region, entry->region) &&
	       fits(wish->interface, entry->interface);
}

static const struct catalog_entry *first_of(const struct token *t, const struct wish *wish)
{
	for (size_t i = 0; i < t->len; i++)
		if (is_wanted(&t->catalog[i], wish))
			return &t->catalog[i];
	return NULL;
}

/* The parts of an entry that a message lists. */
static const char *type_of(const struct catalog_entry *entry)
{
	return entry->type;
}

static const char *region_of(const struct catalog_entry *entry)
{
	return entry->region ? entry->region : "(no name)";
}

static const char *interface_of(const struct catalog_entry *entry)
{
	return entry->interface;
}

struct names {
	char text[256];
};

static bool is_repeated(const struct token *t, size_t at, const struct wish *wish,
			const char *(*part)(const struct catalog_entry *))
{
	for (size_t i = 0; i < at; i++)
		if (is_wanted(&t->catalog[i], wish) &&
		    str_equal(part(&t->catalog[i]), part(&t->catalog[at])))
			return true;
	return false;
}

/* "a, b, c", each once; "none" for nothing. */
static struct names list_of(const struct token *t, const struct wish *wish,
			    const char *(*part)(const struct catalog_entry *))
{
	struct names names = { "" };
	size_t len = 0;

	for (size_t i = 0; i < t->len && len < sizeof names.text; i++)
		if (is_wanted(&t->catalog[i], wish) && !is_repeated(t, i, wish, part))
			len += (size_t)snprintf(names.text + len, sizeof names.text - len, "%s%s",
						len ? ", " : "", part(&t->catalog[i]));
	return len ? names : (struct names){ "none" };
}

/* Which of the three was the wrong one? */
static void explain_miss(const struct token *t, const struct wish *wish, struct err *err)
{
	struct wish type = { .type = wish->type }, region = { wish->type, wish->region, NULL };

	if (t->len == 0)
		err_set(err, ERR_REFUSED,
			"the token has no catalog of services; name a project that has one, "
			"or give the image service's URL (OS_IMAGE_ENDPOINT_OVERRIDE)");
	else if (!first_of(t, &type))
		err_set(err, ERR_REFUSED,
			"the cloud's catalog has no service of type \"%s\"; it has: %s", wish->type,
			list_of(t, &(struct wish){ 0 }, type_of).text);
	else if (!first_of(t, &region))
		err_set(err, ERR_REFUSED,
			"the cloud has no region \"%s\" for the %s service; it has: %s",
			wish->region, wish->type, list_of(t, &type, region_of).text);
	else
		err_set(err, ERR_REFUSED,
			"the %s service has no interface \"%s\" in region \"%s\"; it has: %s",
			wish->type, wish->interface, region_of(first_of(t, &region)),
			list_of(t, &region, interface_of).text);
}

/* Without the name of a region the first one would do for other clients; an image in the
 * wrong one is not found again.
 */
static bool is_in_two_regions(const struct token *t, const struct wish *wish)
{
	const struct catalog_entry *first = first_of(t, wish);

	for (size_t i = 0; i < t->len; i++)
		if (is_wanted(&t->catalog[i], wish) &&
		    !str_equal(region_of(&t->catalog[i]), region_of(first)))
			return true;
	return false;
}

const char *catalog_find(const struct token *t, const char *type, const char *region,
			 const char *interface, struct err *err)
{
	struct wish wish = { type, region, interface ? interface : "public" };
	const struct catalog_entry *entry = first_of(t, &wish);

	if (!entry) {
		explain_miss(t, &wish, err);
		return NULL;
	}
	if (is_in_two_regions(t, &wish)) {
		err_set(err, ERR_REFUSED,
			"the %s service is in several regions: %s; name one (OS_REGION_NAME, or "
			"region_name in clouds.yaml)",
			type, list_of(t, &wish, region_of).text);
		return NULL;
	}
	return entry->url;
}
