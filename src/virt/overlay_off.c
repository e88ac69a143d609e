// SPDX-License-Identifier: Apache-2.0

/* The way back from an overlay when the domain has gone off on it: libvirt merges in a QEMU only.
 * So one is started in which the guest is paused from its first instruction on, and ended as
 * soon as that is done.
 *
 * It belongs to a connection of its own (AUTODESTROY): libvirtd ends it with that, even when
 * we die, and never another one that somebody has started since.
 */
#include "base/clock.h"
#include "virt/call.h"
#include "virt/chain.h"
#include "virt/domain.h"
#include "virt/overlay.h"
#include "virt/overlay_inner.h"
#include "virt/virt.h"
#include "virt/virt_inner.h"

enum {
	START_SECONDS = 120,
	GONE_SECONDS = 15, /* until libvirtd has ended it by itself */
	PAUSE_MS = 50,
	TRIES_MAX = 3, /* when somebody starts and stops it meanwhile */
};

/* --- may it be started? --- */

/* NULL: yes. */
static const char *objection(struct domain *d)
{
	struct domain_status status;
	struct err unused;

	if (!domain_is_persistent(d))
		return "it is not defined";
	if (domain_look(d, &status, &unused) < 0)
		return "its state cannot be told";
	if (status.state != DOMAIN_OFF)
		return "it is in use elsewhere";
	/* or it may be */
	if (status.has_saved_memory || domain_has_saved_image(d, ERRAND_IN_FULL, &unused) != 0)
		return "its memory is saved";
	return NULL;
}

/* A layer that somebody has put upon ours would be written to. */
static bool is_on_top(struct domain *d, const char *target, const char *path)
{
	autochain struct chain chain = { 0 };
	struct err unused;

	return overlay_chain(d, target, OVERLAY_NEXT, &chain, &unused) == 0 &&
	       chain_find(&chain, path) == 0;
}

/* --- the QEMU --- */

/* Brings back its number. */
static int make_start(virDomainPtr dom, struct call *c)
{
	const unsigned flags = VIR_DOMAIN_START_PAUSED | VIR_DOMAIN_START_AUTODESTROY;

	(void)c;
	return virDomainCreateWithFlags(dom, flags) < 0 ? -1 : (int)virDomainGetID(dom);
}

static int make_look_whether_starting(virDomainPtr dom, struct call *c)
{
	int state, reason;

	(void)c;
	if (virDomainGetState(dom, &state, &reason, 0) < 0)
		return -1;
	return state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_STARTING_UP;
}

/* When libvirtd waits in our call for a QEMU that hangs. */
static int run_id_of_hanging(struct domain *d)
{
	struct call c = {
		.make = make_look_whether_starting,
		.complaint = "cannot ask for its state",
		.wait = ERRAND_IN_FULL,
	};
	struct err unused;

	return call_make(&c, d, &unused) == 1 ? domain_run_id(d) : -1;
}

/* *run_id: that of what is to be ended again, -1: nothing. */
static int start(struct domain *own, int *run_id, struct err *err)
{
	struct call c = {
		.make = make_start,
		.complaint = "cannot be started, paused, for that",
		.wait = ERRAND_IN_FULL,
		.seconds = START_SECONDS,
	};

	*run_id = call_make(&c, own, err);
	if (*run_id >= 0)
		return 0;
	if (c.is_left_behind)
		*run_id = run_id_of_hanging(own);
	return -1;
}

static bool is_gone_within(struct domain *d, int run_id, unsigned seconds)
{
	uint64_t since = clock_ns();

	while (domain_run_id(d) == run_id) {
		if (clock_seconds_since(since) > seconds)
			return false;
		clock_sleep_ms(PAUSE_MS);
	}
	return true;
}

static int make_destroy(virDomainPtr dom, struct call *c)
{
	(void)c;
	return virDomainDestroy(dom);
}

/* Its connection has been closed; a call that was left behind would hold it open. */
static int await_end(struct domain *d, int run_id, struct err *err)
{
	struct call c = {
		.make = make_destroy,
		.complaint = "it was started, paused, to merge an overlay, and cannot be ended",
		.wait = ERRAND_IN_FULL,
	};

	if (is_gone_within(d, run_id, GONE_SECONDS))
		return 0;
	return call_make(&c, d, err);
}

/* *run_id as that of start. */
static int merge_in_qemu(struct virt *v, struct domain *d, const char *target, const char *path,
			 int *run_id, struct err *err)
{
	autodomain struct domain *own = domain_find_uuid(v, d->uuid, err);

	return own && start(own, run_id, err) == 0 ? overlay_merge(own, target, path, err) : -1;
}

static int start_and_merge(struct domain *d, const char *target, const char *path, struct err *err)
{
	struct virt *v = virt_reopen(d->virt, err);
	struct err why;
	int run_id = -1, rc = v ? merge_in_qemu(v, d, target, path, &run_id, err) : -1;

	virt_close(v);
	if (run_id < 0 || await_end(d, run_id, &why) == 0)
		return rc;
	*err = why;
	return -1;
}

/* --- the whole --- */

/* err says why it could not be merged while off. */
static int merge_off(struct domain *d, const char *target, const char *path, struct err *err)
{
	const char *why_not;
	struct err why;

	if (!is_on_top(d, target, path))
		return -1;
	why_not = objection(d);
	if (why_not)
		return err_hint(err, "it cannot be started for that, since %s", why_not);
	if (start_and_merge(d, target, path, &why) == 0)
		return overlay_merge(d, target, path, err);
	return err_hint(err, "%s", why.text);
}

int overlay_end(struct domain *d, const char *target, const char *path, struct err *err)
{
	struct err why;
	int rc = -1;

	for (int i = 0; i < TRIES_MAX; i++) {
		rc = overlay_merge(d, target, path, &why);
		if (rc == 0 || domain_is_active(d))
			break;
		rc = merge_off(d, target, path, &why);
		if (rc == 0 || !domain_is_active(d))
			break;
		/* somebody has just started it */
	}
	if (rc < 0)
		*err = why;
	return rc;
}
