/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_INNER_H
#define CCSNAP_IMAGE_INNER_H

#include "dest/image_service.h"

/* How the parts of image_service.h ask. */
/* GET a small document; 0 when an answer came, whichever. */
int service_ask(struct session *s, const char *path, enum service_when when,
		struct http_response *out, struct err *err);

#endif
