/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_KEYSTONE_INNER_H
#define CCSNAP_KEYSTONE_INNER_H

#include "dest/keystone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parts of keystone.c: where the service is, what it is asked, what a token says. */
struct http_request;
struct http_response;

/* --- keystone_discover.c --- */

/* The URL of API v3 (without a slash behind it) that auth_url stands for; may ask the
 * service which versions it has.  like: how to ask.  NULL with err.
 */
char *keystone_discover(struct http *http, const char *auth_url, const struct http_request *like,
			struct err *err);

/* As http_send; the message says which service did not answer. */
int keystone_ask(struct http *http, const struct http_request *request, struct http_response *r,
		 struct err *err);

/* --- keystone_login.c --- */

/* Is there a project or a domain that the token is to be for? */
bool login_has_scope(const struct cloud_config *cfg);

/* The body of POST /auth/tokens, with the secret in it (malloc, for login_wipe); NULL
 * when something of it is not UTF-8.
 */
char *login_body(const struct cloud_config *cfg);
void login_wipe(char *body); /* NULL is fine */

/* --- keystone_token.c --- */

struct catalog_entry {
	char *type, *region, *interface, *url; /* region may be NULL */
};

struct token {
	char *project_id, *project_name; /* NULL: it has none */
	char *domain_id, *domain_name;	 /* of a token for a domain */
	int64_t issued_at, expires_at;	 /* seconds of the service's clock */
	struct catalog_entry *catalog;
	size_t len, cap;
};

/* From the body of an answer with a token. */
int token_from_json(const char *text, size_t size, struct token *out, struct err *err);
void token_free(struct token *t);

/* --- keystone_catalog.c --- */

/* Borrowed; the only entry of that type, for that interface and in that region (NULL: the
 * only one that there is); NULL with err, which says what there is.
 */
const char *catalog_find(const struct token *t, const char *type, const char *region,
			 const char *interface, struct err *err);

#endif
