// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include "base/err.h"
#include "base/size.h"
#include "image/image.h"
#include "source/extent.h"
#include "source/source.h"

#include <math.h>
#include <stdlib.h>

/* A sample is so many bytes at the most, and this part of the disk. */
#define SAMPLE_BYTES (64 * MIB)
#define SAMPLE_PART  4

/* A view of another source in which only some of the mapped clusters are data
 * and all else reads as zeros, so that a sample, or none, goes the way that all
 * will go.  Of each stride mapped clusters one is chosen; which one is hashed,
 * since disks repeat themselves in steps that a fixed one would follow.
 */
struct sample {
	struct source base;
	struct source *under;
	size_t cluster_size;
	uint64_t stride; /* 0: choose none */

	uint64_t mapped; /* clusters seen so far */
	uint64_t last;	 /* the newest of them, plus one */
	bool chosen;	 /* is that one? */
};

/* Steele et al., SplitMix64: the next state's output. */
static uint64_t scatter(uint64_t n)
{
	n += 0x9e3779b97f4a7c15u;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
	n = (n ^ n >> 27) * 0x94d049bb133111ebu;
	return n ^ n >> 31;
}

/* A cluster of several fragments is one. */
static bool is_chosen(struct sample *s, uint64_t cluster)
{
	if (s->last != cluster + 1) {
		uint64_t k = s->mapped++;

		s->last = cluster + 1;
		s->chosen = s->stride && k % s->stride == scatter(k / s->stride) % s->stride;
	}
	return s->chosen;
}

/* Without choice, the clusters of a long extent need not be walked. */
static int count_only(struct sample *s, const struct extent *e, struct extent_list *out,
		      struct err *err)
{
	uint64_t first = e->offset / s->cluster_size;
	uint64_t last = (e->offset + e->length - 1) / s->cluster_size;

	s->mapped += last - first + (s->last != first + 1);
	s->last = last + 1;
	return extent_list_add(out, e->offset, e->length, true, err);
}

static int sample_data(struct sample *s, const struct extent *e, struct extent_list *out,
		       struct err *err)
{
	uint64_t end = e->offset + e->length, next;

	if (s->stride == 0)
		return count_only(s, e, out, err);
	for (uint64_t at = e->offset; at < end; at = next) {
		bool skip = !is_chosen(s, at / s->cluster_size);

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

/* One pass over the view.  On the heap: a thread that is left behind keeps it. */
static int sample_run(const struct pipeline_config *cfg, struct source *src, size_t cluster_size,
		      uint64_t stride, uint64_t *mapped, struct pipeline_stats *stats,
		      struct err *err)
{
	struct image discard = { .ops = &discard_ops,
				 .size = src->size,
				 .cluster_size = cluster_size };
	struct sample *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return err_nomem(err);
	s->base = (struct source){ .ops = &sample_ops, .name = src->name, .size = src->size };
	s->under = src;
	s->cluster_size = cluster_size;
	s->stride = stride;
	r = pipeline_run(cfg, &s->base, &discard, stats, err);
	*mapped = s->mapped;
	src->stuck = s->base.stuck;
	if (!src->stuck)
		free(s);
	return r;
}

int pipeline_measure(const struct pipeline_config *cfg, struct source *src, size_t cluster_size,
		     struct estimate *out, struct err *err)
{
	struct pipeline_stats stats;
	uint64_t mapped;

	*out = (struct estimate){ 0 };
	if (sample_run(cfg, src, cluster_size, 0, &mapped, &stats, err) < 0)
		return -1;
	out->most_bytes = mapped * cluster_size;
	return 0;
}

int pipeline_sample(const struct pipeline_config *cfg, struct source *src, size_t cluster_size,
		    struct estimate *out, struct err *err)
{
	uint64_t most = out->most_bytes / cluster_size, mapped;
	uint64_t wanted = MAX(MIN(SAMPLE_BYTES / cluster_size, most / SAMPLE_PART), 1);
	struct pipeline_stats stats;
	double count, ratio, error;

	if (most == 0)
		return 0;
	if (sample_run(cfg, src, cluster_size, round_up(most, wanted) / wanted, &mapped, &stats,
		       err) < 0)
		return -1;
	count = (double)round_up(stats.read_bytes, cluster_size) / (double)cluster_size;
	if (count < 1)
		return 0;
	/* A cluster takes between nothing and all of its size, so the mean of
	 * count of them has a standard error of half a cluster by the root of
	 * count at the most; four of those are enough.
	 */
	ratio = (double)(stats.packed_bytes + stats.plain_bytes) / (count * (double)cluster_size);
	error = 4 * 0.5 / sqrt(count);
	out->sampled_bytes = stats.read_bytes;
	out->likely_bytes = (uint64_t)(ratio * (double)out->most_bytes);
	out->least_bytes = (uint64_t)(MAX(ratio - error, 0) * (double)out->most_bytes);
	return 0;
}
