// SPDX-License-Identifier: Apache-2.0
#include "commands/compare.h"

#include "base/err.h"
#include "base/size.h"
#include "image/image.h"
#include "pipeline/pipeline.h"
#include "source/extent.h"
#include "source/source.h"

#define COMPARE_SIZE (64 * KIB)

/* Two disks as one: their bytes' exclusive or, which is zero where
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

static int read_through(const struct pipeline_config *cfg, struct source *src,
			struct verdict_image *target, struct err *err)
{
	struct pipeline_stats stats;

	return pipeline_run(cfg, src, &target->base, &stats, err);
}

static int read_difference(const struct pipeline_config *cfg, struct source *image,
			   struct source *disk, struct verdict_image *target, struct err *err)
{
	struct difference *d = calloc(1, sizeof *d);
	int r;

	if (!d)
		return err_nomem(err);
	d->base =
		(struct source){ .ops = &difference_ops, .name = image->name, .size = image->size };
	d->image = image;
	d->disk = disk;
	r = read_through(cfg, &d->base, target, err);
	image->stuck = disk->stuck = d->base.stuck;
	if (!d->base.stuck) /* else a thread that is left behind keeps it */
		free(d);
	return r;
}

int compare_disks(const struct pipeline_config *cfg, struct source *image, struct source *disk,
		  struct err *err)
{
	struct verdict_image target = {
		.base = { .ops = &verdict_ops, .size = image->size, .cluster_size = 64 * KIB },
		.image = image->name,
		.disk = disk ? disk->name : NULL
	};

	return disk ? read_difference(cfg, image, disk, &target, err)
		    : read_through(cfg, image, &target, err);
}
