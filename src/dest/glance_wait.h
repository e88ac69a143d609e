/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GLANCE_WAIT_H
#define CCSNAP_GLANCE_WAIT_H

#include "dest/image_service.h"

/* The image service has all the bytes of an image, and works on them: it is asked until
 * it is done.
 */
struct glance_wait {
	struct session *session;
	const char *id;
	enum service_way way;
	unsigned seconds; /* at most */
};

/* 1: it is active.  0: it is still under way at the end of that time, as err says.  -1:
 * it will never be, or a signal came.  out is what the service said last, the caller's
 * to free.
 */
int glance_wait(const struct glance_wait *w, struct service_image *out, struct err *err);

#endif
