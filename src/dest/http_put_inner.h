/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HTTP_PUT_INNER_H
#define CCSNAP_HTTP_PUT_INNER_H

#include "dest/dest.h"
#include "dest/http.h"
#include "dest/http_target.h"

/* "http://..." and "https://...": a server that takes files by PUT. */
struct payload;
struct workfile;

struct http_put {
	struct dest base;
	struct http_target target;
	struct http *http;
	struct workfile *work; /* NULL when no image is to go there */
	int fd;		       /* of the image; -1: none yet */
	bool is_adopted;       /* it is the caller's, and finished */
	bool overwrite, keep_failed;
	const char *misfit; /* an option that was given, and cannot be followed; or NULL */
	bool has_warned;
};

/* --- http_look.c: what is there? --- */

enum http_presence { HTTP_ABSENT, HTTP_PRESENT, HTTP_UNTOLD };

struct http_sight {
	enum http_presence presence;
	bool has_size;
	uint64_t size;
};

/* HTTP_UNTOLD: the server answers, but does not let us know.  tries as in http_request. */
int http_look(struct http_put *h, unsigned tries, struct http_sight *out, struct err *err);

/* The same when all else has failed: once, soon, and in spite of a signal. */
int http_look_last(struct http_put *h, struct http_sight *out, struct err *err);

/* A request for the image's URL, with what the server is to know of us in secret, which is
 * the caller's and must be there as long.
 */
struct http_request http_put_request(const struct http_put *h, const char *method,
				     struct http_header secret[2]);

/* --- http_put_send.c --- */

/* All or nothing, as far as such a server lets us; fills in the receipt. */
int http_put_send(struct http_put *h, struct image_info *info, struct err *err);

int http_put_refuse_existing(const struct http_put *h, struct err *err);

#endif
