/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TREE_INNER_H
#define CCSNAP_TREE_INNER_H

#include "ext4/model.h"
#include "system/describe.h"
#include "system/edit.h"
#include "system/names.h"
#include "tree/bootable.h"
#include "tree/partitions.h"
#include "tree/tree.h"
#include "walk/walk.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A tree's plan, in the order in which it is made: tree_look, tree_prepare,
 * tree_lay_out.  Each of these is called once; whatever was made is freed when the
 * source is closed.
 */
struct tree {
	struct source source;
	struct tree_config cfg;
	struct tree_facts facts;
	int root_fd;
	bool is_mount_root;

	struct walk_own *own; /* cfg's, and swap files in use */
	struct mount_swap *swaps;
	size_t swap_count;
	struct excludes *excludes;
	struct mounts *mounts;
	struct walk_config walk;
	struct walk_totals totals;
	atomic_uint_fast64_t pulse; /* moves while the walk gets on */

	struct model model;
	struct reach *reach;
	struct edit edit;
	struct names names;
	struct description description;
	struct bootable bootable;
	struct ext4 *root, *boot;
	struct partitions partitions;
	struct emit *emit;
	struct settle *settle;
};

int tree_look(struct tree *t, struct err *err);	   /* walk it */
int tree_prepare(struct tree *t, struct err *err); /* edit it for the image */
int tree_lay_out(struct tree *t, struct err *err); /* give everything its place */

#endif
