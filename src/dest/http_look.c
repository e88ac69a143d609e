// SPDX-License-Identifier: Apache-2.0
#include "dest/http_put_inner.h"

#include "base/err.h"
#include "base/str.h"

#include <string.h>

enum { LAST_SECONDS = 10 };

/* A server that compresses on the fly would tell the length of what it sends. */
static const struct http_header plain[] = { { "Accept-Encoding", "identity" }, { 0 } };
static const struct http_header plain_first_byte[] = { { "Accept-Encoding", "identity" },
						       { "Range", "bytes=0-0" },
						       { 0 } };

struct http_request http_put_request(const struct http_put *h, const char *method,
				     struct http_header secret[2])
{
	secret[0] = (struct http_header){ "Authorization", h->target.authorization };
	secret[1] = (struct http_header){ 0 };
	return (struct http_request){
		.method = method, .url = h->target.url, .headers = plain, .secret_headers = secret
	};
}

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

/* The size that an answer tells: of all of it, or behind the slash of a part
 * (RFC 9110 14.4), which a 416 for an empty file has, too.
 */
static void read_size(const struct http_response *r, struct http_sight *out)
{
	bool is_part = r->status == 206 || r->status == 416;
	const char *text = http_header_of(r, is_part ? "Content-Range" : "Content-Length");

	if (is_part)
		text = text && strchr(text, '/') ? strchr(text, '/') + 1 : NULL;
	out->has_size = parse_number(text, &out->size);
}

static int say_unseen(const struct http_put *h, const struct http_response *r, struct err *err)
{
	const char *what = "cannot look what is there";

	if (r->status == 401 && !h->target.authorization)
		what = "put user name and password into the URL (https://USER:PASSWORD@HOST/PATH)";
	http_error(r, what, err);
	return err_context(err, "%s", h->base.name);
}

/* 403 need not mean that nothing can be put there: it is what object stores say of what
 * is not there, and of a URL that was signed for PUT alone.
 */
static int judge(const struct http_put *h, const struct http_response *r, struct http_sight *out,
		 struct err *err)
{
	*out = (struct http_sight){ .presence = HTTP_UNTOLD };
	if (is_success(r->status) || r->status == 416) {
		out->presence = HTTP_PRESENT;
		read_size(r, out);
	} else if (r->status == 404 || r->status == 410) {
		out->presence = HTTP_ABSENT;
	} else if (r->status == 401 || r->status / 100 != 4 || http_may_get_better(r)) {
		return say_unseen(h, r, err);
	}
	return 0;
}

/* --- a server without HEAD --- */

struct glimpse {
	const struct http_put *h;
	struct http_sight *out;
	bool is_enough;
};

/* One that knows no ranges either would send the whole image. */
static int see_head(void *ctx, const struct http_response *head, struct err *err)
{
	struct glimpse *g = ctx;

	if (judge(g->h, head, g->out, err) < 0)
		return -1;
	g->is_enough = true;
	return head->status == 206 ? 0 : err_set(err, ERR_FAILED, "enough was seen");
}

static int see_byte(void *ctx, const void *buf, size_t len, struct err *err)
{
	(void)ctx;
	(void)buf;
	return len <= 1 ? 0 : err_set(err, ERR_FAILED, "enough was seen");
}

static int look_by_get(const struct http_put *h, struct http_request request,
		       struct http_sight *out, struct err *err)
{
	struct glimpse g = { .h = h, .out = out };
	const struct http_download download = { .begin = see_head, .write = see_byte, .ctx = &g };
	autoresponse struct http_response r = { 0 };
	int rc;

	request.method = "GET";
	request.headers = plain_first_byte;
	request.download = &download;
	rc = http_send(h->http, &request, &r, err);
	if (g.is_enough)
		return 0;
	return rc < 0 ? -1 : judge(h, &r, out, err);
}

static int look(const struct http_put *h, const struct http_request *request,
		struct http_sight *out, struct err *err)
{
	autoresponse struct http_response r = { 0 };

	if (http_send(h->http, request, &r, err) < 0)
		return -1;
	if (r.status == 405 || r.status == 501)
		return look_by_get(h, *request, out, err);
	return judge(h, &r, out, err);
}

int http_look(struct http_put *h, unsigned tries, struct http_sight *out, struct err *err)
{
	struct http_header secret[2];
	struct http_request request = http_put_request(h, "HEAD", secret);

	request.tries = tries;
	return look(h, &request, out, err);
}

int http_look_last(struct http_put *h, struct http_sight *out, struct err *err)
{
	struct http_header secret[2];
	struct http_request request = http_put_request(h, "HEAD", secret);

	request.total_seconds = LAST_SECONDS;
	request.even_if_interrupted = true;
	return look(h, &request, out, err);
}
