// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
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

#define COMPARE_SIZE (256 * KIB)

/* The image under test is read by the pipeline's workers as any source is; the
 * pipeline's target is this: it stores nothing and compares with another disk
 * (or with nothing, which only proves that every byte can be read).
 */
struct comparison {
	struct image base;
	const char *name;
	struct source *against; /* NULL: only read */
	uint8_t *theirs;	/* COMPARE_SIZE */
};

static const uint8_t zeros[COMPARE_SIZE];

/* data NULL stands for zeros. */
static int compare_bytes(struct comparison *c, const uint8_t *data, uint64_t offset,
			 uint64_t length, struct err *err)
{
	for (uint64_t at = 0; at < length; at += COMPARE_SIZE) {
		size_t len = (size_t)MIN(COMPARE_SIZE, length - at), i = 0;
		const uint8_t *ours = data ? data + at : zeros;

		if (source_read_at(c->against, c->theirs, len, offset + at, err) < 0)
			return -1;
		if (memcmp(ours, c->theirs, len) == 0)
			continue;
		while (ours[i] == c->theirs[i])
			i++;
		return err_set(err, ERR_FAILED, "%s differs from %s at offset %llu", c->name,
			       c->against->name, (unsigned long long)(offset + at + i));
	}
	return 0;
}

/* The image reads as zeros there: what the other side knows to be zero, too,
 * need not be read.
 */
static int compare_zeros(struct comparison *c, uint64_t offset, uint64_t length, struct err *err)
{
	struct extent_list list = { 0 };
	int r = source_extents(c->against, offset, length, &list, err);

	for (size_t i = 0; r == 0 && i < list.len; i++)
		if (!list.at[i].zero)
			r = compare_bytes(c, NULL, list.at[i].offset, list.at[i].length, err);
	extent_list_free(&list);
	return r;
}

static int comparison_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct comparison *c = (struct comparison *)img;
	uint64_t unit = img->cluster_size;

	if (!c->against)
		return 0;
	if (chunk->zero)
		return compare_zeros(c, chunk->offset, chunk->length, err);
	for (size_t i = 0; i < chunk->cluster_count; i++) {
		const struct cluster *cluster = &chunk->clusters[i];
		bool zero = cluster->form == CLUSTER_ZERO;

		if (compare_bytes(c, zero ? NULL : chunk->data + cluster->at,
				  chunk->offset + i * unit, MIN(unit, chunk->length - i * unit),
				  err) < 0)
			return -1;
	}
	return 0;
}

static const struct image_ops comparison_ops = { .put = comparison_put };

/* Beside an image of a folder store: NAME.qcow2 has NAME.manifest.json. */
static char *manifest_path(const char *image)
{
	const char *slash = strrchr(image, '/'), *dot = strrchr(slash ? slash : image, '.');
	int stem = dot ? (int)(dot - image) : (int)strlen(image);

	return str_format("%.*s.manifest.json", stem, image);
}

/* 1 when there is one, 0 when none was asked for and none is there. */
static int load_manifest(const struct options *opt, struct image_info *info, struct err *err)
{
	autofree char *path = opt->manifest ? strdup(opt->manifest) : manifest_path(opt->args[0]);
	autofree char *text = NULL;
	size_t len;

	if (!path)
		return err_nomem(err);
	if (!opt->manifest && access(path, F_OK) < 0)
		return 0;
	text = io_read_file(AT_FDCWD, path, MANIFEST_MAX, &len, err);
	if (!text || manifest_from_json(text, len, path, info, err) < 0)
		return -1;
	return 1;
}

static int check_manifest(const char *image, const struct image_info *info,
			  struct progress *progress, struct err *err)
{
	autoclose int fd = open(image, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct digests digests;
	uint64_t start, end;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot open %s", image);
	if ((uint64_t)st.st_size != info->size)
		return err_set(err, ERR_FAILED, "%s is %llu bytes long, its manifest says %llu",
			       image, (unsigned long long)st.st_size,
			       (unsigned long long)info->size);
	progress_phase(progress, "hash", info->size);
	if (hash_file(fd, image, info->size, &digests, progress_update, progress, err) < 0)
		return -1;
	if (digests_equal(&digests, &info->digests))
		return 0;
	digests_difference(&digests, &info->digests, info->size, &start, &end);
	return err_set(err, ERR_FAILED,
		       "%s is not what its manifest says: it begins to differ at offset %llu or up "
		       "to %llu bytes behind",
		       image, (unsigned long long)start, (unsigned long long)(end - start));
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

static int compare(const struct options *opt, struct source *image, struct source *against,
		   struct progress *progress, struct err *err)
{
	struct comparison c = {
		.base = { .ops = &comparison_ops, .size = image->size, .cluster_size = 64 * KIB },
		.name = image->name,
		.against = against,
	};
	struct pipeline_config cfg = {
		.workers = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
		.progress = progress_update,
		.progress_ctx = progress,
	};
	struct pipeline_stats stats;
	int r;

	if (against && compare_sizes(image, against, err) < 0)
		return -1;
	c.theirs = malloc(COMPARE_SIZE);
	if (!c.theirs)
		return err_nomem(err);
	progress_phase(progress, "verify", image->size);
	r = pipeline_run(&cfg, image, &c.base, &stats, err);
	free(c.theirs);
	if (r == 0)
		r = source_check(image, err);
	if (r == 0 && against)
		r = source_check(against, err);
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

static int verify(const struct options *opt, struct progress *progress, struct verdict *verdict,
		  struct err *err)
{
	CLEANUP(image_info_free) struct image_info info = { 0 };
	autosource struct source *image = NULL, *against = NULL;
	int has_manifest = load_manifest(opt, &info, err);
	const char *format;

	if (has_manifest < 0)
		return -1;
	format = image_format_name(opt, &info, err);
	if (!format || (has_manifest && check_manifest(opt->args[0], &info, progress, err) < 0))
		return -1;
	image = open_disk(opt, opt->args[0], format, err);
	if (!image)
		return -1;
	if (has_manifest && image->size != info.virtual_size)
		return err_set(err, ERR_FAILED,
			       "%s holds a disk of %llu bytes, its manifest says %llu", image->name,
			       (unsigned long long)image->size,
			       (unsigned long long)info.virtual_size);
	if (opt->against) {
		against = open_disk(opt, opt->against,
				    opt->source_format ? opt->source_format : "raw", err);
		if (!against)
			return -1;
	}
	*verdict = (struct verdict){ .size = image->size, .manifest = has_manifest };
	return compare(opt, image, against, progress, err);
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
