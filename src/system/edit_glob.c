// SPDX-License-Identifier: Apache-2.0
#include "system/edit.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/edit_inner.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATTERN_COMPONENTS_MAX = 32 };

struct glob {
	const struct model *model;
	const char *component[PATTERN_COMPONENTS_MAX];
	size_t components;
	char **list;
	size_t len, cap;
};

static int glob_add(struct glob *g, char *path)
{
	if (g->len + 1 >= g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 16;
		char **list = reallocarray(g->list, cap, sizeof *list);

		if (!list)
			return -1;
		g->list = list;
		g->cap = cap;
	}
	g->list[g->len++] = path;
	g->list[g->len] = NULL;
	return 0;
}

static int glob_below(struct glob *g, uint32_t dir, const char *prefix, size_t depth);

/* A name that component number depth matches. */
static int glob_name(struct glob *g, uint32_t node, const char *prefix, const char *name,
		     size_t depth)
{
	autofree char *path = str_format("%s%s%s", prefix, *prefix ? "/" : "", name);

	if (!path)
		return -1;
	if (depth + 1 == g->components) {
		if (glob_add(g, path) < 0)
			return -1;
		steal(&path);
		return 0;
	}
	if (!S_ISDIR(g->model->nodes[node].mode))
		return 0;
	return glob_below(g, edit_directory_top(g->model, node), path, depth + 1);
}

/* Recursion ends with the pattern's components. */
static int glob_below(struct glob *g, uint32_t dir, const char *prefix, size_t depth)
{
	const struct model *m = g->model;
	const struct model_node *d = &m->nodes[dir];
	const char *component = g->component[depth];

	if (!strpbrk(component, "*?[\\")) {
		uint32_t node = model_lookup(m, dir, component);

		return node == MODEL_NONE ? 0 : glob_name(g, node, prefix, component, depth);
	}
	for (uint32_t i = 0; i < d->count; i++) {
		const struct model_entry *entry = &m->entries[d->first + i];
		const char *name = model_string(m, entry->name);

		if (fnmatch(component, name, 0) == 0 &&
		    glob_name(g, entry->node, prefix, name, depth) < 0)
			return -1;
	}
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int glob_split(struct glob *g, char *pattern, struct err *err)
{
	char *rest, *component = strtok_r(pattern, "/", &rest);

	for (; component; component = strtok_r(NULL, "/", &rest)) {
		if (g->components == PATTERN_COMPONENTS_MAX)
			return err_set(err, ERR_FAILED, "a pattern has more than %d components",
				       PATTERN_COMPONENTS_MAX);
		g->component[g->components++] = component;
	}
	return 0;
}

char **edit_glob(const struct edit *e, const char *pattern, struct err *err)
{
	struct glob g = { .model = e->model, .list = calloc(1, sizeof *g.list), .cap = 1 };
	autofree char *copy = strdup(pattern);

	if (!g.list || !copy) {
		free(g.list);
		err_nomem(err);
		return NULL;
	}
	if (glob_split(&g, copy, err) < 0) {
		edit_glob_free(g.list);
		return NULL;
	}
	if (g.components && glob_below(&g, edit_directory_top(g.model, MODEL_ROOT), "", 0) < 0) {
		edit_glob_free(g.list);
		err_nomem(err);
		return NULL;
	}
	qsort(g.list, g.len, sizeof *g.list, compare_paths);
	return g.list;
}

void edit_glob_free(char **paths)
{
	if (!paths)
		return;
	for (char **p = paths; *p; p++)
		free(*p);
	free(paths);
}
