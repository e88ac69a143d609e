// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "dest/dest.h"
#include "dest/endpoint.h"
#include "dest/payload.h"
#include "dest/session.h"
#include "dest/uploads.h"
#include "dest/workfile.h"

#include <stdio.h>
#include <string.h>

#define TRIES	      5		/* at sending, while the reason may pass */
#define ASSUMED_RATE  (20 * MB) /* bytes a second, where no limit is set */
#define SPARE_SECONDS 60	/* for the requests around it */
#define STALL_SECONDS 300	/* as http.h has it */
#define LOST_SECONDS  60
#define COME_SECONDS  15 /* for an image whose making was not answered */
#define END_SECONDS   30 /* for an import that is in the way of deleting */
#define IMPORT_RATE   (5 * MB)
#define MB	      UINT64_C(1000000)

struct upload {
	struct glance *g;
	struct image_info *info;
	struct receipt *receipt; /* g's */
	struct payload *payload;
	struct uuid_text id; /* of the image that is there now; "": none */
	enum service_heard heard;
	enum service_way way;
	struct http_backoff backoff;
	unsigned refused_tokens;    /* that cannot be renewed */
	struct service_image there; /* as last seen */
	struct digests digests;	    /* of what was sent */
};

/* What is known after a try. */
enum outcome {
	OUTCOME_FAILED = -1,
	OUTCOME_ACTIVE,	 /* the service has all of it */
	OUTCOME_QUEUED,	 /* and has nothing: send again */
	OUTCOME_UNCLEAR, /* ask what has become of it */
};

uint64_t glance_seconds_to_send(const struct dest_config *cfg, uint64_t size)
{
	return div_up(size, cfg->limit_rate ? cfg->limit_rate : ASSUMED_RATE);
}

/* --- the image at the service --- */

static int create_image(struct upload *u, struct err *err)
{
	const struct dest_config *cfg = &u->g->cfg;
	const struct image_info *info = u->info;
	const struct service_image wanted = {
		.id = (char *)u->id.text,
		.name = (char *)cfg->image_name,
		.disk_format = info->format,
		.container_format = "bare",
		.visibility = cfg->visibility,
		.min_disk = (unsigned)div_up(info->virtual_size, GIB),
		.tags = (char **)cfg->tags,
		.properties = info->properties,
	};

	return service_create(u->g->session, &wanted, &u->heard, err);
}

/* What is to be kept needs no note, which would only have it deleted. */
static int note_image(const struct upload *u, const char *id, struct err *err)
{
	const struct upload_note note = {
		.image_id = id,
		.endpoint = session_endpoint(u->g->session),
		.project_id = session_project_id(u->g->session),
		.name = u->g->cfg.image_name,
	};

	return u->g->cfg.keep_failed ? 0 : uploads_begin(u->g->notes, &note, err);
}

static void forget_image(struct upload *u)
{
	uploads_end(u->g->notes, u->id.text);
	u->id.text[0] = '\0';
}

/* The service has not heard of it: there is nothing to be deleted. */
static void forget_unsent(struct upload *u)
{
	forget_image(u);
	free(u->receipt->image_id);
	u->receipt->image_id = NULL;
}

static int begin_image(struct upload *u, struct err *err)
{
	struct uuid_text id;
	autofree char *copy = NULL;

	if (uuid_random(&id, err) < 0)
		return -1;
	copy = strdup(id.text);
	if (!copy)
		return err_nomem(err);
	if (note_image(u, id.text, err) < 0)
		return -1;
	free(u->receipt->image_id);
	u->receipt->image_id = steal(&copy);
	u->id = id;
	if (create_image(u, err) < 0) {
		if (u->heard == SERVICE_UNHEARD)
			forget_unsent(u);
		return -1;
	}
	u->heard = SERVICE_ANSWERED;
	return 0;
}

static int begin_anew(struct upload *u, struct err *err)
{
	log_debug("image %s is deleted and made anew", u->id.text);
	if (service_delete(u->g->session, u->id.text, SERVICE_NORMALLY, err) < 0)
		return -1;
	forget_image(u);
	return begin_image(u, err);
}

/* --- sending --- */

/* Some services take no data but by an import, and say so in many ways.  Only an image
 * that is still queued can be staged.
 */
static bool can_import_instead(const struct upload *u, const struct http_response *r)
{
	static const unsigned refusals[] = { 403, 404, 405, 501 };
	struct service_image now = { 0 };
	struct err ignored;
	bool can = false;

	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		can = can || r->status == refusals[i];
	can = can && u->way == SERVICE_DIRECT && str_equal(u->g->cfg.upload_method, "auto") &&
	      service_can_import(u->g->session, &ignored) == 1 &&
	      service_get(u->g->session, u->id.text, &now, &ignored) == 1 &&
	      str_equal(now.status, "queued");
	service_image_free(&now);
	return can;
}

/* A new token was had already, where one can be: another try with it does.  One that was
 * given by hand stays what it is.
 */
static enum outcome judge_unauthorized(struct upload *u, struct err *err)
{
	bool can_renew = session_can_renew(u->g->session);

	err_hint(err, "%s",
		 can_renew ? "new tokens are refused, too"
			   : "the token was given by hand, and cannot be renewed");
	return !can_renew && ++u->refused_tokens > 1 ? OUTCOME_FAILED : OUTCOME_UNCLEAR;
}

/* After an answer that is no success. */
static enum outcome judge_refusal(struct upload *u, const struct http_response *r, struct err *err)
{
	http_error(r, "cannot send the image", err);
	if (r->status == 401)
		return judge_unauthorized(u, err);
	if (http_may_get_better(r))
		return OUTCOME_UNCLEAR;
	if (!can_import_instead(u, r))
		return OUTCOME_FAILED;
	log_note("%s; staging it for an import instead", err->text);
	u->way = SERVICE_STAGE;
	return OUTCOME_QUEUED;
}

/* An import copies, and may convert: it is given a second more for some megabytes. */
static enum outcome wait_until_active(struct upload *u, struct err *err)
{
	unsigned stall = u->g->cfg.stall_seconds ? u->g->cfg.stall_seconds : STALL_SECONDS;
	uint64_t more = u->way == SERVICE_STAGE ? u->info->size / IMPORT_RATE : 0;
	const struct glance_wait wait = { u->g->session, u->id.text, u->way,
					  stall + (unsigned)MIN(more, 1000000) };

	return glance_wait(&wait, &u->there, err) == 1 ? OUTCOME_ACTIVE : OUTCOME_FAILED;
}

static enum outcome import_staged(struct upload *u, struct err *err)
{
	if (service_import(u->g->session, u->id.text, err) < 0)
		return err->kind == ERR_FAILED ? OUTCOME_UNCLEAR : OUTCOME_FAILED;
	return wait_until_active(u, err);
}

/* Without a (useful) answer.  A 401 comes with an error when no new token could be had,
 * which may be as long as the identity service is away.
 */
static bool may_get_better(const struct http_response *r, const struct err *err)
{
	return r->may_retry || (r->status == 401 && err->kind == ERR_FAILED);
}

static enum outcome send_once(struct upload *u, struct http_response *r, struct err *err)
{
	uint64_t seconds = glance_seconds_to_send(&u->g->cfg, u->info->size) + SPARE_SECONDS;

	if (session_refresh(u->g->session, seconds, err) < 0)
		return OUTCOME_FAILED;
	u->receipt->attempts++;
	if (service_put(u->g->session, u->id.text, u->way, payload_upload(u->payload), r, err) < 0)
		return may_get_better(r, err) ? OUTCOME_UNCLEAR : OUTCOME_FAILED;
	if (r->status < 200 || r->status > 299)
		return judge_refusal(u, r, err);
	return u->way == SERVICE_STAGE ? import_staged(u, err) : wait_until_active(u, err);
}

/* 1, 0: there is no such image, -1. */
static int look(struct upload *u, const struct http_response *r, struct err *err)
{
	int found;

	do {
		if (http_wait(&u->backoff, r, err) < 0)
			return -1;
		r = NULL;
		service_image_free(&u->there);
		found = service_get(u->g->session, u->id.text, &u->there, err);
	} while (found < 0 && err->kind == ERR_FAILED);
	return found;
}

/* Where only the answer was lost, say to the patience of a proxy, the service may be
 * about to finish; where it was ended in the middle, it never does.
 */
static bool was_only_answer_lost(const struct upload *u, const struct http_response *r)
{
	return r->sent >= u->info->size && str_equal(u->there.status, "saving");
}

static enum outcome find_out(struct upload *u, const struct http_response *r, struct err *err)
{
	unsigned stall = u->g->cfg.stall_seconds;
	const struct glance_wait wait = { u->g->session, u->id.text, u->way,
					  stall ? MIN(stall, LOST_SECONDS) : LOST_SECONDS };
	struct err why = *err;
	int found = look(u, r, err), active;

	if (found < 0)
		return OUTCOME_FAILED;
	log_debug("%s; now the image is %s", why.text, found ? u->there.status : "gone");
	if (found && str_equal(u->there.status, "active"))
		return OUTCOME_ACTIVE;
	if (found && str_equal(u->there.status, "queued"))
		return OUTCOME_QUEUED;
	if (found && str_equal(u->there.status, "importing"))
		return wait_until_active(u, err);
	if (found && was_only_answer_lost(u, r)) {
		active = glance_wait(&wait, &u->there, err);
		if (active == 1)
			return OUTCOME_ACTIVE;
		if (active < 0 && err->kind == ERR_INTERRUPTED)
			return OUTCOME_FAILED;
	}
	return begin_anew(u, err) < 0 ? OUTCOME_FAILED : OUTCOME_QUEUED;
}

/* Until an image of ours is active. */
static int send_image(struct upload *u, struct err *err)
{
	enum outcome outcome = OUTCOME_QUEUED;

	u->backoff = (struct http_backoff){ .tries = TRIES - 1 };
	while (outcome == OUTCOME_QUEUED) {
		autoresponse struct http_response r = { 0 };

		outcome = send_once(u, &r, err);
		if (outcome == OUTCOME_UNCLEAR)
			outcome = find_out(u, &r, err);
	}
	return outcome == OUTCOME_ACTIVE ? 0 : -1;
}

/* --- proof --- */

static enum proof_result prove(struct upload *u, struct err *err)
{
	const struct image_info *info = u->info;
	const struct proof_of here = { workfile_fd(u->g->work), u->g->base.name, info->size,
				       info->format, &u->digests };
	enum proof_result result;

	if (payload_digests(u->payload, &info->digests, &u->digests, err) < 0)
		return PROOF_ERROR;
	result = proof_compare(&u->there, &here, &u->receipt->verified_by, err);
	u->receipt->verified = result == PROOF_SAME;
	if (result == PROOF_SILENT)
		log_warn("image %s is unverified: the image service tells no digest of it that is "
			 "known here",
			 u->id.text);
	return result;
}

/* What differs gets one more chance: a bit may have been lost on the way. */
static int send_and_prove(struct upload *u, struct err *err)
{
	for (int chances = 2;;) {
		enum proof_result result = send_image(u, err) < 0 ? PROOF_ERROR : prove(u, err);

		if (result != PROOF_DIFFERS)
			return result == PROOF_ERROR ? -1 : 0;
		if (--chances == 0)
			return -1;
		log_warn("%s; it is sent once more", err->text);
		if (begin_anew(u, err) < 0)
			return -1;
	}
}

static int add_sha256(const struct upload *u, struct err *err)
{
	const char *there = image_property(u->info, PROPERTY_SHA256);
	char pair[sizeof PROPERTY_SHA256 + sizeof u->digests.sha256];
	char *properties[] = { pair, NULL };

	if (!*u->digests.sha256 || (there && str_equal(there, u->digests.sha256)))
		return 0;
	snprintf(pair, sizeof pair, "%s=%s", PROPERTY_SHA256, u->digests.sha256);
	return service_set_properties(u->g->session, u->id.text, properties, err);
}

/* Of the image that is there now: it is the last one. */
static int set_id_and_file(const struct upload *u, struct err *err)
{
	free(u->info->id);
	free(u->info->file);
	u->info->id = strdup(u->id.text);
	u->info->file = glance_file_url(u->g, u->id.text);
	return u->info->id && u->info->file ? 0 : err_nomem(err);
}

/* The protection last: what is protected could not be deleted any more. */
static int complete(const struct upload *u, struct err *err)
{
	if (set_id_and_file(u, err) < 0 || add_sha256(u, err) < 0)
		return -1;
	return u->g->cfg.make_protected ? service_protect(u->g->session, u->id.text, err) : 0;
}

/* --- the end --- */

/* -1: text says what is to be expected of the image. */
static int remove_image(struct upload *u, struct err *text)
{
	bool may_come = u->heard == SERVICE_UNANSWERED;
	const struct glance_leftover leftover = {
		.session = u->g->session,
		.id = u->id.text,
		.when = SERVICE_KEEP_ON,
		.come_seconds = may_come ? COME_SECONDS : 0,
		.import_seconds = END_SECONDS,
	};
	struct err err;
	int deleted = glance_delete_leftover(&leftover, &err);

	if (deleted < 0)
		return err_set(text, err.kind, "is left there (%s), the next run will delete it",
			       err.text);
	if (deleted == 0 && may_come)
		return err_set(text, ERR_FAILED,
			       "may still appear there, since its making was not answered; the "
			       "next run will look for it");
	forget_image(u);
	return 0;
}

/* The message stays that of the failure. */
static void clean_up(struct upload *u, struct err *err)
{
	struct err text;

	u->receipt->verified = false;
	u->receipt->verified_by = NULL;
	if (!*u->id.text)
		return;
	if (u->g->cfg.keep_failed) {
		u->receipt->cleanup = CLEANUP_KEPT;
		err_hint(err, "what came of image %s is kept", u->id.text);
	} else if (remove_image(u, &text) == 0) {
		u->receipt->cleanup = CLEANUP_DONE;
	} else {
		u->receipt->cleanup = CLEANUP_FAILED;
		err_hint(err, "image %s %s", u->id.text, text.text);
	}
}

static int deliver(struct upload *u, struct err *err)
{
	return begin_image(u, err) < 0 || send_and_prove(u, err) < 0 ? -1 : complete(u, err);
}

/* One digest proves what was sent, if the rest is known of the file. */
static unsigned digests_wanted(const struct image_info *info)
{
	return *info->digests.sha256 ? HASH_SHA512 : HASH_OURS;
}

int glance_upload(struct glance *g, struct image_info *info, struct err *err)
{
	bool imports = str_equal(g->cfg.upload_method, "import");
	autopayload struct payload *payload =
		payload_new(workfile_fd(g->work), g->base.path ? g->base.path : "the image's file",
			    info->size, digests_wanted(info), &g->base, err);
	struct upload u = {
		.g = g,
		.info = info,
		.receipt = &g->base.receipt,
		.payload = payload,
		.way = imports ? SERVICE_STAGE : SERVICE_DIRECT,
	};
	int rc = payload ? deliver(&u, err) : -1;

	if (rc < 0) {
		clean_up(&u, err);
	} else {
		uploads_end(g->notes, u.id.text);
		info->digests = u.digests;
	}
	service_image_free(&u.there);
	return rc;
}
