/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HTTP_PRIVATE_H
#define CCSNAP_HTTP_PRIVATE_H

#include "dest/http.h"

#include <curl/curl.h>

/* How http.h is done, from the outside in; each calls the next only:
 *
 *   http.c           tries, until there is an answer that will not get better
 *   http_redirect.c  hops, until somebody answers and does not only point elsewhere
 *   http_exchange.c  one request to one URL: what libcurl is told, and what came of it
 *   http_callbacks.c what libcurl calls while it works; the limits
 *
 * and beside them: http_setup.c (what holds for all requests), http_headers.c (what is sent),
 * http_response.c (what came), http_failure.c (libcurl's errors in our words), http_retry.c
 * (pauses) and http_error.c (the server's words).
 */
struct err;

enum { HTTP_PROXIES = 6 };

struct http {
	CURL *curl;
	unsigned connect_seconds, stall_seconds, total_seconds;
	uint64_t limit_rate;
	bool has_own_limits;
	char why[CURL_ERROR_SIZE]; /* libcurl's words for the last error */

	/* Passwords in URLs: the proxies', and the last request's own (base/secret.h). */
	char *proxy_secrets[HTTP_PROXIES], *url_secret;
};

struct http_field {
	char *name, *value;
};

/* A request and where it goes now, which is another place after a redirect. */
struct http_hop {
	struct http *http;
	const struct http_request *request;
	const char *url;
	uint64_t deadline; /* as clock_ns; 0: none */
};

/* Why we ended an exchange ourselves. */
enum http_stop { HTTP_GOES_ON, HTTP_STOP_ERROR /* err is set */, HTTP_STOP_STALLED };

struct http_exchange {
	const struct http_hop *hop;
	struct http_response *out;
	struct err *err;
	enum http_stop stop;

	bool is_connected; /* the request may have been sent */
	bool is_head_done; /* of the final answer */
	size_t head_bytes; /* of all heads */
	size_t body_cap;

	uint64_t upload_at;  /* what was read of the upload */
	uint64_t moved_at;   /* as clock_ns: when a byte went either way */
	curl_off_t up, down; /* the most that libcurl has told of */
};

/* The first failure counts; a libcurl that does not know an option is one. */
#define HTTP_SET(curl, code, option, value)                                                        \
	do {                                                                                       \
		if ((code) == CURLE_OK)                                                            \
			(code) = curl_easy_setopt((curl), (option), (value));                      \
	} while (0)

/* What holds for all requests. */
CURLcode http_set_up(struct http *http, const struct http_config *cfg);

/* How much to move at once: libcurl keeps to a rate by resting after each portion. */
uint64_t http_portion(const struct http *http);

/* At the origin of the request's own URL: secrets may go there. */
bool http_is_home(const struct http_hop *hop);

/* "HOST:PORT" for messages (malloc; NULL when out of memory). */
char *http_peer(const struct http_hop *hop);

int http_exchange(const struct http_hop *hop, struct http_response *out, struct err *err);

/* All callbacks, with x behind them. */
CURLcode http_set_callbacks(CURL *curl, struct http_exchange *x);

/* As http_send, once. */
int http_follow(struct http *http, const struct http_request *request, struct http_response *out,
		struct err *err);

/* Is it fit to be sent?  ERR_USAGE for a URL, ERR_REFUSED for the rest. */
int http_check_request(const struct http_request *request, struct err *err);

/* All headers of a hop; NULL when out of memory. */
struct curl_slist *http_headers(const struct http_hop *hop);
void http_headers_free(struct curl_slist *list); /* wiped */

/* Forget what came so far, but not where from. */
void http_response_restart(struct http_response *r);
int http_response_add_field(struct http_response *r, const char *line, size_t len, struct err *err);
int http_response_add_body(struct http_response *r, size_t *cap, const void *buf, size_t len,
			   struct err *err);

/* That no answer came, in words that tell what to do; sets may_retry and
 * is_certain_unsent.  Returns -1.
 */
int http_failure(struct http_exchange *x, CURLcode code);

/* "503 Service Unavailable" (RFC 9110's words, not the server's). */
struct http_status_text {
	char text[64];
};
struct http_status_text http_status_text(unsigned status);

/* Seconds until the next try, and the state for the one after it. */
unsigned http_next_pause(struct http_backoff *backoff, const struct http_response *r);

enum http_patience { HTTP_UNTIL_SIGNAL, HTTP_THROUGH_SIGNALS };
int http_sleep(unsigned seconds, enum http_patience how, struct err *err);

#endif
