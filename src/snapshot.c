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
#include "image/image.h"
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
	struct source *source;
	struct dest *dest;
	int fd; /* of the image to be; the destination's */
	struct account account;
	struct digests digests;
	char **properties;
	struct walk_own *own; /* of a tree */
};

static struct pipeline_config pipeline_of(const struct snapshot *s)
{
	struct pipeline_config cfg = plan_pipeline(s->plan);

	cfg.progress = progress_update;
	cfg.progress_ctx = s->progress;
	return cfg;
}

static void report_tree(struct snapshot *s)
{
	const struct tree_facts *facts = tree_facts(s->source);
	struct report *r = s->report;

	r->source.consistency = "file-by-file";
	r->tree.planned = true;
	r->tree.files = facts->files;
	r->tree.directories = facts->directories;
	r->tree.symlinks = facts->symlinks;
	r->tree.devices = facts->devices;
	r->tree.fifos = facts->fifos;
	r->tree.sockets = facts->sockets;
	r->tree.hard_links = facts->hard_links;
	r->tree.data_bytes = facts->data_bytes;
	r->tree.free_bytes = facts->free_bytes;
	r->tree.uuid = facts->root_uuid;
	r->tree.uuid_origin = facts->uuid_origin;
	r->tree.label = facts->root_label;
	r->tree.kernel = facts->kernel;
	r->tree.boots_bios = facts->boots_bios;
	r->tree.boots_uefi = facts->boots_uefi;
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
	report_tree(s);
	return 0;
}

static void tell_padding(const struct source *disk)
{
	if (disk->padding)
		log_warn("%s: its size of %llu bytes is no multiple of 512; %llu zeros are added",
			 disk->name, (unsigned long long)(disk->size - disk->padding),
			 (unsigned long long)disk->padding);
}

static int open_source(struct snapshot *s, struct err *err)
{
	if (s->plan->is_tree)
		return open_tree(s, err);
	s->source = source_open(&s->plan->source, err);
	if (!s->source)
		return -1;
	s->report->source.consistency = "offline";
	tell_padding(s->source);
	return 0;
}

static int open_both(struct snapshot *s, struct err *err)
{
	struct report *r = s->report;
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
	r->source.size_bytes = s->source->size - s->source->padding;
	r->source.padding_bytes = s->source->padding;
	r->source.logical_sector_size = s->source->sector_size;
	s->properties =
		properties_of(s->plan, s->plan->is_tree ? tree_facts(s->source) : NULL, err);
	s->dest->properties = s->properties;
	return s->properties ? 0 : -1;
}

static int check_limits(struct snapshot *s, struct err *err)
{
	return preflight_limits(&(struct preflight){ s->plan, s->report, s->source, s->dest }, err);
}

static int check_destination(struct snapshot *s, struct err *err)
{
	return preflight_destination(&(struct preflight){ s->plan, s->report, s->source, s->dest },
				     err);
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

/* Of what is written here, for messages. */
static const char *file_name(const struct snapshot *s)
{
	return s->dest->path ? s->dest->path : "the work file (--work-dir)";
}

static int capture(struct snapshot *s, struct err *err)
{
	const struct image_config cfg = {
		.fd = s->fd,
		.size = s->source->size,
		.cluster_size = s->plan->cluster_size,
		.compression = s->plan->compression,
		.name = file_name(s),
	};
	struct pipeline_config pipeline = pipeline_of(s);
	struct report *r = s->report;
	struct pipeline_stats stats;
	double cpu = clock_cpu_seconds();
	autoimage struct image *img = s->plan->format->create(&cfg, err);

	if (!img)
		return -1;
	if (s->plan->format->hashed_in_passing)
		say_if_hashing_is_long(s, s->source->size);
	progress_phase(s->progress, report_phase_names[PHASE_CAPTURE], s->source->size);
	if (pipeline_run(&pipeline, s->source, img, &stats, err) < 0 ||
	    settle(s, &pipeline, img, &stats, err) < 0 || source_check(s->source, err) < 0 ||
	    image_finish(img, err) < 0)
		return -1;
	if (img->digests)
		s->digests = *img->digests;
	r->capture.ran = true;
	r->capture.virtual_size_bytes = s->source->size;
	r->capture.bytes_read = stats.read_bytes;
	r->capture.data_bytes = stats.data_bytes;
	r->capture.zero_bytes = s->source->size - stats.data_bytes;
	r->capture.skipped_bytes = stats.skipped_bytes;
	r->capture.threads = s->plan->threads;
	r->capture.cpu_seconds = clock_cpu_seconds() - cpu;
	return 0;
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
		.virtual_size = s->source->size,
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

int snapshot_run(struct snapshot *s, struct err *err)
{
	struct report *r = s->report;

	if (step(s, PHASE_PLAN, open_both, err) < 0 || step(s, PHASE_PLAN, check_limits, err) < 0 ||
	    step(s, PHASE_CHECK, check_destination, err) < 0)
		return -1;
	if (s->plan->dry_run)
		return 0;
	if (step(s, PHASE_CHECK, reserve, err) < 0 || step(s, PHASE_CAPTURE, capture, err) < 0 ||
	    step(s, PHASE_HASH, hash, err) < 0)
		return -1;
	r->creation_seconds = r->phase_seconds[PHASE_CAPTURE] + r->phase_seconds[PHASE_HASH];
	r->image.is_whole = true;
	if (s->plan->is_tree) /* whose reading begins with the walk */
		r->creation_seconds += r->phase_seconds[PHASE_PLAN];
	if (step(s, PHASE_PUBLISH, publish, err) < 0)
		return -1;
	r->upload_seconds = r->phase_seconds[PHASE_PUBLISH];
	return 0;
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
	return s->plan->is_tree && s->source ? tree_facts(s->source) : NULL;
}

struct snapshot *snapshot_new(const struct plan *plan, struct report *report,
			      struct progress *progress, struct err *err)
{
	struct snapshot *s = calloc(1, sizeof *s);

	if (!s) {
		err_nomem(err);
		return NULL;
	}
	s->plan = plan;
	s->report = report;
	s->progress = progress;
	report->name = plan->name;
	report->source.kind = plan->is_tree ? "tree" : "disk";
	report->source.path = plan->source.path;
	report->source.format = plan->is_tree ? NULL : plan->source.format;
	report->tree.account = plan->is_tree ? &s->account : NULL;
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
	source_close(s->source);
	dest_close(s->dest);
	str_list_free(s->properties);
	free(s->own);
	account_free(&s->account);
	free(s);
}
