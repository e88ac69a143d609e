/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SESSION_H
#define CCSNAP_SESSION_H

#include "base/cleanup.h"
#include "dest/http.h"

#include <stdbool.h>
#include <stdint.h>

/* A conversation with a cloud's image service: who we are, the token, and the
 * service's URL.  Every request gets the token; one that is refused for it (401) is
 * repeated with a new one, at any time, also when a large body has been sent.
 */
struct err;
struct session;

struct session_config {
	const char *cloud; /* NULL: see cloud_config.h */
	unsigned connect_seconds, stall_seconds, total_seconds;
	uint64_t limit_rate;
};

/* Reads the configuration; sends nothing but, perhaps, to the metadata service. */
struct session *session_open(const struct session_config *cfg, struct err *err);
void session_close(struct session *s); /* NULL is fine */

/* Log in and find the service, unless that is done.  All below do it by themselves. */
int session_start(struct session *s, struct err *err);

/* request->url is a path below the service's URL ("/v2/images"); its secret_headers are
 * the session's.  As http_send else.
 */
int session_send(struct session *s, struct http_request *request, struct http_response *out,
		 struct err *err);

/* As session_send, but a 401 is only followed by a new token and returned, so that
 * the caller can look at what its large body has become.
 */
int session_send_once(struct session *s, struct http_request *request, struct http_response *out,
		      struct err *err);

/* Renew the token unless it is good for so long.  Where it cannot be renewed, that is
 * no error before it has expired.
 */
int session_refresh(struct session *s, uint64_t seconds, struct err *err);

/* After session_start; borrowed. */
const char *session_endpoint(const struct session *s); /* without a slash or /v2 behind it */
const char *session_project_id(const struct session *s);
const char *session_origin(const struct session *s); /* of the credentials, for messages */
bool session_can_renew(const struct session *s);
uint64_t session_seconds_left(const struct session *s); /* of the token */

CLEANUP_TYPE(struct session, session, session_close)
#define autosession CLEANUP(session_cleanup)

#endif
