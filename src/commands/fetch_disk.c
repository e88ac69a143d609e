// SPDX-License-Identifier: Apache-2.0
#include "commands/fetch_disk.h"

#include "base/ask.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "commands/compare.h"
#include "commands/stored.h"
#include "commands/target.h"
#include "image/image.h"
#include "options.h"
#include "pipeline/pipeline.h"
#include "plan.h"
#include "report/progress.h"
#include "source/source.h"

#include <stdio.h>
#include <string.h>

/* At the very end of a disk stand the copies and marks of what it was before: a
 * backup GPT, members of arrays and pools.  An image that is smaller does not reach
 * them.
 */
#define END_SIZE MIB

/* So much known to be zero is waited for, so that there is progress to see. */
#define ZEROS_MAX GIB

/* --- what stands against it --- */

static int check_room(const struct target *t, const struct stored *s, uint64_t need,
		      struct err *err)
{
	if (need <= target_size(t))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%s is too small: it has %llu bytes, the disk in %s has %llu",
		       target_name(t), (unsigned long long)target_size(t), stored_name(s),
		       (unsigned long long)need);
}

static int get_consent(const struct target *t, const struct stored *s, const struct options *opt,
		       struct err *err)
{
	char what[sizeof err->text];

	if (opt->yes)
		return 0;
	snprintf(what, sizeof what, "all that %s holds will be lost, replaced by %.200s",
		 target_describe(t).text, stored_name(s));
	if (ask_yes(what, "write to it?"))
		return 0;
	if (interrupt_check(err) < 0)
		return -1;
	return err_set(err, ERR_REFUSED, "%.900s; agree with --yes", what);
}

/* --- writing --- */

/* The pipeline's other end.  Zeros are gathered, since a device takes one long range
 * sooner than many short ones.
 */
struct writer {
	struct image base;
	struct target *target;
	uint64_t zeros_at, zeros_len; /* still to be written */
};

static int flush_zeros(struct writer *w, struct err *err)
{
	uint64_t len = w->zeros_len;

	w->zeros_len = 0;
	return target_zero(w->target, len, w->zeros_at, err);
}

static int put_zeros(struct writer *w, uint64_t len, uint64_t offset, struct err *err)
{
	if (w->zeros_len == 0)
		w->zeros_at = offset;
	w->zeros_len += len;
	return w->zeros_len < ZEROS_MAX ? 0 : flush_zeros(w, err);
}

static int put_data(struct writer *w, const uint8_t *data, size_t len, uint64_t offset,
		    struct err *err)
{
	if (flush_zeros(w, err) < 0)
		return -1;
	return target_write(w->target, data, len, offset, err);
}

static int writer_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct writer *w = (struct writer *)img;
	size_t unit = img->cluster_size;

	if (chunk->zero)
		return put_zeros(w, chunk->length, chunk->offset, err);
	for (size_t i = 0; i < chunk->cluster_count; i++) {
		const struct cluster *c = &chunk->clusters[i];
		size_t len = (size_t)MIN(unit, chunk->length - i * unit);
		uint64_t offset = chunk->offset + i * unit;

		if ((c->form == CLUSTER_ZERO
			     ? put_zeros(w, len, offset, err)
			     : put_data(w, chunk->data + c->at, len, offset, err)) < 0)
			return -1;
	}
	return 0;
}

static const struct image_ops writer_ops = { .put = writer_put };

static struct pipeline_config pipeline_of(const struct stored *s, const struct options *opt)
{
	return (struct pipeline_config){
		.workers = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
		.progress = progress_update,
		.progress_ctx = s->progress,
	};
}

static int wipe_end(struct target *t, uint64_t used, struct err *err)
{
	uint64_t size = target_size(t), from = size > END_SIZE ? size - END_SIZE : 0;

	from = MAX(from, used);
	return from < size ? target_zero(t, size - from, from, err) : 0;
}

static int write_all(struct stored *s, const struct options *opt, struct source *image,
		     struct target *t, struct err *err)
{
	const struct pipeline_config cfg = pipeline_of(s, opt);
	struct writer w = {
		.base = { .ops = &writer_ops,
			  .size = image->size,
			  .cluster_size = 64 * KIB,
			  .name = target_name(t) },
		.target = t,
	};
	struct pipeline_stats stats;

	progress_phase(s->progress, "write", image->size);
	if (pipeline_run(&cfg, image, &w.base, &stats, err) == 0 && flush_zeros(&w, err) == 0 &&
	    source_check(image, err) == 0 && wipe_end(t, image->size, err) == 0 &&
	    target_sync(t, err) == 0)
		return 0;
	if (!target_is_written(t))
		return -1;
	if (err->kind == ERR_REFUSED)
		err->kind = ERR_FAILED; /* too late for that */
	return err_context(err, "%s is written only in part and of no use now; fetch onto it again",
			   target_name(t));
}

static int read_back(struct stored *s, const struct options *opt, struct source *image,
		     struct target *t, struct err *err)
{
	const struct pipeline_config cfg = pipeline_of(s, opt);

	progress_phase(s->progress, "verify", image->size);
	if (compare_disks(&cfg, image, target_source(t), err) == 0)
		return 0;
	return err_context(err, "%s was written, but not found to hold what it should",
			   target_name(t));
}

/* --- what the image is --- */

/* 1, 0 or -1: a GPT made for sectors of that size. */
static int has_gpt(struct source *image, unsigned sector_size, struct err *err)
{
	char magic[8];

	if (image->size < 2 * sector_size)
		return 0;
	if (source_read_at(image, magic, sizeof magic, sector_size, err) < 0)
		return -1;
	return memcmp(magic, "EFI PART", sizeof magic) == 0;
}

static int give_hints(struct source *image, const struct target *t, struct err *err)
{
	unsigned theirs = target_sector_size(t);
	int gpt = has_gpt(image, image->sector_size, err);

	if (gpt > 0 && theirs && theirs != image->sector_size)
		log_warn("%s has sectors of %u bytes, and the partition table in the image is made "
			 "for %u: the disk will not be understood",
			 target_name(t), theirs, image->sector_size);
	if (gpt > 0 && image->size < target_size(t))
		log_note("the disk is larger than the image: its backup partition table is not at "
			 "the end; move it there with: sgdisk -e %s",
			 target_name(t));
	return gpt < 0 ? -1 : 0;
}

/* --- the order of it --- */

/* Of an odd file the store tells the exact size, and we see whole sectors. */
static int check_promise(const struct stored *s, const struct source *image, struct err *err)
{
	uint64_t told = s->info.virtual_size;

	if (told == 0 || told == image->size || told == image->size - image->padding)
		return 0;
	return err_set(err, ERR_REFUSED, "%s holds a disk of %llu bytes, and the store says %llu",
		       image->name, (unsigned long long)image->size, (unsigned long long)told);
}

static int put_onto(struct stored *s, const struct options *opt, struct target *t, struct err *err)
{
	autosource struct source *image = stored_open(s, opt, err);

	if (!image || check_promise(s, image, err) < 0 || check_room(t, s, image->size, err) < 0 ||
	    write_all(s, opt, image, t, err) < 0 || read_back(s, opt, image, t, err) < 0)
		return -1;
	target_announce(t);
	s->info.virtual_size = image->size;
	return give_hints(image, t, err);
}

int fetch_to_disk(struct stored *s, const struct options *opt, struct err *err)
{
	autotarget struct target *t = target_open(opt->to_disk, err);
	char *path;

	if (!t || check_room(t, s, s->info.virtual_size, err) < 0 ||
	    get_consent(t, s, opt, err) < 0 || stored_fetch_aside(s, opt, err) < 0 ||
	    put_onto(s, opt, t, err) < 0)
		return -1;
	path = strdup(opt->to_disk);
	if (!path)
		return err_nomem(err);
	free(s->info.file);
	s->info.file = path;
	return 0;
}
