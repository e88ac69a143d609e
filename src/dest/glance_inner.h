/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GLANCE_INNER_H
#define CCSNAP_GLANCE_INNER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "dest/dest.h"
#include "dest/image_service.h"

#include <stdbool.h>
#include <stdint.h>

/* "glance[:CLOUD]": OpenStack's image service, as a destination.  Images are told apart
 * by their id; that a name is there once is our rule, not the service's.
 */
struct session;
struct uploads;
struct workfile;

struct glance {
	struct dest base;
	char *where; /* "glance:CLOUD" */
	struct dest_config cfg;

	struct session *session;
	struct uploads *notes; /* NULL: not open (yet) */
	struct workfile *work; /* NULL for a list */

	char *name_key; /* of the lock of our name at that service */
	int name_fd;	/* which is held; -1 */

	/* The service is logged in to, or asked, once a run. */
	enum { GLANCE_UNTRIED, GLANCE_CONNECTED, GLANCE_UNREACHABLE } connection;
	struct err why;
	bool is_asked, has_warned;
	uint64_t room;
};

/* --- glance.c --- */

/* Log in, once: a failure stays one. */
int glance_connect(struct glance *g, struct err *err);

/* Of our project and that name exactly; oldest first. */
int glance_namesakes(struct glance *g, enum service_when when, struct service_images *out,
		     struct err *err);

/* --- glance_check.c --- */
int glance_check(struct dest *dest, uint64_t need, struct err *err);

/* May our image have its name? */
int glance_check_name(struct glance *g, struct err *err);

/* --- glance_list.c --- */
int glance_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		struct err *err);
int glance_remove(struct dest *dest, const struct image_info *info, struct err *err);

/* The address of an image's data, for people (malloc). */
char *glance_file_url(const struct glance *g, const char *id);

/* --- glance_fetch.c --- */
int glance_fetch(struct dest *dest, struct image_info *info, int fd, struct err *err);

/* --- glance_upload.c: a finished image to the image service, and proof that it is there
 *
 * An image has an id of ours, which is noted on this host before the service hears of
 * it (uploads.h).  Its data are sent; what the answer leaves open, the image's status
 * tells: queued, and they are sent again; active, and they are compared; anything else,
 * and the image is deleted and made anew, since nobody gets it out of that state.  Then
 * come the properties that are only known now, then the protection.
 */

/* 0, and info's id, file and digests are those of the image; or -1, and what is at the
 * service by then is deleted, or kept, as the receipt says.
 */
int glance_upload(struct glance *g, struct image_info *info, struct err *err);

/* About so long; an estimate on the careful side where no rate is set. */
uint64_t glance_seconds_to_send(const struct dest_config *cfg, uint64_t size);

/* --- glance_leftover.c: an image of ours that came to nothing is deleted --- */

struct glance_leftover {
	struct session *session;
	const char *id;
	enum service_when when;
	unsigned come_seconds;	 /* it is waited for, where there is none (yet) */
	unsigned import_seconds; /* until an import has ended */
};

/* 1: it is deleted, 0: there is none, -1. */
int glance_delete_leftover(const struct glance_leftover *l, struct err *err);

/* --- glance_wait.c: the image service has all the bytes of an image, and works on them --- */

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

/* --- glance_proof.c: are the bytes here and those at the image service the same?
 *
 * By what the service tells of them: the size, and the digest that it computed itself while
 * it took them (os_hash_algo and os_hash_value, else checksum, which is MD5).  Digits may be
 * in either case; an algorithm that we do not know is none.
 */

struct proof_of {
	int fd; /* for an algorithm that digests has not */
	const char *name;
	uint64_t size;
	const char *format; /* "qcow2", "raw"; NULL: whichever */
	const struct digests *digests;
};

enum proof_result { PROOF_ERROR = -1, PROOF_DIFFERS, PROOF_SILENT, PROOF_SAME };

/* PROOF_DIFFERS: err tells both values.  PROOF_SILENT: as far as the service tells
 * anything they are, but it tells no digest.  PROOF_ERROR also when the service has
 * converted the image, so that nothing can be compared.  *by: the digest's name, NULL
 * unless PROOF_SAME; it is static.
 */
enum proof_result proof_compare(const struct service_image *there, const struct proof_of *here,
				const char **by, struct err *err);

#endif
