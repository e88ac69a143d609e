// SPDX-License-Identifier: Apache-2.0
#include "dest/http_target.h"

#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "dest/http_url.h"
#include "dest/url.h"

#include <stdint.h>

/* From this length on a query is taken for a signature: whoever has the URL may write
 * there.  What is shorter would hit words of messages.
 */
enum { SIGNATURE_MIN = 16 };

/* RFC 4648 4, out has room for 4 * ceil(len / 3) characters and a NUL. */
static void to_base64(char *out, const char *text, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	for (size_t i = 0; i < len; i += 3, out += 4) {
		uint32_t bits = 0;

		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (i + j < len ? (unsigned char)text[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			out[j] = i + j > len ? '=' : digits[bits >> (18 - 6 * j) & 63];
	}
	*out = '\0';
}

/* The coded part alone is as good as the password. */
static int set_authorization(struct http_target *t, const char *user, const char *password,
			     struct err *err)
{
	autosecret char *pair = str_format("%s:%s", user ? user : "", password ? password : "");
	size_t len = pair ? strlen(pair) : 0;
	autosecret char *coded = pair ? malloc(len / 3 * 4 + 5) : NULL;

	if (!coded)
		return err_nomem(err);
	to_base64(coded, pair, len);
	t->coded = secret_new(coded);
	t->authorization = str_format("Basic %s", coded);
	return t->coded && t->authorization ? 0 : err_nomem(err);
}

static char *part_of(CURLU *u, CURLUPart part, unsigned flags)
{
	char *text = NULL;

	return curl_url_get(u, part, &text, flags) == CURLUE_OK ? text : NULL;
}

static int keep_secrets(CURLU *u, struct http_target *t, struct err *err)
{
	autourlpart char *user = part_of(u, CURLUPART_USER, CURLU_URLDECODE);
	autourlpart char *password = part_of(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
	autourlpart char *query = part_of(u, CURLUPART_QUERY, 0);

	if (user && strchr(user, ':'))
		return err_set(err, ERR_USAGE, "--to: a user name must not have a colon in it");
	t->password = secret_new(password);
	t->query = query && strlen(query) >= SIGNATURE_MIN ? secret_new(query) : NULL;
	return user || password ? set_authorization(t, user, password, err) : 0;
}

static int cut_secrets(CURLU *u, struct err *err)
{
	static const CURLUPart none_of[] = { CURLUPART_USER, CURLUPART_PASSWORD,
					     CURLUPART_FRAGMENT };

	for (size_t i = 0; i < sizeof none_of / sizeof *none_of; i++)
		if (curl_url_set(u, none_of[i], NULL, 0) != CURLUE_OK)
			return err_nomem(err);
	return 0;
}

static int add_file(CURLU *u, const char *file, struct err *err)
{
	autourlpart char *path = part_of(u, CURLUPART_PATH, 0);
	autofree char *segment = url_escape(file), *whole = NULL;

	if (path && !str_ends(path, "/"))
		return 0;
	whole = path && segment ? str_format("%s%s", path, segment) : NULL;
	if (!whole || curl_url_set(u, CURLUPART_PATH, whole, 0) != CURLUE_OK)
		return err_nomem(err);
	return 0;
}

static int keep_url(CURLU *u, struct http_target *t, struct err *err)
{
	autourlpart char *url = part_of(u, CURLUPART_URL, 0);

	t->url = url ? strdup(url) : NULL;
	t->shown = url ? url_for_messages(url) : NULL;
	return t->url && t->shown ? 0 : err_nomem(err);
}

int http_target_find(const char *where, const char *file, struct http_target *out, struct err *err)
{
	autourl CURLU *u = NULL;

	memset(out, 0, sizeof *out);
	if (url_check(where, "--to", err) < 0)
		return -1;
	u = curl_url();
	if (!u || curl_url_set(u, CURLUPART_URL, where, CURLU_PATH_AS_IS) != CURLUE_OK)
		return err_nomem(err);
	if (keep_secrets(u, out, err) < 0 || cut_secrets(u, err) < 0 ||
	    (file && add_file(u, file, err) < 0))
		return -1;
	return keep_url(u, out, err);
}

void http_target_free(struct http_target *t)
{
	free(t->url);
	free(t->shown);
	secret_free(t->authorization);
	secret_free(t->coded);
	secret_free(t->password);
	secret_free(t->query);
	memset(t, 0, sizeof *t);
}
