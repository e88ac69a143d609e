// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce_inner.h"

#include "base/err.h"
#include "base/log.h"
#include "quiesce/method.h"
#include "quiesce/roomwatch.h"
#include "quiesce/scratch.h"
#include "quiesce/undo.h"
#include "virt/backup.h"
#include "virt/domain.h"
#include "virt/hardware.h"

#include <stdlib.h>
#include <string.h>

/* A pull-mode backup job: QEMU itself shows the disk as it was, and the guest works on. */
struct backup {
	char *xml;				   /* what begins it */
	enum { NOT_BEGUN, IN_DOUBT, BEGUN } state; /* in doubt: the daemon may still begin it */
	struct roomwatch *watch;		   /* from view to release */

	/* of one that was left behind */
	struct scratch *scratch;
	struct backup *next;
};

static struct backup *state_of(const struct quiesce *q)
{
	return q->state;
}

/* --- prepare --- */

static int note(const struct quiesce *q, struct err *err)
{
	const struct record_note own = {
		.scratch = record_lend(scratch_file(q->scratch)),
		.socket = record_lend(scratch_socket(q->scratch)),
	};

	return method_note(q, &own, err);
}

static int backup_prepare(struct quiesce *q, struct err *err)
{
	q->state = calloc(1, sizeof(struct backup));
	if (!q->state)
		return err_nomem(err);
	if (method_refuse_others(q, err) < 0 || method_open_scratch(q, err) < 0)
		return -1;
	return note(q, err);
}

/* --- the point in time --- */

static int backup_get_ready(struct quiesce *q, struct err *err)
{
	struct backup *b = state_of(q);
	const struct backup_request request = {
		.target = q->cfg.disk->target,
		.export_name = q->cfg.disk->target,
		.socket = scratch_socket(q->scratch),
		.scratch = scratch_file(q->scratch),
	};

	free(b->xml);
	b->xml = backup_xml(q->cfg.domain, &request, err);
	return b->xml ? 0 : -1;
}

static int backup_begin_job(struct quiesce *q, struct err *err)
{
	struct backup *b = state_of(q);
	int rc;

	b->state = IN_DOUBT;
	rc = backup_begin(q->cfg.domain, q->cfg.disk->target, b->xml, err);
	if (rc >= 0)
		b->state = rc == 0 ? BEGUN : NOT_BEGUN;
	return rc;
}

/* What reads fails then, since the export is gone. */
static int give_up(void *ctx, struct contact *c, struct err *err)
{
	const struct quiesce *q = ctx;
	struct domain *d;
	int rc = contact_reach(c, &d, err);

	if (rc > 0)
		rc = undo_job(d, scratch_file(q->scratch), scratch_socket(q->scratch), UNDO_SETTLED,
			      err);
	return rc < 0 ? -1 : 0;
}

static int start_watch(struct quiesce *q, struct err *err)
{
	const struct roomwatch_config cfg = {
		.domain = q->cfg.domain,
		.scratch = q->scratch,
		.give_up = give_up,
		.ctx = q,
	};

	state_of(q)->watch = roomwatch_start(&cfg, err);
	return state_of(q)->watch ? 0 : -1;
}

static int backup_view(struct quiesce *q, struct quiesce_view *out, struct err *err)
{
	const char *socket;

	if (start_watch(q, err) < 0)
		return -1;
	socket = scratch_reach_socket(q->scratch, err);
	if (!socket)
		return -1;
	*out = (struct quiesce_view){ .socket = socket, .export_name = q->cfg.disk->target };
	return 0;
}

static bool was_full(const struct quiesce *q, const char *why)
{
	const struct backup *b = state_of(q);

	return (b->watch && roomwatch_has_acted(b->watch)) || strstr(why, "No space left");
}

static int say_why_ended(const struct quiesce *q, struct domain *d, struct err *err)
{
	const char *place = scratch_dir(q->scratch) ? scratch_dir(q->scratch) : q->cfg.scratch_dir;
	char why[300] = "";

	backup_why_ended(d, why, sizeof why);
	if (was_full(q, why))
		return err_set(err, ERR_FAILED,
			       "the scratch space in %s ran full, so that the capture was given up "
			       "for the guest; use a --scratch-dir with more room, or capture at a "
			       "quieter time",
			       place);
	if (*why)
		return err_set(err, ERR_FAILED, "the backup job of the domain %s ended early: %s",
			       domain_name(d), why);
	return err_set(err, ERR_FAILED,
		       "the backup job of the domain %s was ended by somebody else, or by an error "
		       "that libvirt does not tell",
		       domain_name(d));
}

/* The job cannot be asked for: has the domain ended, or is it about to? */
static int explain(struct quiesce *q, struct domain *d, struct err *err)
{
	struct domain_status status;
	struct err ignored = { 0 };

	if (!contact_same_run(&q->contact, err))
		return -1;
	if (domain_look(d, &status, &ignored) == 0 && status.is_shutting_down)
		return err_set(err, ERR_FAILED,
			       "the domain %s went away during the capture: it is %s",
			       domain_name(d), status.text);
	return -1;
}

static void note_scratch_used(struct quiesce *q, struct domain *d)
{
	struct backup_progress progress;
	struct err ignored = { 0 };

	if (backup_progress(d, &progress, &ignored) == 0)
		q->scratch_used = progress.scratch_bytes;
}

static int backup_check(struct quiesce *q, struct err *err)
{
	struct domain *d = contact_same_run(&q->contact, err);
	struct backup_job job = { 0 };
	bool is_ours;
	int rc = d ? backup_find(d, ERRAND_CUT_SHORT, &job, err) : -1;

	if (rc < 0)
		return d ? explain(q, d, err) : -1;
	note_scratch_used(q, d);
	is_ours = rc > 0 &&
		  undo_job_is_ours(&job, scratch_file(q->scratch), scratch_socket(q->scratch));
	backup_job_free(&job);
	return is_ours ? 0 : say_why_ended(q, d, err);
}

/* --- release --- */

/* QEMU removes its socket when the job ends, but not when its guest does. */
static void warn_of_socket(const struct quiesce *q, struct domain *d)
{
	if (!scratch_dir(q->scratch) && (!d || !domain_is_active(d)))
		log_warn("the socket %s may be left on the hypervisor: remove it there",
			 scratch_socket(q->scratch));
}

static int end_job(struct quiesce *q, struct backup *b, struct err *err)
{
	enum undo_doubt doubt = b->state == IN_DOUBT ? UNDO_UNSETTLED : UNDO_SETTLED;
	struct domain *d;
	int rc = contact_reach(&q->contact, &d, err);

	if (rc > 0)
		rc = undo_job(d, scratch_file(q->scratch), scratch_socket(q->scratch), doubt, err);
	if (rc < 0)
		return err_context(err, "the domain %s may still have our backup job",
				   domain_name(q->cfg.domain));
	warn_of_socket(q, d);
	b->state = NOT_BEGUN;
	return 0;
}

/* As long as the job may be there, so are its files and the record. */
static int backup_release(struct quiesce *q, struct err *err)
{
	struct backup *b = state_of(q);
	int rc;

	if (b)
		roomwatch_stop(steal(&b->watch));
	rc = b && b->state != NOT_BEGUN ? end_job(q, b, err) : 0;
	if (rc < 0 || !q->scratch)
		return rc;
	scratch_close(steal(&q->scratch));
	return undo_forget(q->cfg.record, err);
}

/* As long as this process lives, with its files and their lock; then as long as others do, who go
 * on with it (guard.h, recover.h).
 */
static void leave_behind(struct backup *b, struct scratch *scratch)
{
	static struct backup *left;

	b->scratch = scratch;
	b->next = left;
	left = b;
}

static void backup_close(struct quiesce *q)
{
	struct backup *b = steal(&q->state);

	if (b) {
		roomwatch_stop(steal(&b->watch));
		free(steal(&b->xml));
	}
	if (b && b->state != NOT_BEGUN) {
		leave_behind(b, steal(&q->scratch));
		return;
	}
	scratch_close(steal(&q->scratch));
	free(b);
}

const struct quiesce_ops backup_ops = {
	.name = "backup-job",
	.prepare = backup_prepare,
	.get_ready = backup_get_ready,
	.begin = backup_begin_job,
	.view = backup_view,
	.check = backup_check,
	.release = backup_release,
	.close = backup_close,
};
