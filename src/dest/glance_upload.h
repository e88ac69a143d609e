/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GLANCE_UPLOAD_H
#define CCSNAP_GLANCE_UPLOAD_H

#include <stdint.h>

/* A finished image to the image service, and proof that it is there.
 *
 * An image has an id of ours, which is noted on this host before the service hears of
 * it (uploads.h).  Its data are sent; what the answer leaves open, the image's status
 * tells: queued, and they are sent again; active, and they are compared; anything else,
 * and the image is deleted and made anew, since nobody gets it out of that state.  Then
 * come the properties that are only known now, then the protection.
 */
struct dest;
struct dest_config;
struct err;
struct image_info;
struct session;
struct uploads;

struct glance_upload { /* all of it the caller's */
	struct session *session;
	struct uploads *notes;
	struct dest *dest; /* its receipt is filled in, whatever the end */
	const struct dest_config *cfg;
	const struct image_info *info;
	int fd;
};

/* 0, or -1 and what is at the service by then is deleted, or kept, as the receipt says.
 * digests: of what was sent.
 */
struct digests;
int glance_upload(const struct glance_upload *job, struct digests *digests, struct err *err);

/* About so long; an estimate on the careful side where no rate is set. */
uint64_t glance_seconds_to_send(const struct dest_config *cfg, uint64_t size);

#endif
