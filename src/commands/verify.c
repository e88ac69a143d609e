// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/manifest.h"
#include "image/image.h"
#include "options.h"
#include "pipeline/pipeline.h"
#include "plan.h"
#include "report/progress.h"
#include "source/extent.h"
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COMPARE_SIZE (64 * KIB)

/* Two disks of one size as one: their bytes' exclusive or, which is zero where
 * they are equal.  The pipeline reads it with all its threads, as it reads any
 * source, and skips the zeros; the first cluster that is left holds the first
 * difference.
 */
struct difference {
	struct source base;
	struct source *image, *disk;
};

static int difference_read_at(struct source *src, void *buf, size_t len, uint64_t offset,
			      struct err *err)
{
	struct difference *d = (struct difference *)src;
	uint8_t *ours = buf, theirs[COMPARE_SIZE];

	if (source_read_at(d->image, buf, len, offset, err) < 0)
		return -1;
	for (size_t at = 0; at < len; at += sizeof theirs) {
		size_t n = MIN(sizeof theirs, len - at);

		if (source_read_at(d->disk, theirs, n, offset + at, err) < 0)
			return -1;
		for (size_t i = 0; i < n; i++)
			ours[at + i] ^= theirs[i];
	}
	return 0;
}

/* Zero where both are. */
static int merge(const struct extent_list *a, const struct extent_list *b, uint64_t offset,
		 uint64_t end, struct extent_list *out, struct err *err)
{
	size_t i = 0, j = 0;

	while (offset < end) {
		uint64_t a_end = a->at[i].offset + a->at[i].length;
		uint64_t b_end = b->at[j].offset + b->at[j].length;
		uint64_t next = MIN(MIN(a_end, b_end), end);

		if (extent_list_add(out, offset, next - offset, a->at[i].zero && b->at[j].zero,
				    err) < 0)
			return -1;
		i += next == a_end;
		j += next == b_end;
		offset = next;
	}
	return 0;
}

static int difference_extents(struct source *src, uint64_t offset, uint64_t length,
			      struct extent_list *out, struct err *err)
{
	struct difference *d = (struct difference *)src;
	struct extent_list ours = { 0 }, theirs = { 0 };
	int r = -1;

	if (source_extents(d->image, offset, length, &ours, err) == 0 &&
	    source_extents(d->disk, offset, length, &theirs, err) == 0)
		r = merge(&ours, &theirs, offset, offset + length, out, err);
	extent_list_free(&ours);
	extent_list_free(&theirs);
	return r;
}

static void difference_abort(struct source *src)
{
	struct difference *d = (struct difference *)src;

	source_abort(d->image);
	source_abort(d->disk);
}

static const struct source_ops difference_ops = {
	.name = "difference",
	.extents = difference_extents,
	.read_at = difference_read_at,
	.abort = difference_abort,
};

/* The pipeline's target: nothing may arrive but zeros; without a disk to
 * compare with, anything may, as long as it could be read.
 */
struct verdict_image {
	struct image base;
	const char *image, *disk; /* names; disk NULL: only read */
};

static int verdict_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	const struct verdict_image *v = (const struct verdict_image *)img;

	for (size_t i = 0; v->disk && i < chunk->cluster_count; i++) {
		const uint8_t *bytes = chunk->data + chunk->clusters[i].at;
		size_t first = 0;

		if (chunk->clusters[i].form == CLUSTER_ZERO)
			continue;
		while (!bytes[first])
			first++;
		return err_set(err, ERR_FAILED, "%s differs from %s at offset %llu", v->image,
			       v->disk,
			       (unsigned long long)(chunk->offset + i * img->cluster_size + first));
	}
	return 0;
}

static const struct image_ops verdict_ops = { .put = verdict_put };

/* Beside an image of a folder store: NAME.qcow2 has NAME.manifest.json. */
static char *manifest_path(const char *image)
{
	const char *slash = strrchr(image, '/'), *dot = strrchr(slash ? slash : image, '.');
	int stem = dot ? (int)(dot - image) : (int)strlen(image);

	return str_format("%.*s.manifest.json", stem, image);
}

/* The image's file and its manifest, for a thread that may hang in reading
 * either; lost with it then (base/patience.h).
 */
struct claim {
	char *image, *manifest; /* paths */
	int must_exist;		/* the manifest was named */
	int found;
	struct image_info info; /* what the manifest says */
	struct progress *progress;
};

static void claim_free(struct claim *c)
{
	if (!c)
		return;
	image_info_free(&c->info);
	free(c->image);
	free(c->manifest);
	free(c);
}

static struct claim *claim_new(const struct options *opt, struct progress *progress,
			       struct err *err)
{
	struct claim *c = calloc(1, sizeof *c);

	if (c) {
		c->image = strdup(opt->args[0]);
		c->manifest = opt->manifest ? strdup(opt->manifest) : manifest_path(opt->args[0]);
		c->must_exist = opt->manifest != NULL;
		c->progress = progress;
	}
	if (c && c->image && c->manifest)
		return c;
	claim_free(c);
	err_nomem(err);
	return NULL;
}

static int load_manifest(void *ctx, struct err *err)
{
	struct claim *c = ctx;
	autofree char *text = NULL;
	size_t len;

	if (!c->must_exist && faccessat(AT_FDCWD, c->manifest, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == ENOENT)
		return 0;
	text = io_read_file(AT_FDCWD, c->manifest, MANIFEST_MAX, &len, err);
	if (!text || manifest_from_json(text, len, c->manifest, &c->info, err) < 0)
		return -1;
	c->found = 1;
	return 0;
}

static int check_manifest(void *ctx, struct err *err)
{
	struct claim *c = ctx;
	autoclose int fd = open(c->image, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint64_t size = c->info.size, start, end;
	struct digests digests;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open %s", c->image);
	if ((uint64_t)st.st_size != size)
		return err_set(err, ERR_FAILED, "%s is %llu bytes long, its manifest says %llu",
			       c->image, (unsigned long long)st.st_size, (unsigned long long)size);
	progress_phase(c->progress, "hash", size);
	if (hash_file(fd, c->image, size, &digests, progress_update, c->progress, err) < 0)
		return -1;
	if (digests_equal(&digests, &c->info.digests))
		return 0;
	digests_difference(&digests, &c->info.digests, size, &start, &end);
	return err_set(err, ERR_FAILED,
		       "%s is not what its manifest says: it begins to differ at offset %llu or up "
		       "to %llu bytes behind",
		       c->image, (unsigned long long)start, (unsigned long long)(end - start));
}

/* Held against writers, as for a capture: what changes meanwhile proves nothing. */
static struct source *open_disk(const struct options *opt, const char *path, const char *format,
				struct err *err)
{
	const struct source_config cfg = {
		.path = path,
		.format = format,
		.intent = SOURCE_CAPTURE,
		.allow_backing = path == opt->against && opt->allow_backing,
		.connections = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
	};

	return source_open(&cfg, err);
}

/* An image of a disk of odd size is larger by its padding. */
static int compare_sizes(const struct source *image, const struct source *disk, struct err *err)
{
	uint64_t ours = image->size - image->padding, theirs = disk->size - disk->padding;

	if (ours == theirs || ours == disk->size)
		return 0;
	return err_set(err, ERR_FAILED, "%s is %llu bytes large, %s is %llu", image->name,
		       (unsigned long long)ours, disk->name, (unsigned long long)theirs);
}

static int read_all(const struct options *opt, struct source *src, struct verdict_image *target,
		    struct progress *progress, struct err *err)
{
	const struct pipeline_config cfg = {
		.workers = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
		.progress = progress_update,
		.progress_ctx = progress,
	};
	struct pipeline_stats stats;

	progress_phase(progress, "verify", src->size);
	return pipeline_run(&cfg, src, &target->base, &stats, err);
}

static int compare(const struct options *opt, struct source *image, struct source *disk,
		   struct progress *progress, struct err *err)
{
	struct verdict_image target = {
		.base = { .ops = &verdict_ops, .size = image->size, .cluster_size = 64 * KIB },
		.image = image->name,
		.disk = disk ? disk->name : NULL
	};
	struct difference *d;
	int r;

	if (!disk)
		return read_all(opt, image, &target, progress, err);
	if (compare_sizes(image, disk, err) < 0)
		return -1;
	d = calloc(1, sizeof *d);
	if (!d)
		return err_nomem(err);
	d->base =
		(struct source){ .ops = &difference_ops, .name = image->name, .size = image->size };
	d->image = image;
	d->disk = disk;
	r = read_all(opt, &d->base, &target, progress, err);
	image->stuck = disk->stuck = d->base.stuck;
	if (!d->base.stuck) /* else a thread that is left behind keeps it */
		free(d);
	return r;
}

static const char *image_format_name(const struct options *opt, const struct image_info *info,
				     struct err *err)
{
	const char *format = opt->format ? opt->format : info->format;

	if (format && !source_format_find(format)) {
		err_set(err, ERR_FAILED,
			"the manifest of %s names a format that is not known here: %s",
			opt->args[0], format);
		return NULL;
	}
	if (!format)
		format = plan_format_of_name(opt->args[0]);
	if (!format)
		err_set(err, ERR_USAGE,
			"the name %s does not tell its format; say it with --format", opt->args[0]);
	return format;
}

/* What was found to be right. */
struct verdict {
	uint64_t size;
	bool manifest;
};

static int verify_claim(const struct options *opt, struct claim *c, struct patience *patience,
			struct verdict *verdict, struct err *err)
{
	autosource struct source *image = NULL, *against = NULL;
	const char *format;

	if (patience_run(patience, load_manifest, c, (unsigned)opt->stall_timeout, NULL,
			 c->manifest, err) < 0)
		return -1;
	format = image_format_name(opt, &c->info, err);
	/* First, since it tells where a damaged image is damaged.  It takes as long
	 * as it takes: only a signal ends it early.
	 */
	if (!format ||
	    (c->found && patience_run(patience, check_manifest, c, 0, NULL, c->image, err) < 0))
		return -1;
	image = open_disk(opt, opt->args[0], format, err);
	if (!image)
		return -1;
	if (c->found && image->size != c->info.virtual_size)
		return err_set(err, ERR_FAILED,
			       "%s holds a disk of %llu bytes, its manifest says %llu", image->name,
			       (unsigned long long)image->size,
			       (unsigned long long)c->info.virtual_size);
	if (opt->against) {
		against = open_disk(opt, opt->against,
				    opt->source_format ? opt->source_format : "raw", err);
		if (!against)
			return -1;
	}
	*verdict = (struct verdict){ .size = image->size, .manifest = c->found };
	if (compare(opt, image, against, c->progress, err) < 0 || source_check(image, err) < 0)
		return -1;
	return against ? source_check(against, err) : 0;
}

static int verify(const struct options *opt, struct progress *progress, struct verdict *verdict,
		  struct err *err)
{
	struct claim *c = claim_new(opt, progress, err);
	struct patience *patience = c ? patience_begin(err) : NULL;
	int done = patience ? verify_claim(opt, c, patience, verdict, err) : -1;

	if (!patience || !patience_is_lost(patience))
		claim_free(c);
	patience_end(patience);
	return done;
}

static void print_verdict(const struct options *opt, const struct verdict *verdict)
{
	char shown[4096];

	printf("%s: all of %s can be read", log_printable(shown, sizeof shown, opt->args[0]),
	       size_format(verdict->size).text);
	if (verdict->manifest)
		printf(", the file is what its manifest says");
	if (opt->against)
		printf(", identical to %s", log_printable(shown, sizeof shown, opt->against));
	printf("\n");
}

int command_verify(const struct options *opt, struct err *err)
{
	enum progress_style style = PROGRESS_NONE;
	struct verdict verdict;
	struct progress *progress;
	int done;

	if (!opt->quiet)
		progress_style_parse(opt->progress ? opt->progress : "auto", &style);
	progress = progress_start(style);
	done = verify(opt, progress, &verdict, err);
	progress_stop(progress);
	if (done == 0 && !opt->quiet && style != PROGRESS_JSON)
		print_verdict(opt, &verdict);
	return done;
}
