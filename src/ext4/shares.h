/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_SHARES_H
#define CCSNAP_EXT4_SHARES_H

#include "ext4/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks of extended attributes that many inodes have in common. */
struct err;
struct volmap;
struct xattr_image;

struct share {
	uint64_t place, hash;
	uint32_t count;
};

struct shares {
	struct share *at;
	uint32_t len;
	size_t cap;
	uint32_t *by_set; /* the block that this set of the model fills: its number + 1 */
	uint32_t *table;  /* number + 1, by hash */
	uint32_t table_size;
};

/* For a model with so many sets. */
int shares_init(struct shares *s, uint32_t sets, struct err *err);
void shares_free(struct shares *s);

/* The place of a block for one more inode with that set, made if need be. */
int shares_take(struct shares *s, struct alloc *a, struct volmap *map, uint32_t set,
		const struct xattr_image *image, uint64_t *place, struct err *err);

/* Once all are taken. */
int shares_seal(const struct shares *s, struct volmap *map, uint32_t fs_seed, struct err *err);

/* One block for one inode. */
int share_take_own(struct alloc *a, struct volmap *map, const struct xattr_image *image,
		   uint32_t fs_seed, uint64_t *place, struct err *err);

/* One inode less has the block: the last one frees it. */
int share_give(struct alloc *a, struct volmap *map, uint64_t place, uint32_t fs_seed,
	       struct err *err);

/* Does the block hold what the image has? */
bool share_holds(const struct volmap *map, uint64_t place, const struct xattr_image *image);

#endif
