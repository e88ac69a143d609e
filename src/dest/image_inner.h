/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_INNER_H
#define CCSNAP_IMAGE_INNER_H

#include "dest/http.h"

/* How the parts of image_service.h ask. */
struct err;
struct session;

/* In all, for small requests that may be repeated. */
#define SERVICE_TRIES 5

/* "/v2/images/ID" and tail (malloc); NULL with err. */
char *service_path(const char *id, const char *tail, struct err *err);

/* GET a small document; 0 when an answer came, whichever. */
int service_ask(struct session *s, const char *path, struct http_response *out, struct err *err);

/* Something that may be done once only.  When the answer is lost, or says that it is done
 * already (409), it is found out before it is asked for again.
 */
struct deed {
	const struct http_request *request;
	unsigned done;		 /* the status that says so */
	const char *what, *hint; /* for messages; hint may be NULL */

	/* 1: it is, 0: no, -1: it never will be */
	int (*is_done)(struct session *s, const void *ctx, struct err *err);
	const void *ctx;
};

int service_do_once(struct session *s, const struct deed *deed, struct err *err);

#endif
