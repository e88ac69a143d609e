// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TRIES	  5 /* that bring nothing, one after the other */
#define PIECE	  MIB
#define TURNS	  (HASH_AHEAD + 1)
#define HOLE_SIZE (64 * KIB) /* zeros of this length and place become holes */

/* An image on its way here: its first at bytes have come.  Those of the last piece are
 * in memory only, the others in the file and the hash.
 */
struct fetch {
	struct glance *g;
	struct service_image there;
	int fd;
	uint64_t at;
	uint64_t skip; /* of the answer that comes in: bytes that are here already */
	size_t filled; /* of the piece */
	unsigned turn;
	uint8_t *pieces; /* TURNS, since the hash works on while the next one fills */
	struct hash *hash;
};

static int start_over(struct fetch *f, struct err *err)
{
	hash_stop(f->hash);
	f->hash = hash_start(HASH_OURS, err); /* an MD5 is computed if it is needed */
	f->at = f->skip = f->filled = 0;
	if (!f->hash)
		return -1;
	if (ftruncate(f->fd, 0) < 0)
		return err_errno(err, ERR_FAILED, "cannot write what is fetched");
	return 0;
}

/* --- what comes in --- */

/* "bytes 500-999/1000" (RFC 9110 14.4), from what is here on or before it. */
static int check_range(struct fetch *f, const char *range, struct err *err)
{
	uint64_t first, last, size;
	int end = 0;

	if (!range ||
	    sscanf(range, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64 "%n", &first, &last, &size,
		   &end) != 3 ||
	    range[end] || first > f->at || last < first || last >= f->there.size ||
	    size != f->there.size)
		return err_set(err, ERR_FAILED,
			       "image %s: bytes from %llu on were asked for, and the image "
			       "service sends \"%s\"",
			       f->there.id, (unsigned long long)f->at, range ? range : "");
	f->skip = f->at - first;
	return 0;
}

/* A whole image where the rest was asked for is taken from its beginning. */
static int begin(void *ctx, const struct http_response *head, struct err *err)
{
	struct fetch *f = ctx;

	if (head->status == 206)
		return check_range(f, http_header_of(head, "Content-Range"), err);
	if (head->status == 200)
		return f->at > 0 ? start_over(f, err) : 0;
	return err_set(err, ERR_FAILED, "image %s: the image service has no data of it (status %u)",
		       f->there.id, head->status);
}

static bool is_zero(const uint8_t *p, size_t len)
{
	return p[0] == 0 && memcmp(p, p + 1, len - 1) == 0;
}

static int write_piece(const struct fetch *f, const uint8_t *piece, struct err *err)
{
	uint64_t start = f->at - f->filled;

	for (size_t done = 0; done < f->filled; done += HOLE_SIZE) {
		size_t n = MIN(f->filled - done, HOLE_SIZE);

		if (!is_zero(piece + done, n) &&
		    io_pwrite(f->fd, piece + done, n, start + done) < 0)
			return err_errno(err, ERR_FAILED, "cannot write what is fetched");
	}
	return 0;
}

static int finish_piece(struct fetch *f, struct err *err)
{
	uint8_t *piece = f->pieces + f->turn * PIECE;

	if (hash_post(f->hash, piece, f->filled, err) < 0 || write_piece(f, piece, err) < 0)
		return -1;
	f->filled = 0;
	f->turn = (f->turn + 1) % TURNS;
	return 0;
}

static int take(struct fetch *f, const uint8_t *buf, size_t len, struct err *err)
{
	while (len > 0) {
		size_t n = MIN(len, PIECE - f->filled);

		memcpy(f->pieces + f->turn * PIECE + f->filled, buf, n);
		f->filled += n;
		f->at += n;
		buf += n;
		len -= n;
		if (f->filled == PIECE && finish_piece(f, err) < 0)
			return -1;
	}
	return 0;
}

static int write_some(void *ctx, const void *buf, size_t len, struct err *err)
{
	struct fetch *f = ctx;
	struct dest *dest = &f->g->base;
	size_t skip = (size_t)MIN(f->skip, len);

	f->skip -= skip;
	if (len - skip > f->there.size - f->at)
		return err_set(err, ERR_FAILED,
			       "image %s: the image service sends more than the %llu bytes that it "
			       "has",
			       f->there.id, (unsigned long long)f->there.size);
	if (take(f, (const uint8_t *)buf + skip, len - skip, err) < 0)
		return -1;
	if (dest->progress)
		dest->progress(dest->progress_ctx, f->at);
	return 0;
}

/* --- asking for it --- */

static int say_refused(const struct fetch *f, const struct http_response *r, struct err *err)
{
	http_error(r, "cannot fetch the image", err);
	return err_context(err, "image %s", f->there.id);
}

/* 1: all is here, 0: some may come another time, -1. */
static int ask_once(struct fetch *f, struct http_response *r, struct err *err)
{
	const struct http_download to = { .begin = begin, .write = write_some, .ctx = f };

	f->skip = 0;
	if (service_download(f->g->session, f->there.id, f->at, &to, r, err) < 0)
		return r->may_retry ? 0 : -1;
	if (r->status < 200 || r->status > 299) {
		say_refused(f, r, err);
		return http_may_get_better(r) ? 0 : -1;
	}
	if (f->at == f->there.size)
		return 1;
	err_set(err, ERR_FAILED, "image %s: only %llu of %llu bytes came", f->there.id,
		(unsigned long long)f->at, (unsigned long long)f->there.size);
	return 0;
}

/* So much of it, or all tries come to an end: not of a service that brings a byte each. */
static uint64_t progress_of(const struct fetch *f)
{
	return MIN(MIB, div_up(f->there.size, 10));
}

/* Tries that brought enough do not count, as long as each gets further than all
 * before it: a service that always begins anew and breaks off comes to an end.
 */
static int receive(struct fetch *f, struct err *err)
{
	struct http_backoff backoff = { .tries = TRIES - 1 };
	uint64_t furthest = 0;

	while (f->at < f->there.size) {
		autoresponse struct http_response r = { 0 };
		int done = ask_once(f, &r, err);

		if (done != 0)
			return done < 0 ? -1 : 0;
		if (f->at >= furthest + progress_of(f)) {
			furthest = f->at;
			backoff = (struct http_backoff){ .tries = TRIES - 1 };
		}
		log_debug("%s; at byte %llu", err->text, (unsigned long long)f->at);
		if (http_wait(&backoff, &r, err) < 0)
			return -1;
	}
	return 0;
}

/* --- proof --- */

static int check_sha256(const struct image_info *info, const struct digests *digests,
			struct err *err)
{
	const char *noted = image_property(info, PROPERTY_SHA256);

	if (!noted || strlen(noted) != sizeof digests->sha256 - 1)
		return 0;
	if (strcasecmp(noted, digests->sha256) != 0)
		return err_set(err, ERR_FAILED,
			       "image %s is not what ccsnap made: it notes SHA-256 %s, what came "
			       "has %s",
			       info->id, noted, digests->sha256);
	return 1;
}

static int prove(const struct fetch *f, const struct image_info *info,
		 const struct digests *digests, struct err *err)
{
	struct receipt *receipt = &f->g->base.receipt;
	const struct proof_of here = { f->fd, info->name, f->there.size, NULL, digests };
	int noted = check_sha256(info, digests, err);
	enum proof_result result =
		noted < 0 ? PROOF_ERROR
			  : proof_compare(&f->there, &here, &receipt->verified_by, err);

	if (result == PROOF_SILENT && noted == 1) {
		receipt->verified_by = "sha256";
		result = PROOF_SAME;
	}
	receipt->verified = result == PROOF_SAME;
	if (result == PROOF_SILENT)
		return err_set(err, ERR_FAILED,
			       "image %s: what came cannot be verified, since the image service "
			       "tells no digest of it that is known here",
			       info->id);
	return result == PROOF_SAME ? 0 : -1;
}

/* --- the whole --- */

static int check_state(const struct service_image *image, struct err *err)
{
	if (str_equal(image->status, "deactivated"))
		return err_set(err, ERR_REFUSED,
			       "image %s is deactivated: it cannot be fetched before somebody "
			       "reactivates it",
			       image->id);
	if (!str_equal(image->status, "active"))
		return err_set(err, ERR_REFUSED, "image %s is %s and not active: it has no data",
			       image->id, image->status);
	if (!image->has_size)
		return err_set(err, ERR_FAILED,
			       "image %s: the image service does not tell its size", image->id);
	return 0;
}

/* As it is now, whatever the list said. */
static int look(struct fetch *f, const char *id, struct err *err)
{
	int found;

	if (glance_connect(f->g, err) < 0)
		return -1;
	found = service_get(f->g->session, id, &f->there, err);
	if (found == 0)
		err_set(err, ERR_REFUSED, "image %s is gone", id);
	return found == 1 ? check_state(&f->there, err) : -1;
}

static int run(struct fetch *f, struct image_info *info, struct err *err)
{
	struct digests digests = { 0 };

	if (look(f, info->id, err) < 0 || start_over(f, err) < 0 || receive(f, err) < 0 ||
	    finish_piece(f, err) < 0)
		return -1;
	if (ftruncate(f->fd, (off_t)f->at) < 0)
		return err_errno(err, ERR_FAILED, "cannot write what is fetched");
	if (hash_finish(f->hash, &digests, err) < 0 || prove(f, info, &digests, err) < 0)
		return -1;
	info->digests = digests;
	info->size = f->at;
	return 0;
}

int glance_fetch(struct dest *dest, struct image_info *info, int fd, struct err *err)
{
	struct fetch f = { .g = (struct glance *)dest, .fd = fd, .pieces = malloc(TURNS * PIECE) };
	int rc = f.pieces ? run(&f, info, err) : err_nomem(err);

	hash_stop(f.hash);
	free(f.pieces);
	service_image_free(&f.there);
	return rc;
}
