// SPDX-License-Identifier: Apache-2.0
#include "dest/image_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "dest/endpoint.h"
#include "dest/session.h"
#include "dest/url.h"

char *service_path(const char *id, const char *tail, struct err *err)
{
	autofree char *segment = url_escape(id);
	char *path = segment ? str_format("/v2/images/%s%s", segment, tail) : NULL;

	if (!path)
		err_nomem(err);
	return path;
}

int service_ask(struct session *s, const char *path, struct http_response *out, struct err *err)
{
	static const struct http_header headers[] = { { "Accept", "application/json" },
						      { NULL, NULL } };
	struct http_request request = {
		.method = "GET", .url = path, .headers = headers, .tries = SERVICE_TRIES
	};

	return session_send(s, &request, out, err);
}

/* rc: what session_send returned. */
static bool may_be_done(int rc, const struct http_response *r)
{
	if (rc < 0)
		return r->may_retry && !r->is_certain_unsent;
	return r->status == 409 || http_may_get_better(r);
}

static bool may_try_again(int rc, const struct http_response *r)
{
	return rc < 0 ? r->may_retry : http_may_get_better(r);
}

/* 1: it is done, 0: try again, -1. */
static int try_once(struct session *s, const struct deed *deed, struct http_backoff *backoff,
		    struct err *err)
{
	struct http_request request = *deed->request;
	autoresponse struct http_response r = { 0 };
	int rc = session_send(s, &request, &r, err), done = 0;

	if (rc == 0 && r.status == deed->done)
		return 1;
	if (may_be_done(rc, &r))
		done = deed->is_done(s, deed->ctx, err);
	if (done != 0)
		return done;
	if (rc == 0)
		endpoint_error(&r, deed->what, deed->hint, err);
	return may_try_again(rc, &r) ? http_wait(backoff, &r, err) : -1;
}

int service_do_once(struct session *s, const struct deed *deed, struct err *err)
{
	struct http_backoff backoff = { .tries = SERVICE_TRIES - 1 };
	int rc;

	do
		rc = try_once(s, deed, &backoff, err);
	while (rc == 0);
	return rc < 0 ? -1 : 0;
}
