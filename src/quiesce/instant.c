// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce_inner.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/str.h"
#include "quiesce/by_hand.h"
#include "quiesce/freeze.h"
#include "quiesce/guard.h"
#include "virt/agent.h"
#include "virt/domain.h"

enum { THAW_SECONDS = 30 }; /* by ourselves, before the guard has to try */

/* --- the method -------------------------------------------------------------------------- */

static void leave_method(struct quiesce *q, const struct err *why)
{
	if (q->methods[1])
		log_note("%s; going on with a %s", why->text, q->methods[1]->name);
	steal(&q->ops)->close(q);
	q->methods++;
}

int quiesce_take_method(struct quiesce *q, struct err *err)
{
	int rc;

	while (*q->methods) {
		q->ops = *q->methods;
		rc = q->ops->prepare(q, err);
		if (rc <= 0)
			return rc;
		leave_method(q, err);
	}
	return -1;
}

/* *err: why the one that was taken cannot after all. */
static int take_next_method(struct quiesce *q, struct err *err)
{
	struct err why = *err;

	if (q->ops->release(q, err) < 0)
		return -1;
	leave_method(q, &why);
	return quiesce_take_method(q, err);
}

/* --- the instant ------------------------------------------------------------------------- */

/* What came of one try to freeze and begin. */
struct instant {
	uint64_t asked_ns;    /* for the freeze */
	unsigned filesystems; /* frozen; 0: it failed */
	bool has_tried;	      /* to begin */
	int began;	      /* as of quiesce_ops.begin */
	int calm;	      /* as of guard_is_calm, when it had begun */
	unsigned thawed;      /* as the agent says */
	bool guard_thawed;
	struct err freeze, begin, guard; /* why not */
};

static void freeze_and_begin(struct quiesce *q, struct instant *now)
{
	unsigned count = 0;

	now->asked_ns = clock_ns();
	if (agent_freeze(q->cfg.domain, &count, &now->freeze) == 0) {
		now->filesystems = count;
		if (count == 0)
			err_set(&now->freeze, ERR_FAILED, "the agent has frozen no filesystem");
	}
	if (now->filesystems > 0) {
		now->has_tried = true;
		now->began = q->ops->begin(q, &now->begin);
	}
	now->calm = guard_is_calm(q->guard, &now->guard);
}

/* *thawed: how many the agent says. */
static int thaw_again(struct quiesce *q, struct instant *now, unsigned *thawed, struct err *err)
{
	struct domain *d = q->cfg.domain;
	struct err why = { 0 }, guards = { 0 };

	if (freeze_end(d, THAW_SECONDS, thawed, &why) == 0)
		return 0;
	if (guard_thaw(q->guard, &guards) < 0) {
		*err = why;
		err_hint(err, "%s", guards.text);
		return by_hand_thaw(d, err);
	}
	now->guard_thawed = true;
	return 0;
}

/* *ended_ns: when it was so. */
static int thaw_for_certain(struct quiesce *q, struct instant *now, uint64_t *ended_ns,
			    struct err *err)
{
	struct domain *d = q->cfg.domain;
	struct err ignored = { 0 };
	unsigned thawed = now->filesystems;
	bool has_answered = agent_thaw(d, &thawed, &ignored) == 0;

	*ended_ns = clock_ns();
	if (!has_answered || agent_is_frozen(d, &ignored) != 0) {
		if (thaw_again(q, now, has_answered ? NULL : &thawed, err) < 0)
			return -1;
		*ended_ns = clock_ns();
	}
	now->thawed = thawed;
	return 0;
}

/* A guard that is gone now does no harm to what was begun. */
static void disarm(struct quiesce *q, struct instant *now)
{
	struct err why = { 0 };
	int calm = guard_disarm(q->guard, &why);

	if (calm == 0)
		now->guard_thawed = true;
	if (calm < 0 && now->calm >= 0)
		log_warn("domain %s: %s; should ccsnap be killed now, \"ccsnap recover\" has to "
			 "put the domain right",
			 domain_name(q->cfg.domain), why.text);
}

/* Where the guard has thawed, nothing was left to thaw. */
static void compare_counts(const struct quiesce *q, const struct instant *now)
{
	if (now->thawed < now->filesystems && !now->guard_thawed && now->calm > 0)
		log_warn("domain %s: the agent has thawed %u of the %u filesystems that it has "
			 "frozen; look whether it works well",
			 domain_name(q->cfg.domain), now->thawed, now->filesystems);
}

static bool guard_stepped_in(const struct instant *now)
{
	return now->guard_thawed || now->calm == 0;
}

/* As far as anybody can tell: a freeze that failed may have frozen. */
static bool was_frozen(const struct instant *now)
{
	return now->filesystems > 0 || now->thawed > 0 || guard_stepped_in(now);
}

static int thaw(struct quiesce *q, struct instant *now, struct err *err)
{
	struct quiesce_outcome *o = &q->outcome;
	struct err why = { 0 };
	uint64_t ended_ns;

	if (thaw_for_certain(q, now, &ended_ns, err) < 0)
		return -1; /* the guard stays armed, and the record says frozen */
	disarm(q, now);
	compare_counts(q, now);
	if (was_frozen(now)) {
		o->frozen_ms = (double)(ended_ns - now->asked_ns) / 1e6;
		o->thawed_by = guard_stepped_in(now) ? "guard" : "ccsnap";
	}
	if (quiesce_note_thawed(q, &why) < 0)
		log_warn("domain %s: %s", domain_name(q->cfg.domain), why.text);
	return 0;
}

/* As quiesce_ops.begin, without a freeze. */
static int begin(struct quiesce *q, struct err *err)
{
	int rc = q->ops->begin(q, err);

	if (rc == 0)
		q->outcome.method = q->ops->name;
	return rc;
}

/* All is thawed: what is it worth? */
static int weigh(struct quiesce *q, const struct instant *now, struct err *err)
{
	struct quiesce_outcome *o = &q->outcome;

	if (now->calm < 0) {
		*err = now->guard;
		return err_context(err, "nobody would have thawed the domain %s",
				   domain_name(q->cfg.domain));
	}
	if (!now->has_tried) {
		if (quiesce_do_without(q, ERR_FAILED, err, "%s", now->freeze.text) < 0)
			return -1;
		return interrupt_check(err) < 0 ? -1 : begin(q, err);
	}
	if (now->began != 0) {
		*err = now->begin;
		return now->began;
	}
	o->method = q->ops->name;
	if (now->calm == 0)
		return quiesce_do_without(
			q, ERR_FAILED, err,
			"the guard has thawed it before the point in time was there, "
			"which took longer than %u seconds (--freeze-timeout), or when it "
			"was told to end",
			q->cfg.freeze_seconds);
	o->quiesced = true;
	o->filesystems = now->filesystems;
	o->why_not[0] = '\0';
	return 0;
}

/* Nothing returns early between arm and thaw. */
static int freeze_begin_thaw(struct quiesce *q, struct err *err)
{
	struct instant now = { 0 };

	if (quiesce_note_frozen(q, err) < 0)
		return -1;
	if (guard_arm(q->guard, err) < 0) {
		struct err ignored = { 0 };

		quiesce_note_thawed(q, &ignored);
		return -1;
	}
	freeze_and_begin(q, &now);
	return thaw(q, &now, err) < 0 ? -1 : weigh(q, &now, err);
}

/* As quiesce_ops.begin.  A signal is looked at here and in quiesce_hold, when all is thawed. */
static int try_instant(struct quiesce *q, struct err *err)
{
	int may = interrupt_check(err) < 0 ? -1 : quiesce_may_freeze(q, err), rc;

	if (may < 0)
		return -1;
	rc = q->ops->get_ready(q, err);
	if (rc != 0)
		return rc;
	return may ? freeze_begin_thaw(q, err) : begin(q, err);
}

int quiesce_take_instant(struct quiesce *q, struct err *err)
{
	int rc;

	while ((rc = try_instant(q, err)) > 0)
		if (take_next_method(q, err) < 0)
			return -1;
	return rc;
}
