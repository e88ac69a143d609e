// SPDX-License-Identifier: Apache-2.0
#include "dest/endpoint.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "dest/http.h"
#include "dest/url.h"

#include <stdio.h>
#include <string.h>

/* "v" and numbers with a dot between: a version of an API. */
static bool is_version(const char *segment, size_t len)
{
	static const char digits[] = "0123456789";
	size_t n = len > 1 && segment[0] == 'v' ? 1 + strspn(segment + 1, digits) : 0;

	if (n < 2)
		return false;
	if (n < len && segment[n] == '.')
		n += 1 + strspn(segment + n + 1, digits);
	return n == len;
}

/* Where the last segment of the first len bytes begins. */
static size_t last_segment(const char *url, size_t len)
{
	while (len > 0 && url[len - 1] != '/')
		len--;
	return len;
}

char *endpoint_base(const char *url)
{
	size_t len = url_stem(url), at = last_segment(url, len);

	if (is_version(url + at, len - at))
		for (len = at; len > 0 && url[len - 1] == '/';)
			len--;
	return strndup(url, len);
}

bool endpoint_has_version(const char *url, const char *version)
{
	size_t len = url_stem(url), at = last_segment(url, len);

	return len - at == strlen(version) && memcmp(url + at, version, len - at) == 0;
}

/* Of a request that may not follow one; NULL: it was none. */
static char *redirect_hint(const struct http_response *r)
{
	const char *to = r->status >= 300 && r->status < 400 ? http_header_of(r, "Location") : NULL;
	autofree char *url = to ? url_for_messages(to) : NULL;

	return url ? str_format("the service is at %s", url) : NULL;
}

int endpoint_error(const struct http_response *r, const char *what, const char *hint,
		   struct err *err)
{
	autofree char *elsewhere = redirect_hint(r);

	http_error(r, what, err);
	err->kind = r->status >= 400 && r->status < 500 && !http_may_get_better(r) ? ERR_REFUSED
										   : ERR_FAILED;
	if (hint)
		err_hint(err, "%s", hint);
	if (elsewhere)
		err_hint(err, "%s", elsewhere);
	return -1;
}
