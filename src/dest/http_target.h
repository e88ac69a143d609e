/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HTTP_TARGET_H
#define CCSNAP_HTTP_TARGET_H

/* The place of one image on a plain HTTP server, and what is secret in its URL. */
struct err;

struct http_target {
	char *url;	     /* for requests: without user name and password */
	char *shown;	     /* for people: without the query, too */
	char *authorization; /* the value of that header (RFC 7617); NULL: none */

	/* Known to be secrets as long as they are here; may be NULL. */
	char *password, *coded, *query;
};

/* where is what --to says.  When its path ends in a slash, the image is the file of that
 * name there (NULL: none), else where is the image.  ERR_USAGE.
 */
int http_target_find(const char *where, const char *file, struct http_target *out, struct err *err);
void http_target_free(struct http_target *t);

#endif
