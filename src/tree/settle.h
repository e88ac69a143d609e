/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_SETTLE_H
#define CCSNAP_TREE_SETTLE_H

#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After a pass over a tree: files that changed while they were read are looked
 * at again, laid out as they are now, and read once more, for a few rounds.
 * Whatever does not come to rest is in the account, and its inode says as many
 * bytes as were read.
 *
 * A file that only grows is one whose beginning, as long as it was when it was
 * laid out, has the same digest before and after it was read.
 */
struct account;
struct emit;
struct err;
struct ext4;
struct extent_list;
struct reach;
struct settle;
struct walk_config;

struct settle_volume {
	struct ext4 *fs;
	uint32_t root; /* node */
	uint64_t base; /* of its partition on the disk */
};

struct settle_config {
	struct model *model;
	struct reach *reach;
	struct emit *emit;
	const struct walk_config *walk;
	struct account *account;
	struct settle_volume volumes[2];
	size_t volume_count;
	uint64_t budget; /* bytes of files that may be read once more */
};

struct settle *settle_new(const struct settle_config *cfg, struct err *err);
void settle_free(struct settle *s); /* NULL is fine */

/* source_ops.settle */
int settle_round(struct settle *s, struct extent_list *again, struct err *err);

#endif
