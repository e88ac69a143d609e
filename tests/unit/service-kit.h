/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_SERVICE_KIT_H
#define CCSNAP_TEST_SERVICE_KIT_H

/* Services that are a script: each request must be the next one of it, and gets the answer
 * that stands there.  In place of http.c and cloud_config.c: include it once a program.
 */
#include "dest/cloud_config.h"
#include "dest/http.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/str.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

/* --- the script --- */

enum fate { ANSWERED, LOST, UNSENT, HOPELESS };

struct exchange {
	const char *method, *url; /* all of it */
	unsigned status;
	const char *body;
	const char *header, *value; /* of the answer */
	enum fate fate;
};

/* What was asked. */
struct asked {
	char *text, *token, *subject, *content_type, *range;
	unsigned tries, total_seconds;
	bool kept_on;
};

static struct err err;
static const struct exchange *script; /* what is left of it */
static struct asked asked[2048];
static size_t asked_count, pauses;

static inline char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

static inline const char *header_in(const struct http_header *h, const char *name)
{
	for (; h && h->name; h++)
		if (strcasecmp(h->name, name) == 0)
			return h->value;
	return NULL;
}

static inline void forget_asked(void)
{
	while (asked_count > 0) {
		struct asked *a = &asked[--asked_count];

		free(a->text);
		free(a->token);
		free(a->subject);
		free(a->content_type);
		free(a->range);
	}
	pauses = 0;
}

/* From here on; ends with a NULL method. */
static inline void play(const struct exchange *exchanges)
{
	forget_asked();
	script = exchanges;
	err = (struct err){ 0 };
}

static inline void assert_played(void)
{
	if (script->method)
		fail_msg("%s %s was not asked for; the error is \"%s\"", script->method,
			 script->url, err.text);
}

static inline void note(const struct http_request *r)
{
	assert_true(asked_count < sizeof asked / sizeof *asked);
	asked[asked_count++] = (struct asked){
		.text = copy_of(r->text),
		.token = copy_of(header_in(r->secret_headers, "X-Auth-Token")),
		.subject = copy_of(header_in(r->secret_headers, "X-Subject-Token")),
		.content_type = copy_of(header_in(r->headers, "Content-Type")),
		.range = copy_of(header_in(r->headers, "Range")),
		.tries = r->tries,
		.total_seconds = r->total_seconds,
		.kept_on = r->even_if_interrupted,
	};
	assert_null(header_in(r->headers, "X-Auth-Token"));
}

/* --- http.h --- */

struct http {
	int nothing;
};

struct http_field {
	char *name, *value;
};

struct http *http_open(const struct http_config *cfg, struct err *error)
{
	(void)cfg;
	(void)error;
	return calloc(1, sizeof(struct http));
}

void http_close(struct http *http)
{
	free(http);
}

static inline void add_field(struct http_response *out, const char *name, const char *value)
{
	out->fields = realloc(out->fields, (out->field_count + 1) * sizeof *out->fields);
	out->fields[out->field_count++] = (struct http_field){ strdup(name), strdup(value) };
}

int http_send(struct http *http, const struct http_request *request, struct http_response *out,
	      struct err *error)
{
	const struct exchange *x = script;

	assert_non_null(http);
	*out = (struct http_response){ 0 };
	if (!x->method || strcmp(x->method, request->method) != 0 ||
	    strcmp(x->url, request->url) != 0)
		fail_msg("asked for %s %s, not for %s %s", request->method, request->url,
			 x->method ? x->method : "nothing", x->url ? x->url : "");
	script++;
	note(request);
	out->may_retry = x->fate == LOST || x->fate == UNSENT;
	out->is_certain_unsent = x->fate == UNSENT;
	out->body = strdup(x->body ? x->body : "");
	if (x->fate != ANSWERED)
		return err_set(error, ERR_FAILED, "no answer came");
	out->status = x->status;
	out->body_len = strlen(out->body);
	out->url = strdup(request->url);
	if (x->header)
		add_field(out, x->header, x->value);
	return 0;
}

void http_response_free(struct http_response *r)
{
	for (size_t i = 0; i < r->field_count; i++) {
		free(r->fields[i].name);
		free(r->fields[i].value);
	}
	free(r->fields);
	free(r->body);
	free(r->url);
	*r = (struct http_response){ 0 };
}

const char *http_header_of(const struct http_response *r, const char *name)
{
	for (size_t i = 0; i < r->field_count; i++)
		if (strcasecmp(r->fields[i].name, name) == 0)
			return r->fields[i].value;
	return NULL;
}

bool http_may_get_better(const struct http_response *r)
{
	return r->status == 429 || r->status == 500 || r->status == 503;
}

int http_wait(struct http_backoff *backoff, const struct http_response *r, struct err *error)
{
	(void)r;
	(void)error;
	pauses++;
	return backoff->tries-- > 0 ? 0 : -1;
}

int http_date(const char *text, time_t *out)
{
	struct tm t = { 0 };

	if (!text || !strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &t))
		return -1;
	*out = timegm(&t);
	return 0;
}

int http_error(const struct http_response *r, const char *what, struct err *error)
{
	return err_set(error, ERR_FAILED, "%s: %u: %s", what, r->status, r->body);
}

/* --- cloud_config.h --- */

static struct cloud_config config; /* borrowed texts, but for the secret */
static unsigned refreshed;
static bool refresh_kept_on;
static const char *fresh_secret;

int cloud_config_load(const char *name, struct cloud_config *out, struct err *error)
{
	(void)name;
	(void)error;
	*out = config;
	return 0;
}

int cloud_config_refresh(struct cloud_config *cfg, const struct http_request *like,
			 struct err *error)
{
	refreshed++;
	refresh_kept_on = like->even_if_interrupted;
	secret_free(cfg->secret);
	cfg->secret = secret_new(fresh_secret);
	return cfg->secret ? 0 : err_nomem(error);
}

void cloud_config_free(struct cloud_config *cfg)
{
	secret_free(cfg->secret);
	cfg->secret = NULL;
}

#define AUTH   "https://cloud.example:5000/v3"
#define TOKENS AUTH "/auth/tokens"

static inline void use_password(void)
{
	config = (struct cloud_config){ .origin = (char *)"cloud lab",
					.auth = CLOUD_PASSWORD,
					.auth_url = (char *)AUTH,
					.user_name = (char *)"ann",
					.project_name = (char *)"lab",
					.secret = secret_new("sesame\"open") };
}

/* --- what services say --- */

#define ENDPOINT(region, interface, url)                                                           \
	"{\"region_id\":\"" region "\",\"interface\":\"" interface "\",\"url\":\"" url "\"}"
#define SERVICE(type, endpoints) "{\"type\":\"" type "\",\"endpoints\":[" endpoints "]}"

#define IMAGES	     "https://images.example:9292"
#define ONE_SERVICE  SERVICE("image", ENDPOINT("One", "public", IMAGES "/v2/"))
#define PROJECT	     "\"project\":{\"id\":\"p1\",\"name\":\"lab\"},\"user\":{\"name\":\"ann\"},"
#define ISSUED	     "2026-11-30T22:39:48.000000Z"
#define AN_HOUR_MORE "2026-11-30T23:39:48.000000Z"

#define TOKEN_BODY(scope, issued, expires, services)                                               \
	"{\"token\":{" scope "\"issued_at\":\"" issued "\",\"expires_at\":\"" expires              \
	"\",\"catalog\":[" services "]}}"
#define A_TOKEN TOKEN_BODY(PROJECT, ISSUED, AN_HOUR_MORE, ONE_SERVICE)

#define LOGGED_IN(token)                                                                           \
	{                                                                                          \
		"POST", TOKENS, 201, A_TOKEN, "X-Subject-Token", token, ANSWERED                   \
	}

/* --- asserting --- */

static inline void assert_words(const char *words, enum err_kind kind)
{
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_int_equal(err.kind, kind);
}

/* Single quotes stand for double ones. */
static inline void assert_json(const char *text, const char *expected)
{
	char *quoted = strdup(expected);
	json_t *a, *b;

	for (char *p = quoted; (p = strchr(p, '\'')) != NULL;)
		*p = '"';
	a = json_loads(text ? text : "", 0, NULL);
	b = json_loads(quoted, 0, NULL);
	assert_non_null(b);
	if (!json_equal(a, b))
		fail_msg("%s is not %s", text, quoted);
	json_decref(a);
	json_decref(b);
	free(quoted);
}

#endif
