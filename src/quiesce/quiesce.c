// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce_inner.h"

#include "base/interrupt.h"
#include "base/log.h"
#include "quiesce/by_hand.h"
#include "quiesce/freeze.h"
#include "quiesce/guard.h"
#include "virt/agent.h"
#include "virt/domain.h"

#include <stdlib.h>

enum { THAW_AT_LAST_SECONDS = 10 }; /* after ourselves and the guard have failed */

/* The first that can is taken. */
static const struct quiesce_ops *const methods[] = { &backup_ops, &snapshot_ops, NULL };

struct quiesce *quiesce_open(const struct quiesce_config *cfg, struct err *err)
{
	autoquiesce struct quiesce *q = calloc(1, sizeof *q);

	if (!q) {
		err_nomem(err);
		return NULL;
	}
	q->cfg = *cfg;
	q->outcome.frozen_ms = -1;
	q->methods = methods;
	contact_begin(&q->contact, cfg->domain);
	if (quiesce_look_at_agent(q, err) < 0 || quiesce_take_method(q, err) < 0)
		return NULL;
	return steal(&q);
}

/* --- holding ------------------------------------------------------------------------------- */

static void warn_if_crash_consistent(const struct quiesce *q)
{
	const struct quiesce_outcome *o = &q->outcome;

	if (q->cfg.wish == QUIESCE_AUTO && !o->quiesced)
		log_warn("domain %s was not frozen, so the image holds it as after a power cut: %s",
			 domain_name(q->cfg.domain), o->why_not);
}

static int hold(struct quiesce *q, struct quiesce_view *out, struct err *err)
{
	int rc;

	q->guard = guard_start(q->cfg.domain, q->cfg.record, q->cfg.freeze_seconds, err);
	if (!q->guard)
		return -1;
	quiesce_trim(q);
	rc = quiesce_take_instant(q, err);
	quiesce_end_patience(q);
	if (rc < 0 || interrupt_check(err) < 0)
		return -1;
	warn_if_crash_consistent(q);
	return q->ops->view(q, out, err);
}

/* A refusal says that nothing was done; here it comes from deep below. */
static int say_failed(struct err *err)
{
	if (err->kind == ERR_REFUSED)
		err->kind = ERR_FAILED;
	return -1;
}

int quiesce_hold(struct quiesce *q, struct quiesce_view *out, struct err *err)
{
	struct err why = { 0 };

	if (hold(q, out, err) == 0)
		return 0;
	say_failed(err);
	q->outcome.quiesced = false;
	if (q->ops && q->ops->release(q, &why) < 0)
		log_debug("%s", why.text); /* our caller's release says it, if it stays so */
	return -1;
}

int quiesce_check(struct quiesce *q, struct err *err)
{
	return q->ops->check(q, err);
}

/* --- undoing ------------------------------------------------------------------------------- */

/* The guard that stays armed goes on when we give up. */
static int thaw_at_last(struct quiesce *q, struct domain *d, struct err *err)
{
	struct err ignored = { 0 };

	agent_set_patience(d, q->cfg.freeze_seconds, &ignored); /* a new daemon may have none */
	if (freeze_end(d, THAW_AT_LAST_SECONDS, NULL, err) < 0)
		return by_hand_thaw(d, err);
	if (q->guard)
		guard_disarm(q->guard, &ignored);
	return quiesce_note_thawed(q, err);
}

static int undo_freeze(struct quiesce *q, struct err *err)
{
	const struct record_note *noted = record_note(q->cfg.record);
	struct domain *d;
	int there;

	if (!noted->frozen && !noted->patience)
		return 0;
	there = contact_reach(&q->contact, &d, err);
	if (there < 0)
		return err_context(err, "the domain %s may be frozen", domain_name(q->cfg.domain));
	if (there == 0)
		return quiesce_note_gone(q, err);
	if (noted->frozen && thaw_at_last(q, d, err) < 0)
		return -1;
	return quiesce_reset_patience(q, d, err);
}

static int undo_method(struct quiesce *q, struct err *err)
{
	return q->ops ? q->ops->release(q, err) : 0;
}

/* What one cannot undo keeps the other from nothing; both are told. */
static int undo(struct quiesce *q, struct err *err)
{
	static int (*const steps[])(struct quiesce * q, struct err * err) = { undo_freeze,
									      undo_method };
	int failures = 0;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct err why = { 0 };

		if (steps[i](q, &why) == 0)
			continue;
		if (failures++ == 0)
			*err = why;
		else
			log_error("%s", why.text);
	}
	return failures > 0 ? -1 : record_clear(q->cfg.record, err);
}

int quiesce_release(struct quiesce *q, struct err *err)
{
	q->was_released = true;
	if (q->is_over)
		return 0;
	if (undo(q, err) < 0)
		return say_failed(err);
	q->is_over = true;
	guard_stop(steal(&q->guard));
	return 0;
}

const struct quiesce_outcome *quiesce_outcome(const struct quiesce *q)
{
	return &q->outcome;
}

uint64_t quiesce_scratch_used(const struct quiesce *q)
{
	return q->scratch_used;
}

/* What release has told is not told again. */
static void release_unasked(struct quiesce *q)
{
	struct err err = { 0 };

	if (quiesce_release(q, &err) < 0)
		log_error("%s", err.text);
}

void quiesce_close(struct quiesce *q)
{
	if (!q)
		return;
	if (!q->was_released)
		release_unasked(q);
	if (q->ops)
		q->ops->close(q);
	guard_leave(q->guard);
	contact_end(&q->contact);
	free(q);
}
