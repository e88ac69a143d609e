/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CLOUD_TREE_H
#define CCSNAP_CLOUD_TREE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

/* What clouds.yaml and its like hold: maps, lists, and scalars that stay the strings
 * which they are in the file.  Nodes are shared, never change once they are
 * complete, and belong to a tree that wipes them.
 */
struct err;

enum cloud_kind {
	CLOUD_NULL, /* nothing, ~ or null, without quotes */
	CLOUD_TEXT,
	CLOUD_MAP,
	CLOUD_LIST,
};

struct cloud_pair {
	const struct cloud_node *key; /* NULL in a list */
	const struct cloud_node *value;
};

struct cloud_node {
	enum cloud_kind kind;
	const char *file; /* or what else it comes from, for messages */
	size_t line;	  /* 0: none */
	char *text;	  /* as it was written, also of a CLOUD_NULL; NULL in maps and lists */
	struct cloud_pair *pairs;
	size_t count, cap;
};

/* Over all files; with them the work of a merge has a limit. */
#define CLOUD_NODES_MAX 20000
#define CLOUD_DEPTH_MAX 32

struct cloud_tree {
	struct cloud_node **nodes;
	size_t len, cap;
	size_t pairs;
};

void cloud_tree_free(struct cloud_tree *tree);
#define autocloudtree CLEANUP(cloud_tree_free)

/* A node at the same place as like; text is copied.  NULL when there are too many. */
struct cloud_node *cloud_node_new(struct cloud_tree *tree, enum cloud_kind kind, const char *text,
				  const struct cloud_node *like, struct err *err);

/* The newest value of a key counts. */
int cloud_node_add(struct cloud_tree *tree, struct cloud_node *to, const struct cloud_node *key,
		   const struct cloud_node *value, struct err *err);

/* A key of a map by its exact name; NULL without one, and when map is no map or NULL. */
const struct cloud_node *cloud_node_member(const struct cloud_node *map, const char *name);

/* The same where - is as good as _ in a key, and a value that is null or "" is none. */
const struct cloud_node *cloud_node_setting(const struct cloud_node *map, const char *name);

/* "FILE:LINE" */
struct cloud_place {
	char text[256];
};
struct cloud_place cloud_node_place(const struct cloud_node *node);

/* old with new on top.  EVERYWHERE: maps are merged with maps at any depth (as
 * openstacksdk does with secure.yaml).  AUTH: only the maps below "auth" (profiles and
 * regions); a value that is null does not count then.
 */
enum cloud_merge { CLOUD_MERGE_EVERYWHERE, CLOUD_MERGE_AUTH };
struct cloud_node *cloud_node_merged(struct cloud_tree *tree, const struct cloud_node *old,
				     const struct cloud_node *new, enum cloud_merge how,
				     struct err *err);

/* The keys of a map (or the texts of a list) as "a, b, c"; malloc. */
char *cloud_node_names(const struct cloud_node *node);

#endif
