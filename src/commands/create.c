// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "commands/outcome.h"
#include "commands/reported.h"
#include "compress/codec.h"
#include "plan.h"
#include "report/report.h"
#include "snapshot.h"

/* One run of create or convert. */
struct making {
	const struct options *opt;
	struct plan plan;
	struct snapshot *snapshot;
};

static void report_codec(struct report *r, const struct plan *plan)
{
	if (plan->codec) {
		struct codec_library lib = plan->codec->library(plan->level);

		r->libraries[0] = (struct report_library){ lib.name, lib.version };
	}
}

static int making_run(void *ctx, struct report *r, struct progress *progress, struct err *err)
{
	struct making *m = ctx;

	report_codec(r, &m->plan);
	m->snapshot = snapshot_new(&m->plan, r, progress, err);
	return m->snapshot ? snapshot_run(m->snapshot, err) : -1;
}

static int making_attach(void *ctx, const char *json, struct err *err)
{
	struct making *m = ctx;

	return snapshot_attach_report(m->snapshot, json, err);
}

static void making_print(void *ctx, const struct report *r)
{
	struct making *m = ctx;

	if (m->snapshot)
		outcome_print(m->opt, &m->plan, r, m->snapshot);
}

static int make_by(int (*make_plan)(struct plan *plan, const struct options *opt, struct err *err),
		   const struct options *opt, struct err *err)
{
	struct making m = { .opt = opt };
	struct reported what = {
		.run = making_run, .attach = making_attach, .print = making_print, .ctx = &m
	};
	int done = make_plan(&m.plan, opt, err);

	what.is_dry_run = m.plan.dry_run;
	if (done == 0)
		done = reported_run(opt, &what, err);
	snapshot_free(m.snapshot);
	plan_free(&m.plan);
	return done;
}

int command_create(const struct options *opt, struct err *err)
{
	return make_by(plan_create, opt, err);
}

int command_convert(const struct options *opt, struct err *err)
{
	return make_by(plan_convert, opt, err);
}
