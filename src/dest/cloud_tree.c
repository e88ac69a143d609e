// SPDX-License-Identifier: Apache-2.0
#include "dest/cloud_tree.h"

#include "base/array.h"
#include "base/err.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static void node_free(struct cloud_node *node)
{
	if (node->text)
		explicit_bzero(node->text, strlen(node->text));
	free(node->text);
	free(node->pairs);
	free(node);
}

void cloud_tree_free(struct cloud_tree *tree)
{
	for (size_t i = 0; i < tree->len; i++)
		node_free(tree->nodes[i]);
	free(tree->nodes);
	*tree = (struct cloud_tree){ .nodes = NULL };
}

struct cloud_place cloud_node_place(const struct cloud_node *node)
{
	struct cloud_place place;

	if (node->line)
		snprintf(place.text, sizeof place.text, "%s:%zu", node->file, node->line);
	else
		snprintf(place.text, sizeof place.text, "%s", node->file);
	return place;
}

static int too_many(const struct cloud_node *at, struct err *err)
{
	return err_set(err, ERR_REFUSED, "%s: more than %d values are too many for a cloud's file",
		       cloud_node_place(at).text, CLOUD_NODES_MAX);
}

static struct cloud_node *node_of(enum cloud_kind kind, const char *text,
				  const struct cloud_node *like)
{
	struct cloud_node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	*node = (struct cloud_node){ .kind = kind, .file = like->file, .line = like->line };
	node->text = text ? strdup(text) : NULL;
	if (text && !node->text) {
		free(node);
		return NULL;
	}
	return node;
}

struct cloud_node *cloud_node_new(struct cloud_tree *tree, enum cloud_kind kind, const char *text,
				  const struct cloud_node *like, struct err *err)
{
	struct cloud_node *node;

	if (tree->len >= CLOUD_NODES_MAX) {
		too_many(like, err);
		return NULL;
	}
	node = array_room(tree->nodes, tree->cap, tree->len + 1) ? node_of(kind, text, like) : NULL;
	if (!node) {
		err_nomem(err);
		return NULL;
	}
	return tree->nodes[tree->len++] = node;
}

static struct cloud_pair *pair_of(const struct cloud_node *map, const char *name)
{
	for (size_t i = 0; map && map->kind == CLOUD_MAP && i < map->count; i++)
		if (str_equal(map->pairs[i].key->text, name))
			return &map->pairs[i];
	return NULL;
}

int cloud_node_add(struct cloud_tree *tree, struct cloud_node *to, const struct cloud_node *key,
		   const struct cloud_node *value, struct err *err)
{
	struct cloud_pair *same = key ? pair_of(to, key->text) : NULL;

	if (same) {
		same->value = value;
		return 0;
	}
	if (tree->pairs >= CLOUD_NODES_MAX)
		return too_many(to, err);
	if (!array_room(to->pairs, to->cap, to->count + 1))
		return err_nomem(err);
	to->pairs[to->count++] = (struct cloud_pair){ key, value };
	tree->pairs++;
	return 0;
}

const struct cloud_node *cloud_node_member(const struct cloud_node *map, const char *name)
{
	const struct cloud_pair *pair = pair_of(map, name);

	return pair ? pair->value : NULL;
}

static bool is_spelling_of(const char *key, const char *name)
{
	while (*name && (*key == *name || (*key == '-' && *name == '_')))
		key++, name++;
	return !*key && !*name;
}

static bool is_a_value(const struct cloud_node *node)
{
	return node->kind != CLOUD_NULL && !(node->kind == CLOUD_TEXT && !*node->text);
}

const struct cloud_node *cloud_node_setting(const struct cloud_node *map, const char *name)
{
	const struct cloud_node *found = NULL;

	for (size_t i = 0; map && map->kind == CLOUD_MAP && i < map->count; i++)
		if (is_spelling_of(map->pairs[i].key->text, name) &&
		    is_a_value(map->pairs[i].value))
			found = map->pairs[i].value;
	return found;
}

/* --- merging ---------------------------------------------------------------------- */

/* Deeper than a file can be it does not get, and each step takes a node. */
static const struct cloud_node *merged_value(struct cloud_tree *tree, const struct cloud_node *key,
					     const struct cloud_node *old,
					     const struct cloud_node *new, enum cloud_merge how,
					     struct err *err)
{
	bool both = old && old->kind == CLOUD_MAP && new->kind == CLOUD_MAP;

	if (old && old->kind == CLOUD_MAP && new->kind == CLOUD_NULL)
		return old;
	if (how == CLOUD_MERGE_EVERYWHERE)
		return both ? cloud_node_merged(tree, old, new, how, err) : new;
	if (both && str_equal(key->text, "auth"))
		return cloud_node_merged(tree, old, new, how, err);
	return old && new->kind == CLOUD_NULL ? old : new;
}

static int add_all(struct cloud_tree *tree, struct cloud_node *to, const struct cloud_node *from,
		   enum cloud_merge how, struct err *err)
{
	for (size_t i = 0; from && from->kind == CLOUD_MAP && i < from->count; i++) {
		const struct cloud_pair *pair = &from->pairs[i];
		const struct cloud_node *old = cloud_node_member(to, pair->key->text);
		const struct cloud_node *value =
			merged_value(tree, pair->key, old, pair->value, how, err);

		if (!value || cloud_node_add(tree, to, pair->key, value, err) < 0)
			return -1;
	}
	return 0;
}

struct cloud_node *cloud_node_merged(struct cloud_tree *tree, const struct cloud_node *old,
				     const struct cloud_node *new, enum cloud_merge how,
				     struct err *err)
{
	static const struct cloud_node nowhere = { .file = "clouds" };
	struct cloud_node *map;

	map = cloud_node_new(tree, CLOUD_MAP, NULL, old ? old : new ? new : &nowhere, err);
	if (!map || add_all(tree, map, old, how, err) < 0 || add_all(tree, map, new, how, err) < 0)
		return NULL;
	return map;
}

char *cloud_node_names(const struct cloud_node *node)
{
	char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; node && i < node->count; i++) {
		const struct cloud_pair *pair = &node->pairs[i];
		const struct cloud_node *name = pair->key ? pair->key : pair->value;

		fprintf(out, "%s%s", i ? ", " : "", name->text ? name->text : "(a map)");
	}
	fclose(out);
	return names;
}
