// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/url.h"

#include <string.h>
#include <strings.h>

/* Above this size an upload asks before it sends (Expect: 100-continue, RFC 9110 10.1.1;
 * libcurl adds it, and leaves it out again after a 417).  A service that refuses the request (no
 * token, no quota, no such image) says so then before it is sent a whole disk, and on a connection
 * that nobody has to reset. One that takes it costs a round trip; measured against Glance that is
 * lost in a gigabyte. One that knows no Expect costs the second that libcurl waits at most.
 */
#define UNASKED_MAX (1 * MIB)

/* RFC 9110 5.6.2. */
static bool is_token(const char *s)
{
	static const char chars[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return *s && s[strspn(s, chars)] == '\0';
}

/* RFC 9110 5.5: what could end the header, and begin another, is none. */
static bool is_field_value(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

/* A value may be a secret: the message only has the name. */
static int check_headers(const struct http_header *h, struct err *err)
{
	char name[128];

	for (; h && h->name; h++) {
		if (!is_token(h->name))
			return err_set(err, ERR_REFUSED, "\"%s\" is no name of an HTTP header",
				       log_printable(name, sizeof name, h->name));
		if (h->value && !is_field_value(h->value))
			return err_set(err, ERR_REFUSED,
				       "the value of %s has control characters in it", h->name);
	}
	return 0;
}

int http_check_request(const struct http_request *request, struct err *err)
{
	if (!is_token(request->method))
		return err_set(err, ERR_REFUSED, "no method of HTTP");
	if (url_check(request->url, "cannot send a request", ERR_USAGE, err) < 0 ||
	    check_headers(request->headers, err) < 0)
		return -1;
	return check_headers(request->secret_headers, err);
}

void http_headers_free(struct curl_slist *list)
{
	for (struct curl_slist *at = list; at; at = at->next)
		explicit_bzero(at->data, strlen(at->data));
	curl_slist_free_all(list);
}

static int append(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -1;
	*list = longer;
	return 0;
}

/* libcurl takes "NAME:" as the order to leave a header out, "NAME;" for an empty one. */
static int append_header(struct curl_slist **list, const struct http_header *h)
{
	autofree char *line =
		*h->value ? str_format("%s: %s", h->name, h->value) : str_format("%s;", h->name);
	int rc = line ? append(list, line) : -1;

	if (line)
		explicit_bzero(line, strlen(line));
	return rc;
}

static int append_headers(struct curl_slist **list, const struct http_header *h)
{
	for (; h && h->name; h++)
		if (h->value && append_header(list, h) < 0)
			return -1;
	return 0;
}

static bool has_header(const struct http_header *h, const char *name)
{
	for (; h && h->name; h++)
		if (h->value && strcasecmp(h->name, name) == 0)
			return true;
	return false;
}

/* What libcurl would add, or not add, by its own rules. */
static int append_ours(struct curl_slist **list, const struct http_request *request)
{
	bool asks = request->upload && request->upload->size > UNASKED_MAX;

	if (!asks && append(list, "Expect:") < 0)
		return -1;
	return has_header(request->headers, "Content-Type") ? 0 : append(list, "Content-Type:");
}

bool http_is_home(const struct http_hop *hop)
{
	return url_same_origin(hop->url, hop->request->url);
}

struct curl_slist *http_headers(const struct http_hop *hop)
{
	const struct http_request *request = hop->request;
	struct curl_slist *list = NULL;
	int rc = append_ours(&list, request);

	if (rc == 0)
		rc = append_headers(&list, request->headers);
	if (rc == 0 && http_is_home(hop))
		rc = append_headers(&list, request->secret_headers);
	if (rc == 0)
		return list;
	http_headers_free(list);
	return NULL;
}
