/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PAYLOAD_H
#define CCSNAP_PAYLOAD_H

#include "base/cleanup.h"

#include <stdint.h>

/* A finished image on its way to a server: its file, read in order and hashed in
 * passing, so that what was sent is known whatever the file does meanwhile.
 */
struct dest;
struct digests;
struct err;
struct http_upload;
struct payload;

/* The first size bytes of fd; name is for messages.  which: the
 * digests (base/hash.h) that a pass computes.  dest's progress is called with the bytes
 * sent of this pass, and its receipt.sent_bytes counts them all.
 */
struct payload *payload_new(int fd, const char *name, uint64_t size, unsigned which,
			    struct dest *dest, struct err *err);
void payload_free(struct payload *p); /* NULL is fine */

/* For http_request: each reading from offset 0 starts the hashes anew.  Borrowed. */
const struct http_upload *payload_upload(struct payload *p);

/* Of the last pass, once all of it was read; before that, of an extra pass over the file
 * without sending.  ERR_FAILED when known (may be NULL, be out, and have empty members)
 * says something else: the file has changed; nothing known tells, its times must
 * be what they were.  What was not computed is what is known.
 */
int payload_digests(struct payload *p, const struct digests *known, struct digests *out,
		    struct err *err);

CLEANUP_TYPE(struct payload, payload, payload_free)
#define autopayload CLEANUP(payload_cleanup)

#endif
