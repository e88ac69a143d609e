/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_GLANCE_INNER_H
#define CCSNAP_GLANCE_INNER_H

#include "base/err.h"
#include "dest/dest.h"

#include <stdbool.h>
#include <stdint.h>

/* "glance[:CLOUD]": OpenStack's image service, as a destination.  Images are told apart
 * by their id; that a name is there once is our rule, not the service's.
 */
struct service_images;
struct session;
struct uploads;
struct workfile;

struct glance {
	struct dest base;
	char *where;		/* "glance:CLOUD" */
	struct dest_config cfg; /* what is used later is a copy of ours, kept in: */
	char *texts[4];
	char **tags;

	struct session *session;
	struct uploads *notes; /* NULL: not open (yet) */
	struct workfile *work; /* NULL for a list */
	int fd;		       /* of the image; -1: none yet */
	bool is_adopted;       /* it is the caller's, and finished */

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
int glance_namesakes(struct glance *g, struct service_images *out, struct err *err);

/* --- glance_check.c --- */
int glance_check(struct dest *dest, uint64_t need, struct err *err);

/* --- glance_list.c --- */
int glance_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		struct err *err);
int glance_remove(struct dest *dest, const struct image_info *info, struct err *err);

/* The address of an image's data, for people (malloc). */
char *glance_file_url(const struct glance *g, const char *id);

/* --- glance_fetch.c --- */
int glance_fetch(struct dest *dest, struct image_info *info, int fd, struct err *err);

#endif
