/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ENDPOINT_H
#define CCSNAP_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

/* What OpenStack's services share, whatever they serve: URLs that may or may not
 * name a version of the API, times, and answers that are refusals.
 */
struct err;
struct http_response;

/* Without a query, a fragment, slashes at the end and a version of the API ("/v3",
 * "/v2.0/") there (malloc); NULL when out of memory.
 */
char *endpoint_base(const char *url);

/* Does a version stand at the end, and is it this one ("v3")? */
bool endpoint_has_version(const char *url, const char *version);

/* http_error, ERR_REFUSED when it will not get better (4xx); hint: what the user can
 * do about it, NULL when we do not know.
 */
int endpoint_error(const struct http_response *r, const char *what, const char *hint,
		   struct err *err);

#endif
