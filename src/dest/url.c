// SPDX-License-Identifier: Apache-2.0
#include "dest/url.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "dest/http_url.h"

#include <string.h>
#include <strings.h>

static bool is_http(const char *scheme)
{
	return str_equal(scheme, "http") || str_equal(scheme, "https");
}

/* NULL, and why, for what is no URL.  Dots stay: a segment of ".." must not turn a
 * request for one thing into a request for another.
 */
static CURLU *url_open(const char *url, CURLUcode *why)
{
	CURLU *u = curl_url();

	*why = u ? curl_url_set(u, CURLUPART_URL, url, CURLU_PATH_AS_IS) : CURLUE_OUT_OF_MEMORY;
	if (*why == CURLUE_OK)
		return u;
	curl_url_cleanup(u);
	return NULL;
}

static char *url_part(CURLU *u, CURLUPart part, unsigned flags)
{
	char *text = NULL;

	return curl_url_get(u, part, &text, flags) == CURLUE_OK ? text : NULL;
}

/* All of it, in memory of malloc's. */
static char *url_text(CURLU *u)
{
	autourlpart char *text = url_part(u, CURLUPART_URL, 0);

	return text ? strdup(text) : NULL;
}

int url_check(const char *url, const char *what, enum err_kind kind, struct err *err)
{
	CURLUcode why;
	autourl CURLU *u = url_open(url, &why);
	autourlpart char *scheme = u ? url_part(u, CURLUPART_SCHEME, 0) : NULL;

	if (why == CURLUE_OUT_OF_MEMORY)
		return err_nomem(err);
	if (!u)
		return err_set(err, kind, "%s: no URL as https://HOST/PATH: %s", what,
			       curl_url_strerror(why));
	if (!scheme || !is_http(scheme))
		return err_set(err, kind, "%s: its scheme is neither https nor http", what);
	return 0;
}

size_t url_stem(const char *url)
{
	size_t len = strcspn(url, "?#");

	while (len > 0 && url[len - 1] == '/')
		len--;
	return len;
}

char *url_join(const char *base, const char *path)
{
	path += strspn(path, "/");
	return str_format("%.*s/%s", (int)url_stem(base), base, path);
}

char *url_resolve(const char *base, const char *reference)
{
	CURLUcode why;
	autourl CURLU *u = url_open(base, &why);
	autourlpart char *scheme = NULL;

	/* as lenient as browsers: servers put blanks into Location */
	if (!u || curl_url_set(u, CURLUPART_URL, reference, CURLU_URLENCODE | CURLU_ALLOW_SPACE))
		return NULL;
	scheme = url_part(u, CURLUPART_SCHEME, 0);
	return scheme && is_http(scheme) ? url_text(u) : NULL;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
	autourlpart char *x = url_part(a, part, CURLU_DEFAULT_PORT);
	autourlpart char *y = url_part(b, part, CURLU_DEFAULT_PORT);

	return x && y && strcasecmp(x, y) == 0;
}

bool url_same_origin(const char *a, const char *b)
{
	CURLUcode why;
	autourl CURLU *x = url_open(a, &why);
	autourl CURLU *y = url_open(b, &why);

	return x && y && same_part(x, y, CURLUPART_SCHEME) && same_part(x, y, CURLUPART_HOST) &&
	       same_part(x, y, CURLUPART_PORT);
}

char *url_escape(const char *text)
{
	autourlpart char *escaped = NULL;

	/* as such they would be taken for steps in the path */
	if (str_equal(text, "."))
		return strdup("%2E");
	if (str_equal(text, ".."))
		return strdup("%2E%2E");
	escaped = curl_easy_escape(NULL, text, 0);
	return escaped ? strdup(escaped) : NULL;
}

char *url_for_messages(const char *url)
{
	static const CURLUPart not_shown[] = { CURLUPART_USER, CURLUPART_PASSWORD,
					       CURLUPART_OPTIONS, CURLUPART_QUERY,
					       CURLUPART_FRAGMENT };
	CURLUcode why;
	autourl CURLU *u = url_open(url, &why);

	/* where the secrets are in it, nobody knows */
	if (!u)
		return strdup("(no URL)");
	for (size_t i = 0; i < sizeof not_shown / sizeof *not_shown; i++)
		curl_url_set(u, not_shown[i], NULL, 0);
	return url_text(u);
}
