// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "image/image.h"
#include "source/extent.h"
#include "source/source.h"

#include <stdlib.h>

/* How many clusters are looked at: enough for a few per cent. */
#define SAMPLES 256

/* A view of another source in which all but every stride-th of the mapped
 * clusters read as zeros, so that a sample goes the way that all will go.
 */
struct sample {
	struct source base;
	struct source *under;
	size_t cluster_size;
	uint64_t stride, seen;
};

static int sample_data(struct sample *s, const struct extent *e, struct extent_list *out,
		       struct err *err)
{
	uint64_t end = e->offset + e->length, next;

	for (uint64_t at = e->offset; at < end; at = next) {
		bool skip = s->seen++ % s->stride != 0;

		next = MIN(round_down(at, s->cluster_size) + s->cluster_size, end);
		if (extent_list_add(out, at, next - at, skip, err) < 0)
			return -1;
	}
	return 0;
}

static int sample_extents(struct source *src, uint64_t offset, uint64_t length,
			  struct extent_list *out, struct err *err)
{
	struct sample *s = (struct sample *)src;
	struct extent_list all = { 0 };
	int r = s->under->ops->extents(s->under, offset, length, &all, err);

	for (size_t i = 0; r == 0 && i < all.len; i++) {
		const struct extent *e = &all.at[i];

		if (e->zero)
			r = extent_list_add(out, e->offset, e->length, true, err);
		else
			r = sample_data(s, e, out, err);
	}
	extent_list_free(&all);
	return r;
}

static int sample_read_at(struct source *src, void *buf, size_t len, uint64_t offset,
			  struct err *err)
{
	struct source *under = ((struct sample *)src)->under;

	/* not source_read_at, which would put the name in front twice */
	return under->ops->read_at(under, buf, len, offset, err);
}

static void sample_abort(struct source *src)
{
	source_abort(((struct sample *)src)->under);
}

static const struct source_ops sample_ops = {
	.name = "sample",
	.extents = sample_extents,
	.read_at = sample_read_at,
	.abort = sample_abort,
};

static int discard_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	(void)img;
	(void)chunk;
	(void)err;
	return 0;
}

static const struct image_ops discard_ops = { .put = discard_put };

static int count_mapped(struct source *src, uint64_t *mapped, struct err *err)
{
	struct extent_list list = { 0 };
	int r = 0;

	*mapped = 0;
	for (uint64_t at = 0; r == 0 && at < src->size; at += GIB) {
		list.len = 0;
		r = interrupt_check(err);
		if (r == 0)
			r = source_extents(src, at, MIN(GIB, src->size - at), &list, err);
		for (size_t i = 0; r == 0 && i < list.len; i++)
			*mapped += list.at[i].zero ? 0 : list.at[i].length;
	}
	extent_list_free(&list);
	return r;
}

int pipeline_estimate(const struct pipeline_config *cfg, struct source *src, size_t cluster_size,
		      struct estimate *out, struct err *err)
{
	struct image discard = { .ops = &discard_ops,
				 .size = src->size,
				 .cluster_size = cluster_size };
	struct sample *s = NULL;
	struct pipeline_stats stats;
	double ratio;

	*out = (struct estimate){ 0 };
	if (count_mapped(src, &out->mapped_bytes, err) < 0)
		return -1;
	if (out->mapped_bytes == 0)
		return 0;
	s = calloc(1, sizeof *s);
	if (!s)
		return err_nomem(err);
	s->base = (struct source){ .ops = &sample_ops, .name = src->name, .size = src->size };
	s->under = src;
	s->cluster_size = cluster_size;
	s->stride = MAX(out->mapped_bytes / cluster_size / SAMPLES, 1);
	if (pipeline_run(cfg, &s->base, &discard, &stats, err) < 0) {
		/* a thread that is left behind keeps the sample */
		src->stuck = s->base.stuck;
		if (!src->stuck)
			free(s);
		return -1;
	}
	free(s);
	out->sampled_bytes = stats.read_bytes;
	ratio = (double)(stats.packed_bytes + stats.plain_bytes) / (double)stats.read_bytes;
	out->image_bytes = (uint64_t)(ratio * (double)out->mapped_bytes);
	return 0;
}
