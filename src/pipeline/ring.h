/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_RING_H
#define CCSNAP_RING_H

#include "base/err.h"
#include "image/image.h"
#include "pipeline/cursor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Chunks in flight between the workers and the writer.
 *
 * Workers claim chunks in disk order, finish them in any order; the writer
 * takes them in disk order again.  A claim waits while all slots are out,
 * which is the only back-pressure and the only bound on memory.
 *
 * Two locks, claiming before lock.  claiming is held while the source is
 * asked for extents, which may take long; the writer never takes it, so it
 * can always tell a stall.  It cannot deadlock: the oldest chunk out belongs
 * to a worker that waits for nobody, and the holder of claiming waits only
 * for the writer.
 */
struct slot {
	struct chunk chunk; /* its clusters and data are the slot's own */
	bool done;
};

struct ring {
	pthread_mutex_t claiming;
	struct cursor cursor; /* guarded by claiming */

	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t slot_freed, chunk_done;
	struct slot *slots;
	unsigned depth;
	uint64_t start; /* the first guest byte of all */
	uint64_t claimed, taken;
	unsigned workers;   /* still running */
	bool ended;	    /* nothing is left to claim */
	atomic_bool failed; /* written under lock, read anywhere */
	struct err err;	    /* the first one; valid when failed */
};

int ring_init(struct ring *r, unsigned depth, const struct cursor *cursor, struct err *err);
void ring_free(struct ring *r);

/* The next chunk to fill, or NULL when there is none or the run failed. */
struct slot *ring_claim(struct ring *r);
void ring_done(struct ring *r, struct slot *s);
void ring_worker_gone(struct ring *r);

/* The next finished chunk, waiting for a while at the most. */
enum ring_state { RING_CHUNK, RING_WAITING, RING_OVER };
enum ring_state ring_take(struct ring *r, struct slot **s);
void ring_give_back(struct ring *r);

/* Where the writer waits: the offset of the oldest unfinished chunk. */
uint64_t ring_position(struct ring *r);

/* The first error counts; everybody wakes up and ends. */
void ring_fail(struct ring *r, const struct err *err);

/* Wait up to timeout_ms for all workers to be gone; true when they are. */
bool ring_wait_workers(struct ring *r, unsigned timeout_ms);

#endif
