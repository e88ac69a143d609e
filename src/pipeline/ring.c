// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ring.h"

#include "base/size.h"
#include "source/source.h"

#include <stdlib.h>
#include <time.h>

/* How often the writer looks up from waiting. */
#define TAKE_WAIT_MS 100

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static struct timespec deadline_in(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

static int slot_init(struct slot *s, const struct cursor *cursor)
{
	s->chunk.clusters =
		calloc(cursor->chunk_size / cursor->cluster_size, sizeof *s->chunk.clusters);
	s->chunk.data = malloc(cursor->chunk_size);
	return s->chunk.clusters && s->chunk.data ? 0 : -1;
}

int ring_init(struct ring *r, unsigned depth, const struct cursor *cursor, struct err *err)
{
	*r = (struct ring){ .depth = depth, .cursor = *cursor, .start = cursor->offset };
	pthread_mutex_init(&r->claiming, NULL);
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->slot_freed);
	cond_init(&r->chunk_done);
	r->slots = calloc(depth, sizeof *r->slots);
	for (unsigned i = 0; i < depth; i++) {
		if (!r->slots || slot_init(&r->slots[i], cursor) < 0) {
			ring_free(r);
			return err_nomem(err);
		}
	}
	return 0;
}

void ring_free(struct ring *r)
{
	for (unsigned i = 0; r->slots && i < r->depth; i++) {
		free(r->slots[i].chunk.clusters);
		free(r->slots[i].chunk.data);
	}
	free(r->slots);
	r->slots = NULL;
	cursor_free(&r->cursor);
	pthread_cond_destroy(&r->chunk_done);
	pthread_cond_destroy(&r->slot_freed);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->claiming);
}

static void wake_all(struct ring *r)
{
	pthread_cond_broadcast(&r->slot_freed);
	pthread_cond_broadcast(&r->chunk_done);
}

static struct slot *slot_wait(struct ring *r, const struct piece *piece)
{
	struct slot *s = NULL;

	pthread_mutex_lock(&r->lock);
	while (!r->failed && r->claimed - r->taken == r->depth)
		pthread_cond_wait(&r->slot_freed, &r->lock);
	if (!r->failed) {
		s = &r->slots[r->claimed++ % r->depth];
		s->done = false;
		s->chunk.offset = piece->offset;
		s->chunk.length = piece->length;
		s->chunk.zero = piece->zero;
		s->chunk.cluster_count = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return s;
}

static void claims_end(struct ring *r)
{
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	wake_all(r);
	pthread_mutex_unlock(&r->lock);
}

struct slot *ring_claim(struct ring *r)
{
	struct slot *s = NULL;
	struct piece piece;
	struct err err;
	int more = 0;

	pthread_mutex_lock(&r->claiming);
	if (!r->failed)
		more = cursor_next(&r->cursor, &piece, &err);
	if (more > 0)
		s = slot_wait(r, &piece);
	pthread_mutex_unlock(&r->claiming);
	if (more < 0)
		ring_fail(r, &err);
	if (more == 0)
		claims_end(r);
	return s;
}

void ring_done(struct ring *r, struct slot *s)
{
	pthread_mutex_lock(&r->lock);
	s->done = true;
	pthread_cond_signal(&r->chunk_done);
	pthread_mutex_unlock(&r->lock);
}

void ring_worker_gone(struct ring *r)
{
	pthread_mutex_lock(&r->lock);
	r->workers--;
	pthread_cond_broadcast(&r->chunk_done);
	pthread_mutex_unlock(&r->lock);
}

enum ring_state ring_take(struct ring *r, struct slot **out)
{
	struct slot *s = &r->slots[r->taken % r->depth];
	struct timespec until = deadline_in(TAKE_WAIT_MS);
	enum ring_state state = RING_WAITING;
	int timed_out = 0;

	pthread_mutex_lock(&r->lock);
	while (state == RING_WAITING && !timed_out) {
		if (r->failed || (r->ended && r->taken == r->claimed))
			state = RING_OVER;
		else if (r->taken < r->claimed && s->done)
			state = RING_CHUNK;
		else
			timed_out = pthread_cond_timedwait(&r->chunk_done, &r->lock, &until);
	}
	pthread_mutex_unlock(&r->lock);
	*out = s;
	return state;
}

void ring_give_back(struct ring *r)
{
	pthread_mutex_lock(&r->lock);
	r->taken++;
	pthread_cond_signal(&r->slot_freed);
	pthread_mutex_unlock(&r->lock);
}

uint64_t ring_position(struct ring *r)
{
	const struct slot *s = &r->slots[r->taken % r->depth];
	const struct slot *before = &r->slots[(r->taken + r->depth - 1) % r->depth];
	uint64_t offset;

	pthread_mutex_lock(&r->lock);
	if (r->taken < r->claimed)
		offset = s->chunk.offset;
	else
		offset = r->taken ? before->chunk.offset + before->chunk.length : r->start;
	pthread_mutex_unlock(&r->lock);
	return offset;
}

void ring_fail(struct ring *r, const struct err *err)
{
	pthread_mutex_lock(&r->lock);
	if (!r->failed) {
		r->err = *err;
		r->failed = true;
	}
	wake_all(r);
	pthread_mutex_unlock(&r->lock);
}

bool ring_wait_workers(struct ring *r, unsigned timeout_ms)
{
	struct timespec until = deadline_in(timeout_ms);
	int timed_out = 0;
	bool gone;

	pthread_mutex_lock(&r->lock);
	while (r->workers > 0 && !timed_out)
		timed_out = pthread_cond_timedwait(&r->chunk_done, &r->lock, &until);
	gone = r->workers == 0;
	pthread_mutex_unlock(&r->lock);
	return gone;
}
