// SPDX-License-Identifier: Apache-2.0
#include "dest/session.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/cloud_config.h"
#include "dest/endpoint.h"
#include "dest/keystone.h"
#include "dest/url.h"

#include <string.h>

struct session {
	struct cloud_config cfg;
	struct http *http;
	struct keystone *keystone;
	char *endpoint; /* NULL before session_start */
};

static void warn_if_insecure(const struct cloud_config *cfg)
{
	if (cfg->insecure)
		log_warn("certificates are not checked, as %s asks for: whoever is on the way "
			 "can read the password and the image%s",
			 cfg->origin, cfg->cacert ? "; cacert is of no use then" : "");
}

static int open_parts(struct session *s, const struct session_config *cfg, struct err *err)
{
	struct http_config http;

	if (cloud_config_load(cfg->cloud, &s->cfg, err) < 0)
		return -1;
	http = (struct http_config){
		.cacert = s->cfg.cacert,
		.cert = s->cfg.cert,
		.key = s->cfg.key,
		.insecure = s->cfg.insecure,
		.connect_seconds = cfg->connect_seconds,
		.stall_seconds = cfg->stall_seconds,
		.total_seconds = cfg->total_seconds,
		.limit_rate = cfg->limit_rate,
	};
	warn_if_insecure(&s->cfg);
	s->http = http_open(&http, err);
	s->keystone = s->http ? keystone_open(&s->cfg, s->http, err) : NULL;
	return s->keystone ? 0 : -1;
}

struct session *session_open(const struct session_config *cfg, struct err *err)
{
	autosession struct session *s = calloc(1, sizeof *s);

	if (!s)
		err_nomem(err);
	else if (open_parts(s, cfg, err) == 0)
		return steal(&s);
	return NULL;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	keystone_close(s->keystone);
	http_close(s->http);
	cloud_config_free(&s->cfg);
	free(s->endpoint);
	free(s);
}

/* --- starting --- */

/* Anyone on the way may read the token: not for us to refuse, since such networks exist. */
static void note_plain_http(const struct session *s)
{
	autofree char *url = url_for_messages(s->endpoint);

	if (url && str_starts(s->cfg.auth_url, "https:") && str_starts(url, "http:"))
		log_note("%s: the image service is reached without encryption, at %s",
			 s->cfg.origin, url);
}

static int set_endpoint(struct session *s, const char *url, struct err *err)
{
	s->endpoint = endpoint_base(url);
	if (!s->endpoint)
		return err_nomem(err);
	note_plain_http(s);
	return 0;
}

static int find_endpoint(struct session *s, struct err *err)
{
	autofree char *url = NULL;

	if (!s->cfg.image_endpoint) {
		url = keystone_endpoint(s->keystone, "image", err);
		return url ? set_endpoint(s, url, err) : -1;
	}
	if (url_check(s->cfg.image_endpoint, "the image service's URL", ERR_REFUSED, err) < 0)
		return err_context(err, "%s", s->cfg.origin);
	return set_endpoint(s, s->cfg.image_endpoint, err);
}

/* With a token that has not expired, as far as we know. */
static int start(struct session *s, enum keystone_when when, struct err *err)
{
	if (keystone_seconds_left(s->keystone) == 0 &&
	    keystone_authenticate(s->keystone, when, err) < 0)
		return -1;
	return s->endpoint ? 0 : find_endpoint(s, err);
}

int session_start(struct session *s, struct err *err)
{
	return start(s, KEYSTONE_NORMALLY, err);
}

int session_refresh(struct session *s, uint64_t seconds, struct err *err)
{
	if (session_start(s, err) < 0)
		return -1;
	if (keystone_seconds_left(s->keystone) >= seconds || !keystone_can_renew(s->keystone))
		return 0;
	return keystone_authenticate(s->keystone, KEYSTONE_NORMALLY, err);
}

/* --- sending --- */

static int send_with_token(struct session *s, const struct http_request *request,
			   struct http_response *out, struct err *err)
{
	struct http_header secrets[] = { { "X-Auth-Token", keystone_token(s->keystone) },
					 { NULL, NULL } };
	struct http_request whole = *request;
	autofree char *url = url_join(s->endpoint, request->url);

	whole.url = url;
	whole.secret_headers = secrets;
	return url ? http_send(s->http, &whole, out, err) : err_nomem(err);
}

static enum keystone_when when_of(const struct http_request *request)
{
	return request->even_if_interrupted ? KEYSTONE_CLEANING_UP : KEYSTONE_NORMALLY;
}

/* 0: answered, and not by a 401; 1: by a 401, and there is a new token; -1.  An image
 * service that cannot reach the identity service says 401, too: then the log-in fails, and
 * its message is the one that tells what is wrong.
 */
static int send_and_renew(struct session *s, const struct http_request *request,
			  struct http_response *out, struct err *err)
{
	*out = (struct http_response){ .is_certain_unsent = true };
	if (start(s, when_of(request), err) < 0 || send_with_token(s, request, out, err) < 0)
		return -1;
	if (out->status != 401)
		return 0;
	return keystone_authenticate(s->keystone, when_of(request), err) < 0 ? -1 : 1;
}

int session_send_once(struct session *s, struct http_request *request, struct http_response *out,
		      struct err *err)
{
	return send_and_renew(s, request, out, err) < 0 ? -1 : 0;
}

int session_send(struct session *s, struct http_request *request, struct http_response *out,
		 struct err *err)
{
	int rc = send_and_renew(s, request, out, err);

	if (rc <= 0)
		return rc;
	http_response_free(out);
	*out = (struct http_response){ .is_certain_unsent = true };
	return send_with_token(s, request, out, err);
}

/* --- questions --- */

const char *session_endpoint(const struct session *s)
{
	return s->endpoint;
}

const char *session_project_id(const struct session *s)
{
	return keystone_project_id(s->keystone);
}

const char *session_origin(const struct session *s)
{
	return s->cfg.origin;
}

bool session_can_renew(const struct session *s)
{
	return keystone_can_renew(s->keystone);
}

uint64_t session_seconds_left(const struct session *s)
{
	return keystone_seconds_left(s->keystone);
}
