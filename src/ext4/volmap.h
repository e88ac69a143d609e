/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_VOLMAP_H
#define CCSNAP_EXT4_VOLMAP_H

#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sparse volume in memory, in blocks of MODEL_BLOCK bytes; what was never
 * written reads as zeros.  Written from one thread; read from many once writing
 * has stopped.
 */
struct err;
struct extent_list;
struct volmap;

struct volmap *volmap_new(uint64_t blocks, struct err *err);
void volmap_free(struct volmap *v); /* NULL is fine */

/* The block's bytes for writing, made of zeros if need be; NULL without
 * memory.  Counts as changed.
 */
uint8_t *volmap_edit(struct volmap *v, uint64_t block, struct err *err);

/* Store a whole block, which costs about as much memory as it has bytes that
 * are not zero: runs of zeros in its middle are not kept.  All zeros: as if it
 * had never been written.
 */
int volmap_put(struct volmap *v, uint64_t block, const uint8_t bytes[MODEL_BLOCK], struct err *err);

/* Bytes of a block that are in memory anyway, and stay there while the map is read. */
struct volmap_loan {
	const uint8_t *bytes;
	uint16_t at, len;
};

/* As volmap_put, but what is lent to the map is not kept twice.  It stays lent
 * for as long as later blocks that are put here have the same bytes there.
 */
#define VOLMAP_LOANS_MAX 48u
int volmap_put_lent(struct volmap *v, uint64_t block, const uint8_t bytes[MODEL_BLOCK],
		    const struct volmap_loan *loans, size_t count, struct err *err);

/* Is anything stored? */
bool volmap_has(const struct volmap *v, uint64_t block);

/* Copy out, zeros for what is not there. */
void volmap_get(const struct volmap *v, uint64_t block, uint8_t bytes[MODEL_BLOCK]);

/* The first stored block at or behind block and before limit, or limit. */
uint64_t volmap_next(const struct volmap *v, uint64_t block, uint64_t limit);

/* Append the blocks stored or edited since the last call (all, the first
 * time) as extents of data at base + block * MODEL_BLOCK, and forget them.
 */
int volmap_take_changes(struct volmap *v, uint64_t base, struct extent_list *out, struct err *err);

#endif
