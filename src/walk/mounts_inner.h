/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_MOUNTS_INNER_H
#define CCSNAP_WALK_MOUNTS_INNER_H

#include "base/mountinfo.h"
#include "walk/mounts.h"

/* What mounts.c (which mounts there are) and mount_roles.c (what becomes of them)
 * share; for nobody else.
 */
struct mount_entry {
	struct mount mount;
	uint64_t parent;
	struct mount_entry *above; /* the one that its mount point lies in; NULL for the source's */
	char *shown;		   /* what of its filesystem is in the tree: "/", "/srv/tree" */
	char *why;
	bool is_nested; /* nested: below one that is skipped */
};

/* Entries: the source's own, then those that can be reached, in path order. */
struct mounts {
	struct mountinfo info; /* has their strings */
	struct mount_entry *entries;
	size_t count;
	struct mount_entry **by_id;
	struct mount_entry **listed; /* without those that are nested */
	size_t listed_count;
	struct mount_entry **followed; /* all but those that are skipped, so far */
	size_t followed_count;
	const struct mounts_config *cfg; /* while reading */
	bool has_esp;
};

/* The role of each entry, by the table; what is included comes on top. */
int mounts_choose_roles(struct mounts *m, struct err *err);

#endif
