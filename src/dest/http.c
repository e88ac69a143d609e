// SPDX-License-Identifier: Apache-2.0
#include "dest/http.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "dest/http_private.h"
#include "dest/url.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_SECONDS = 30, STALL_SECONDS = 300 };

static CURLcode global_state;

static void global_start(void)
{
	global_state = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int global_start_once(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, global_start);
	if (global_state != CURLE_OK)
		return err_set(err, ERR_FAILED, "libcurl does not start: %s",
			       curl_easy_strerror(global_state));
	return 0;
}

/* libcurl would only find out when it is too late to say so. */
static int check_file(const char *path, const char *what, struct err *err)
{
	if (path && access(path, R_OK) < 0)
		return err_errno(err, ERR_REFUSED, "%s %s", what, path);
	return 0;
}

static int check_files(const struct http_config *cfg, struct err *err)
{
	if (check_file(cfg->cacert, "the CA certificates in", err) < 0 ||
	    check_file(cfg->cert, "our certificate in", err) < 0)
		return -1;
	return check_file(cfg->key, "the key of our certificate in", err);
}

static int set_up(struct http *http, const struct http_config *cfg, struct err *err)
{
	CURLcode code;

	http->connect_seconds = cfg->connect_seconds ? cfg->connect_seconds : CONNECT_SECONDS;
	http->stall_seconds = cfg->stall_seconds ? cfg->stall_seconds : STALL_SECONDS;
	http->total_seconds = cfg->total_seconds;
	http->limit_rate = cfg->limit_rate;
	http->has_own_limits = cfg->has_own_limits;
	code = http_set_up(http, cfg);
	if (code != CURLE_OK)
		return err_set(err, ERR_FAILED, "libcurl cannot do what it must: %s",
			       curl_easy_strerror(code));
	return 0;
}

struct http *http_open(const struct http_config *cfg, struct err *err)
{
	autohttp struct http *http = NULL;

	if (check_files(cfg, err) < 0 || global_start_once(err) < 0)
		return NULL;
	http = calloc(1, sizeof *http);
	if (!http || !(http->curl = curl_easy_init())) {
		err_nomem(err);
		return NULL;
	}
	return set_up(http, cfg, err) < 0 ? NULL : steal(&http);
}

void http_close(struct http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	secret_free(http->url_secret);
	for (size_t i = 0; i < HTTP_PROXIES; i++)
		secret_free(http->proxy_secrets[i]);
	free(http);
}

/* Before each try: a signal may have come in the pause. */
static int try_once(struct http *http, const struct http_request *request,
		    struct http_response *out, struct err *err)
{
	http_response_free(out);
	out->is_certain_unsent = true;
	if (!request->even_if_interrupted && interrupt_check(err) < 0)
		return -1;
	return http_follow(http, request, out, err);
}

/* What a download has been given cannot be taken back: its maker asks for the rest. */
static bool is_worth_another_try(int rc, const struct http_request *request,
				 const struct http_response *r)
{
	if (rc == 0)
		return http_may_get_better(r);
	return r->may_retry && !(request->download && r->received > 0);
}

static void note_retry(const struct http_request *request, const struct http_response *r,
		       const struct err *err, unsigned pause, unsigned try)
{
	autofree char *url = url_for_messages(request->url);

	log_note("%s %s: %s; trying again in %u s (%u of %u)", request->method, url ? url : "",
		 r->status ? http_status_text(r->status).text : err->text, pause, try,
		 request->tries);
}

/* Is there another try, and has its time come? */
static bool wait_for_next(struct http_backoff *backoff, const struct http_request *request,
			  const struct http_response *r, int *rc, struct err *err)
{
	enum http_patience how =
		request->even_if_interrupted ? HTTP_THROUGH_SIGNALS : HTTP_UNTIL_SIGNAL;
	unsigned pause;

	if (backoff->tries == 0 || !is_worth_another_try(*rc, request, r))
		return false;
	pause = http_next_pause(backoff, r);
	note_retry(request, r, err, pause, request->tries - backoff->tries + 1);
	backoff->tries--;
	if (http_sleep(pause, how, err) == 0)
		return true;
	*rc = -1;
	return false;
}

int http_send(struct http *http, const struct http_request *request, struct http_response *out,
	      struct err *err)
{
	struct http_backoff backoff = { .tries = request->tries ? request->tries - 1 : 0 };
	int rc;

	memset(out, 0, sizeof *out);
	out->is_certain_unsent = true;
	if (http_check_request(request, err) < 0)
		return -1;
	do {
		rc = try_once(http, request, out, err);
	} while (wait_for_next(&backoff, request, out, &rc, err));
	return rc;
}
