/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HTTP_H
#define CCSNAP_HTTP_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Requests over HTTP/1.1 (RFC 9110, 9112), one at a time, over libcurl.
 * Connections are kept and used again.  Used from one thread.
 *
 * Redirects: GET and HEAD follow 301, 302, 303, 307 and 308, every other method
 * 307 and 308 only, with method and body kept; at most 5, never from https to
 * http.  What is secret in a request goes to the origin (scheme, host, port) of
 * its own URL only.
 */
struct err;
struct http;

struct http_config {
	const char *cacert;	  /* file or directory of CAs; NULL: the system's */
	const char *cert, *key;	  /* of ours, PEM; NULL: none */
	bool no_proxy;		  /* whatever the environment says: the peer is on this link */
	bool has_own_limits;	  /* set by no option: messages point to none */
	bool insecure;		  /* do not verify the server; the caller has warned */
	unsigned connect_seconds; /* 0: 30 */
	unsigned stall_seconds;	  /* no byte in either direction; 0: 300 */
	unsigned total_seconds;	  /* of one request; 0: no limit */
	uint64_t limit_rate;	  /* of bodies, bytes a second; 0: none */
};

/* Strings are copied.  A cacert, cert or key that is not there is ERR_REFUSED. */
struct http *http_open(const struct http_config *cfg, struct err *err);
void http_close(struct http *http); /* NULL is fine */

struct http_header {
	const char *name, *value; /* value NULL: not sent */
};

/* A large body.  read gives exactly len bytes at offset; it is called in order,
 * and again from offset 0 when the request has to be repeated.
 */
struct http_upload {
	uint64_t size;
	int (*read)(void *ctx, void *buf, size_t len, uint64_t offset, struct err *err);
	void *ctx;
};

/* Where the body of an answer with 2xx goes.  begin (may be NULL) sees the
 * answer's status and headers before the first byte.
 */
struct http_response;
struct http_download {
	int (*begin)(void *ctx, const struct http_response *head, struct err *err);
	int (*write)(void *ctx, const void *buf, size_t len, struct err *err);
	void *ctx;
};

struct http_request {
	const char *method, *url;
	const struct http_header *headers;	  /* ends with a NULL name; may be NULL */
	const struct http_header *secret_headers; /* the same, for url's origin only */

	/* A body, if any: text from memory, or an upload.  It is always sent with
	 * Content-Length.
	 */
	const char *text;
	bool text_is_secret; /* a redirect to another origin is an error (ERR_REFUSED) */
	const struct http_upload *upload;

	const struct http_download *download; /* NULL: the body is kept in the response */

	unsigned total_seconds; /* 0: the config's */

	/* In all, while it may get better (http_may_get_better, or no answer), with
	 * pauses that grow (1, 2, 4 ... 60 seconds, or Retry-After up to 10
	 * minutes); 0 counts as 1.  Only for what may safely be repeated.
	 */
	unsigned tries;

	/* To clean up with: goes on after a signal. */
	bool even_if_interrupted;
};

#define HTTP_BODY_MAX (4 << 20) /* of an answer that is kept in memory; its JSON takes far more */

struct http_response {
	unsigned status; /* 0: no answer came */

	/* Without an answer: could it be different another time?  false for bad
	 * certificates, bad URLs, signals, errors of read and write.
	 */
	bool may_retry;
	bool is_certain_unsent; /* the request never got to a server */

	char *body; /* NUL behind it; "" for none, and for what went to a download */
	size_t body_len;
	char *url;		 /* that answered */
	uint64_t sent, received; /* bytes of the bodies */
	struct http_field *fields;
	size_t field_count;
};

/* 0 when an answer came, whatever its status; -1 when none did, or none that
 * could be understood.  out is filled in either way, and freed by the caller.
 * An error status that comes while the body is being sent ends the sending.
 */
int http_send(struct http *http, const struct http_request *request, struct http_response *out,
	      struct err *err);
void http_response_free(struct http_response *r);

/* The (last) header of that name in any case, NULL without one. */
const char *http_header_of(const struct http_response *r, const char *name);

/* A date in a header (RFC 9110 5.6.7; NULL is fine); -1 when it is none. */
int http_date(const char *text, time_t *out);

/* 408, 429, 500, 502, 503 or 504. */
bool http_may_get_better(const struct http_response *r);

/* The pauses of request.tries, for loops that must do more in between. */
struct http_backoff {
	unsigned tries; /* left, the one that just failed not counted */
	unsigned pause; /* seconds; starts at 0 */
};

/* Wait before the next try; -1 when there is none left (err stays as it is) or
 * when a signal comes (ERR_INTERRUPTED).  r may be NULL.
 */
int http_wait(struct http_backoff *backoff, const struct http_response *r, struct err *err);

/* The failure that an answer tells, with the server's own words, JSON or HTML or
 * plain, made one short line: "WHAT: 403 Forbidden: You may not ...".
 */
int http_error(const struct http_response *r, const char *what, struct err *err);

CLEANUP_TYPE(struct http, http, http_close)
#define autohttp CLEANUP(http_cleanup)

static inline void http_response_cleanup(struct http_response *r)
{
	http_response_free(r);
}
#define autoresponse CLEANUP(http_response_cleanup)

#endif
