// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "compress/codec.h"
#include "dest/outfile.h"
#include "image/image.h"
#include "options.h"
#include "plan.h"
#include "report/progress.h"
#include "report/report.h"
#include "snapshot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

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
	if (str_ends(last, ".manifest.json") || outfile_name_is_temporary(last))
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

static void print_json(const struct options *opt, const struct report *r)
{
	bool lines = opt->progress && str_equal(opt->progress, "json");
	struct err ignored;
	autofree char *json =
		report_to_json(r, lines ? REPORT_ONE_LINE : REPORT_INDENTED, &ignored);

	if (json)
		fputs(json, stdout);
}

/* Who can read it, where that is not everybody. */
static void print_readers(const char *label, const struct report *r)
{
	if (str_equal(r->image.compression, "zstd"))
		printf("%sQEMU 5.1 and later; for older readers: --compression=zlib\n", label);
}

static void print_plan(const struct plan *plan, const struct report *r, const char *destination)
{
	char shown[4096];

	printf("source       %s (%s, %s)\n", log_printable(shown, sizeof shown, plan->source.path),
	       plan->source.format,
	       size_format(r->source.size_bytes + r->source.padding_bytes).text);
	printf("image        %s\n", log_printable(shown, sizeof shown, destination));
	printf("format       %s, compression %s", plan->format->name, plan->compression);
	if (plan->codec)
		printf(" level %d", plan->level);
	printf(", clusters of %s, %u threads\n", size_format(plan->cluster_size).text,
	       plan->threads);
	print_readers("read by      ", r);
	printf("to read      %s (the rest is known to be zero)\n",
	       size_format(r->estimate.mapped_bytes).text);
	printf("size         about %s, from a sample of %s\n",
	       size_format(r->estimate.image_bytes).text,
	       size_format(r->estimate.sampled_bytes).text);
	printf("free there   %s: %s\n",
	       r->estimate.free_bytes == UINT64_MAX ? "no limit"
						    : size_format(r->estimate.free_bytes).text,
	       r->estimate.fits ? "enough"
	       : r->exit_code	? "not enough"
				: "perhaps not enough");
	printf("Nothing was written (dry run).\n");
}

static void print_result(const struct report *r)
{
	char shown[4096];

	printf("%s\n", log_printable(shown, sizeof shown, r->image.path));
	printf("  %s %s", size_format(r->image.size_bytes).text, r->image.format);
	if (r->image.level >= 0)
		printf(" (%s level %d)", r->image.compression, r->image.level);
	printf(" of %s, %s of it data\n", size_format(r->capture.virtual_size_bytes).text,
	       size_format(r->capture.data_bytes).text);
	printf("  created in %.1f s, published in %.1f s\n", r->creation_seconds,
	       r->upload_seconds);
	printf("  sha256 %s\n", r->image.digests.sha256);
	print_readers("  read by ", r);
}

/* A dry run says what was found out even when it does not fit. */
static void print_outcome(const struct options *opt, const struct plan *plan,
			  const struct report *r, const struct snapshot *s)
{
	if (opt->json)
		print_json(opt, r);
	else if (opt->quiet || (opt->progress && str_equal(opt->progress, "json")))
		return;
	else if (plan->dry_run && r->estimate.ran)
		print_plan(plan, r, snapshot_destination(s));
	else if (r->exit_code == 0)
		print_result(r);
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
	print_outcome(opt, plan, r, s);
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
