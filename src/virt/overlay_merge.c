// SPDX-License-Identifier: Apache-2.0

/* The way back from an overlay while the domain runs.  It is one loop: look where the disk is, do
 * the next thing, look again; so it carries on from wherever an earlier try ended.
 *
 *	the guest writes to the overlay, no job       commit it
 *	our commit runs                               wait
 *	our commit is ready                           pivot
 *	the overlay is in no XML                      done
 *
 * All else (a job of the user's, a layer upon ours, a domain that is off) is said and left
 * alone: the guest's data are safe in the overlay and what is below it.
 */
#include "base/clock.h"
#include "base/str.h"
#include "virt/call.h"
#include "virt/chain.h"
#include "virt/domain.h"
#include "virt/overlay.h"
#include "virt/overlay_inner.h"
#include "virt/virt_inner.h"

#include <stdint.h>
#include <string.h>

enum {
	PAUSE_MS = 50,
	PAUSE_MAX_MS = 1000,	   /* for a job that goes on and on */
	STALL_SECONDS = 120,	   /* a commit that gets on no further */
	WHOLE_SECONDS = 24 * 3600, /* one that never catches up with the guest */
	COMMITS_MAX = 3,
	PIVOT_SECONDS = 120, /* in which all is written that is left */
	PIVOTS_MAX = 200,
};

struct merge {
	struct domain *domain;
	const char *target, *path;
	uint64_t start_ns, moved_ns;
	unsigned long long cur, end; /* how far the job was at moved_ns */
	unsigned commits, pivots, pause_ms;
};

/* --- when there is nothing to merge, or no way to --- */

/* Puts the disk in front of the reason. */
static int name_it(const struct merge *m, struct err *err)
{
	return err_context(err, "domain %s, disk %s", m->domain->name, m->target);
}

static int refuse_off(const struct merge *m, struct err *err)
{
	err_set(err, ERR_FAILED,
		"it lies on the overlay %s, which can be merged only while the domain runs",
		m->path);
	return name_it(m, err);
}

static int refuse_defined(const struct merge *m, struct err *err)
{
	err_set(err, ERR_FAILED,
		"the overlay %s is no longer in use, but the domain's definition has it for the "
		"next start: put there what is in use (virsh edit)",
		m->path);
	return name_it(m, err);
}

static int refuse_buried(const struct merge *m, const char *top, struct err *err)
{
	err_set(err, ERR_FAILED,
		"somebody has made a snapshot (%s) upon the overlay %s: merge that first",
		top ? top : "unknown", m->path);
	return name_it(m, err);
}

static int refuse_job(const struct merge *m, const char *job, struct err *err)
{
	err_set(err, ERR_FAILED,
		"a job of somebody else (%s) works on it: the overlay %s cannot be merged before "
		"that is over",
		job, m->path);
	return name_it(m, err);
}

static bool is_gone(struct domain *d)
{
	return !domain_is_persistent(d) && !domain_is_active(d);
}

static int refuse_gone(const struct merge *m, struct err *err)
{
	err_set(err, ERR_FAILED,
		"the domain is gone, and no definition tells what the disk lay on: its data may be "
		"in the overlay %s and what is below that",
		m->path);
	return name_it(m, err);
}

/* The overlay is not in use; will it be? */
static int end_by_definition(const struct merge *m, struct err *err)
{
	int found = overlay_is_defined(m->domain, m->target, m->path, err);

	if (found < 0 && is_gone(m->domain))
		return refuse_gone(m, err);
	if (found <= 0)
		return found;
	return domain_is_active(m->domain) ? refuse_defined(m, err) : refuse_off(m, err);
}

/* --- the job --- */

static int fail(const struct merge *m, const char *how, struct err *err)
{
	err_set(err, ERR_FAILED, "merging the overlay %s %s", m->path, how);
	return name_it(m, err);
}

static int make_commit(virDomainPtr dom, struct call *c)
{
	const unsigned flags = VIR_DOMAIN_BLOCK_COMMIT_ACTIVE | VIR_DOMAIN_BLOCK_COMMIT_SHALLOW;

	return virDomainBlockCommit(dom, c->target, NULL, c->text, 0, flags);
}

/* libvirt goes by its own number of the layer (SHALLOW: into the one right below), so that
 * nothing but our overlay is ever merged, whatever somebody does at the same moment.
 */
static int start_commit(struct merge *m, const struct chain_layer *ours, struct err *err)
{
	autofree char *top =
		ours->index > 0 ? str_format("%s[%u]", m->target, ours->index) : strdup(m->path);
	struct call c = {
		.make = make_commit,
		.complaint = "the overlay is not merged",
		.wait = ERRAND_IN_FULL,
		.target = m->target,
		.text = top,
	};

	if (!top)
		return err_nomem(err);
	if (m->commits++ >= COMMITS_MAX)
		return fail(m, "ends each time before it is ready; the host's log tells why", err);
	if (call_make(&c, m->domain, err) < 0)
		return -1;
	m->moved_ns = clock_ns();
	return 1;
}

static int wait_for_job(struct merge *m, const virDomainBlockJobInfo *job, struct err *err)
{
	if (job->cur != m->cur || job->end != m->end) {
		m->cur = job->cur;
		m->end = job->end;
		m->moved_ns = clock_ns();
	}
	if (clock_seconds_since(m->moved_ns) > STALL_SECONDS)
		return fail(m, "does not get on", err);
	if (clock_seconds_since(m->start_ns) > WHOLE_SECONDS)
		return fail(m, "does not catch up with what the guest writes", err);
	clock_sleep_longer_ms(&m->pause_ms, PAUSE_MAX_MS);
	return 1;
}

static int make_pivot(virDomainPtr dom, struct call *c)
{
	return virDomainBlockJobAbort(dom, c->target, VIR_DOMAIN_BLOCK_JOB_ABORT_PIVOT);
}

/* It may say "not ready" even after the XML said so, or the job may have failed this moment:
 * the next look tells.
 */
static int pivot(struct merge *m, struct err *err)
{
	struct call c = {
		.make = make_pivot,
		.complaint = "it is not put back from the overlay",
		.wait = ERRAND_IN_FULL,
		.seconds = PIVOT_SECONDS,
		.target = m->target,
	};

	if (call_make(&c, m->domain, err) == 0)
		return 1;
	if (c.code == VIR_ERR_OK || m->pivots++ >= PIVOTS_MAX)
		return -1;
	clock_sleep_ms(PAUSE_MS);
	return 1;
}

/* --- where it is --- */

static const char *job_name(int type)
{
	static const char *const names[] = {
		[VIR_DOMAIN_BLOCK_JOB_TYPE_PULL] = "block pull",
		[VIR_DOMAIN_BLOCK_JOB_TYPE_COPY] = "block copy",
		[VIR_DOMAIN_BLOCK_JOB_TYPE_COMMIT] = "block commit",
		[VIR_DOMAIN_BLOCK_JOB_TYPE_ACTIVE_COMMIT] = "block commit into another layer",
		[VIR_DOMAIN_BLOCK_JOB_TYPE_BACKUP] = "backup",
	};
	const size_t count = sizeof names / sizeof names[0];
	bool is_known = type >= 0 && (size_t)type < count && names[type];

	return is_known ? names[type] : "a block job";
}

/* An active commit into the layer right below ours is the one that we start (its XML may not
 * tell of it at once); into a deeper one, it is somebody else's.
 */
static bool is_our_job(const struct chain *chain, const virDomainBlockJobInfo *job)
{
	const char *below = chain->count > 1 ? chain->layers[1].source : NULL;

	if (job->type != VIR_DOMAIN_BLOCK_JOB_TYPE_ACTIVE_COMMIT)
		return false;
	return !chain->copied_to || (below && str_equal(chain->copied_to, below));
}

static int make_look(virDomainPtr dom, struct call *c)
{
	return virDomainGetBlockJobInfo(dom, c->target, &c->job, 0);
}

static int next_step(struct merge *m, const struct chain *chain, struct err *err)
{
	struct call c = {
		.make = make_look,
		.complaint = "cannot ask for its job",
		.wait = ERRAND_IN_FULL,
		.target = m->target,
	};
	int found = call_make(&c, m->domain, err);

	if (found < 0)
		return -1;
	if (found == 0 && chain->mirror) /* it has ended just now */
		return wait_for_job(m, &c.job, err);
	if (found == 0)
		return start_commit(m, &chain->layers[0], err);
	if (!is_our_job(chain, &c.job))
		return refuse_job(m, job_name(c.job.type), err);
	return chain->is_ready ? pivot(m, err) : wait_for_job(m, &c.job, err);
}

/* 1: go on, 0: done, -1. */
static int go_on(struct merge *m, struct err *err)
{
	autochain struct chain chain = { 0 };
	size_t place;

	if (!domain_is_active(m->domain))
		return end_by_definition(m, err);
	if (overlay_chain(m->domain, m->target, OVERLAY_NOW, &chain, err) < 0)
		return -1;
	place = chain_find(&chain, m->path);
	if (place == SIZE_MAX)
		return end_by_definition(m, err);
	return place > 0 ? refuse_buried(m, chain.layers[0].source, err)
			 : next_step(m, &chain, err);
}

int overlay_merge(struct domain *d, const char *target, const char *path, struct err *err)
{
	uint64_t now = clock_ns();
	struct merge m = { .domain = d,
			   .target = target,
			   .path = path,
			   .start_ns = now,
			   .moved_ns = now,
			   .pause_ms = PAUSE_MS };
	struct err why;
	int rc;

	while ((rc = go_on(&m, &why)) > 0)
		;
	/* it may have gone off meanwhile, which is the better reason */
	if (rc < 0 && !domain_is_active(d))
		rc = end_by_definition(&m, &why);
	if (rc < 0)
		*err = why;
	return rc;
}
