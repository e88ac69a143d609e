// SPDX-License-Identifier: Apache-2.0
#include "snapshot.h"

#include "base/account.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "compress/codec.h"
#include "findings.h"
#include "image/image.h"
#include "instance.h"
#include "own.h"
#include "pipeline/pipeline.h"
#include "plan.h"
#include "preflight.h"
#include "properties.h"
#include "publish.h"
#include "report/progress.h"
#include "report/report.h"
#include "source/extent.h"
#include "tree/tree.h"
#include "walk/walk.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Hashing more than this of an image takes long enough to say so first, at
 * this many bytes a second.
 */
#define HASH_LONG_BYTES (64 * GIB)
#define HASH_RATE	(900 * MIB)

struct snapshot {
	const struct plan *plan;
	struct report *report;
	struct progress *progress;
	struct instance *instance; /* of a domain; then the source is its */
	struct source *source;
	uint64_t size; /* of the source */
	struct dest *dest;
	int fd; /* of the image to be; the destination's */
	struct account account;
	struct digests digests;
	char **properties;
	struct walk_own *own;  /* of a tree */
	struct err unreleased; /* why the domain is not as it was */
};

static struct pipeline_config pipeline_of(const struct snapshot *s)
{
	struct pipeline_config cfg = plan_pipeline(s->plan);

	cfg.progress = progress_update;
	cfg.progress_ctx = s->progress;
	return cfg;
}

static void take_source(struct snapshot *s)
{
	s->size = s->source->size;
	findings_of_source(s->report, s->source);
}

static int open_tree(struct snapshot *s, struct err *err)
{
	struct tree_config cfg = s->plan->tree;

	if (own_list(s->plan, s->dest->path, &s->own, &cfg.own_count, err) < 0)
		return -1;
	cfg.own = s->own;
	cfg.account = &s->account;
	s->source = tree_open(&cfg, err);
	if (!s->source)
		return -1;
	findings_of_tree(s->report, tree_facts(s->source));
	take_source(s);
	return 0;
}

static void tell_padding(const struct source *disk)
{
	if (disk->padding)
		log_warn("%s: its size of %llu bytes is no multiple of 512; %llu zeros are added",
			 disk->name, (unsigned long long)(disk->size - disk->padding),
			 (unsigned long long)disk->padding);
}

static int open_disk(struct snapshot *s, struct err *err)
{
	s->source = source_open(&s->plan->source, err);
	if (!s->source)
		return -1;
	s->report->source.consistency = "offline";
	take_source(s);
	tell_padding(s->source);
	return 0;
}

/* One that runs can be read from the instant on that comes later. */
static int open_domain(struct snapshot *s, struct err *err)
{
	s->instance = instance_open(&s->plan->instance, err);
	if (!s->instance)
		return -1;
	findings_of_instance(s->report, instance_facts(s->instance));
	s->size = instance_facts(s->instance)->size;
	if (instance_facts(s->instance)->is_active)
		return 0;
	s->report->source.consistency = instance_facts(s->instance)->is_like_after_power_cut
						? "crash-consistent"
						: "offline";
	s->source = instance_hold(s->instance, err);
	return s->source ? 0 : -1;
}

static int open_source(struct snapshot *s, struct err *err)
{
	static int (*const open[])(struct snapshot *, struct err *) = {
		[PLAN_DISK] = open_disk, [PLAN_TREE] = open_tree, [PLAN_DOMAIN] = open_domain
	};

	return open[s->plan->kind](s, err);
}

static int open_both(struct snapshot *s, struct err *err)
{
	struct stat st;

	s->dest = dest_open(&s->plan->dest, err);
	if (!s->dest)
		return -1;
	s->dest->progress = progress_update;
	s->dest->progress_ctx = s->progress;
	/* before a tree is walked that may hold what a killed run left */
	if (!s->plan->dry_run)
		s->dest->ops->tidy(s->dest);
	if (s->plan->report && s->dest->path && io_is_same_place(s->dest->path, s->plan->report))
		return err_set(err, ERR_USAGE, "--report: %s is to be the image", s->dest->path);
	if (open_source(s, err) < 0)
		return -1;
	if (s->plan->report && stat(s->plan->report, &st) == 0 && io_is_protected(&st))
		return err_set(err, ERR_USAGE, "--report: %s is a source", s->plan->report);
	s->properties = properties_of(s->plan, snapshot_tree(s), snapshot_instance(s), err);
	s->dest->properties = s->properties;
	return s->properties ? 0 : -1;
}

static struct preflight preflight_of(const struct snapshot *s)
{
	const struct instance_facts *facts = snapshot_instance(s);

	return (struct preflight){
		.plan = s->plan,
		.report = s->report,
		.dest = s->dest,
		.name = s->source ? s->source->name : facts->name,
		.size = s->size,
		.sector_size = s->report->source.logical_sector_size,
		.source = s->source,
		.allocated_bytes = facts ? facts->allocation : 0,
	};
}

static int check_limits(struct snapshot *s, struct err *err)
{
	const struct preflight p = preflight_of(s);

	return preflight_limits(&p, err);
}

static int check_destination(struct snapshot *s, struct err *err)
{
	const struct preflight p = preflight_of(s);

	return preflight_destination(&p, err);
}

/* --- a running domain ------------------------------------------------------------ */

static bool is_held(const struct snapshot *s)
{
	return s->instance && instance_facts(s->instance)->is_active;
}

static int hold(struct snapshot *s, struct err *err)
{
	s->source = instance_hold(s->instance, err);
	findings_of_hold(s->report, s->instance);
	if (!s->source)
		return -1;
	s->report->source.consistency =
		s->report->quiesce.quiesced ? "quiesced" : "crash-consistent";
	return 0;
}

/* What the image was made of is over, well or not.  That the domain could not be put back as it
 * was is told in the end: the image is none the worse.
 */
static void let_go(struct snapshot *s)
{
	uint64_t start = clock_ns();

	findings_of_hold(s->report, s->instance);
	s->source = NULL;
	instance_release(s->instance, &s->unreleased);
	report_phase_done(s->report, PHASE_RELEASE, start, 0);
}

static void say_if_hashing_is_long(const struct snapshot *s, uint64_t size)
{
	if (size > HASH_LONG_BYTES)
		log_note("hashing %s of %s takes about %llu minutes", size_format(size).text,
			 s->plan->format->name, (unsigned long long)(size / HASH_RATE / 60));
}

/* What changed while it was read is read again, until the source says that it is
 * over.
 */
static int settle(struct snapshot *s, struct pipeline_config *pipeline, struct image *img,
		  struct pipeline_stats *stats, struct err *err)
{
	struct extent_list again = { 0 };
	struct pipeline_stats more;
	int done;

	pipeline->progress = NULL;
	do {
		again.len = 0;
		done = source_settle(s->source, &again, err);
		for (size_t i = 0; done == 0 && i < again.len; i++) {
			pipeline->offset = again.at[i].offset;
			pipeline->length = again.at[i].length;
			done = pipeline_run(pipeline, s->source, img, &more, err);
			stats->read_bytes += more.read_bytes;
		}
	} while (done == 0 && again.len > 0);
	extent_list_free(&again);
	return done;
}

/* Was what was read one point in time? */
static int still_stands(struct snapshot *s, struct err *err)
{
	if (source_check(s->source, err) < 0)
		return -1;
	return s->instance ? instance_check(s->instance, err) : 0;
}

/* Of what is written here, for messages. */
static const char *file_name(const struct snapshot *s)
{
	return s->dest->path ? s->dest->path : "the work file (--work-dir)";
}

static int capture(struct snapshot *s, struct err *err)
{
	const struct image_config cfg = {
		.fd = s->fd,
		.size = s->size,
		.cluster_size = s->plan->cluster_size,
		.compression = s->plan->compression,
		.name = file_name(s),
		.hashing = is_held(s) ? IMAGE_HASH_LATER : IMAGE_HASH_IN_PASSING,
	};
	struct pipeline_config pipeline = pipeline_of(s);
	struct pipeline_stats stats;
	double cpu = clock_cpu_seconds();
	autoimage struct image *img = s->plan->format->create(&cfg, err);

	if (!img)
		return -1;
	if (s->plan->format->hashed_in_passing && cfg.hashing == IMAGE_HASH_IN_PASSING)
		say_if_hashing_is_long(s, s->size);
	progress_phase(s->progress, report_phase_names[PHASE_CAPTURE], s->size);
	if (pipeline_run(&pipeline, s->source, img, &stats, err) < 0 ||
	    settle(s, &pipeline, img, &stats, err) < 0 || still_stands(s, err) < 0 ||
	    image_finish(img, err) < 0)
		return -1;
	if (img->digests)
		s->digests = *img->digests;
	findings_of_capture(s->report, s->size, &stats);
	s->report->capture.threads = s->plan->threads;
	s->report->capture.cpu_seconds = clock_cpu_seconds() - cpu;
	return 0;
}

/* Why reading failed is better told by what became of the instant. */
static int capture_held(struct snapshot *s, struct err *err)
{
	struct err why = { 0 };
	int done = capture(s, err);

	if (done < 0) {
		s->source = NULL;
		instance_end_reading(s->instance);
	}
	if (done < 0 && err->kind == ERR_FAILED && instance_check(s->instance, &why) < 0)
		*err = why;
	return done;
}

static int stat_image(struct snapshot *s, struct err *err)
{
	struct stat st;

	if (fstat(s->fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot stat the image");
	s->report->image.size_bytes = (uint64_t)st.st_size;
	s->report->image.allocated_bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

/* The digests of the finished file, and the file on stable storage. */
static int hash(struct snapshot *s, struct err *err)
{
	uint64_t size;

	if (stat_image(s, err) < 0)
		return -1;
	size = s->report->image.size_bytes;
	/* let the disk work while we hash */
	sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	if (!*s->digests.sha256) {
		say_if_hashing_is_long(s, size);
		progress_phase(s->progress, report_phase_names[PHASE_HASH], size);
		if (hash_file(s->fd, file_name(s), size, &s->digests, progress_update, s->progress,
			      err) < 0)
			return -1;
	}
	if (fsync(s->fd) < 0)
		return err_errno(err, ERR_FAILED, "cannot sync the image");
	s->report->image.digests = s->digests;
	return stat_image(s, err);
}

static int publish(struct snapshot *s, struct err *err)
{
	const struct plan *plan = s->plan;
	struct report *r = s->report;
	struct image_info info = {
		.name = strdup(plan->name),
		.format = strdup(plan->format->name),
		.compression = strdup(plan->compression),
		.created_at = strdup(r->started_at.text),
		.size = r->image.size_bytes,
		.virtual_size = s->size,
		.digests = s->digests,
		.properties = s->properties,
	};
	int done = -1;

	progress_phase(s->progress, report_phase_names[PHASE_PUBLISH], r->image.size_bytes);
	if (info.name && info.format && info.compression && info.created_at)
		done = publish_image(s->dest, &info, r, err);
	else
		err_nomem(err);
	info.properties = NULL; /* ours */
	image_info_free(&info);
	return done;
}

static int step(struct snapshot *s, enum report_phase phase,
		int (*run)(struct snapshot *s, struct err *err), struct err *err)
{
	uint64_t start = clock_ns();
	int done = interrupt_check(err);

	if (done == 0)
		done = run(s, err);
	return report_phase_done(s->report, phase, start, done);
}

static int reserve(struct snapshot *s, struct err *err)
{
	return s->dest->ops->reserve(s->dest, &s->fd, err);
}

/* Whatever comes after hold, a domain is let go at once. */
static int capture_domain(struct snapshot *s, struct err *err)
{
	int done = step(s, PHASE_HOLD, hold, err);

	if (done == 0)
		done = step(s, PHASE_CAPTURE, capture_held, err);
	let_go(s);
	if (done < 0 && s->unreleased.kind)
		log_error("%s", s->unreleased.text);
	return done;
}

static int capture_source(struct snapshot *s, struct err *err)
{
	return is_held(s) ? capture_domain(s, err) : step(s, PHASE_CAPTURE, capture, err);
}

/* From the start of reading, which of a tree begins with the walk. */
static double creation_seconds(const struct snapshot *s)
{
	static const enum report_phase phases[] = { PHASE_HOLD, PHASE_CAPTURE, PHASE_RELEASE,
						    PHASE_HASH };
	const double *seconds = s->report->phase_seconds;
	double sum = s->plan->kind == PLAN_TREE ? seconds[PHASE_PLAN] : 0;

	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
		sum += MAX(seconds[phases[i]], 0);
	return sum;
}

static int say_unreleased(struct snapshot *s, struct err *err)
{
	*err = s->unreleased;
	s->report->error_phase = report_phase_names[PHASE_RELEASE];
	return err_context(err, "%s is complete, but its domain is not as it was", s->plan->name);
}

int snapshot_run(struct snapshot *s, struct err *err)
{
	struct report *r = s->report;

	if (step(s, PHASE_PLAN, open_both, err) < 0 || step(s, PHASE_PLAN, check_limits, err) < 0 ||
	    step(s, PHASE_CHECK, check_destination, err) < 0)
		return -1;
	if (s->plan->dry_run)
		return 0;
	if (step(s, PHASE_CHECK, reserve, err) < 0 || capture_source(s, err) < 0 ||
	    step(s, PHASE_HASH, hash, err) < 0)
		return -1;
	r->creation_seconds = creation_seconds(s);
	r->image.is_whole = true;
	if (step(s, PHASE_PUBLISH, publish, err) < 0)
		return -1;
	r->upload_seconds = r->phase_seconds[PHASE_PUBLISH];
	return s->unreleased.kind ? say_unreleased(s, err) : 0;
}

int snapshot_attach_report(struct snapshot *s, const char *json, struct err *err)
{
	return s->dest->ops->attach_report ? s->dest->ops->attach_report(s->dest, json, err) : 0;
}

const char *snapshot_destination(const struct snapshot *s)
{
	return s->dest->name;
}

const struct tree_facts *snapshot_tree(const struct snapshot *s)
{
	return s->plan->kind == PLAN_TREE && s->source ? tree_facts(s->source) : NULL;
}

const struct instance_facts *snapshot_instance(const struct snapshot *s)
{
	return s->instance ? instance_facts(s->instance) : NULL;
}

struct snapshot *snapshot_new(const struct plan *plan, struct report *report,
			      struct progress *progress, struct err *err)
{
	static const char *const kinds[] = {
		[PLAN_DISK] = "disk", [PLAN_TREE] = "tree", [PLAN_DOMAIN] = "domain"
	};
	struct snapshot *s = calloc(1, sizeof *s);

	if (!s) {
		err_nomem(err);
		return NULL;
	}
	s->plan = plan;
	s->report = report;
	s->progress = progress;
	report->name = plan->name;
	report->source.kind = kinds[plan->kind];
	report->source.path = plan->kind == PLAN_DOMAIN ? NULL : plan->source.path;
	report->source.format = plan->kind == PLAN_DISK ? plan->source.format : NULL;
	report->tree.account = plan->kind == PLAN_TREE ? &s->account : NULL;
	report->quiesce.requested =
		plan->kind == PLAN_DOMAIN ? quiesce_wish_names[plan->instance.wish] : NULL;
	report->quiesce.frozen_ms = -1;
	report->image.format = plan->format->name;
	report->image.compression = plan->compression;
	report->image.level = plan->codec ? plan->level : -1;
	report->image.cluster_size = plan->cluster_size;
	report->upload.destination = plan->where_shown;
	return s;
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	if (!s->instance)
		source_close(s->source);
	instance_close(s->instance);
	dest_close(s->dest);
	str_list_free(s->properties);
	free(s->own);
	account_free(&s->account);
	free(s);
}
