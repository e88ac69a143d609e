// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/http_url.h"
#include "dest/url.h"

#include <assert.h>
#include <string.h>

static void headers_cleanup(struct curl_slist **list)
{
	http_headers_free(*list);
}
#define autoheaders CLEANUP(headers_cleanup)

/* Nothing is left of an earlier request.  Not by curl_easy_reset: that forgets the sizes of
 * buffers that libcurl may have kept.
 */
static CURLcode forget(CURL *curl)
{
	CURLcode code = CURLE_OK;

	HTTP_SET(curl, code, CURLOPT_POSTFIELDS, NULL);
	HTTP_SET(curl, code, CURLOPT_HTTPGET, 1L);
	HTTP_SET(curl, code, CURLOPT_CUSTOMREQUEST, NULL);
	HTTP_SET(curl, code, CURLOPT_HTTPHEADER, NULL);
	HTTP_SET(curl, code, CURLOPT_USERNAME, NULL);
	HTTP_SET(curl, code, CURLOPT_PASSWORD, NULL);
	HTTP_SET(curl, code, CURLOPT_TIMEOUT_MS, 0L);
	return code;
}

static CURLcode set_deadline(CURL *curl, uint64_t deadline)
{
	CURLcode code = CURLE_OK;
	uint64_t now = clock_ns(), ms = deadline > now ? (deadline - now) / 1000000 : 0;

	if (deadline)
		HTTP_SET(curl, code, CURLOPT_TIMEOUT_MS, (long)MIN(MAX(ms, 1), LONG_MAX));
	return code;
}

static CURLcode set_upload(CURL *curl, const struct http_upload *upload)
{
	CURLcode code = CURLE_OK;

	assert(upload->size <= INT64_MAX);
	HTTP_SET(curl, code, CURLOPT_UPLOAD, 1L);
	HTTP_SET(curl, code, CURLOPT_INFILESIZE_LARGE, (curl_off_t)upload->size);
	return code;
}

/* The methods whose missing body is told by Content-Length: 0 (RFC 9110 8.6). */
static bool is_with_body(const char *method)
{
	return str_equal(method, "POST") || str_equal(method, "PUT") || str_equal(method, "PATCH");
}

static CURLcode set_method(CURL *curl, const struct http_request *request)
{
	const char *text = request->text ? request->text : "";
	CURLcode code = CURLE_OK;

	if (request->upload) {
		code = set_upload(curl, request->upload);
	} else if (request->text || is_with_body(request->method)) {
		HTTP_SET(curl, code, CURLOPT_POSTFIELDS, text);
		HTTP_SET(curl, code, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
	} else if (str_equal(request->method, "HEAD")) {
		HTTP_SET(curl, code, CURLOPT_NOBODY, 1L);
	}
	HTTP_SET(curl, code, CURLOPT_CUSTOMREQUEST, request->method);
	return code;
}

/* User name and password of the request's own URL, which is a secret, too. */
static CURLcode set_credentials(CURL *curl, const struct http_hop *hop)
{
	autourl CURLU *u = curl_url();
	autourlpart char *user = NULL, *password = NULL;
	CURLcode code = CURLE_OK;

	if (!http_is_home(hop))
		return CURLE_OK;
	if (!u || curl_url_set(u, CURLUPART_URL, hop->request->url, CURLU_PATH_AS_IS) != CURLUE_OK)
		return CURLE_OUT_OF_MEMORY;
	if (curl_url_get(u, CURLUPART_USER, &user, CURLU_URLDECODE) == CURLUE_OK)
		HTTP_SET(curl, code, CURLOPT_USERNAME, user);
	if (curl_url_get(u, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) == CURLUE_OK)
		HTTP_SET(curl, code, CURLOPT_PASSWORD, password);
	secret_free(hop->http->url_secret);
	hop->http->url_secret = secret_new(password ? password : user);
	return code;
}

/* The URL of a hop without them, wherever they came from; also what is told as the one
 * that answered.
 */
static CURLcode set_url(CURL *curl, const struct http_hop *hop, struct http_response *out)
{
	autourl CURLU *u = curl_url();
	autourlpart char *text = NULL;
	CURLcode code = CURLE_OK;

	if (!u || curl_url_set(u, CURLUPART_URL, hop->url, CURLU_PATH_AS_IS) != CURLUE_OK ||
	    curl_url_set(u, CURLUPART_USER, NULL, 0) != CURLUE_OK ||
	    curl_url_set(u, CURLUPART_PASSWORD, NULL, 0) != CURLUE_OK ||
	    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK)
		return CURLE_OUT_OF_MEMORY;
	HTTP_SET(curl, code, CURLOPT_URL, text);
	out->url = strdup(text);
	return out->url ? code : CURLE_OUT_OF_MEMORY;
}

static CURLcode set_up(struct http_exchange *x, struct curl_slist *headers)
{
	const struct http_hop *hop = x->hop;
	CURL *curl = hop->http->curl;
	CURLcode code = forget(curl);

	hop->http->why[0] = '\0';
	code = code ? code : set_method(curl, hop->request);
	HTTP_SET(curl, code, CURLOPT_HTTPHEADER, headers);
	code = code ? code : set_deadline(curl, hop->deadline);
	code = code ? code : set_credentials(curl, hop);
	code = code ? code : set_url(curl, hop, x->out);
	return code ? code : http_set_callbacks(curl, x);
}

static void log_exchange(const struct http_exchange *x, uint64_t start)
{
	autofree char *url = url_for_messages(x->hop->url);

	log_debug("%s %s: %s after %.2f s, %llu bytes sent, %llu received", x->hop->request->method,
		  url ? url : "",
		  x->out->status ? http_status_text(x->out->status).text : "no answer",
		  clock_seconds_since(start), (unsigned long long)x->out->sent,
		  (unsigned long long)x->out->received);
}

/* A server that refuses may do so without hearing us out, and reset the connection:
 * what it said counts, even if not all of it came through.
 */
static bool is_answered(const struct http_exchange *x, CURLcode code)
{
	if (x->stop == HTTP_STOP_ERROR || !x->is_head_done)
		return false;
	return code == CURLE_OK || x->out->status >= 300;
}

static int outcome(struct http_exchange *x, CURLcode code)
{
	curl_off_t sent = 0;

	curl_easy_getinfo(x->hop->http->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	x->out->sent = (uint64_t)MAX(sent, x->up);
	x->out->is_certain_unsent = false;
	if (is_answered(x, code))
		return http_response_add_body(x->out, &x->body_cap, "", 0, x->err);
	return http_failure(x, code);
}

int http_exchange(const struct http_hop *hop, struct http_response *out, struct err *err)
{
	struct http_exchange x = { .hop = hop, .out = out, .err = err, .moved_at = clock_ns() };
	autoheaders struct curl_slist *headers = http_headers(hop);
	uint64_t start = clock_ns();
	CURLcode code;
	int rc;

	if (!headers)
		return err_nomem(err);
	code = set_up(&x, headers);
	rc = outcome(&x, code ? code : curl_easy_perform(hop->http->curl));
	log_exchange(&x, start);
	forget(hop->http->curl);
	return rc;
}
