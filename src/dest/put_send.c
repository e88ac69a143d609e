// SPDX-License-Identifier: Apache-2.0
#include "dest/put_inner.h"

#include "base/err.h"
#include "base/log.h"
#include "dest/payload.h"
#include "dest/workfile.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 6, CLEANUP_TRIES = 3, CLEANUP_SECONDS = 60 };

/* One image on its way.  A server may be one that lets others see what has come so far,
 * so that what is there after a try that failed can be ours.
 */
struct sending {
	struct put_dest *h;
	struct payload *payload;
	enum put_presence before; /* the first try */
	bool is_ours;		  /* what is there now: we made it */
	bool is_taken;		  /* the server has said that it has all */
};

int put_refuse_existing(const struct put_dest *h, struct err *err)
{
	return err_set(err, ERR_REFUSED, "%s exists; use --overwrite to replace it", h->base.name);
}

/* --- sending --- */

/* What was not there before, but is after a try, came by that. */
static int look_first(struct sending *s, struct err *err)
{
	struct put_sight sight;

	if (put_look(s->h, TRIES, &sight, err) < 0)
		return -1;
	if (s->h->base.receipt.attempts == 0)
		s->before = sight.presence;
	s->is_ours = s->before == PUT_ABSENT && sight.presence == PUT_PRESENT;
	if (sight.presence == PUT_PRESENT && !s->is_ours && !s->h->overwrite)
		return put_refuse_existing(s->h, err);
	return 0;
}

/* If-None-Match (RFC 9110 13.1.2) closes the gap between looking and putting, where the
 * server heeds it.
 */
static int put(struct sending *s, struct http_response *r, struct err *err)
{
	bool may_replace = s->h->overwrite || s->is_ours;
	const struct http_header headers[] = { { "Content-Type", "application/octet-stream" },
					       { "If-None-Match", may_replace ? NULL : "*" },
					       { 0 } };
	const struct http_request request = { .method = "PUT",
					      .url = s->h->target.url,
					      .headers = headers,
					      .upload = payload_upload(s->payload) };

	s->h->base.receipt.attempts++;
	return http_send(s->h->http, &request, r, err);
}

/* 1: it was taken, 0: another time it may be, -1: it will not. */
static int judge(struct sending *s, const struct http_response *r, struct err *err)
{
	if (r->status / 100 == 2) {
		s->is_taken = true;
		s->is_ours |= r->status == 201;
		return 1;
	}
	if (r->status == 412) {
		s->before = PUT_PRESENT; /* by now, and somebody else's */
		return put_refuse_existing(s->h, err);
	}
	http_error(r, "cannot put the image there", err);
	err_context(err, "%s", s->h->base.name);
	return http_may_get_better(r) ? 0 : -1;
}

static int try_once(struct sending *s, struct http_response *r, struct err *err)
{
	if (look_first(s, err) < 0)
		return -1;
	if (put(s, r, err) < 0)
		return r->may_retry ? 0 : -1;
	return judge(s, r, err);
}

static int send_all(struct sending *s, struct err *err)
{
	struct http_backoff backoff = { .tries = TRIES - 1 };

	for (;;) {
		autoresponse struct http_response r = { 0 };
		int done = try_once(s, &r, err);

		if (done != 0)
			return done < 0 ? -1 : 0;
		if (backoff.tries > 0)
			log_note("%s; the image is sent again", err->text);
		if (http_wait(&backoff, &r, err) < 0)
			return -1;
	}
}

/* --- proof --- */

static int say_size(const struct put_dest *h, uint64_t there, uint64_t ours, struct err *err)
{
	return err_set(err, ERR_FAILED,
		       "%s: the server took the image, but has %llu bytes of it and not %llu",
		       h->base.name, (unsigned long long)there, (unsigned long long)ours);
}

/* By its size only: no digest of its bytes comes from there. */
static int prove_size(struct put_dest *h, uint64_t size, struct err *err)
{
	struct put_sight sight;

	if (put_look(h, TRIES, &sight, err) < 0)
		return -1;
	if (sight.presence == PUT_ABSENT)
		return err_set(err, ERR_FAILED,
			       "%s: the server took the image, but has nothing there",
			       h->base.name);
	if (sight.has_size && sight.size != size)
		return say_size(h, sight.size, size, err);
	if (sight.has_size)
		h->base.receipt.verified_by = "size";
	else
		log_warn("%s: the server does not tell the size of what it has; nothing proves "
			 "that the image has arrived",
			 h->base.name);
	return 0;
}

static int prove(const struct sending *s, struct image_info *info, struct err *err)
{
	if (payload_digests(s->payload, &info->digests, &info->digests, err) < 0)
		return -1;
	return prove_size(s->h, info->size, err);
}

/* --- after a failure --- */

static int delete_ours(struct put_dest *h, struct err *err)
{
	const struct http_request request = { .method = "DELETE",
					      .url = h->target.url,
					      .tries = CLEANUP_TRIES,
					      .total_seconds = CLEANUP_SECONDS,
					      .even_if_interrupted = true };
	autoresponse struct http_response r = { 0 };

	if (http_send(h->http, &request, &r, err) < 0)
		return -1;
	if (r.status / 100 == 2 || r.status == 404 || r.status == 410)
		return 0;
	return http_error(&r, "cannot delete it", err);
}

/* Can there be anything that was not there before?  Some servers write in place, and leave
 * what had come by then.
 */
static bool may_have_left_something(const struct sending *s)
{
	struct put_sight sight;
	struct err ignored;

	if (s->is_taken)
		return true;
	if (s->h->base.receipt.sent_bytes == 0)
		return false;
	if (s->before == PUT_PRESENT)
		return s->h->overwrite;
	return put_look_last(s->h, &sight, &ignored) < 0 || sight.presence != PUT_ABSENT;
}

static int say_doubtful(const struct sending *s, struct err *err)
{
	if (!s->is_taken && s->before == PUT_PRESENT)
		return err_hint(err, "the image that was there may be replaced in part: it is not "
				     "to be trusted");
	return err_hint(err, "what is there now is not to be trusted: delete it");
}

/* Only what the server says that we have made is deleted: what is there else may be
 * somebody else's, or an older image that was replaced.  The message stays that of the
 * failure.
 */
static void clean_up(const struct sending *s, struct err *err)
{
	struct receipt *receipt = &s->h->base.receipt;
	struct err later;

	receipt->verified_by = NULL;
	if (!may_have_left_something(s))
		return;
	if (s->h->keep_failed) {
		receipt->cleanup = CLEANUP_KEPT;
		err_hint(err, "what has arrived there is kept");
	} else if (!s->is_taken || !s->is_ours) {
		receipt->cleanup = CLEANUP_FAILED;
		say_doubtful(s, err);
	} else if (delete_ours(s->h, &later) < 0) {
		receipt->cleanup = CLEANUP_FAILED;
		err_hint(err, "what has arrived is left there (%s): delete it", later.text);
	} else {
		receipt->cleanup = CLEANUP_DONE;
	}
}

/* One digest shows that the file is what it was, if all are known. */
static unsigned digests_wanted(const struct image_info *info)
{
	return *info->digests.sha256 && *info->digests.sha512 ? HASH_SHA512 : HASH_OURS;
}

int put_send(struct put_dest *h, struct image_info *info, struct err *err)
{
	autopayload struct payload *payload =
		payload_new(workfile_fd(h->work), h->base.path ? h->base.path : "the image",
			    info->size, digests_wanted(info), &h->base, err);
	struct sending s = { .h = h, .payload = payload };

	if (!payload)
		return -1;
	if (send_all(&s, err) == 0 && prove(&s, info, err) == 0)
		return 0;
	clean_up(&s, err);
	return -1;
}
