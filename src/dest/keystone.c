// SPDX-License-Identifier: Apache-2.0
#include "dest/keystone.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"
#include "dest/cloud_config.h"
#include "dest/endpoint.h"
#include "dest/http.h"
#include "dest/keystone_inner.h"
#include "dest/url.h"

#include <string.h>
#include <time.h>

#define CLEANING_UP_SECONDS 20

struct keystone {
	struct cloud_config *cfg;
	struct http *http;
	char *v3; /* URL; NULL: not yet looked for */

	char *token; /* secret; NULL: none yet */
	struct token facts;
	uint64_t got_ns;  /* when we got it, */
	uint64_t seconds; /* and for how long it was good then */
};

struct keystone *keystone_open(struct cloud_config *cfg, struct http *http, struct err *err)
{
	struct keystone *k;

	if (!cfg->auth_url) {
		err_set(err, ERR_REFUSED, "%s has no auth_url (OS_AUTH_URL)", cfg->origin);
		return NULL;
	}
	if (url_check(cfg->auth_url, "the auth URL", ERR_REFUSED, err) < 0) {
		err_context(err, "%s", cfg->origin);
		return NULL;
	}
	k = calloc(1, sizeof *k);
	if (!k)
		err_nomem(err);
	else
		*k = (struct keystone){ .cfg = cfg, .http = http };
	return k;
}

void keystone_close(struct keystone *k)
{
	if (!k)
		return;
	free(k->v3);
	secret_free(k->token);
	token_free(&k->facts);
	free(k);
}

/* --- asking --- */

static struct http_request request_for(enum keystone_when when)
{
	static const struct http_header headers[] = {
		{ "Content-Type", "application/json" },
		{ "Accept", "application/json" },
		{ NULL, NULL },
	};

	if (when == KEYSTONE_CLEANING_UP)
		return (struct http_request){ .headers = headers,
					      .tries = 3,
					      .total_seconds = CLEANING_UP_SECONDS,
					      .even_if_interrupted = true };
	return (struct http_request){ .headers = headers, .tries = 5 };
}

static int find_service(struct keystone *k, enum keystone_when when, struct err *err)
{
	struct http_request like = request_for(when);

	if (!k->v3)
		k->v3 = keystone_discover(k->http, k->cfg->auth_url, &like, err);
	return k->v3 ? 0 : -1;
}

static int send_tokens(struct keystone *k, struct http_request *request, struct http_response *r,
		       struct err *err)
{
	autofree char *url = url_join(k->v3, "auth/tokens");

	request->url = url;
	if (!url)
		return err_nomem(err);
	return keystone_ask(k->http, request, r, err);
}

/* Messages name the URL, so that a wrong one is seen. */
static int refuse(struct keystone *k, const struct http_response *r, const char *hint,
		  struct err *err)
{
	autofree char *url = url_for_messages(k->v3);
	autofree char *what =
		str_format("logging in at %s with %s", url ? url : "the cloud", k->cfg->origin);

	return endpoint_error(r, what ? what : "logging in", hint, err);
}

/* --- what came --- */

/* A token that is made now is issued now; the time at which one that is older was looked
 * at is that of the answer.
 */
static int64_t service_time(const struct token *t, const struct http_response *r)
{
	time_t date;

	if (r->status == 201 && t->issued_at <= t->expires_at)
		return t->issued_at;
	return http_date(http_header_of(r, "Date"), &date) == 0 ? date : time(NULL);
}

static void take(struct keystone *k, char *token, struct token *facts,
		 const struct http_response *r)
{
	int64_t now = service_time(facts, r);

	secret_free(k->token);
	k->token = token;
	token_free(&k->facts);
	k->facts = *facts;
	*facts = (struct token){ 0 };
	k->got_ns = clock_ns();
	k->seconds = k->facts.expires_at > now ? (uint64_t)(k->facts.expires_at - now) : 0;
}

/* text: the token's, in a header of ours or theirs. */
static int accept_token(struct keystone *k, const char *text, const struct http_response *r,
			struct err *err)
{
	autosecret char *token = secret_new(text);
	struct token facts;

	if (!token)
		return err_nomem(err);
	if (token_from_json(r->body, r->body_len, &facts, err) < 0)
		return -1;
	take(k, steal(&token), &facts, r);
	return 0;
}

/* --- a new token --- */

static const char *const hints[] = {
	[CLOUD_PASSWORD] = "check user name, user domain, password and project",
	[CLOUD_TOKEN] = "the token may have expired, or not be for that project",
	[CLOUD_APPLICATION_CREDENTIAL] =
		"check the application credential's id and secret, and whether it has expired",
};

static int take_answer(struct keystone *k, const struct http_response *r, struct err *err)
{
	const char *token = http_header_of(r, "X-Subject-Token");
	int rc;

	if (r->status != 201)
		return refuse(k, r, r->status == 401 ? hints[k->cfg->auth] : NULL, err);
	if (!token || !*token)
		return err_set(err, ERR_FAILED,
			       "the identity service's answer has no token; "
			       "is the auth URL that of Keystone?");
	rc = accept_token(k, token, r, err);
	explicit_bzero((char *)token, strlen(token));
	return rc;
}

static int log_in(struct keystone *k, enum keystone_when when, struct err *err)
{
	struct http_request request = request_for(when);
	autoresponse struct http_response r = { 0 };
	char *body = login_body(k->cfg);
	int rc;

	if (!body)
		return err_set(err, ERR_REFUSED, "%s: the credentials are not in UTF-8",
			       k->cfg->origin);
	request.method = "POST";
	request.text = body;
	request.text_is_secret = true;
	rc = send_tokens(k, &request, &r, err);
	login_wipe(body);
	return rc < 0 ? -1 : take_answer(k, &r, err);
}

/* --- a token that we were given --- */

static int expired(struct keystone *k, struct err *err)
{
	return err_set(err, ERR_REFUSED,
		       "%s: the token has expired and cannot be renewed; get a new one "
		       "(openstack token issue), or use an application credential",
		       k->cfg->origin);
}

/* Of the metadata service's token a new one will be there when it is asked again. */
static int not_known(struct keystone *k, struct err *err)
{
	if (!keystone_can_renew(k))
		return expired(k, err);
	return err_set(err, ERR_FAILED, "%s: the token has expired", k->cfg->origin);
}

static int look_at_token(struct keystone *k, enum keystone_when when, struct err *err)
{
	struct http_header secrets[] = { { "X-Auth-Token", k->cfg->secret },
					 { "X-Subject-Token", k->cfg->secret },
					 { NULL, NULL } };
	struct http_request request = request_for(when);
	autoresponse struct http_response r = { 0 };

	request.method = "GET";
	request.secret_headers = secrets;
	if (send_tokens(k, &request, &r, err) < 0)
		return -1;
	if (r.status == 401 || r.status == 404)
		return not_known(k, err);
	if (r.status != 200)
		return refuse(k, &r, NULL, err);
	if (accept_token(k, k->cfg->secret, &r, err) < 0)
		return -1;
	return k->seconds > 0 ? 0 : not_known(k, err);
}

static bool differs(const char *wanted, const char *there)
{
	return wanted && (!there || !str_equal(wanted, there));
}

/* Is it for something else than the configuration says? */
static bool is_for_another(const struct token *t, const struct cloud_config *cfg)
{
	if (cfg->project_id || cfg->project_name)
		return differs(cfg->project_id, t->project_id) ||
		       (!cfg->project_id && differs(cfg->project_name, t->project_name));
	return differs(cfg->domain_id, t->domain_id) || differs(cfg->domain_name, t->domain_name);
}

static int use_token(struct keystone *k, enum keystone_when when, struct err *err)
{
	const struct http_request like = request_for(when);

	if (k->token && k->cfg->from_metadata && cloud_config_refresh(k->cfg, &like, err) < 0)
		return -1;
	if (look_at_token(k, when, err) < 0)
		return -1;
	return is_for_another(&k->facts, k->cfg) ? log_in(k, when, err) : 0;
}

static int check_scope(struct keystone *k, struct err *err)
{
	const struct token *t = &k->facts;

	if (t->project_id || t->domain_id || t->len > 0)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%s: the token is for no project, and images belong to one; "
		       "name it (OS_PROJECT_NAME, or project_name in clouds.yaml)",
		       k->cfg->origin);
}

int keystone_authenticate(struct keystone *k, enum keystone_when when, struct err *err)
{
	if (find_service(k, when, err) < 0)
		return -1;
	if ((k->cfg->auth == CLOUD_TOKEN ? use_token : log_in)(k, when, err) < 0)
		return -1;
	return check_scope(k, err);
}

/* --- questions --- */

const char *keystone_token(const struct keystone *k)
{
	return k->token;
}

bool keystone_can_renew(const struct keystone *k)
{
	return k->cfg->auth != CLOUD_TOKEN || k->cfg->from_metadata;
}

uint64_t keystone_seconds_left(const struct keystone *k)
{
	uint64_t gone = (clock_ns() - k->got_ns) / 1000000000;

	return k->token && k->seconds > gone ? k->seconds - gone : 0;
}

const char *keystone_project_id(const struct keystone *k)
{
	return k->facts.project_id;
}

char *keystone_endpoint(const struct keystone *k, const char *type, struct err *err)
{
	const char *url =
		catalog_find(&k->facts, type, k->cfg->region_name, k->cfg->interface, err);
	char *copy;

	if (!url || url_check(url, "the cloud's catalog", ERR_REFUSED, err) < 0) {
		err_context(err, "%s", k->cfg->origin);
		return NULL;
	}
	copy = strdup(url);
	if (!copy)
		err_nomem(err);
	return copy;
}
