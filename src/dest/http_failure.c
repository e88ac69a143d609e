// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/http_url.h"
#include "dest/url.h"

#include <errno.h>
#include <string.h>

/* What to do about a failed check of a certificate, by OpenSSL's words for it.  The
 * last one holds for all others.
 */
static const struct {
	const char *words, *advice;
} tls_advice[] = {
	{ "certificate has expired",
	  "the server needs a new one, unless this machine's clock is wrong" },
	{ "certificate is not yet valid", "look at this machine's clock" },
	{ "subject name", "use a name that it is for" },
	{ "", "if it is the right server, name the file with its CA as OS_CACERT or cacert" },
};

static const char *advice_on(const char *words)
{
	size_t i = 0;

	while (!strstr(words, tls_advice[i].words))
		i++;
	return tls_advice[i].advice;
}

char *http_peer(const struct http_hop *hop)
{
	autourl CURLU *u = curl_url();
	autourlpart char *host = NULL, *port = NULL;

	if (!u || curl_url_set(u, CURLUPART_URL, hop->url, CURLU_PATH_AS_IS) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return NULL;
	return str_format("%s:%s", host, port);
}

/* Some end in a blank. */
static void trim(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == ' ')
		text[--len] = '\0';
}

static const char *words_of(const struct http_exchange *x, CURLcode code)
{
	static const char certificate[] = "SSL certificate problem: ";
	char *why = x->hop->http->why;

	trim(why);
	if (!*why)
		return curl_easy_strerror(code);
	return str_starts(why, certificate) ? why + sizeof certificate - 1 : why;
}

static int fail(struct http_exchange *x, bool may_retry)
{
	x->out->may_retry = may_retry;
	return -1;
}

/* Do libcurl's words name the host itself, and not a proxy? */
static bool is_named(const char *words, const char *who)
{
	const char *host = who + (*who == '[');
	const char *end = strrchr(host, ':');
	size_t len = end ? (size_t)(end - host) : strlen(host);

	if (len > 0 && host[len - 1] == ']')
		len--;
	return memmem(words, strlen(words), host, len);
}

static int unreachable(struct http_exchange *x, CURLcode code, const char *who)
{
	const char *words = words_of(x, code);
	long sys_errno = 0;

	curl_easy_getinfo(x->hop->http->curl, CURLINFO_OS_ERRNO, &sys_errno);
	if (sys_errno && is_named(words, who))
		words = strerror((int)sys_errno);
	err_set(x->err, ERR_FAILED, "%s cannot be reached: %s", who, words);
	return fail(x, true);
}

static int no_such_host(struct http_exchange *x, CURLcode code, const char *who)
{
	err_set(x->err, ERR_FAILED, "%s cannot be found: %s", who, words_of(x, code));
	return fail(x, true);
}

/* Where no option sets a limit, none is named. */
static const char *option(const struct http_hop *hop, const char *hint)
{
	return hop->http->has_own_limits ? "" : hint;
}

static int not_done(struct http_exchange *x, const char *who)
{
	const struct http_hop *hop = x->hop;
	unsigned of_request = hop->request->total_seconds;

	err_set(x->err, ERR_FAILED, "%s: not done in %u seconds%s", who,
		of_request ? of_request : hop->http->total_seconds,
		of_request ? "" : option(hop, " (see --upload-timeout)"));
	return fail(x, false);
}

/* libcurl has one error for the limits of connecting and of all; it keeps time by the
 * millisecond, and may be a little early.
 */
static bool is_deadline(const struct http_exchange *x)
{
	const uint64_t slack = 100000000;

	return x->hop->deadline && (x->is_connected || clock_ns() + slack >= x->hop->deadline);
}

static int took_too_long(struct http_exchange *x, CURLcode code, const char *who)
{
	(void)code;
	if (is_deadline(x))
		return not_done(x, who);
	err_set(x->err, ERR_FAILED, "%s: no connection in %u seconds%s", who,
		x->hop->http->connect_seconds, option(x->hop, " (see --connect-timeout)"));
	return fail(x, true);
}

static int stalled(struct http_exchange *x, const char *who)
{
	err_set(x->err, ERR_FAILED, "%s: no byte in either direction for %u seconds%s", who,
		x->hop->http->stall_seconds, option(x->hop, " (see --upload-stall-timeout)"));
	return fail(x, true);
}

static int broke_off(struct http_exchange *x, CURLcode code, const char *who)
{
	const struct http_upload *upload = x->hop->request->upload;
	const struct http_response *r = x->out;

	if (!x->is_connected)
		return unreachable(x, code, who);
	if (x->is_head_done)
		err_set(x->err, ERR_FAILED,
			"%s ended the connection after %llu bytes of its answer", who,
			(unsigned long long)r->received);
	else if (upload)
		err_set(x->err, ERR_FAILED,
			"%s ended the connection without an answer, "
			"after %llu of %llu bytes were sent",
			who, (unsigned long long)r->sent, (unsigned long long)upload->size);
	else
		err_set(x->err, ERR_FAILED, "%s ended the connection without an answer: %s", who,
			words_of(x, code));
	return fail(x, true);
}

static int not_trusted(struct http_exchange *x, CURLcode code, const char *who)
{
	const char *words = words_of(x, code);

	err_set(x->err, ERR_FAILED, "%s: its certificate does not hold: %s; %s", who, words,
		advice_on(words));
	return fail(x, false);
}

/* TLS of its own may be refused for good, or just be cut off by a server that starts
 * anew; only the words tell.
 */
static int no_tls(struct http_exchange *x, CURLcode code, const char *who)
{
	const char *words = words_of(x, code);

	err_set(x->err, ERR_FAILED, "%s: no TLS connection: %s", who, words);
	return fail(x, strstr(words, "reset by peer") || strstr(words, "SSL_ERROR_SYSCALL"));
}

static int no_memory(struct http_exchange *x, CURLcode code, const char *who)
{
	(void)code;
	err_set(x->err, ERR_FAILED, "%s: out of memory, or a header line larger than 100 KiB", who);
	return fail(x, false);
}

static int something_else(struct http_exchange *x, CURLcode code, const char *who)
{
	err_set(x->err, ERR_FAILED, "%s: %s", who, words_of(x, code));
	return fail(x, false);
}

/* 0: the fallback. */
static const struct {
	CURLcode code;
	int (*tell)(struct http_exchange *x, CURLcode code, const char *who);
} failures[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, no_such_host },
	{ CURLE_COULDNT_RESOLVE_PROXY, no_such_host },
	{ CURLE_COULDNT_CONNECT, unreachable },
	{ CURLE_OPERATION_TIMEDOUT, took_too_long },
	{ CURLE_SEND_ERROR, broke_off },
	{ CURLE_RECV_ERROR, broke_off },
	{ CURLE_GOT_NOTHING, broke_off },
	{ CURLE_PARTIAL_FILE, broke_off },
	{ CURLE_SEND_FAIL_REWIND, broke_off },
	{ CURLE_ABORTED_BY_CALLBACK, broke_off }, /* see on_connected */
	{ CURLE_PEER_FAILED_VERIFICATION, not_trusted },
	{ CURLE_SSL_CONNECT_ERROR, no_tls },
	{ CURLE_OUT_OF_MEMORY, no_memory },
	{ CURLE_OK, something_else },
};

static int tell(struct http_exchange *x, CURLcode code, const char *who)
{
	size_t i = 0;

	if (x->stop == HTTP_STOP_STALLED)
		return stalled(x, who);
	while (failures[i].code && failures[i].code != code)
		i++;
	return failures[i].tell(x, code, who);
}

int http_failure(struct http_exchange *x, CURLcode code)
{
	autofree char *who = http_peer(x->hop);

	x->out->is_certain_unsent = !x->is_connected;
	x->out->may_retry = false;
	if (x->stop != HTTP_STOP_ERROR)
		tell(x, code, who ? who : "the server");
	x->out->status = 0;
	return -1;
}
