// SPDX-License-Identifier: Apache-2.0
#include "dest/put_inner.h"

#include "base/err.h"
#include "base/str.h"

#include <string.h>

enum { LAST_SECONDS = 10 };

/* A server that compresses on the fly would tell the length of what it sends. */
static const struct http_header plain[] = { { "Accept-Encoding", "identity" }, { 0 } };
static const struct http_header plain_first_byte[] = { { "Accept-Encoding", "identity" },
						       { "Range", "bytes=0-0" },
						       { 0 } };

/* Digits and nothing else. */
static bool parse_number(const char *text, uint64_t *out)
{
	size_t len = text ? strspn(text, "0123456789") : 0;

	if (len == 0 || len > 18 || text[len])
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

static bool is_success(unsigned status)
{
	return status / 100 == 2;
}

/* A success, or a 416 for an empty file.  The size that it tells is of all of it, or stands
 * behind the slash of a part (RFC 9110 14.4).
 */
static struct put_sight present(const struct http_response *r)
{
	struct put_sight sight = { .presence = PUT_PRESENT };
	bool is_part = r->status == 206 || r->status == 416;
	const char *text = http_header_of(r, is_part ? "Content-Range" : "Content-Length");

	if (is_part)
		text = text && strchr(text, '/') ? strchr(text, '/') + 1 : NULL;
	sight.has_size = parse_number(text, &sight.size);
	return sight;
}

static int say_unseen(const struct put_dest *h, const struct http_response *r, struct err *err)
{
	const char *what = "cannot look what is there";

	if (r->status == 401 && !h->target.credentials)
		what = "put user name and password into the URL (https://USER:PASSWORD@HOST/PATH)";
	http_error(r, what, err);
	return err_context(err, "%s", h->base.name);
}

/* 403 need not mean that nothing can be put there: it is what object stores say of what
 * is not there, and of a URL that was signed for PUT alone.
 */
static int judge(const struct put_dest *h, const struct http_response *r, struct put_sight *out,
		 struct err *err)
{
	*out = (struct put_sight){ .presence = PUT_UNTOLD };
	if (is_success(r->status) || r->status == 416)
		*out = present(r);
	else if (r->status == 404 || r->status == 410)
		out->presence = PUT_ABSENT;
	else if (r->status == 401 || r->status / 100 != 4 || http_may_get_better(r))
		return say_unseen(h, r, err);
	return 0;
}

/* --- a server without HEAD --- */

struct glimpse {
	struct put_sight *out;
	bool is_enough;
};

/* One that knows no ranges either would send the whole image. */
static int see_head(void *ctx, const struct http_response *head, struct err *err)
{
	struct glimpse *g = ctx;

	*g->out = present(head);
	g->is_enough = true;
	return head->status == 206 ? 0 : err_set(err, ERR_FAILED, "enough was seen");
}

static int see_byte(void *ctx, const void *buf, size_t len, struct err *err)
{
	(void)ctx;
	(void)buf;
	return len <= 1 ? 0 : err_set(err, ERR_FAILED, "enough was seen");
}

static int look_by_get(const struct put_dest *h, struct http_request request, struct put_sight *out,
		       struct err *err)
{
	struct glimpse g = { .out = out };
	const struct http_download download = { .begin = see_head, .write = see_byte, .ctx = &g };
	autoresponse struct http_response r = { 0 };
	struct err why;
	int rc;

	request.method = "GET";
	request.headers = plain_first_byte;
	request.download = &download;
	rc = http_send(h->http, &request, &r, &why);
	if (g.is_enough)
		return 0;
	if (rc == 0)
		return judge(h, &r, out, err);
	*err = why;
	return -1;
}

static int look(const struct put_dest *h, const struct http_request *request, struct put_sight *out,
		struct err *err)
{
	autoresponse struct http_response r = { 0 };

	if (http_send(h->http, request, &r, err) < 0)
		return -1;
	if (r.status == 405 || r.status == 501)
		return look_by_get(h, *request, out, err);
	return judge(h, &r, out, err);
}

int put_look(struct put_dest *h, unsigned tries, struct put_sight *out, struct err *err)
{
	const struct http_request request = {
		.method = "HEAD", .url = h->target.url, .headers = plain, .tries = tries
	};

	return look(h, &request, out, err);
}

int put_look_last(struct put_dest *h, struct put_sight *out, struct err *err)
{
	const struct http_request request = { .method = "HEAD",
					      .url = h->target.url,
					      .headers = plain,
					      .total_seconds = LAST_SECONDS,
					      .even_if_interrupted = true };

	return look(h, &request, out, err);
}
