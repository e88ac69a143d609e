// SPDX-License-Identifier: Apache-2.0
#include "quiesce/quiesce_inner.h"

#include "base/err.h"
#include "base/str.h"
#include "quiesce/method.h"
#include "quiesce/roomwatch.h"
#include "quiesce/scratch.h"
#include "quiesce/undo.h"
#include "virt/chain.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/overlay.h"
#include "virt/virt.h"

#include <stdlib.h>

/* An external snapshot: the guest writes to an overlay, and what is below keeps still. */
struct snapshot {
	char *overlay; /* in the scratch directory, but no file of scratch.h: it is never removed
			* while a disk has it
			*/
	char *xml;     /* what makes it */
	enum { NOT_BEGUN, IN_DOUBT, BEGUN } state; /* in doubt: the daemon may still begin it */
	struct roomwatch *watch;		   /* from view to release */
};

static struct snapshot *state_of(const struct quiesce *q)
{
	return q->state;
}

/* --- prepare --- */

static const char *objection(const struct quiesce *q)
{
	const struct virt_disk *disk = q->cfg.disk;

	if (virt_place(domain_connection(q->cfg.domain)) != VIRT_HERE)
		return "which can be read on the hypervisor only; run ccsnap there";
	if (!str_equal(disk->kind, "file") && !str_equal(disk->kind, "block"))
		return "for which it has to be a file or block device";
	if (!disk->source || !disk->format || !*disk->format)
		return "for which the XML has to tell its path and format";
	if (disk->has_backing && !q->cfg.allow_backing)
		return "and has a backing file, which is read with --allow-backing only";
	return NULL;
}

static int refuse(const struct quiesce *q, struct err *err)
{
	const char *why = objection(q);

	if (!why)
		return method_refuse_others(q, err);
	return err_set(err, ERR_REFUSED,
		       "the disk %s of the domain %s can be captured by a snapshot only, %s",
		       q->cfg.disk->target, domain_name(q->cfg.domain), why);
}

static int note(const struct quiesce *q, struct err *err)
{
	const struct record_note own = {
		.overlay = state_of(q)->overlay,
	};

	return method_note(q, &own, err);
}

static int snapshot_prepare(struct quiesce *q, struct err *err)
{
	struct snapshot *s = q->state = calloc(1, sizeof *s);

	if (!s)
		return err_nomem(err);
	if (refuse(q, err) < 0 || method_open_scratch(q, err) < 0)
		return -1;
	s->overlay = str_format("%s/overlay", scratch_dir(q->scratch));
	return s->overlay ? note(q, err) : err_nomem(err);
}

/* --- the point in time --- */

static int snapshot_get_ready(struct quiesce *q, struct err *err)
{
	struct snapshot *s = state_of(q);

	free(s->xml);
	s->xml = overlay_xml(q->cfg.domain, q->cfg.disk->target, s->overlay, err);
	return s->xml ? 0 : -1;
}

static int snapshot_begin(struct quiesce *q, struct err *err)
{
	struct snapshot *s = state_of(q);
	int rc;

	s->state = IN_DOUBT;
	rc = overlay_begin(q->cfg.domain, q->cfg.disk->target, s->xml, err);
	if (rc == 0)
		s->state = BEGUN;
	return rc;
}

static struct undo_overlay overlay_of(const struct quiesce *q)
{
	return (struct undo_overlay){
		.target = q->cfg.disk->target,
		.path = state_of(q)->overlay,
		.run_id = q->contact.run_id,
	};
}

/* Who reads the base holds it, and QEMU cannot write to it: the merge is release's. */
static int give_up(void *ctx, struct contact *c, struct err *err)
{
	const struct quiesce *q = ctx;

	(void)c, (void)err;
	if (q->cfg.end_reading)
		q->cfg.end_reading(q->cfg.reader);
	return 0;
}

static bool is_equal(const char *a, const char *b)
{
	return a && b && str_equal(a, b);
}

static bool is_on_disk(const struct chain *chain, const struct virt_disk *disk, const char *overlay)
{
	const struct chain_layer *l = chain->layers;

	return chain->count >= 2 && is_equal(l[0].source, overlay) &&
	       is_equal(l[1].source, disk->source) && is_equal(l[1].format, disk->format);
}

/* Since its XML was read, somebody may have put another layer between, with the newest of it. */
static int check_below(struct quiesce *q, struct err *err)
{
	struct domain *d = contact_same_run(&q->contact, err);
	const struct virt_disk *disk = q->cfg.disk;
	autochain struct chain chain = { 0 };

	if (!d || overlay_chain(d, disk->target, OVERLAY_NOW, &chain, err) < 0)
		return -1;
	if (is_on_disk(&chain, disk, state_of(q)->overlay))
		return 0;
	return err_set(err, ERR_FAILED,
		       "the disk %s of the domain %s no longer is on %s alone: its layers were "
		       "changed by somebody else just before the capture; try again",
		       disk->target, domain_name(d), disk->source);
}

static int snapshot_view(struct quiesce *q, struct quiesce_view *out, struct err *err)
{
	const struct roomwatch_config cfg = {
		.domain = q->cfg.domain,
		.scratch = q->scratch,
		.give_up = give_up,
		.ctx = q,
	};

	if (check_below(q, err) < 0)
		return -1;
	state_of(q)->watch = roomwatch_start(&cfg, err);
	if (!state_of(q)->watch)
		return -1;
	*out = (struct quiesce_view){ .path = q->cfg.disk->source, .format = q->cfg.disk->format };
	return 0;
}

static int snapshot_check(struct quiesce *q, struct err *err)
{
	struct snapshot *s = state_of(q);
	struct domain *d = contact_same_run(&q->contact, err);
	int used;

	if (d && s->watch && roomwatch_has_acted(s->watch))
		return err_set(err, ERR_FAILED,
			       "the room for the overlay in %s ran out, so that the capture was "
			       "given up for the guest; use a --scratch-dir with more room, or "
			       "capture at a quieter time",
			       scratch_dir(q->scratch));
	used = d ? overlay_is_used(d, q->cfg.disk->target, s->overlay, err) : -1;
	if (used == 0)
		return err_set(err, ERR_FAILED,
			       "the overlay of the disk %s of the domain %s was merged by somebody "
			       "else during the capture",
			       q->cfg.disk->target, domain_name(d));
	return used < 0 ? -1 : 0;
}

/* --- release --- */

static int end_overlay(struct quiesce *q, struct snapshot *s, struct err *err)
{
	enum undo_doubt doubt = s->state == IN_DOUBT ? UNDO_UNSETTLED : UNDO_SETTLED;
	const struct undo_overlay overlay = overlay_of(q);
	struct domain *d;
	int rc = contact_reach(&q->contact, &d, err);

	if (rc <= 0)
		return err_context(err, "%s may hold what the domain %s wrote last: keep it",
				   s->overlay, domain_name(q->cfg.domain));
	if (undo_overlay(d, &overlay, doubt, err) < 0)
		return -1;
	s->state = NOT_BEGUN;
	return 0;
}

/* The directory and the record stay as long as the overlay does. */
static int snapshot_release(struct quiesce *q, struct err *err)
{
	struct snapshot *s = state_of(q);
	int rc;

	if (s)
		roomwatch_stop(steal(&s->watch));
	rc = s && s->state != NOT_BEGUN ? end_overlay(q, s, err) : 0;
	if (rc < 0 || !q->scratch)
		return rc;
	scratch_close(steal(&q->scratch));
	return undo_forget(q->cfg.record, err);
}

static void snapshot_close(struct quiesce *q)
{
	struct snapshot *s = state_of(q);

	if (s) {
		roomwatch_stop(s->watch);
		free(s->xml);
		free(s->overlay);
	}
	scratch_close(steal(&q->scratch));
	free(steal(&q->state));
}

const struct quiesce_ops snapshot_ops = {
	.name = "snapshot",
	.prepare = snapshot_prepare,
	.get_ready = snapshot_get_ready,
	.begin = snapshot_begin,
	.view = snapshot_view,
	.check = snapshot_check,
	.release = snapshot_release,
	.close = snapshot_close,
};
