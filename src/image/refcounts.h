/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_REFCOUNTS_H
#define CCSNAP_REFCOUNTS_H

#include "image/image.h"

/* Which clusters of a qcow2 file are in use, and how often.
 *
 * Clusters are given out in ascending order.  Only the block of the newest
 * ones is in memory; when allocation leaves it, it is written.  References that
 * are dropped later bring one such block at a time back.
 */
enum { REFCOUNT_ORDER = 4, REFCOUNT_MAX = UINT16_MAX }; /* of 16 bits */

struct refcounts {
	const struct image *img; /* the file, and its clusters' size */
	unsigned cluster_bits;
	uint64_t next; /* the first cluster never given out */

	uint16_t *open; /* the block of cluster next - 1, in host order */
	size_t per_block, open_index;
	uint64_t *table; /* offsets of the blocks written, big-endian */
	size_t table_cap;

	uint16_t *back; /* one that was read back to be changed; NULL until then */
	size_t back_index;
	bool back_valid;
};

int refcounts_init(struct refcounts *r, const struct image *img, struct err *err);
void refcounts_free(struct refcounts *r);

/* The next cluster, with a refcount of one.  It may close the open block, which
 * takes the cluster behind.
 */
int refcounts_alloc(struct refcounts *r, uint64_t *cluster, struct err *err);

/* The count of a cluster in the open block; NULL when it lies in another. */
uint16_t *refcounts_newest(struct refcounts *r, uint64_t cluster);

/* One reference less to each of [first, last].  At zero a cluster is a hole of
 * the file: it is not given out again.
 */
int refcounts_drop(struct refcounts *r, uint64_t first, uint64_t last, struct err *err);

/* The end of the file, in clusters: so many that are the caller's, the table,
 * and what blocks are left, which count all of these once.
 */
struct refcounts_tail {
	uint64_t first, table_at, blocks_at, end;
	uint64_t table_clusters, block_count;
};

struct refcounts_tail refcounts_plan_tail(const struct refcounts *r, uint64_t callers);
int refcounts_write_tail(struct refcounts *r, const struct refcounts_tail *tail, struct err *err);

#endif
