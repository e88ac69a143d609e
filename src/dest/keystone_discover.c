// SPDX-License-Identifier: Apache-2.0
#include "dest/keystone_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "dest/endpoint.h"
#include "dest/http.h"
#include "dest/url.h"

#include <jansson.h>
#include <string.h>

static const char *link_to_itself(const json_t *version)
{
	const json_t *links = json_object_get(version, "links");

	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *link = json_array_get(links, i);
		const char *rel = json_string_value(json_object_get(link, "rel"));

		if (rel && str_equal(rel, "self"))
			return json_string_value(json_object_get(link, "href"));
	}
	return NULL;
}

static bool is_v3(const json_t *version)
{
	const char *id = json_string_value(json_object_get(version, "id"));

	return id && (str_equal(id, "v3") || str_starts(id, "v3."));
}

/* The versions in an answer, in any of the forms that Keystone has for it: a list, a list
 * in an object, a single one; NULL when it is no such answer.
 */
static json_t *versions_in(const json_t *answer)
{
	json_t *list = json_object_get(answer, "versions");
	json_t *single = json_object_get(answer, "version");

	if (json_is_object(list))
		list = json_object_get(list, "values");
	if (json_is_array(list) && json_array_size(list) > 0)
		return json_incref(list);
	return json_is_object(single) ? json_pack("[O]", single) : NULL;
}

static const json_t *v3_in(const json_t *versions)
{
	for (size_t i = 0; i < json_array_size(versions); i++)
		if (is_v3(json_array_get(versions, i)))
			return json_array_get(versions, i);
	return NULL;
}

/* The length of scheme, host and port; *host is where the latter two begin. */
static size_t origin_length(const char *url, const char **host)
{
	const char *colon = strstr(url, "://");

	*host = colon ? colon + 3 : url;
	return (size_t)(*host - url) + strcspn(*host, "/?#");
}

/* Behind a proxy these links often name another scheme or host than the one that we were
 * told of.  As openstacksdk, we stay where the user sent us: credentials go nowhere else.
 */
static char *at_our_origin(const char *base, const char *link)
{
	const char *our_host, *its_host;
	size_t ours = origin_length(base, &our_host), its = origin_length(link, &its_host);
	size_t host_len = ours - (size_t)(our_host - base);
	autofree char *origin = strndup(base, ours);
	autofree char *path = endpoint_base(link + its);

	if (its - (size_t)(its_host - link) != host_len ||
	    memcmp(our_host, its_host, host_len) != 0)
		return str_format("%s/v3", base);
	return origin && path ? str_format("%s%s/v3", origin, path) : NULL;
}

static char *no_v3(const char *base, struct err *err)
{
	autofree char *url = url_for_messages(base);

	err_set(err, ERR_REFUSED,
		"%s is no identity service with API v3; check the auth URL (OS_AUTH_URL)",
		url ? url : "the auth URL");
	return NULL;
}

/* A root that lists nothing is asked for /v3 all the same: the answer to the log-in tells. */
static char *v3_of(const char *base, const struct http_response *r, struct err *err)
{
	json_auto_t *answer = json_loadb(r->body, r->body_len, 0, NULL);
	json_auto_t *versions = versions_in(answer);
	const json_t *v3 = v3_in(versions);
	const char *link = v3 ? link_to_itself(v3) : NULL;
	autofree char *url = link ? url_resolve(r->url, link) : NULL;
	char *found;

	if (versions && !v3)
		return no_v3(base, err);
	found = url ? at_our_origin(base, url) : str_format("%s/v3", base);
	if (!found)
		err_nomem(err);
	return found;
}

int keystone_ask(struct http *http, const struct http_request *request, struct http_response *r,
		 struct err *err)
{
	if (http_send(http, request, r, err) == 0)
		return 0;
	return err->kind == ERR_INTERRUPTED ? -1 : err_context(err, "the identity service");
}

static char *ask(struct http *http, const char *base, const struct http_request *like,
		 struct err *err)
{
	struct http_request request = *like;
	autoresponse struct http_response r = { 0 };
	autofree char *url = url_join(base, "");

	request.method = "GET";
	request.url = url;
	if (!url) {
		err_nomem(err);
		return NULL;
	}
	if (keystone_ask(http, &request, &r, err) < 0)
		return NULL;
	if (http_may_get_better(&r)) {
		endpoint_error(&r, "asking the identity service for its versions", NULL, err);
		return NULL;
	}
	return v3_of(base, &r, err);
}

/* Clients that were copied from a browser or a script have the whole path to log in. */
static char *without_tokens(const char *url)
{
	static const char path[] = "/auth/tokens";
	size_t len = url_stem(url);

	if (len > strlen(path) && memcmp(url + len - strlen(path), path, strlen(path)) == 0)
		len -= strlen(path);
	return strndup(url, len);
}

char *keystone_discover(struct http *http, const char *auth_url, const struct http_request *like,
			struct err *err)
{
	autofree char *given = without_tokens(auth_url);
	autofree char *base = given ? endpoint_base(given) : NULL;
	char *v3;

	if (base && !endpoint_has_version(given, "v3"))
		return ask(http, base, like, err);
	v3 = base ? str_format("%s/v3", base) : NULL;
	if (!v3)
		err_nomem(err);
	return v3;
}
