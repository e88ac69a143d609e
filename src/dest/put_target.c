// SPDX-License-Identifier: Apache-2.0
#include "dest/put_inner.h"

#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "dest/http_url.h"
#include "dest/url.h"

/* From this length on a query is taken for a signature: whoever has the URL may write
 * there.  What is shorter would hit words of messages.
 */
enum { SIGNATURE_MIN = 16 };

static char *part_of(CURLU *u, CURLUPart part, unsigned flags)
{
	char *text = NULL;

	return curl_url_get(u, part, &text, flags) == CURLUE_OK ? text : NULL;
}

/* Both together, too: so they come back in base64 from whoever repeats our header. */
static int keep_credentials(const char *user, const char *password, struct put_target *t,
			    struct err *err)
{
	autofree char *pair = NULL;

	if (!user && !password)
		return 0;
	pair = str_format("%s:%s", user ? user : "", password ? password : "");
	t->credentials = secret_new(pair);
	t->password = secret_new(password);
	if (pair)
		explicit_bzero(pair, strlen(pair));
	return t->credentials && (t->password || !password) ? 0 : err_nomem(err);
}

/* Each as it is, and as it stands in the URL. */
static int keep_secrets(CURLU *u, struct put_target *t, struct err *err)
{
	autourlpart char *user = part_of(u, CURLUPART_USER, CURLU_URLDECODE);
	autourlpart char *password = part_of(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
	autourlpart char *written = part_of(u, CURLUPART_PASSWORD, 0);
	autourlpart char *query = part_of(u, CURLUPART_QUERY, 0);

	if (user && strchr(user, ':'))
		return err_set(err, ERR_USAGE, "--to: a user name must not have a colon in it");
	t->written = secret_new(written);
	t->query = query && strlen(query) >= SIGNATURE_MIN ? secret_new(query) : NULL;
	return keep_credentials(user, password, t, err);
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

static int keep_url(CURLU *u, struct put_target *t, struct err *err)
{
	autourlpart char *url = part_of(u, CURLUPART_URL, 0);

	t->url = url ? strdup(url) : NULL;
	t->shown = url ? url_for_messages(url) : NULL;
	return t->url && t->shown ? 0 : err_nomem(err);
}

int put_target_find(const char *where, const char *file, struct put_target *out, struct err *err)
{
	autourl CURLU *u = NULL;

	memset(out, 0, sizeof *out);
	if (url_check(where, "--to", ERR_USAGE, err) < 0)
		return -1;
	u = curl_url();
	if (!u || curl_url_set(u, CURLUPART_URL, where, CURLU_PATH_AS_IS) != CURLUE_OK)
		return err_nomem(err);
	if (keep_secrets(u, out, err) < 0 || (file && add_file(u, file, err) < 0))
		return -1;
	return keep_url(u, out, err);
}

void put_target_free(struct put_target *t)
{
	secret_free(t->url);
	free(t->shown);
	secret_free(t->credentials);
	secret_free(t->password);
	secret_free(t->written);
	secret_free(t->query);
	memset(t, 0, sizeof *t);
}
