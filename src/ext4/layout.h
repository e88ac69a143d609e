/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_LAYOUT_H
#define CCSNAP_EXT4_LAYOUT_H

#include "base/cleanup.h"
#include "ext4/alloc.h"
#include "ext4/extents.h"
#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where one inode's blocks lie. */
struct err;
struct volmap;

struct layout {
	struct placed_extent *extents;
	size_t len, cap;
	uint64_t data_blocks; /* in them */
	uint64_t *tree;	      /* nodes of the extent tree */
	size_t tree_len;
	uint64_t xattr_block; /* 0: none */
};

void layout_free(struct layout *l);
#define autolayout CLEANUP(layout_free)

/* Give blocks of data a place; -1 and ERR_FAILED when there is none left. */
int layout_take(struct layout *l, struct alloc *a, struct model_segment segment, struct err *err);

/* Then the extent tree. */
int layout_take_tree(struct layout *l, struct alloc *a, struct err *err);

/* Both, for all of a file's data. */
int layout_take_file(struct layout *l, struct alloc *a, const struct model *model, uint32_t node,
		     struct err *err);

/* Of an inode as it is in the filesystem, into an empty layout. */
int layout_read(struct layout *l, ext2_filsys fs, uint32_t ino, struct err *err);

/* Is the node's data exactly what has a place? */
bool layout_fits(const struct layout *l, const struct model *model, uint32_t node);

/* How many tree nodes the node's data takes, when it lies in so many pieces more than
 * it needs.
 */
uint64_t layout_tree_max(const struct model *model, uint32_t node, uint64_t pieces);

/* The bytes of the data that are in the map are forgotten. */
int layout_forget(const struct layout *l, struct volmap *map, struct err *err);

/* Data and tree go back, and out of the map. */
int layout_give(struct layout *l, struct alloc *a, struct volmap *map, struct err *err);

#endif
