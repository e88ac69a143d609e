// SPDX-License-Identifier: Apache-2.0
#include "system/edit.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"
#include "system/edit_inner.h"
#include "walk/reach.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define READ_MAX (4 * MIB)

bool edit_exists(const struct edit *e, const char *path)
{
	return model_resolve(e->model, path, MODEL_FOLLOW) != MODEL_NONE;
}

bool edit_is_denied(const struct err *err)
{
	return err->sys_errno == EACCES || err->sys_errno == EPERM || err->sys_errno == EFBIG;
}

bool edit_is_odd(const struct edit *e, const char *path)
{
	uint32_t node = model_resolve(e->model, path, MODEL_FOLLOW);

	return node != MODEL_NONE && !S_ISREG(e->model->nodes[node].mode);
}

static int too_large(const char *path, struct err *err)
{
	err_set(err, ERR_FAILED, "cannot edit /%s for the image: more than %s", path,
		size_format(READ_MAX).text);
	err->sys_errno = EFBIG;
	return -1;
}

static char *copy_content(const struct model_node *n, size_t *len, struct err *err)
{
	char *copy = malloc((size_t)n->size + 1);

	if (!copy) {
		err_nomem(err);
		return NULL;
	}
	memcpy(copy, n->content, (size_t)n->size);
	copy[n->size] = '\0';
	*len = (size_t)n->size;
	return copy;
}

static int open_source(const struct edit *e, const char *path, uint32_t node, struct stat *st,
		       bool *missing, struct err *err)
{
	int fd = reach_file(e->reach, node, st);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		*missing = true; /* gone since the walk, so it will not be in the image either */
	else if (errno == ESTALE)
		err_set(err, ERR_FAILED, "/%s was replaced since the tree was walked; try again",
			path);
	else
		err_errno(err, ERR_FAILED, "cannot read /%s", path);
	return -1;
}

static char *read_source(const struct edit *e, const char *path, uint32_t node, size_t *len,
			 bool *missing, struct err *err)
{
	struct stat st;
	autoclose int fd = open_source(e, path, node, &st, missing, err);
	autofree char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) < 0) {
		err_errno(err, ERR_FAILED, "cannot read /%s", path);
		return NULL;
	}
	if (st.st_size < 0 || (uint64_t)st.st_size > READ_MAX) {
		too_large(path, err);
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		err_nomem(err);
		return NULL;
	}
	n = io_pread(fd, text, (size_t)st.st_size, 0, NULL);
	if (n < 0) {
		err_errno(err, ERR_FAILED, "cannot read /%s", path);
		return NULL;
	}
	text[n] = '\0';
	*len = (size_t)n;
	return steal(&text);
}

char *edit_read(const struct edit *e, const char *path, size_t *len, bool *missing, struct err *err)
{
	uint32_t node = edit_find_file(e->model, path);
	const struct model_node *n;

	path += strspn(path, "/");
	*missing = node == MODEL_NONE;
	if (*missing)
		return NULL;
	n = &e->model->nodes[node];
	if (!n->content)
		return read_source(e, path, node, len, missing, err);
	if (n->size > READ_MAX) {
		too_large(path, err);
		return NULL;
	}
	return copy_content(n, len, err);
}

/* --- patterns ----------------------------------------------------------------- */

enum { PATTERN_COMPONENTS_MAX = 32 };

struct glob {
	const struct model *model;
	const char *component[PATTERN_COMPONENTS_MAX];
	size_t components;
	int flags; /* of fnmatch */
	char **list;
	size_t len, cap;
};

static int glob_add(struct glob *g, char *path)
{
	if (!array_room(g->list, g->cap, g->len + 2))
		return -1;
	g->list[g->len++] = path;
	g->list[g->len] = NULL;
	return 0;
}

static int glob_below(struct glob *g, uint32_t dir, const char *prefix, size_t depth);

static bool has_wildcard(const char *component)
{
	return strpbrk(component, "*?[\\") != NULL;
}

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
	if (S_ISLNK(g->model->nodes[node].mode) && !has_wildcard(g->component[depth]))
		node = model_resolve(g->model, path, MODEL_FOLLOW);
	if (node == MODEL_NONE || !S_ISDIR(g->model->nodes[node].mode))
		return 0;
	return glob_below(g, edit_directory_top(g->model, node), path, depth + 1);
}

/* Recursion ends with the pattern's components. */
static int glob_below(struct glob *g, uint32_t dir, const char *prefix, size_t depth)
{
	const struct model *m = g->model;
	const struct model_node *d = &m->nodes[dir];
	const char *component = g->component[depth];

	if (!has_wildcard(component) && !g->flags) {
		uint32_t node = model_lookup(m, dir, component);

		return node == MODEL_NONE ? 0 : glob_name(g, node, prefix, component, depth);
	}
	for (uint32_t i = 0; i < d->count; i++) {
		const struct model_entry *entry = &m->entries[d->first + i];
		const char *name = model_string(m, entry->name);

		if (fnmatch(component, name, g->flags) == 0 &&
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

static char **glob_with(const struct edit *e, const char *pattern, int flags, struct err *err)
{
	struct glob g = {
		.model = e->model,
		.flags = flags,
		.list = calloc(1, sizeof *g.list),
		.cap = 1,
	};
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

char **edit_glob(const struct edit *e, const char *pattern, struct err *err)
{
	return glob_with(e, pattern, 0, err);
}

char **edit_glob_fat(const struct edit *e, const char *pattern, struct err *err)
{
	return glob_with(e, pattern, FNM_CASEFOLD, err);
}

void edit_glob_free(char **paths)
{
	if (!paths)
		return;
	for (char **p = paths; *p; p++)
		free(*p);
	free(paths);
}
