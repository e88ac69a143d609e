/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_SERVICE_H
#define CCSNAP_IMAGE_SERVICE_H

#include "base/cleanup.h"
#include "dest/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* OpenStack's image API v2 (docs.openstack.org/api-ref/image/v2), one function a
 * request.  What the service says is checked before it is believed to be there:
 * types, UUIDs, sizes.  Each takes the session; errors are the service's own
 * words, ERR_REFUSED for what it does not allow (4xx) and ERR_FAILED else.
 */
struct err;
struct session;

/* KEEP_ON: after a signal, too. */
enum service_when { SERVICE_NORMALLY, SERVICE_KEEP_ON };

struct service_image {
	char *id, *name, *status;
	char *disk_format;
	char *owner;
	char *created_at;			 /* RFC 3339 */
	char *checksum, *hash_algo, *hash_value; /* NULL: not (yet) known */
	bool has_size;
	uint64_t size, virtual_size;
	bool is_protected;
	char **tags;	   /* ends with NULL */
	char **properties; /* "KEY=VALUE", what is no member of an image; ends with NULL */

	/* Of one to be made; not read from answers. */
	const char *container_format, *visibility;
	unsigned min_disk; /* GiB */
};

void service_image_free(struct service_image *image);

struct service_images {
	struct service_image *at;
	size_t len, cap;
};

void service_images_free(struct service_images *list);

/* Make an image, without data, as wanted says (its id, name, formats, visibility,
 * min_disk, tags, properties).  The id is ours: when an answer is lost, the image
 * is looked for before it is asked for again, so that it is there once.  After a
 * failure *heard says what the service may know of it; UNANSWERED: it may still be
 * about to make the image, so that a 404 proves nothing.
 */
enum service_heard { SERVICE_UNHEARD, SERVICE_ANSWERED, SERVICE_UNANSWERED };
int service_create(struct session *s, const struct service_image *wanted, enum service_heard *heard,
		   struct err *err);

/* 1 and the image, 0: there is none (404), -1. */
int service_get(struct session *s, const char *id, struct service_image *out, struct err *err);
int service_look(struct session *s, const char *id, enum service_when when,
		 struct service_image *out, struct err *err);

/* Send the image's data: to /file, or to /stage for service_import.  The answer, or
 * that there was none, is the caller's to judge (session_send_once).
 */
enum service_way { SERVICE_DIRECT, SERVICE_STAGE };
int service_put(struct session *s, const char *id, enum service_way way,
		const struct http_upload *data, struct http_response *out, struct err *err);

/* Ask for what was staged to be taken (glance-direct); then poll service_get.  While
 * it is under way, its task may have a message for a failure (malloc, or NULL).
 */
int service_import(struct session *s, const char *id, struct err *err);
char *service_import_failure(struct session *s, const char *id);

/* Does the service offer glance-direct?  1, 0, -1. */
int service_can_import(struct session *s, struct err *err);

/* Change a queued or active image: properties are added or replaced ("KEY=VALUE"). */
int service_set_properties(struct session *s, const char *id, char *const *properties,
			   struct err *err);
int service_protect(struct session *s, const char *id, struct err *err);
int service_unprotect(struct session *s, const char *id, enum service_when when, struct err *err);

/* 404 is fine.  A protected image is ERR_REFUSED. */
int service_delete(struct session *s, const char *id, enum service_when when, struct err *err);

/* All that are ours to see and match, page by page, oldest first.  Texts NULL:
 * whichever; properties may be NULL.
 */
struct service_filter {
	const char *name, *tag, *owner;
	char *const *properties; /* "KEY=VALUE" */
	enum service_when when;
};
int service_list(struct session *s, const struct service_filter *filter, struct service_images *out,
		 struct err *err);

/* The data from offset on (Range); as http_download else. */
int service_download(struct session *s, const char *id, uint64_t offset,
		     const struct http_download *to, struct http_response *out, struct err *err);

/* Limits and usage where the service tells (/v2/info/usage): bytes of images that
 * may still come, UINT64_MAX when unknown.  No error: what cannot be asked is
 * unknown.
 */
uint64_t service_room(struct session *s);

/* Does it take that disk_format (/v2/schemas/image)?  1, 0 (with err saying which it
 * takes), -1.
 */
int service_takes_format(struct session *s, const char *format, struct err *err);

/* Is this a name, a property, a tag that it takes?  ERR_REFUSED, telling why not:
 * length, UTF-8, characters of 4 bytes in a name (MySQL's utf8), reserved and
 * read-only keys, more than 128 properties in all.  Sends nothing.
 */
int service_check_names(const char *name, char *const *properties, char *const *tags,
			struct err *err);

#endif
