// SPDX-License-Identifier: Apache-2.0
#include "commands/reported.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/dest.h"
#include "dest/outfile.h"
#include "dest/outfile_report.h"
#include "options.h"
#include "report/progress.h"
#include "report/report.h"

#include <fcntl.h>
#include <stdio.h>

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

/* Although somebody would have liked it: of a domain that was running. */
static bool was_not_quiesced(const struct report *r)
{
	return r->quiesce.method && r->quiesce.reason && !r->quiesce.quiesced;
}

/* Of an image that is there: not all of it was kept, or nothing proves it. */
static bool has_warnings(const struct report *r)
{
	return (r->tree.account && account_has_warnings(r->tree.account)) ||
	       (r->upload.arrived && !r->upload.verified_by) || was_not_quiesced(r);
}

/* How it ended; err is NULL when well. */
static void conclude(struct report *r, const struct reported *what, const struct err *err)
{
	r->finished_at = clock_now();
	r->status = what->is_dry_run ? REPORT_DRY_RUN : REPORT_OK;
	r->exit_code = 0;
	if (!err && !what->is_dry_run && has_warnings(r)) {
		r->status = REPORT_WARNINGS;
		r->exit_code = EXIT_WARNINGS;
	}
	if (!err)
		return;
	r->status = status_of(err);
	r->exit_code = err_exit_code(err);
	snprintf(r->error, sizeof r->error, "%s", err->text);
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

static int deliver(const struct options *opt, const struct reported *what, const struct report *r,
		   struct err *err)
{
	autofree char *json = report_to_json(r, REPORT_INDENTED, err);
	int done = json ? 0 : -1;

	if (json && opt->report)
		done = outfile_replace_path(opt->report, json, err);
	else if (json && r->upload.arrived && what->attach)
		done = what->attach(what->ctx, json, err);
	if (done < 0 && r->upload.arrived)
		err_context(err, "%s is complete, but not its report", r->name);
	return done;
}

/* Dry runs leave a report only where they are told to, and a wrong command line
 * leaves none.
 */
static int run(const struct options *opt, const struct reported *what, struct report *r,
	       struct progress *progress, struct err *err)
{
	int done = what->run(what->ctx, r, progress, err);
	struct err late;

	conclude(r, what, done < 0 ? err : NULL);
	progress_stop(progress);
	if (done < 0 && err->kind == ERR_USAGE)
		return done;
	if (deliver(opt, what, r, &late) < 0) {
		if (done < 0)
			log_error("%s", late.text);
		else
			*err = late;
		done = -1;
		conclude(r, what, err);
	}
	what->print(what->ctx, r);
	return done;
}

int reported_run(const struct options *opt, const struct reported *what, struct err *err)
{
	enum progress_style style = PROGRESS_NONE;
	struct report report;
	int done;

	if (opt->report && check_report_path(opt->report, err) < 0)
		return -1;
	if (!opt->quiet && !what->is_dry_run)
		progress_style_parse(opt->progress ? opt->progress : "auto", &style);
	report_init(&report);
	log_set_sink(report_warn, &report);
	done = run(opt, what, &report, progress_start(style), err);
	log_set_sink(NULL, NULL);
	if (done == 0)
		done = report.exit_code;
	report_free(&report);
	return done;
}
