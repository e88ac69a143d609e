/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HTTP_URL_H
#define CCSNAP_HTTP_URL_H

#include "base/cleanup.h"

#include <curl/curl.h>
#include <string.h>

/* libcurl's URLs and their parts, freed by scope. */
CLEANUP_TYPE(CURLU, http_url, curl_url_cleanup)
#define autourl CLEANUP(http_url_cleanup)

/* May be a password. */
static inline void http_url_part_cleanup(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	curl_free(*text);
}
#define autourlpart CLEANUP(http_url_part_cleanup)

#endif
