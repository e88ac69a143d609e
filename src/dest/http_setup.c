// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"
#include "base/size.h"
#include "dest/http_private.h"
#include "dest/http_url.h"

#include "config.h"

#include <sys/stat.h>

/* libcurl's.  Larger is not faster: measured from 64 KiB to 2 MiB, a gigabyte took the
 * same time and CPU, for the sockets take less at once.  This much suits those who read
 * and hash in passing.
 */
#define PORTION_MAX	    (512 * KIB)
#define UPLOAD_BUFFER_MIN   (16 * KIB)
#define DOWNLOAD_BUFFER_MIN (1 * KIB)

/* Portions a second, when there is a rate. */
#define PORTIONS 4

uint64_t http_portion(const struct http *http)
{
	uint64_t portion = http->limit_rate / PORTIONS;

	return http->limit_rate ? MIN(MAX(portion, 1), PORTION_MAX) : PORTION_MAX;
}

/* Of what comes, libcurl takes many buffers full before it rests. */
static uint64_t download_buffer(const struct http *http)
{
	const unsigned many = 100 / PORTIONS;

	if (!http->limit_rate)
		return PORTION_MAX;
	return MAX(http_portion(http) / many, DOWNLOAD_BUFFER_MIN);
}

/* Only what http.h promises: libcurl could do much more. */
static CURLcode set_manners(CURL *curl)
{
	CURLcode code = CURLE_OK;

	HTTP_SET(curl, code, CURLOPT_PROTOCOLS_STR, "http,https");
	HTTP_SET(curl, code, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	HTTP_SET(curl, code, CURLOPT_FOLLOWLOCATION, 0L);
	HTTP_SET(curl, code, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	HTTP_SET(curl, code, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	HTTP_SET(curl, code, CURLOPT_PATH_AS_IS, 1L);
	HTTP_SET(curl, code, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	HTTP_SET(curl, code, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	HTTP_SET(curl, code, CURLOPT_USERAGENT, "ccsnap/" PACKAGE_VERSION);
	HTTP_SET(curl, code, CURLOPT_TCP_KEEPALIVE, 1L);
	HTTP_SET(curl, code, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* a name server that does not answer must not hold up the end */
	HTTP_SET(curl, code, CURLOPT_QUICK_EXIT, 1L);
#endif
	return code;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static CURLcode set_authorities(CURL *curl, const char *cacert)
{
	bool is_dir = is_directory(cacert);
	CURLcode code = CURLE_OK;

	/* instead of the system's, both forms of which are set by default */
	HTTP_SET(curl, code, CURLOPT_CAINFO, is_dir ? NULL : cacert);
	HTTP_SET(curl, code, CURLOPT_CAPATH, is_dir ? cacert : NULL);
	return code;
}

static CURLcode set_tls(CURL *curl, const struct http_config *cfg)
{
	CURLcode code = CURLE_OK;

	HTTP_SET(curl, code, CURLOPT_SSL_VERIFYPEER, cfg->insecure ? 0L : 1L);
	HTTP_SET(curl, code, CURLOPT_SSL_VERIFYHOST, cfg->insecure ? 0L : 2L);
	HTTP_SET(curl, code, CURLOPT_SSLCERT, cfg->cert);
	HTTP_SET(curl, code, CURLOPT_SSLKEY, cfg->key);
	/* an encrypted key fails, instead of asking at the terminal */
	HTTP_SET(curl, code, CURLOPT_KEYPASSWD, "");
	return code;
}

static CURLcode set_limits(const struct http *http)
{
	curl_off_t rate = (curl_off_t)MIN(http->limit_rate, INT64_MAX);
	uint64_t up = MAX(http_portion(http), UPLOAD_BUFFER_MIN), down = download_buffer(http);
	CURLcode code = CURLE_OK;

	HTTP_SET(http->curl, code, CURLOPT_CONNECTTIMEOUT, (long)http->connect_seconds);
	HTTP_SET(http->curl, code, CURLOPT_MAX_SEND_SPEED_LARGE, rate);
	HTTP_SET(http->curl, code, CURLOPT_MAX_RECV_SPEED_LARGE, rate);
	HTTP_SET(http->curl, code, CURLOPT_UPLOAD_BUFFERSIZE, (long)up);
	HTTP_SET(http->curl, code, CURLOPT_BUFFERSIZE, (long)down);
	return code;
}

/* Of the proxies that libcurl finds in the environment. */
static void keep_proxy_secrets(struct http *http)
{
	static const char *const variables[HTTP_PROXIES] = { "http_proxy",  "https_proxy",
							     "HTTPS_PROXY", "all_proxy",
							     "ALL_PROXY",   "HTTP_PROXY" };

	for (size_t i = 0; i < HTTP_PROXIES; i++) {
		const char *proxy = getenv(variables[i]);
		autourl CURLU *u = curl_url();
		autourlpart char *text = NULL;

		if (!proxy || !u ||
		    curl_url_set(u, CURLUPART_URL, proxy, CURLU_DEFAULT_SCHEME) != CURLUE_OK)
			continue;
		if (curl_url_get(u, CURLUPART_PASSWORD, &text, CURLU_URLDECODE) == CURLUE_OK ||
		    curl_url_get(u, CURLUPART_USER, &text, CURLU_URLDECODE) == CURLUE_OK)
			http->proxy_secrets[i] = secret_new(text);
	}
}

CURLcode http_set_up(struct http *http, const struct http_config *cfg)
{
	CURLcode code = set_manners(http->curl);

	HTTP_SET(http->curl, code, CURLOPT_ERRORBUFFER, http->why);
	HTTP_SET(http->curl, code, CURLOPT_NOPROXY, cfg->no_proxy ? "*" : NULL);
	code = code ? code : set_tls(http->curl, cfg);
	keep_proxy_secrets(http);
	if (code == CURLE_OK && cfg->cacert)
		code = set_authorities(http->curl, cfg->cacert);
	return code ? code : set_limits(http);
}
