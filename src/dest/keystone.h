/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_KEYSTONE_H
#define CCSNAP_KEYSTONE_H

#include <stdbool.h>
#include <stdint.h>

/* Tokens and the catalog of services, from OpenStack's identity service, API v3
 * (docs.openstack.org/api-ref/identity/v3).  The auth URL may be given with or
 * without /v3, with a slash behind it, below a path, or as the root that lists
 * versions.
 */
struct cloud_config;
struct err;
struct http;
struct keystone;

/* Sends nothing.  cfg and http must outlive it. */
struct keystone *keystone_open(struct cloud_config *cfg, struct http *http, struct err *err);
void keystone_close(struct keystone *k); /* NULL is fine */

/* What a request may still do after a signal; see http_request. */
enum keystone_when { KEYSTONE_NORMALLY, KEYSTONE_CLEANING_UP };

/* A (new) token.  A token that was given by hand is looked at, and is ERR_REFUSED
 * when it has expired; only the metadata service's can be had anew.  Wrong
 * credentials are ERR_REFUSED, too; a service that does not answer is ERR_FAILED
 * after some tries.
 */
int keystone_authenticate(struct keystone *k, enum keystone_when when, struct err *err);

/* Borrowed, until the next keystone_authenticate; NULL before the first. */
const char *keystone_token(const struct keystone *k);

/* Could another keystone_authenticate give a token that lives longer? */
bool keystone_can_renew(const struct keystone *k);

/* Of the token, by our monotonic clock from when we got it and the service's own
 * times: a wrong clock here does no harm.  0: it has expired.
 */
uint64_t keystone_seconds_left(const struct keystone *k);

/* NULL when the token has none; borrowed. */
const char *keystone_project_id(const struct keystone *k);

/* The URL of the service of that type ("image") in our region for our interface
 * (malloc).  Names are compared exactly; the message of a miss (ERR_REFUSED) says
 * what there is.
 */
char *keystone_endpoint(const struct keystone *k, const char *type, struct err *err);

#endif
