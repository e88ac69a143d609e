// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce_inner.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "quiesce/by_hand.h"
#include "virt/agent.h"
#include "virt/domain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TRIM_SECONDS = 300 };

/* --- its patience --------------------------------------------------------------------------- */

static bool is_noted_patience(const struct quiesce *q)
{
	return record_note(q->cfg.record)->patience;
}

/* From here on no call to the agent takes longer. */
static int limit_patience(const struct quiesce *q, unsigned seconds, struct err *err)
{
	if (!is_noted_patience(q) && quiesce_note_patience(q, err) < 0)
		return -1;
	return agent_set_patience(q->cfg.domain, seconds, err);
}

int quiesce_reset_patience(const struct quiesce *q, struct domain *d, struct err *err)
{
	if (!is_noted_patience(q))
		return 0;
	if (agent_reset_patience(d, err) < 0 && domain_is_active(d)) {
		err_context(err, "libvirt waits %u seconds at most for the agent of the domain %s",
			    q->cfg.freeze_seconds, domain_name(d));
		return by_hand_reset_patience(d, err);
	}
	return quiesce_forget_patience(q, err);
}

/* Who still has to thaw needs it. */
void quiesce_end_patience(const struct quiesce *q)
{
	struct err why = { 0 };

	if (!record_note(q->cfg.record)->frozen &&
	    quiesce_reset_patience(q, q->cfg.domain, &why) < 0)
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

static void shorten(const struct quiesce *q, char *text)
{
	char domain[160];

	snprintf(domain, sizeof domain, "domain %.120s: ", domain_name(q->cfg.domain));
	drop_beginning(text, domain);
	drop_beginning(text, "cannot freeze its filesystems: ");
}

int quiesce_do_without(struct quiesce *q, enum err_kind kind, struct err *err, const char *fmt, ...)
{
	struct quiesce_outcome *o = &q->outcome;
	va_list ap;

	if (q->cfg.wish == QUIESCE_OFF)
		return 0;
	va_start(ap, fmt);
	vsnprintf(o->why_not, sizeof o->why_not, fmt, ap);
	va_end(ap);
	shorten(q, o->why_not);
	if (q->cfg.wish != QUIESCE_REQUIRE)
		return 0;
	return err_set(err, kind, "the domain %s %s frozen: %s", domain_name(q->cfg.domain),
		       kind == ERR_REFUSED ? "cannot be" : "was not", o->why_not);
}

static int refuse(struct quiesce *q, const char *why, struct err *err)
{
	if (quiesce_do_without(q, ERR_REFUSED, err, "%s", why) == 0)
		return 0;
	return err_hint(err, "mend that, or capture it as after a power cut with --quiesce=auto");
}

static int judge(struct quiesce *q, const struct agent_facts *facts, struct err *err)
{
	q->can_trim = facts->answers && facts->can_trim && !facts->is_frozen;
	if (q->cfg.wish == QUIESCE_OFF)
		return 0;
	if (!facts->answers || !facts->can_freeze)
		return refuse(q, facts->why_not, err);
	if (facts->is_frozen)
		return refuse(q, "its filesystems were frozen by somebody else", err);
	q->wants_freeze = true;
	return 0;
}

static int probe(struct quiesce *q, struct err *err)
{
	struct agent_facts facts = { 0 };
	struct err why = { 0 };
	int rc;

	if (limit_patience(q, q->cfg.freeze_seconds, &why) < 0) {
		quiesce_end_patience(q);
		return refuse(q, why.text, err);
	}
	rc = agent_probe(q->cfg.domain, &facts, err);
	quiesce_end_patience(q);
	if (rc == 0)
		rc = judge(q, &facts, err);
	agent_facts_free(&facts);
	return rc;
}

int quiesce_look_at_agent(struct quiesce *q, struct err *err)
{
	const struct quiesce_config *cfg = &q->cfg;
	struct domain_status status;
	char why[120];

	if (cfg->wish == QUIESCE_OFF && !cfg->wants_trim)
		return 0;
	if (domain_status(cfg->domain, &status, err) < 0)
		return -1;
	if (status.state == DOMAIN_RUNNING)
		return probe(q, err);
	snprintf(why, sizeof why, "it is %s", status.text);
	return cfg->wish == QUIESCE_OFF ? 0 : refuse(q, why, err);
}

/* --- shortly before -------------------------------------------------------------------------- */

int quiesce_may_freeze(struct quiesce *q, struct err *err)
{
	struct err why = { 0 };
	int frozen;

	if (!q->wants_freeze)
		return 0;
	frozen = limit_patience(q, q->cfg.freeze_seconds, &why) < 0
			 ? -1
			 : agent_is_frozen(q->cfg.domain, &why);
	if (frozen == 0)
		return 1;
	if (frozen > 0)
		err_set(&why, ERR_FAILED, "its filesystems were frozen by somebody else");
	return quiesce_do_without(q, ERR_FAILED, err, "%s", why.text);
}

void quiesce_trim(struct quiesce *q)
{
	struct err why = { 0 };

	if (!q->cfg.wants_trim)
		return;
	if (!q->can_trim)
		err_set(&why, ERR_FAILED, "its agent is not there, or cannot do that");
	else if (limit_patience(q, TRIM_SECONDS, &why) == 0 && agent_trim(q->cfg.domain, &why) == 0)
		q->outcome.trimmed = true;
	if (!q->outcome.trimmed)
		log_warn("domain %s: free space was not trimmed before the capture: %s",
			 domain_name(q->cfg.domain), why.text);
}
