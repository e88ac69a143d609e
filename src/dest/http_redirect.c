// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/url.h"

enum { MAX_REDIRECTS = 5 };

/* RFC 9110 15.4: some of them may turn another method into GET. */
static bool is_redirect(const struct http_request *request, unsigned status)
{
	bool is_reading = str_equal(request->method, "GET") || str_equal(request->method, "HEAD");

	switch (status) {
	case 301:
	case 302:
	case 303:
		return is_reading;
	case 307:
	case 308:
		return true;
	}
	return false;
}

/* Where the answer points, NULL when it is an answer. */
static char *next_url(const struct http_hop *hop, const struct http_response *r)
{
	const char *location = http_header_of(r, "Location");

	if (!location || !is_redirect(hop->request, r->status))
		return NULL;
	return url_resolve(hop->url, location);
}

static int check_hop(const struct http_hop *hop, const char *to, unsigned hops, struct err *err)
{
	const char *from = hop->url;
	autofree char *shown = url_for_messages(from);
	autofree char *target = url_for_messages(to);

	if (!shown || !target)
		return err_nomem(err);
	if (hops >= MAX_REDIRECTS)
		return err_set(err, ERR_FAILED, "%s: more than %d redirects, the last to %s", shown,
			       MAX_REDIRECTS, target);
	if (str_starts(from, "https:") && !str_starts(to, "https:"))
		return err_set(err, ERR_FAILED,
			       "%s points to %s, which is not encrypted; not followed", shown,
			       target);
	if (hop->request->text_is_secret && !url_same_origin(hop->request->url, to))
		return err_set(err, ERR_REFUSED,
			       "%s points to another server, %s, which does not get the "
			       "credentials; if it is to, give its own address",
			       shown, target);
	return 0;
}

/* An answer that cannot be followed is none. */
static int give_up(struct http_response *r)
{
	r->status = 0;
	r->may_retry = false;
	r->is_certain_unsent = false;
	return -1;
}

static uint64_t deadline_of(const struct http *http, const struct http_request *request)
{
	unsigned seconds = request->total_seconds ? request->total_seconds : http->total_seconds;

	return seconds ? clock_ns() + seconds * UINT64_C(1000000000) : 0;
}

int http_follow(struct http *http, const struct http_request *request, struct http_response *out,
		struct err *err)
{
	autofree char *url = NULL;
	struct http_hop hop = { http, request, request->url, deadline_of(http, request) };

	for (unsigned hops = 0;; hops++) {
		char *next;

		if (http_exchange(&hop, out, err) < 0)
			return -1;
		next = next_url(&hop, out);
		if (!next)
			return 0;
		if (check_hop(&hop, next, hops, err) < 0) {
			free(next);
			return give_up(out);
		}
		http_response_free(out);
		free(url);
		hop.url = url = next;
	}
}
