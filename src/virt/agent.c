// SPDX-License-Identifier: Apache-2.0
#include "virt/agent.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/size.h"
#include "virt/agent_answer.h"
#include "virt/call.h"
#include "virt/domain.h"
#include "virt/virt_inner.h"

#include <libvirt/libvirt-qemu.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For questions that an agent answers at once, however the patience of the domain is set. */
enum { ANSWER_SECONDS = 5 };

/* No guest has more filesystems. */
enum { COUNT_MAX = 65536 };

enum { SECONDS_MAX = 24 * 3600 };

/* --- its patience ------------------------------------------------------------------- */

static int make_set_patience(virDomainPtr dom, struct call *c)
{
	return virDomainAgentSetResponseTimeout(dom, (int)c->flags, 0);
}

static int make_reset_patience(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainAgentSetResponseTimeout(dom, VIR_DOMAIN_AGENT_RESPONSE_TIMEOUT_BLOCK, 0);
}

static int change_patience(struct domain *d, int (*make)(virDomainPtr dom, struct call *c),
			   unsigned seconds, struct err *err)
{
	struct call c = {
		.make = make,
		.complaint = "cannot set the time its guest agent has",
		.wait = ERRAND_IN_FULL,
		.flags = seconds,
	};

	if (call_make(&c, d, err) < 0)
		return -1;
	d->agent_seconds = seconds;
	return 0;
}

static unsigned clip(unsigned seconds)
{
	return MAX(MIN(seconds, SECONDS_MAX), 1);
}

int agent_set_patience(struct domain *d, unsigned seconds, struct err *err)
{
	return change_patience(d, make_set_patience, clip(seconds), err);
}

int agent_reset_patience(struct domain *d, struct err *err)
{
	return change_patience(d, make_reset_patience, 0, err);
}

void agent_expect_patience(struct domain *d, unsigned seconds)
{
	d->agent_seconds = clip(seconds);
}

/* Behind it libvirtd hangs: it waits for another's word with the agent, for the agent to listen,
 * and for its answer.
 */
static unsigned limit(const struct domain *d)
{
	return ERRAND_SECONDS + 2 * d->agent_seconds;
}

/* --- asking it ---------------------------------------------------------------------- */

/* What came of a question. */
struct reply {
	char *answer;	 /* NULL: none */
	bool is_refusal; /* there is none because the agent, which is there, will not */
	char words[sizeof((struct agent_facts *)0)->why_not]; /* why there is none */
};

static void reply_free(struct reply *r)
{
	free(r->answer);
}
#define autoreply CLEANUP(reply_free)

static int make_question(virDomainPtr dom, struct call *c)
{
	char json[64];

	snprintf(json, sizeof json, "{\"execute\":\"%s\"}", c->text);
	c->answer = virDomainQemuAgentCommand(dom, json, ANSWER_SECONDS, 0);
	return c->answer ? 0 : -1;
}

/* -1 when it is not (only) the agent that is missing, but the domain or its daemon. */
static int question(struct domain *d, const char *command, struct reply *r, struct err *err)
{
	struct call c = {
		.make = make_question,
		.complaint = "cannot ask its guest agent",
		.text = command,
		.seconds = limit(d),
	};
	struct err why;

	if (call_make(&c, d, &why) == 0) {
		r->answer = c.answer;
		return 0;
	}
	/* they are printable already: this cuts them, between characters */
	log_printable(r->words, sizeof r->words, c.words);
	r->is_refusal = strstr(c.words, "unable to execute QEMU agent command");
	if (c.code != VIR_ERR_OK && c.code != VIR_ERR_NO_DOMAIN &&
	    virConnectIsAlive(virt_connection(d->virt)) == 1)
		return 0;
	*err = why;
	return -1;
}

int agent_is_frozen(struct domain *d, struct err *err)
{
	autocall struct call c = {
		.make = make_question,
		.complaint = "cannot ask its guest agent whether it is frozen",
		.text = agent_command_names[AGENT_STATUS],
		.wait = ERRAND_IN_FULL,
		.seconds = limit(d),
	};
	int is;

	if (call_make(&c, d, err) < 0)
		return -1;
	is = agent_answer_frozen(c.answer, err);
	return is < 0 ? err_context(err, "domain %s", d->name) : is;
}

/* --- what it does --------------------------------------------------------------------- */

/* libvirt's words for counts that are none, or negative. */
static bool is_nonsense(const char *words)
{
	return strstr(words, "malformed return value") || strstr(words, "the cause is unknown");
}

/* A call that counts filesystems. */
static int make_count(struct call *c, struct domain *d, unsigned *count, struct err *err)
{
	int n = call_make(c, d, err);

	if (n < 0 && !is_nonsense(c->words))
		return -1;
	if (n < 0 || n > COUNT_MAX)
		return err_set(err, ERR_FAILED,
			       "domain %s: %s: the guest agent answers nonsense when asked how "
			       "many there are",
			       d->name, c->complaint);
	if (count)
		*count = (unsigned)n;
	return 0;
}

static int make_freeze(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainFSFreeze(dom, NULL, 0, 0);
}

int agent_freeze(struct domain *d, unsigned *count, struct err *err)
{
	struct call c = {
		.make = make_freeze,
		.complaint = "cannot freeze its filesystems",
		.wait = ERRAND_IN_FULL,
		.seconds = limit(d),
	};

	return make_count(&c, d, count, err);
}

static int make_thaw(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainFSThaw(dom, NULL, 0, 0);
}

int agent_thaw(struct domain *d, unsigned *count, struct err *err)
{
	struct call c = {
		.make = make_thaw,
		.complaint = "cannot thaw its filesystems",
		.wait = ERRAND_IN_FULL,
		.seconds = limit(d),
	};

	return make_count(&c, d, count, err);
}

static int make_trim(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainFSTrim(dom, NULL, 0, 0);
}

int agent_trim(struct domain *d, struct err *err)
{
	struct call c = {
		.make = make_trim,
		.complaint = "cannot trim its filesystems",
		.seconds = limit(d),
	};

	return call_make(&c, d, err);
}

/* --- what it can do ------------------------------------------------------------------- */

static void cannot_freeze(struct agent_facts *out, const char *why, ...)
	__attribute__((format(printf, 2, 3)));

static void cannot_freeze(struct agent_facts *out, const char *why, ...)
{
	va_list ap;

	out->can_freeze = false;
	va_start(ap, why);
	vsnprintf(out->why_not, sizeof out->why_not, why, ap);
	va_end(ap);
}

/* Without the status nobody could make sure that a freeze has ended. */
static void note_abilities(const struct agent_info *info, struct agent_facts *out)
{
	static const enum agent_command needed[] = { AGENT_FREEZE, AGENT_THAW, AGENT_STATUS };

	memcpy(out->version, info->version, sizeof out->version);
	out->can_trim = info->abilities[AGENT_TRIM] == AGENT_ALLOWS;
	out->can_freeze = true;
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		const char *name = agent_command_names[needed[i]];

		if (info->abilities[needed[i]] == AGENT_LACKS)
			cannot_freeze(out, "the guest agent has no %s; a newer one may", name);
		if (info->abilities[needed[i]] == AGENT_FORBIDS)
			cannot_freeze(out,
				      "the guest agent does not allow %s; allow it in the guest's "
				      "qemu-ga.conf or qemu-ga's options",
				      name);
	}
}

static int probe_abilities(struct domain *d, struct agent_facts *out, struct err *err)
{
	autoreply struct reply r = { 0 };
	struct agent_info info;
	struct err nonsense;

	if (question(d, "guest-info", &r, err) < 0)
		return -1;
	if (!r.answer)
		cannot_freeze(out, "%s", r.words);
	else if (agent_answer_info(r.answer, &info, &nonsense) < 0)
		cannot_freeze(out, "%.150s", nonsense.text);
	else
		note_abilities(&info, out);
	return 0;
}

/* While frozen it allows little else, so this outdoes what the abilities are. */
static int probe_frozen(struct domain *d, struct agent_facts *out, struct err *err)
{
	autoreply struct reply r = { 0 };
	struct err nonsense;
	int is;

	if (question(d, agent_command_names[AGENT_STATUS], &r, err) < 0)
		return -1;
	is = r.answer ? agent_answer_frozen(r.answer, &nonsense) : -1;
	out->is_frozen = is > 0;
	if (is > 0)
		cannot_freeze(out, "its filesystems are frozen already, by somebody else");
	else if (is < 0 && out->can_freeze)
		cannot_freeze(out, "%.150s", r.answer ? nonsense.text : r.words);
	return 0;
}

static void forget_filesystems(struct agent_facts *facts)
{
	for (size_t i = 0; i < facts->filesystem_count; i++) {
		free(facts->filesystems[i].mountpoint);
		free(facts->filesystems[i].type);
	}
	free(facts->filesystems);
	facts->filesystems = NULL;
	facts->filesystem_count = 0;
}

/* Nothing depends on them: an agent that does not tell them is as good. */
static int probe_filesystems(struct domain *d, struct agent_facts *out, struct err *err)
{
	autoreply struct reply r = { 0 };
	struct err nonsense;

	if (question(d, "guest-get-fsinfo", &r, err) < 0)
		return -1;
	if (r.answer && agent_answer_filesystems(r.answer, out, &nonsense) < 0)
		forget_filesystems(out);
	return 0;
}

static int probe_presence(struct domain *d, struct agent_facts *out, struct err *err)
{
	autoreply struct reply r = { 0 };

	if (question(d, "guest-ping", &r, err) < 0)
		return -1;
	out->answers = r.answer || r.is_refusal;
	if (!out->answers)
		cannot_freeze(out, "%s", r.words);
	return 0;
}

int agent_probe(struct domain *d, struct agent_facts *out, struct err *err)
{
	memset(out, 0, sizeof *out);
	if (probe_presence(d, out, err) < 0)
		return -1;
	if (!out->answers)
		return 0;
	if (probe_abilities(d, out, err) == 0 && probe_frozen(d, out, err) == 0 &&
	    probe_filesystems(d, out, err) == 0)
		return 0;
	agent_facts_free(out);
	return -1;
}

void agent_facts_free(struct agent_facts *facts)
{
	forget_filesystems(facts);
}
