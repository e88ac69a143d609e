/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PACE_H
#define CCSNAP_PACE_H

#include <stdatomic.h>
#include <stdint.h>

/* A limit on how many bytes a second many threads move together.  Who waits first goes
 * first.  Whoever was slower than allowed may make up for a quarter of a second and no
 * more, so that over any t seconds no more than (t + 1/4) * rate get through.
 */
struct pace {
	uint64_t bytes_per_second;   /* 0: no limit */
	atomic_uint_fast64_t due_ns; /* when all that was let through is paid for */
};

void pace_init(struct pace *p, uint64_t bytes_per_second);

/* Wait until so many more bytes may be moved.  -1 soon after stop(ctx) is true.  Nothing
 * comes of asking for what takes long at that rate, but to wait long.
 */
int pace_wait(struct pace *p, uint64_t bytes, int (*stop)(const void *ctx), const void *ctx);

#endif
