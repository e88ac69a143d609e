// SPDX-License-Identifier: Apache-2.0
#include "preflight.h"

#include "base/ask.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "image/image.h"
#include "pipeline/pipeline.h"
#include "plan.h"
#include "report/report.h"

#include <stdio.h>
#include <unistd.h>

/* Manifest and report. */
#define NOTES_BYTES (64 * KIB)

/* More data than anybody should store without a thought: cc-snapshot's warning. */
static int check_amount(const struct preflight *p, struct err *err)
{
	const struct plan *plan = p->plan;
	uint64_t bytes = p->report->tree.data_bytes;
	char what[700];

	if (plan->kind != PLAN_TREE || bytes <= plan->max_data_bytes)
		return 0;
	snprintf(what, sizeof what,
		 "%.500s holds %llu MB of data, CC_SNAPSHOT_MAX_TARBALL_SIZE "
		 "allows %llu MB",
		 p->name, (unsigned long long)(bytes / 1000000),
		 (unsigned long long)(plan->max_data_bytes / 1000000));
	if (plan->agree || plan->dry_run) {
		log_warn("%s", what);
		return 0;
	}
	if (ask_yes(what, "capture it all the same?"))
		return 0;
	if (interrupt_check(err) < 0)
		return -1;
	return err_set(err, ERR_REFUSED,
		       "%s; leave something out with --exclude, or agree with --yes", what);
}

int preflight_limits(const struct preflight *p, struct err *err)
{
	const struct plan *plan = p->plan;
	uint64_t size = p->size, max = plan->format->size_max(plan->cluster_size);

	if (plan->max_virtual_size && size > plan->max_virtual_size)
		return err_set(err, ERR_REFUSED,
			       "%s is %llu bytes large, --max-virtual-size allows %llu", p->name,
			       (unsigned long long)size,
			       (unsigned long long)plan->max_virtual_size);
	if (size > max)
		return err_set(err, ERR_REFUSED,
			       "%s is %llu bytes large; %s with clusters of %s ends at %s; "
			       "use a larger --cluster-size",
			       p->name, (unsigned long long)size, plan->format->name,
			       size_format(plan->cluster_size).text, size_format(max).text);
	if (plan->sector_size && plan->sector_size != p->sector_size)
		return err_set(err, ERR_REFUSED,
			       "%s has %u-byte sectors, --sector-size asks for %u", p->name,
			       p->sector_size, plan->sector_size);
	return check_amount(p, err);
}

static int measure(const struct preflight *p, const struct pipeline_config *cfg, struct estimate *e,
		   struct err *err)
{
	size_t cluster_size = p->plan->cluster_size;

	if (p->source)
		return pipeline_measure(cfg, p->source, cluster_size, e, err);
	*e = (struct estimate){ 0 };
	e->most_bytes = round_up(MIN(p->allocated_bytes, p->size), cluster_size);
	e->likely_bytes = e->most_bytes;
	return 0;
}

/* What takes no more than is free needs no sample, unless somebody wants to
 * know; what takes more even by a careful reading of the sample is refused; in
 * between it is tried.
 */
static int weigh(const struct preflight *p, struct estimate *e, struct err *err)
{
	struct pipeline_config cfg = plan_pipeline(p->plan);
	size_t cluster_size = p->plan->cluster_size;
	uint64_t extra;

	if (measure(p, &cfg, e, err) < 0)
		return -1;
	p->report->estimate.mapped_bytes = e->most_bytes;
	extra = NOTES_BYTES +
		p->plan->format->overhead(p->size, cluster_size, e->most_bytes / cluster_size);
	if (p->source && (p->plan->dry_run || e->most_bytes + extra > p->dest->free_bytes) &&
	    pipeline_sample(&cfg, p->source, cluster_size, e, err) < 0)
		return -1;
	e->most_bytes += extra;
	e->likely_bytes += extra;
	e->least_bytes += e->sampled_bytes ? extra / 2 : 0;
	return 0;
}

int preflight_destination(const struct preflight *p, struct err *err)
{
	struct report *r = p->report;
	struct estimate e;
	bool fits;
	int may_be_there, may_fit;
	struct err later;

	/* a dry run says what would happen all the same */
	may_be_there = dest_check(p->dest, 0, err);
	if ((may_be_there < 0 && !p->plan->dry_run) || weigh(p, &e, &later) < 0) {
		if (may_be_there == 0)
			*err = later;
		return -1;
	}
	fits = (e.sampled_bytes ? e.likely_bytes : e.most_bytes) <= p->dest->free_bytes;
	may_fit = may_be_there < 0 ? -1 : dest_check(p->dest, e.least_bytes, err);
	if (may_fit == 0 && !fits)
		log_warn("the image will take about %s, and only %s are free: it may not fit",
			 size_format(e.likely_bytes).text, size_format(p->dest->free_bytes).text);
	r->estimate.ran = true;
	r->estimate.sampled_bytes = e.sampled_bytes;
	r->estimate.image_bytes = e.likely_bytes;
	r->estimate.free_bytes = p->dest->free_known ? p->dest->free_bytes : UINT64_MAX;
	r->estimate.fits = fits;
	return may_fit;
}
