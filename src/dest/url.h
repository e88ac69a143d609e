/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_URL_H
#define CCSNAP_URL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* URLs as strings, taken apart by libcurl (RFC 3986).  What returns char * is
 * from malloc, NULL when out of memory.
 */

/* An absolute http or https URL with a host?  If not, an error of that kind, with what
 * in front.
 */
int url_check(const char *url, const char *what, enum err_kind kind, struct err *err);

/* The length of url without query, fragment and the slashes at the end of its path. */
size_t url_stem(const char *url);

/* base and path with exactly one slash between them; a query in base is no
 * part of the result.
 */
char *url_join(const char *base, const char *path);

/* What a reference (a Location header, a "next" link) in an answer from base
 * means; NULL also when it is no URL of http or https.
 */
char *url_resolve(const char *base, const char *reference);

/* Same scheme, host and port (80 and 443 by default)? */
bool url_same_origin(const char *a, const char *b);

/* Percent-encoded, slashes too: one segment of a path or one query value. */
char *url_escape(const char *text);

/* Without user name, password, query and fragment: fit for messages. */
char *url_for_messages(const char *url);

#endif
