/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_INNER_H
#define CCSNAP_IMAGE_INNER_H

/* How the parts of image_service.h ask. */
struct err;
struct http_response;
struct session;

/* GET a small document; 0 when an answer came, whichever. */
int service_ask(struct session *s, const char *path, struct http_response *out, struct err *err);

#endif
