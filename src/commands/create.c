// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/account.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "commands/outcome.h"
#include "compress/codec.h"
#include "dest/outfile.h"
#include "dest/outfile_report.h"
#include "image/image.h"
#include "options.h"
#include "plan.h"
#include "report/progress.h"
#include "report/report.h"
#include "snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The image is whole, but the report has something to tell. */
#define EXIT_WARNINGS 3

static enum report_status status_of(const struct err *err)
{
	switch (err->kind) {
	case ERR_REFUSED:
		return REPORT_REFUSED;
	case ERR_BUSY:
		return REPORT_BUSY;
	case ERR_INTERRUPTED:
		return REPORT_INTERRUPTED;
	default:
		return REPORT_FAILED;
	}
}

/* How it ended; err is NULL when well. */
static void report_conclude(struct report *r, const struct plan *plan, const struct err *err)
{
	r->finished_at = clock_now();
	r->status = plan->dry_run ? REPORT_DRY_RUN : REPORT_OK;
	r->exit_code = 0;
	if (!err && !plan->dry_run && r->tree.account && account_has_warnings(r->tree.account)) {
		r->status = REPORT_WARNINGS;
		r->exit_code = EXIT_WARNINGS;
	}
	if (!err)
		return;
	r->status = status_of(err);
	r->exit_code = err_exit_code(err);
	snprintf(r->error, sizeof r->error, "%s", err->text);
}

static void report_codec(struct report *r, const struct plan *plan)
{
	if (plan->codec) {
		struct codec_library lib = plan->codec->library(plan->level);

		r->libraries[0] = (struct report_library){ lib.name, lib.version };
	}
}

/* A report that cannot be written fails the run: say so before it starts. */
static int check_report_path(const char *path, struct err *err)
{
	const char *last;
	autofree char *dir = io_directory(path, &last);
	autoclose int fd = -1;

	if (!dir)
		return err_nomem(err);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_errno(err, ERR_REFUSED, "cannot write a report to %s", path);
	if (str_ends(last, DEST_MANIFEST_SUFFIX) || outfile_name_is_temporary(last))
		return err_set(err, ERR_REFUSED,
			       "--report: %s is a name that the store keeps for itself", path);
	return outfile_check_report(fd, dir, last, err) < 0 ? err_context(err, "--report") : 0;
}

static int report_deliver(const struct options *opt, const struct report *r, struct snapshot *s,
			  struct err *err)
{
	autofree char *json = report_to_json(r, REPORT_INDENTED, err);
	int done = json ? 0 : -1;

	if (json && opt->report)
		done = outfile_replace_path(opt->report, json, err);
	else if (json && r->image.path)
		done = snapshot_attach_report(s, json, err);
	if (done < 0 && r->image.path)
		err_context(err, "%s is complete, but not its report", r->image.path);
	return done;
}

/* Dry runs leave a report only where they are told to, and a wrong command line
 * leaves none.
 */
static int capture_reported(const struct options *opt, const struct plan *plan, struct report *r,
			    struct progress *progress, struct err *err)
{
	autosnapshot struct snapshot *s = snapshot_new(plan, r, progress, err);
	int done = s ? snapshot_run(s, err) : -1;
	struct err late;

	report_conclude(r, plan, done < 0 ? err : NULL);
	progress_stop(progress);
	if (!s || (done < 0 && err->kind == ERR_USAGE))
		return done;
	if (report_deliver(opt, r, s, &late) < 0) {
		if (done < 0)
			log_error("%s", late.text);
		else
			*err = late;
		done = -1;
		report_conclude(r, plan, err);
	}
	outcome_print(opt, plan, r, s);
	return done;
}

static int capture_planned(const struct options *opt, const struct plan *plan, struct err *err)
{
	enum progress_style style = PROGRESS_NONE;
	struct report report;
	int done;

	if (opt->report && check_report_path(opt->report, err) < 0)
		return -1;
	if (!opt->quiet && !plan->dry_run)
		progress_style_parse(opt->progress ? opt->progress : "auto", &style);
	report_init(&report);
	report_codec(&report, plan);
	log_set_sink(report_warn, &report);
	done = capture_reported(opt, plan, &report, progress_start(style), err);
	log_set_sink(NULL, NULL);
	if (done == 0)
		done = report.exit_code;
	report_free(&report);
	return done;
}

static int capture_by(int (*make_plan)(struct plan *plan, const struct options *opt,
				       struct err *err),
		      const struct options *opt, struct err *err)
{
	struct plan plan;
	int done = make_plan(&plan, opt, err);

	if (done == 0)
		done = capture_planned(opt, &plan, err);
	plan_free(&plan);
	return done;
}

int command_create(const struct options *opt, struct err *err)
{
	return capture_by(plan_create, opt, err);
}

int command_convert(const struct options *opt, struct err *err)
{
	return capture_by(plan_convert, opt, err);
}
