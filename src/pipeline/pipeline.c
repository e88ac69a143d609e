// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "compress/codec.h"
#include "pipeline/ring.h"
#include "source/source.h"

#include <stdlib.h>
#include <string.h>

/* A chunk is a run of clusters: large enough that locks cost nothing. */
#define CHUNK_SIZE (2 * MIB)

/* Read in pieces that stay in a core's cache until they are packed: packing
 * cold memory costs half as much again.  A source that has to be waited for wants
 * to be asked for more (read_size).
 */
#define READ_SIZE (256 * KIB)

/* How long a failed run waits for a thread that is inside the source. */
#define PATIENCE_MS 3000

struct worker {
	pthread_t thread;
	struct run *run;
	void *state;	/* the codec's */
	uint8_t *piece; /* piece_size */
};

/* One pipeline_run.  On the heap: a thread that is stuck in the source keeps
 * it when the run is over.
 */
struct run {
	struct ring ring;
	struct pipeline_config cfg;
	struct source *src;
	size_t cluster_size, piece_size;
	unsigned started;
	struct worker workers[];
};

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* Pack one cluster behind what the chunk holds already (used bytes). */
static int pack_cluster(struct worker *w, struct chunk *chunk, const uint8_t *src, size_t *used,
			struct err *err)
{
	struct cluster *c = &chunk->clusters[chunk->cluster_count++];
	size_t size = w->run->cluster_size;
	uint8_t *dst = chunk->data + *used;
	long packed = 0;

	*c = (struct cluster){ .form = CLUSTER_ZERO };
	if (is_zero(src, size))
		return 0;
	if (w->run->cfg.codec)
		packed = w->run->cfg.codec->pack(w->state, dst, size - 1, src, size, err);
	if (packed < 0)
		return -1;
	if (packed == 0 && dst != src)
		memcpy(dst, src, size);
	*c = (struct cluster){
		.form = packed ? CLUSTER_PACKED : CLUSTER_PLAIN,
		.at = (uint32_t)*used,
		.size = packed ? (uint32_t)packed : (uint32_t)size,
	};
	*used += c->size;
	return 0;
}

/* Without a codec the bytes are read to where they stay. */
static uint8_t *read_target(struct worker *w, struct chunk *chunk, uint64_t done)
{
	return w->run->cfg.codec ? w->piece : chunk->data + done;
}

static int fill(struct worker *w, struct chunk *chunk, struct err *err)
{
	size_t size = w->run->cluster_size, used = 0;
	uint64_t done = 0;

	while (!chunk->zero && done < chunk->length && !w->run->ring.failed) {
		size_t len = (size_t)MIN(w->run->piece_size, chunk->length - done);
		size_t padded = (size_t)round_up(len, size);
		uint8_t *buf = read_target(w, chunk, done);

		if (source_read_at(w->run->src, buf, len, chunk->offset + done, err) < 0)
			return -1;
		memset(buf + len, 0, padded - len);
		for (size_t at = 0; at < padded; at += size) {
			if (!w->run->cfg.codec)
				used = (size_t)done + at;
			if (pack_cluster(w, chunk, buf + at, &used, err) < 0)
				return -1;
		}
		done += len;
	}
	return 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct ring *ring = &w->run->ring;
	struct slot *s;
	struct err err;

	while ((s = ring_claim(ring))) {
		if (fill(w, &s->chunk, &err) < 0) {
			ring_fail(ring, &err);
			break;
		}
		ring_done(ring, s);
	}
	ring_worker_gone(ring);
	return NULL;
}

static void run_free(struct run *run)
{
	for (unsigned i = 0; i < run->cfg.workers; i++) {
		if (run->cfg.codec)
			run->cfg.codec->stop(run->workers[i].state);
		free(run->workers[i].piece);
	}
	ring_free(&run->ring);
	free(run);
}

/* What cfg asks for, in whole clusters. */
static struct cursor cursor_of(const struct pipeline_config *cfg, struct source *src,
			       const struct image *img)
{
	uint64_t size = img->cluster_size, offset = cfg->length ? MIN(cfg->offset, src->size) : 0;
	uint64_t length = cfg->length ? MIN(cfg->length, src->size - offset) : src->size;
	uint64_t start = round_down(offset, size);

	return (struct cursor){
		.src = src,
		.cluster_size = img->cluster_size,
		.chunk_size = MAX(CHUNK_SIZE, img->cluster_size),
		.offset = start,
		.window_end = start,
		.end = MIN(round_up(offset + length, size), src->size),
	};
}

/* No more than there can be chunks, but one. */
static unsigned workers_for(const struct pipeline_config *cfg, const struct cursor *c)
{
	uint64_t first = c->offset / c->chunk_size, end = round_up(c->end, c->chunk_size);

	return (unsigned)MAX(MIN(cfg->workers, end / c->chunk_size - first), 1);
}

static struct run *run_new(const struct pipeline_config *cfg, struct source *src,
			   const struct image *img, struct err *err)
{
	struct cursor cursor = cursor_of(cfg, src, img);
	unsigned workers = workers_for(cfg, &cursor);
	struct run *run = calloc(1, sizeof *run + workers * sizeof run->workers[0]);

	if (!run) {
		err_nomem(err);
		return NULL;
	}
	run->cfg = *cfg;
	run->cfg.workers = workers;
	run->src = src;
	run->cluster_size = img->cluster_size;
	run->piece_size = MAX(MAX(READ_SIZE, src->read_size), img->cluster_size);
	if (ring_init(&run->ring, workers * 2 + 2, &cursor, err) < 0) {
		free(run);
		return NULL;
	}
	for (unsigned i = 0; i < workers; i++) {
		struct worker *w = &run->workers[i];

		w->run = run;
		w->piece = cfg->codec ? aligned_alloc(4096, run->piece_size) : NULL;
		if (cfg->codec && !w->piece)
			err_nomem(err);
		else if (!cfg->codec ||
			 (w->state = cfg->codec->start(cfg->level, img->cluster_size, err)))
			continue;
		run_free(run);
		return NULL;
	}
	return run;
}

static void run_start(struct run *run)
{
	struct err err;

	run->ring.workers = run->cfg.workers;
	for (; run->started < run->cfg.workers; run->started++) {
		struct worker *w = &run->workers[run->started];

		if (pthread_create(&w->thread, NULL, worker_main, w) == 0)
			continue;
		err_set(&err, ERR_FAILED, "cannot start a thread");
		ring_fail(&run->ring, &err);
		for (unsigned i = run->started; i < run->cfg.workers; i++)
			ring_worker_gone(&run->ring);
		return;
	}
}

static void count(struct pipeline_stats *stats, const struct chunk *chunk, size_t cluster_size)
{
	if (chunk->zero) {
		stats->skipped_bytes += chunk->length;
		return;
	}
	stats->read_bytes += chunk->length;
	for (size_t i = 0; i < chunk->cluster_count; i++) {
		const struct cluster *c = &chunk->clusters[i];

		if (c->form == CLUSTER_ZERO)
			continue;
		stats->data_bytes += MIN(cluster_size, chunk->length - i * cluster_size);
		if (c->form == CLUSTER_PACKED)
			stats->packed_bytes += c->size;
		else
			stats->plain_bytes += c->size;
	}
}

static int check_waiting(struct run *run, uint64_t waiting_since, struct err *err)
{
	if (interrupt_check(err) < 0)
		return -1;
	if (!run->cfg.stall_seconds || clock_seconds_since(waiting_since) < run->cfg.stall_seconds)
		return 0;
	return err_set(err, ERR_FAILED,
		       "%s: no progress for %u seconds at offset %llu of %llu; the source does not "
		       "answer (see --stall-timeout)",
		       run->src->name, run->cfg.stall_seconds,
		       (unsigned long long)ring_position(&run->ring),
		       (unsigned long long)run->src->size);
}

static int write_chunk(struct run *run, struct slot *s, struct image *img,
		       struct pipeline_stats *stats, struct err *err)
{
	if (interrupt_check(err) < 0 || image_put(img, &s->chunk, err) < 0)
		return -1;
	count(stats, &s->chunk, run->cluster_size);
	if (run->cfg.progress)
		run->cfg.progress(run->cfg.progress_ctx, s->chunk.offset + s->chunk.length);
	ring_give_back(&run->ring);
	return 0;
}

/* The writer's side: until all is written or something fails. */
static void write_all(struct run *run, struct image *img, struct pipeline_stats *stats)
{
	uint64_t waiting_since = clock_ns();
	enum ring_state state;
	struct slot *s;
	struct err err;
	int r;

	while ((state = ring_take(&run->ring, &s)) != RING_OVER) {
		if (state == RING_CHUNK) {
			r = write_chunk(run, s, img, stats, &err);
			waiting_since = clock_ns();
		} else {
			r = check_waiting(run, waiting_since, &err);
		}
		if (r < 0)
			ring_fail(&run->ring, &err);
	}
}

/* True when no thread is left. */
static bool run_stop(struct run *run)
{
	if (run->ring.failed) {
		source_abort(run->src);
		if (!ring_wait_workers(&run->ring, PATIENCE_MS))
			return false;
	}
	for (unsigned i = 0; i < run->started; i++)
		pthread_join(run->workers[i].thread, NULL);
	return true;
}

int pipeline_run(const struct pipeline_config *cfg, struct source *src, struct image *img,
		 struct pipeline_stats *stats, struct err *err)
{
	struct run *run = run_new(cfg, src, img, err);
	int r = 0;

	*stats = (struct pipeline_stats){ 0 };
	if (!run)
		return -1;
	run_start(run);
	write_all(run, img, stats);
	if (run->ring.failed) {
		*err = run->ring.err;
		r = -1;
	}
	if (run_stop(run))
		run_free(run);
	else
		src->stuck = true;
	return r;
}
