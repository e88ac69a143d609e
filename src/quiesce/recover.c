// SPDX-License-Identifier: Apache-2.0
#include "quiesce/recover.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "quiesce/by_hand.h"
#include "quiesce/freeze.h"
#include "quiesce/record.h"
#include "quiesce/record_inner.h"
#include "quiesce/record_text.h"
#include "quiesce/scratch.h"
#include "quiesce/undo.h"
#include "virt/agent.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	THAW_SECONDS = 60,
	AGENT_SECONDS = 5, /* for each answer of the agent */
};

/* --- others --- */

int recover_others(struct domain *d, const struct record *r, char **what, struct err *err)
{
	static const struct record_note nothing;
	const struct record_note *note = r ? record_note(r) : &nothing;

	return undo_find_others(d, note->scratch, note->socket, what, err);
}

/* --- ours --- */

struct recovery {
	struct domain *d;
	struct record *r;
	struct record_note left; /* what is not undone yet: a copy */
	void (*tell)(void *ctx, const char *done);
	void *ctx;
};

static void tell(const struct recovery *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void tell(const struct recovery *job, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	if (!job->tell)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	job->tell(job->ctx, text);
}

static void forget(char **text)
{
	free(steal(text));
}

/* Was it this start of the domain that was frozen, and so on? */
static bool is_same_run(const struct recovery *job)
{
	return job->d && domain_is_active(job->d) &&
	       (job->left.run_id < 0 || domain_run_id(job->d) == job->left.run_id);
}

static int save(struct recovery *job, struct err *err)
{
	return record_note_is_clear(&job->left) ? record_clear(job->r, err)
						: record_write(job->r, &job->left, err);
}

static bool thaw_is_due(const struct record_note *left)
{
	return left->frozen;
}

/* A daemon that was started anew would wait for ever for an agent that is silent. */
static void limit_patience(struct recovery *job)
{
	struct err ignored = { 0 };

	job->left.patience = true;
	if (save(job, &ignored) == 0)
		agent_set_patience(job->d, AGENT_SECONDS, &ignored);
}

static int thaw(struct recovery *job, struct err *err)
{
	unsigned count = 0;

	if (is_same_run(job)) {
		limit_patience(job);
		if (freeze_end(job->d, THAW_SECONDS, &count, err) < 0)
			return by_hand_thaw(job->d, err);
		if (count > 0)
			tell(job, "thawed %u filesystems", count);
	}
	job->left.frozen = false;
	return 0;
}

static bool job_is_due(const struct record_note *left)
{
	return left->scratch || left->socket;
}

static int end_job(struct recovery *job, struct err *err)
{
	const struct record_note *left = &job->left;
	int rc = job->d ? undo_job(job->d, left->scratch, left->socket, UNDO_UNSETTLED, err) : 0;

	if (rc < 0)
		return -1;
	if (rc > 0)
		tell(job, "ended the backup job of the disk %s", left->target ? left->target : "?");
	forget(&job->left.scratch);
	forget(&job->left.socket);
	return 0;
}

static bool overlay_is_due(const struct record_note *left)
{
	return left->overlay;
}

/* An id of the domain's start would prove nothing: it may come again after the daemon's. */
static int undo_overlay_on_record(struct recovery *job, struct err *err)
{
	const struct undo_overlay overlay = {
		.target = job->left.target,
		.path = job->left.overlay,
		.run_id = -1,
	};

	if (!job->d)
		return undo_overlay_of_nobody(overlay.path, err);
	if (overlay.target)
		return undo_overlay(job->d, &overlay, UNDO_UNSETTLED, err);
	return err_set(err, ERR_FAILED, "the record does not tell which disk has %s", overlay.path);
}

static int end_overlay(struct recovery *job, struct err *err)
{
	int rc = undo_overlay_on_record(job, err);

	if (rc < 0)
		return -1;
	if (rc > 0)
		tell(job, "merged and removed the overlay %s of the disk %s", job->left.overlay,
		     job->left.target);
	forget(&job->left.overlay);
	return 0;
}

/* Not before all that used them is gone. */
static bool files_are_due(const struct record_note *left)
{
	return left->scratch_dir && !job_is_due(left) && !left->overlay;
}

static int remove_files(struct recovery *job, struct err *err)
{
	bool was_there = access(job->left.scratch_dir, F_OK) == 0;

	if (scratch_clear(job->left.scratch_dir, err) < 0)
		return -1;
	if (was_there)
		tell(job, "removed %s", job->left.scratch_dir);
	forget(&job->left.scratch_dir);
	return 0;
}

static bool patience_is_due(const struct record_note *left)
{
	return left->patience;
}

static int reset_patience(struct recovery *job, struct err *err)
{
	if (is_same_run(job)) {
		if (agent_reset_patience(job->d, err) < 0)
			return by_hand_reset_patience(job->d, err);
		tell(job, "put back how long libvirt waits for the agent");
	}
	job->left.patience = false;
	return 0;
}

/* The guest first. */
static const struct step {
	bool (*is_due)(const struct record_note *left);
	int (*undo)(struct recovery *job, struct err *err);
} steps[] = {
	{ thaw_is_due, thaw },
	{ job_is_due, end_job },
	{ overlay_is_due, end_overlay },
	{ files_are_due, remove_files },
	{ patience_is_due, reset_patience },
};

/* What one cannot undo keeps none of the others from trying; the first failure is told. */
static int undo_all(struct recovery *job, struct err *err)
{
	int failures = 0;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct err why = { 0 };

		if (!steps[i].is_due(&job->left) ||
		    (steps[i].undo(job, &why) == 0 && save(job, &why) == 0))
			continue;
		if (failures++ == 0)
			*err = why;
	}
	return failures > 0 ? -1 : 0;
}

int recover_run(struct domain *d, struct record *r, void (*tell_done)(void *ctx, const char *done),
		void *ctx, struct err *err)
{
	struct recovery job = { .d = d, .r = r, .tell = tell_done, .ctx = ctx };
	int rc;

	if (record_reload(r, err) < 0)
		return -1;
	if (record_is_clear(r))
		return 0;
	if (record_note_copy(&job.left, record_note(r), err) < 0)
		return -1;
	rc = undo_all(&job, err);
	record_note_free(&job.left);
	return rc;
}

/* --- where it was done --- */

static int find(struct virt *v, const char *uuid, struct domain **out, struct err *err)
{
	*out = domain_find_uuid(v, uuid, err);
	return *out || err->kind == ERR_REFUSED ? 0 : -1;
}

bool recover_is_at(const struct record_note *note, const struct virt *v)
{
	return !note->uri || str_equal(note->uri, virt_uri(v));
}

int recover_uuid(struct virt *v, const char *uuid, struct record *r,
		 void (*tell_done)(void *ctx, const char *done), void *ctx, struct err *err)
{
	const struct record_note *note = record_note(r);
	autovirt struct virt *own = NULL;
	autodomain struct domain *d = NULL;

	if (!v || !recover_is_at(note, v)) {
		own = virt_open(note->uri, VIRT_MANAGE, err);
		v = own;
	}
	return !v || find(v, uuid, &d, err) < 0 ? -1 : recover_run(d, r, tell_done, ctx, err);
}
