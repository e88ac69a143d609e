// SPDX-License-Identifier: Apache-2.0
#include "dest/image_service.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/endpoint.h"
#include "dest/image_inner.h"
#include "dest/image_json.h"
#include "dest/url.h"

#include <string.h>

/* A list that does not end is no list: 200 images a page, some kilobytes each.  In memory
 * it may take 70 times its size.
 */
#define PAGES_MAX 1000
#define BYTES_MAX (UINT64_C(64) << 20)

void service_images_free(struct service_images *list)
{
	for (size_t i = 0; i < list->len; i++)
		service_image_free(&list->at[i]);
	free(list->at);
	*list = (struct service_images){ 0 };
}

/* --- what is wanted: asked of the service, and looked at once more here, since a database
 * may take letters of either case, or blanks at the end, for the same
 */

static bool is_same(const char *wanted, const char *there)
{
	return !wanted || (there && str_equal(wanted, there));
}

static bool matches(const struct service_image *image, const struct service_filter *filter)
{
	return is_same(filter->name, image->name) && is_same(filter->owner, image->owner) &&
	       (!filter->tag || texts_hold(image->tags, filter->tag)) &&
	       properties_hold(image->properties, filter->properties);
}

static void drop_others(struct service_images *list, size_t from,
			const struct service_filter *filter)
{
	size_t kept = from;

	for (size_t i = from; i < list->len; i++)
		if (matches(&list->at[i], filter))
			list->at[kept++] = list->at[i];
		else
			service_image_free(&list->at[i]);
	list->len = kept;
}

/* --- the question --- */

static int add(char **query, const char *key, const char *prefix, const char *value,
	       struct err *err)
{
	autofree char *k = url_escape(key), *v = url_escape(value);
	char *longer = k && v ? str_format("%s&%s=%s%s", *query, k, prefix, v) : NULL;

	if (!longer)
		return err_nomem(err);
	free(*query);
	*query = longer;
	return 0;
}

/* What stands before a colon would be an operator. */
static int add_plain(char **query, const char *key, const char *value, struct err *err)
{
	return value ? add(query, key, strchr(value, ':') ? "eq:" : "", value, err) : 0;
}

/* Glance takes blanks off a tag in a query, and then finds nothing. */
static int add_tag(char **query, const char *tag, struct err *err)
{
	if (!tag || strchr(tag, ' ') || !*tag)
		return 0;
	return add(query, "tag", "", tag, err);
}

static int add_property(char **query, const char *property, struct err *err)
{
	autofree char *key = strndup(property, strcspn(property, "="));
	const char *value = property_value(property);

	if (!key)
		return err_nomem(err);
	return value ? add(query, key, "", value, err) : 0;
}

static char *first_query(const struct service_filter *filter, struct err *err)
{
	autofree char *query = strdup("limit=200&sort=created_at:asc");

	if (!query) {
		err_nomem(err);
		return NULL;
	}
	for (char *const *p = filter->properties; p && *p; p++)
		if (add_property(&query, *p, err) < 0)
			return NULL;
	if (add_plain(&query, "name", filter->name, err) < 0 ||
	    add_tag(&query, filter->tag, err) < 0)
		return NULL;
	if (filter->owner && add(&query, "owner", "", filter->owner, err) < 0)
		return NULL;
	return steal(&query);
}

/* --- page by page --- */

struct listing {
	struct session *session;
	const struct service_filter *filter;
	struct service_images *out;
	unsigned pages;
	uint64_t bytes;
};

static int read_page(struct listing *l, const struct http_response *r, char **next, struct err *err)
{
	size_t from = l->out->len;

	l->bytes += r->body_len;
	if (l->bytes > BYTES_MAX || ++l->pages > PAGES_MAX)
		return err_set(err, ERR_FAILED, "the image service's list of images does not end");
	if (images_from_json(r->body, r->body_len, l->out, next, err) < 0)
		return -1;
	drop_others(l->out, from, l->filter);
	return 0;
}

/* 1: the image at which the page begins was deleted in the meantime; the error is set. */
static int get_page(struct listing *l, const char *query, char **next, struct err *err)
{
	autoresponse struct http_response r = { 0 };
	autofree char *path = str_format("/v2/images?%s", query);

	if (!path)
		return err_nomem(err);
	if (service_ask(l->session, path, l->filter->when, &r, err) < 0)
		return -1;
	if (r.status == 200)
		return read_page(l, &r, next, err);
	endpoint_error(&r, "listing images", NULL, err);
	return r.status == 400 && l->pages > 0 ? 1 : -1;
}

static int get_pages(struct listing *l, struct err *err)
{
	autofree char *query = first_query(l->filter, err);
	int rc = query ? 0 : -1;

	l->pages = 0;
	while (rc == 0 && query) {
		char *next = NULL;

		rc = get_page(l, query, &next, err);
		free(query);
		query = next;
	}
	return rc;
}

int service_list(struct session *s, const struct service_filter *filter, struct service_images *out,
		 struct err *err)
{
	struct listing l = { .session = s, .filter = filter, .out = out };
	int rc;

	*out = (struct service_images){ 0 };
	rc = get_pages(&l, err);
	if (rc > 0) {
		service_images_free(out);
		rc = get_pages(&l, err);
	}
	if (rc == 0)
		return 0;
	service_images_free(out);
	return -1;
}
