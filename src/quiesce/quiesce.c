// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "quiesce/contact.h"
#include "quiesce/freeze.h"
#include "quiesce/guard.h"
#include "quiesce/record.h"
#include "virt/agent.h"
#include "virt/backup.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRIM_SECONDS = 300,
	THAW_SECONDS = 30,	   /* by ourselves, before the guard has to try */
	THAW_AT_LAST_SECONDS = 10, /* after both have failed */
};

/* The first that can is taken. */
static const struct quiesce_ops *const methods[] = { &backup_ops, &snapshot_ops, NULL };

struct story {
	struct quiesce q; /* what the methods see */
	const struct quiesce_ops *const *method;
	struct contact contact;
	bool wants_freeze; /* and the agent can */
	bool can_trim;
	bool is_over; /* nothing is left to undo */
	bool was_released;
	uint64_t scratch_used;
};

static struct story *story_of(struct quiesce *q)
{
	return (struct story *)q;
}

static const char *name_of(const struct story *s)
{
	return domain_name(s->q.cfg.domain);
}

/* --- the record --------------------------------------------------------------------------- */

/* What is true of the freeze from now on; the rest stays as the methods wrote it. */
static int note(const struct story *s, bool frozen, bool patience, struct err *err)
{
	struct record_note note = *record_note(s->q.cfg.record);
	struct domain *d = s->q.cfg.domain;

	note.uri = (char *)(uintptr_t)virt_uri(domain_connection(d)); /* copied */
	note.name = (char *)(uintptr_t)domain_name(d);
	note.run_id = s->contact.run_id;
	note.frozen = frozen;
	note.patience = patience;
	return record_write(s->q.cfg.record, &note, err);
}

static bool is_noted_frozen(const struct story *s)
{
	return record_note(s->q.cfg.record)->frozen;
}

static bool is_noted_patience(const struct story *s)
{
	return record_note(s->q.cfg.record)->patience;
}

/* From here on no call to the agent takes longer. */
static int limit_patience(const struct story *s, unsigned seconds, struct err *err)
{
	if (!is_noted_patience(s) && note(s, is_noted_frozen(s), true, err) < 0)
		return -1;
	return agent_set_patience(s->q.cfg.domain, seconds, err);
}

static int reset_patience(const struct story *s, struct domain *d, struct err *err)
{
	if (agent_reset_patience(d, err) < 0 && domain_is_active(d)) {
		err_context(err, "libvirt waits %u seconds at most for the agent of the domain %s",
			    s->q.cfg.freeze_seconds, name_of(s));
		return err_hint(err, "by hand: virsh -c '%s' guest-agent-timeout %s --timeout -2",
				virt_uri(domain_connection(d)), domain_uuid(d));
	}
	return note(s, is_noted_frozen(s), false, err);
}

/* When it fails now, release does it.  Who still has to thaw needs it. */
static void end_patience(const struct story *s)
{
	struct err why = { 0 };

	if (is_noted_patience(s) && !is_noted_frozen(s) &&
	    reset_patience(s, s->q.cfg.domain, &why) < 0)
		log_debug("%s", why.text);
}

/* --- can it be frozen? ----------------------------------------------------------------------- */

/* The words of virt/ begin with what our own sentences say, too. */
static void drop_beginning(char *text, const char *beginning)
{
	size_t len = strlen(beginning);

	if (strncmp(text, beginning, len) == 0)
		memmove(text, text + len, strlen(text + len) + 1);
}

static void shorten(const struct story *s, char *text)
{
	char domain[160];

	snprintf(domain, sizeof domain, "domain %.120s: ", name_of(s));
	drop_beginning(text, domain);
	drop_beginning(text, "cannot freeze its filesystems: ");
}

/* Who requires a freeze gets nothing else: -1 with kind.  Others go on without. */
static int do_without(struct story *s, enum err_kind kind, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int do_without(struct story *s, enum err_kind kind, struct err *err, const char *fmt, ...)
{
	struct quiesce_outcome *o = &s->q.outcome;
	va_list ap;

	if (s->q.cfg.wish == QUIESCE_OFF)
		return 0;
	va_start(ap, fmt);
	vsnprintf(o->why_not, sizeof o->why_not, fmt, ap);
	va_end(ap);
	shorten(s, o->why_not);
	if (s->q.cfg.wish != QUIESCE_REQUIRE)
		return 0;
	return err_set(err, kind, "the domain %s %s frozen: %s", name_of(s),
		       kind == ERR_REFUSED ? "cannot be" : "was not", o->why_not);
}

static int refuse(struct story *s, const char *why, struct err *err)
{
	if (do_without(s, ERR_REFUSED, err, "%s", why) == 0)
		return 0;
	return err_hint(err, "mend that, or capture it as after a power cut with --quiesce=auto");
}

static int judge(struct story *s, const struct agent_facts *facts, struct err *err)
{
	s->can_trim = facts->answers && facts->can_trim && !facts->is_frozen;
	if (s->q.cfg.wish == QUIESCE_OFF)
		return 0;
	if (!facts->answers || !facts->can_freeze)
		return refuse(s, facts->why_not, err);
	if (facts->is_frozen)
		return refuse(s, "its filesystems were frozen by somebody else", err);
	s->wants_freeze = true;
	return 0;
}

static int probe(struct story *s, struct err *err)
{
	struct agent_facts facts = { 0 };
	struct err why = { 0 };
	int rc;

	if (limit_patience(s, s->q.cfg.freeze_seconds, &why) < 0) {
		end_patience(s);
		return refuse(s, why.text, err);
	}
	rc = agent_probe(s->q.cfg.domain, &facts, err);
	end_patience(s);
	if (rc == 0)
		rc = judge(s, &facts, err);
	agent_facts_free(&facts);
	return rc;
}

static int look_at_agent(struct story *s, struct err *err)
{
	const struct quiesce_config *cfg = &s->q.cfg;
	struct domain_status status;
	char why[120];

	if (cfg->wish == QUIESCE_OFF && !cfg->wants_trim)
		return 0;
	if (domain_status(cfg->domain, &status, err) < 0)
		return -1;
	if (status.state == DOMAIN_RUNNING)
		return probe(s, err);
	snprintf(why, sizeof why, "it is %s", status.text);
	return cfg->wish == QUIESCE_OFF ? 0 : refuse(s, why, err);
}

/* --- the method -------------------------------------------------------------------------- */

static void leave_method(struct story *s, const struct err *why)
{
	struct quiesce *q = &s->q;

	if (s->method[1])
		log_note("domain %s: no %s: %s", name_of(s), q->ops->name, why->text);
	steal(&q->ops)->close(q);
	s->method++;
}

/* The first from s->method on that can: 0; -1 with why none of them can, or why one that can has
 * failed.
 */
static int take_method(struct story *s, struct err *err)
{
	struct quiesce *q = &s->q;
	int rc;

	while (*s->method) {
		q->ops = *s->method;
		rc = q->ops->prepare(q, err);
		if (rc <= 0)
			return rc;
		leave_method(s, err);
	}
	return -1;
}

/* *err: why the one that was taken cannot after all. */
static int take_next_method(struct story *s, struct err *err)
{
	struct err why = *err;

	if (s->q.ops->release(&s->q, err) < 0)
		return -1;
	leave_method(s, &why);
	return take_method(s, err);
}

struct quiesce *quiesce_open(const struct quiesce_config *cfg, struct err *err)
{
	struct story *s = calloc(1, sizeof *s);
	autoquiesce struct quiesce *q = s ? &s->q : NULL;

	if (!s) {
		err_nomem(err);
		return NULL;
	}
	q->cfg = *cfg;
	q->outcome.frozen_ms = -1;
	s->method = methods;
	contact_begin(&s->contact, cfg->domain);
	if (look_at_agent(s, err) < 0 || take_method(s, err) < 0)
		return NULL;
	return steal(&q);
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

static void freeze_and_begin(struct story *s, struct instant *now)
{
	struct quiesce *q = &s->q;
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
static int thaw_again(struct story *s, struct instant *now, unsigned *thawed, struct err *err)
{
	struct domain *d = s->q.cfg.domain;
	struct err why = { 0 }, guards = { 0 };

	if (freeze_end(d, THAW_SECONDS, thawed, &why) == 0)
		return 0;
	if (guard_thaw(s->q.guard, &guards) < 0) {
		*err = why;
		err_hint(err, "%s", guards.text);
		return freeze_hint(d, err);
	}
	now->guard_thawed = true;
	return 0;
}

/* *ended_ns: when it was so. */
static int thaw_for_certain(struct story *s, struct instant *now, uint64_t *ended_ns,
			    struct err *err)
{
	struct domain *d = s->q.cfg.domain;
	struct err ignored = { 0 };
	unsigned thawed = now->filesystems;
	bool has_answered = agent_thaw(d, &thawed, &ignored) == 0;

	*ended_ns = clock_ns();
	if (!has_answered || agent_is_frozen(d, &ignored) != 0) {
		if (thaw_again(s, now, has_answered ? NULL : &thawed, err) < 0)
			return -1;
		*ended_ns = clock_ns();
	}
	now->thawed = thawed;
	return 0;
}

/* A guard that is gone now does no harm to what was begun. */
static void disarm(struct story *s, struct instant *now)
{
	struct err why = { 0 };
	int calm = guard_disarm(s->q.guard, &why);

	if (calm == 0)
		now->guard_thawed = true;
	if (calm < 0 && now->calm >= 0)
		log_warn("domain %s: %s; should ccsnap be killed now, \"ccsnap recover\" has to "
			 "put the domain right",
			 name_of(s), why.text);
}

/* Where the guard has thawed, nothing was left to thaw. */
static void compare_counts(const struct story *s, const struct instant *now)
{
	if (now->thawed < now->filesystems && !now->guard_thawed && now->calm > 0)
		log_warn("domain %s: the agent has thawed %u of the %u filesystems that it has "
			 "frozen; look whether it works well",
			 name_of(s), now->thawed, now->filesystems);
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

static int thaw(struct story *s, struct instant *now, struct err *err)
{
	struct quiesce_outcome *o = &s->q.outcome;
	struct err why = { 0 };
	uint64_t ended_ns;

	if (thaw_for_certain(s, now, &ended_ns, err) < 0)
		return -1; /* the guard stays armed, and the record says frozen */
	disarm(s, now);
	compare_counts(s, now);
	if (was_frozen(now)) {
		o->frozen_ms = (double)(ended_ns - now->asked_ns) / 1e6;
		o->thawed_by = guard_stepped_in(now) ? "guard" : "ccsnap";
	}
	if (note(s, false, is_noted_patience(s), &why) < 0)
		log_warn("domain %s: %s", name_of(s), why.text);
	return 0;
}

/* As quiesce_ops.begin, without a freeze. */
static int begin(struct story *s, struct err *err)
{
	struct quiesce *q = &s->q;
	int rc = q->ops->begin(q, err);

	if (rc == 0)
		q->outcome.method = q->ops->name;
	return rc;
}

/* All is thawed: what is it worth? */
static int weigh(struct story *s, const struct instant *now, struct err *err)
{
	struct quiesce_outcome *o = &s->q.outcome;

	if (now->calm < 0) {
		*err = now->guard;
		return err_context(err, "nobody would have thawed the domain %s", name_of(s));
	}
	if (!now->has_tried) {
		if (do_without(s, ERR_FAILED, err, "%s", now->freeze.text) < 0)
			return -1;
		return interrupt_check(err) < 0 ? -1 : begin(s, err);
	}
	if (now->began != 0) {
		*err = now->begin;
		return now->began;
	}
	o->method = s->q.ops->name;
	if (now->calm == 0)
		return do_without(
			s, ERR_FAILED, err,
			"the guard has thawed it before the point in time was there, "
			"which took longer than %u seconds (--freeze-timeout), or when it "
			"was told to end",
			s->q.cfg.freeze_seconds);
	o->quiesced = true;
	o->filesystems = now->filesystems;
	o->why_not[0] = '\0';
	return 0;
}

/* Nothing returns early between arm and thaw. */
static int freeze_begin_thaw(struct story *s, struct err *err)
{
	struct instant now = { 0 };

	if (note(s, true, true, err) < 0)
		return -1;
	if (guard_arm(s->q.guard, err) < 0) {
		struct err ignored = { 0 };

		note(s, false, true, &ignored);
		return -1;
	}
	freeze_and_begin(s, &now);
	return thaw(s, &now, err) < 0 ? -1 : weigh(s, &now, err);
}

/* Is it still up to us to freeze it?  1, 0, or -1 when a freeze is required. */
static int may_freeze(struct story *s, struct err *err)
{
	struct err why = { 0 };
	int frozen;

	if (!s->wants_freeze)
		return 0;
	frozen = limit_patience(s, s->q.cfg.freeze_seconds, &why) < 0
			 ? -1
			 : agent_is_frozen(s->q.cfg.domain, &why);
	if (frozen == 0)
		return 1;
	if (frozen > 0)
		err_set(&why, ERR_FAILED, "its filesystems were frozen by somebody else");
	return do_without(s, ERR_FAILED, err, "%s", why.text);
}

/* As quiesce_ops.begin.  A signal is looked at here and in quiesce_hold, when all is thawed. */
static int try_instant(struct story *s, struct err *err)
{
	int may = interrupt_check(err) < 0 ? -1 : may_freeze(s, err);

	if (may <= 0)
		return may < 0 ? -1 : begin(s, err);
	return freeze_begin_thaw(s, err);
}

static int take_instant(struct story *s, struct err *err)
{
	int rc;

	while ((rc = try_instant(s, err)) > 0)
		if (take_next_method(s, err) < 0)
			return -1;
	return rc;
}

/* --- around it ---------------------------------------------------------------------------- */

static void trim(struct story *s)
{
	struct err why = { 0 };

	if (!s->q.cfg.wants_trim)
		return;
	if (!s->can_trim)
		err_set(&why, ERR_FAILED, "its agent is not there, or cannot do that");
	else if (limit_patience(s, TRIM_SECONDS, &why) == 0 &&
		 agent_trim(s->q.cfg.domain, &why) == 0)
		s->q.outcome.trimmed = true;
	if (!s->q.outcome.trimmed)
		log_warn("domain %s: free space was not trimmed before the capture: %s", name_of(s),
			 why.text);
}

static void warn_if_crash_consistent(const struct story *s)
{
	const struct quiesce_outcome *o = &s->q.outcome;

	if (s->q.cfg.wish == QUIESCE_AUTO && !o->quiesced)
		log_warn("domain %s was not frozen, so the image holds it as after a power cut: %s",
			 name_of(s), o->why_not);
}

static int hold(struct story *s, struct quiesce_view *out, struct err *err)
{
	struct quiesce *q = &s->q;
	int rc;

	q->guard = guard_start(q->cfg.domain, q->cfg.record, q->cfg.freeze_seconds, err);
	if (!q->guard)
		return -1;
	trim(s);
	rc = take_instant(s, err);
	end_patience(s);
	if (rc < 0 || interrupt_check(err) < 0)
		return -1;
	warn_if_crash_consistent(s);
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

	if (hold(story_of(q), out, err) == 0)
		return 0;
	say_failed(err);
	q->outcome.quiesced = false;
	if (q->ops && q->ops->release(q, &why) < 0)
		log_debug("%s", why.text); /* our caller's release says it, if it stays so */
	return -1;
}

int quiesce_check(struct quiesce *q, struct err *err)
{
	struct backup_progress progress;
	struct err ignored = { 0 };

	if (q->ops == &backup_ops && backup_progress(q->cfg.domain, &progress, &ignored) == 0)
		story_of(q)->scratch_used = progress.scratch_bytes;
	return q->ops->check(q, err);
}

/* --- undoing ------------------------------------------------------------------------------- */

/* The guard that stays armed goes on when we give up. */
static int thaw_at_last(struct story *s, struct domain *d, struct err *err)
{
	struct err ignored = { 0 };

	agent_set_patience(d, s->q.cfg.freeze_seconds, &ignored); /* a new daemon may have none */
	if (freeze_end(d, THAW_AT_LAST_SECONDS, NULL, err) < 0)
		return freeze_hint(d, err);
	if (s->q.guard)
		guard_disarm(s->q.guard, &ignored);
	return note(s, false, is_noted_patience(s), err);
}

static int undo_freeze(struct story *s, struct err *err)
{
	struct domain *d;
	int there;

	if (!is_noted_frozen(s) && !is_noted_patience(s))
		return 0;
	there = contact_reach(&s->contact, &d, err);
	if (there < 0)
		return err_context(err, "the domain %s may be frozen", name_of(s));
	if (there == 0)
		return note(s, false, false, err);
	if (is_noted_frozen(s) && thaw_at_last(s, d, err) < 0)
		return -1;
	return is_noted_patience(s) ? reset_patience(s, d, err) : 0;
}

static int undo_method(struct story *s, struct err *err)
{
	return s->q.ops ? s->q.ops->release(&s->q, err) : 0;
}

/* What one cannot undo keeps the other from nothing; both are told. */
static int undo(struct story *s, struct err *err)
{
	static int (*const steps[])(struct story * s, struct err * err) = { undo_freeze,
									    undo_method };
	int failures = 0;

	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct err why = { 0 };

		if (steps[i](s, &why) == 0)
			continue;
		if (failures++ == 0)
			*err = why;
		else
			log_error("%s", why.text);
	}
	return failures > 0 ? -1 : record_clear(s->q.cfg.record, err);
}

int quiesce_release(struct quiesce *q, struct err *err)
{
	struct story *s = story_of(q);

	s->was_released = true;
	if (s->is_over)
		return 0;
	if (undo(s, err) < 0)
		return say_failed(err);
	s->is_over = true;
	guard_stop(steal(&q->guard));
	return 0;
}

const struct quiesce_outcome *quiesce_outcome(const struct quiesce *q)
{
	return &q->outcome;
}

uint64_t quiesce_scratch_used(const struct quiesce *q)
{
	return ((const struct story *)q)->scratch_used;
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
	if (!story_of(q)->was_released)
		release_unasked(q);
	if (q->ops)
		q->ops->close(q);
	guard_leave(q->guard);
	contact_end(&story_of(q)->contact);
	free(story_of(q));
}
