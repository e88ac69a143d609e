// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/http_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Of all heads of an exchange: those of 1xx, of proxies, of what libcurl repeats. */
#define HEADS_MAX (256 * KIB)

static bool is_download(const struct http_exchange *x)
{
	return x->hop->request->download && x->out->status / 100 == 2;
}

static int stop_with_error(struct http_exchange *x)
{
	x->stop = HTTP_STOP_ERROR;
	return -1;
}

/* What the server did wrong, with its name in front. */
static int stop_with_server_error(struct http_exchange *x)
{
	autofree char *who = http_peer(x->hop);

	err_context(x->err, "%s", who ? who : "the server");
	return stop_with_error(x);
}

static void moved(struct http_exchange *x)
{
	x->moved_at = clock_ns();
}

/* --- the answer's head --- */

static void forget_head(struct http_exchange *x)
{
	http_response_restart(x->out);
	x->is_head_done = false;
}

/* The first line of a head.  There are several when the server first says to go on, or
 * when libcurl repeats the request: the last counts.
 */
static void begin_head(struct http_exchange *x, const char *line, size_t len)
{
	const char *code = memchr(line, ' ', len);
	unsigned status = 0;

	forget_head(x);
	if (code && len - (size_t)(code - line) > 3)
		for (size_t i = 1; i <= 3 && isdigit((unsigned char)code[i]); i++)
			status = status * 10 + (unsigned)(code[i] - '0');
	x->out->status = status;
}

static int end_head(struct http_exchange *x)
{
	const struct http_download *to = x->hop->request->download;

	if (x->out->status < 200)
		return 0;
	x->is_head_done = true;
	if (!is_download(x) || !to->begin || to->begin(to->ctx, x->out, x->err) == 0)
		return 0;
	return stop_with_error(x);
}

static int take_line(struct http_exchange *x, const char *line, size_t len)
{
	x->head_bytes += len;
	if (x->head_bytes > HEADS_MAX) {
		err_set(x->err, ERR_FAILED, "the headers of the answer are larger than %s",
			size_format(HEADS_MAX).text);
		return stop_with_server_error(x);
	}
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
		begin_head(x, line, len);
	else if (x->is_head_done) /* a trailer: nothing that we believe */
		return 0;
	else if (line[0] == '\r' || line[0] == '\n')
		return end_head(x);
	else if (http_response_add_field(x->out, line, len, x->err) < 0)
		return stop_with_error(x);
	return 0;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
	struct http_exchange *x = ctx;
	size_t len = size * count;

	moved(x);
	return len == 0 || take_line(x, line, len) == 0 ? len : 0;
}

/* --- bodies --- */

static int take_body(struct http_exchange *x, const void *buf, size_t len)
{
	const struct http_download *to = x->hop->request->download;

	if (!is_download(x))
		return http_response_add_body(x->out, &x->body_cap, buf, len, x->err) < 0
			       ? stop_with_server_error(x)
			       : 0;
	return to->write(to->ctx, buf, len, x->err) < 0 ? stop_with_error(x) : 0;
}

static size_t on_write(char *buf, size_t size, size_t count, void *ctx)
{
	struct http_exchange *x = ctx;
	size_t len = size * count;

	moved(x);
	if (take_body(x, buf, len) < 0)
		return 0;
	x->out->received += len;
	return len;
}

/* Has the server refused before it had all?  libcurl stops then by itself, unless the
 * server says that it will close the connection, and goes on reading.
 */
static bool is_refused(const struct http_exchange *x)
{
	return x->is_head_done && x->out->status >= 300;
}

static size_t next_length(const struct http_exchange *x, size_t room)
{
	uint64_t len = MIN(room, x->hop->request->upload->size - x->upload_at);

	return MIN(len, http_portion(x->hop->http));
}

static size_t on_read(char *buf, size_t size, size_t count, void *ctx)
{
	struct http_exchange *x = ctx;
	const struct http_upload *upload = x->hop->request->upload;
	size_t len = next_length(x, size * count);

	/* that it is asked for more means that something went out */
	moved(x);
	if (len == 0 || is_refused(x))
		return 0;
	if (upload->read(upload->ctx, buf, len, x->upload_at, x->err) < 0) {
		stop_with_error(x);
		return CURL_READFUNC_ABORT;
	}
	x->upload_at += len;
	return len;
}

/* libcurl sends a request again when a kept connection turns out to be closed.  That is
 * fine before the body has begun; later the server may have acted on it, and the caller
 * must look first.  on_connected sees to the same, for libcurl does not go back when it
 * has read from us but sent nothing of it.
 */
static int on_seek(void *ctx, curl_off_t offset, int origin)
{
	const struct http_exchange *x = ctx;

	if (offset == 0 && origin == SEEK_SET && x->upload_at == 0)
		return CURL_SEEKFUNC_OK;
	return CURL_SEEKFUNC_FAIL;
}

/* --- limits --- */

/* The connection is made, the request is about to be sent, perhaps not for the first time. */
static int on_connected(void *ctx, char *ip, char *our_ip, int port, int our_port)
{
	struct http_exchange *x = ctx;

	(void)ip, (void)our_ip, (void)port, (void)our_port;
	x->is_connected = true;
	forget_head(x);
	moved(x);
	return x->upload_at == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* Until there is a connection, that has a limit of its own. */
static bool is_stalled(const struct http_exchange *x)
{
	return x->is_connected && clock_seconds_since(x->moved_at) >= x->hop->http->stall_seconds;
}

/* Called at least once a second, whatever happens. */
static int on_progress(void *ctx, curl_off_t all_down, curl_off_t down, curl_off_t all_up,
		       curl_off_t up)
{
	struct http_exchange *x = ctx;

	(void)all_down, (void)all_up;
	if (down > x->down || up > x->up)
		moved(x);
	x->down = MAX(x->down, down);
	x->up = MAX(x->up, up);
	if (!x->hop->request->even_if_interrupted && interrupt_check(x->err) < 0)
		stop_with_error(x);
	else if (is_stalled(x))
		x->stop = HTTP_STOP_STALLED;
	return x->stop != HTTP_GOES_ON;
}

CURLcode http_set_callbacks(CURL *curl, struct http_exchange *x)
{
	CURLcode code = CURLE_OK;

	HTTP_SET(curl, code, CURLOPT_HEADERFUNCTION, on_header);
	HTTP_SET(curl, code, CURLOPT_HEADERDATA, x);
	HTTP_SET(curl, code, CURLOPT_WRITEFUNCTION, on_write);
	HTTP_SET(curl, code, CURLOPT_WRITEDATA, x);
	HTTP_SET(curl, code, CURLOPT_READFUNCTION, on_read);
	HTTP_SET(curl, code, CURLOPT_READDATA, x);
	HTTP_SET(curl, code, CURLOPT_SEEKFUNCTION, on_seek);
	HTTP_SET(curl, code, CURLOPT_SEEKDATA, x);
	HTTP_SET(curl, code, CURLOPT_PREREQFUNCTION, on_connected);
	HTTP_SET(curl, code, CURLOPT_PREREQDATA, x);
	HTTP_SET(curl, code, CURLOPT_XFERINFOFUNCTION, on_progress);
	HTTP_SET(curl, code, CURLOPT_XFERINFODATA, x);
	HTTP_SET(curl, code, CURLOPT_NOPROGRESS, 0L);
	return code;
}
