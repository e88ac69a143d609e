/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_ORDER_H
#define CCSNAP_EXT4_ORDER_H

#include "ext4/dir.h"
#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which nodes a filesystem holds, and in which order: all entries of a
 * directory, then the directories among them one after the other.  Inode
 * numbers and places on the disk follow it.  What is mounted on a directory is
 * not part of its filesystem.
 */
struct err;

struct order {
	const struct model *model;
	uint32_t root;
	uint32_t *nodes; /* the root first */
	uint32_t count;
	uint32_t *links; /* of each node of the model: names in here; 0: not in here */
	uint32_t node_count;
	uint32_t last_ino;
	bool make_lost_found; /* the model has nothing of that name */
};

/* Number the nodes.  Refused (ERR_REFUSED) for what ext4 cannot hold. */
int order_init(struct order *o, struct model *model, uint32_t root, struct err *err);
void order_free(struct order *o);

bool order_has(const struct order *o, uint32_t node);

/* As ext4 sees a file's data: the i-th of so many segments, cut at the end of
 * the file (count 0: behind it).
 */
uint32_t data_segments(const struct model_node *n);
struct model_segment data_segment(const struct model *model, const struct model_node *n,
				  uint32_t i);

/* The blocks of all its segments. */
uint64_t data_blocks(const struct model *model, const struct model_node *n);

/* A link that does not fit in its inode has a block. */
#define SHORT_LINK_MAX 59u

/* Is the file something ext4 can hold? */
int node_check(const struct model *model, uint32_t node, struct err *err);

/* The names in a directory as its blocks hold them, sorted; reused from one
 * directory to the next.
 */
struct entry_list {
	struct dir_entry *at;
	size_t len, cap;
	uint32_t directories; /* among them */
};

int entry_list_fill(struct entry_list *list, const struct order *o, uint32_t dir, struct err *err);
void entry_list_free(struct entry_list *list);

#endif
