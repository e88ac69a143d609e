/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PUT_INNER_H
#define CCSNAP_PUT_INNER_H

#include "dest/dest.h"
#include "dest/http.h"

/* "http://..." and "https://...": a server that takes files by PUT. */
struct payload;
struct workfile;

/* --- put_target.c: the place of one image there, and what is secret in its URL --- */

struct put_target {
	char *url;   /* for requests, with user name and password: see http.h */
	char *shown; /* for people: without them and the query */

	/* Known to be secrets as long as they are here; may be NULL. */
	char *credentials; /* "USER:PASSWORD" */
	char *password, *written, *query;
};

/* where is what --to says.  When its path ends in a slash, the image is the file of that
 * name there (NULL: none), else where is the image.  ERR_USAGE.
 */
int put_target_find(const char *where, const char *file, struct put_target *out, struct err *err);
void put_target_free(struct put_target *t);

struct put_dest {
	struct dest base;
	struct put_target target;
	struct http *http;
	struct workfile *work; /* NULL when no image is to go there */
	bool overwrite, keep_failed;
	const char *misfit; /* an option that was given, and cannot be followed; or NULL */
	bool has_warned;
};

/* --- put_look.c: what is there? --- */

enum put_presence { PUT_ABSENT, PUT_PRESENT, PUT_UNTOLD };

struct put_sight {
	enum put_presence presence;
	bool has_size;
	uint64_t size;
};

/* PUT_UNTOLD: the server answers, but does not let us know.  tries as in http_request. */
int put_look(struct put_dest *h, unsigned tries, struct put_sight *out, struct err *err);

/* The same when all else has failed: once, soon, and in spite of a signal. */
int put_look_last(struct put_dest *h, struct put_sight *out, struct err *err);

/* --- put_send.c --- */

/* All or nothing, as far as such a server lets us; fills in the receipt. */
int put_send(struct put_dest *h, struct image_info *info, struct err *err);

int put_refuse_existing(const struct put_dest *h, struct err *err);

#endif
