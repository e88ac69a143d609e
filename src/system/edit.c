// SPDX-License-Identifier: Apache-2.0
#include "system/edit.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/edit_inner.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* They speak of the bytes that were there, or give rights because of them. */
static const char *const bound_to_content[] = { "security.capability", "security.evm",
						"security.ima" };

/* A name in the tree: the directory that it stands in, and what it leads to. */
struct place {
	uint32_t dir, node; /* node MODEL_NONE: there is no such name */
	char *text, *name;  /* name points into text */
};

static void place_cleanup(struct place *p)
{
	free(p->text);
}

#define autoplace CLEANUP(place_cleanup)

/* The directory at path, MODEL_NONE when there is none. */
static uint32_t find_directory(const struct model *m, const char *path)
{
	uint32_t node = model_resolve(m, path, MODEL_FOLLOW);

	if (node == MODEL_NONE || !S_ISDIR(m->nodes[node].mode))
		return MODEL_NONE;
	return edit_directory_top(m, node);
}

/* A copy of path without slashes at its ends. */
static char *trimmed(const char *path, struct err *err)
{
	size_t len;
	char *copy;

	path += strspn(path, "/");
	len = strlen(path);
	while (len > 0 && path[len - 1] == '/')
		len--;
	copy = strndup(path, len);
	if (!copy)
		err_nomem(err);
	return copy;
}

/* The last component is not followed. */
static int place_find(const struct edit *e, const char *path, struct place *p, struct err *err)
{
	char *slash;

	*p = (struct place){ .dir = MODEL_ROOT, .node = MODEL_NONE };
	p->text = trimmed(path, err);
	if (!p->text)
		return -1;
	p->name = p->text;
	slash = strrchr(p->text, '/');
	if (slash) {
		*slash = '\0';
		p->name = slash + 1;
		p->dir = find_directory(e->model, p->text);
	}
	if (p->dir != MODEL_NONE && *p->name && !str_equal(p->name, ".") &&
	    !str_equal(p->name, ".."))
		p->node = model_lookup(e->model, p->dir, p->name);
	return 0;
}

int edit_account(const struct edit *e, enum account_kind kind, uint32_t node, const char *why,
		 const char *more, struct err *err)
{
	autofree char *path = model_path(e->model, node);

	if (!path)
		return err_nomem(err);
	account_add(e->account, kind, path, "%s%s", why, more);
	return 0;
}

static int account_place(const struct edit *e, enum account_kind kind, const struct place *p,
			 const char *why, struct err *err)
{
	autofree char *dir = model_path(e->model, p->dir), *path = NULL;

	if (dir)
		path = str_format("%s%s%s", dir, str_ends(dir, "/") ? "" : "/", p->name);
	if (!path)
		return err_nomem(err);
	account_add(e->account, kind, path, "%s", why);
	return 0;
}

static bool is_bound_to_content(const char *attribute)
{
	for (size_t i = 0; i < sizeof bound_to_content / sizeof *bound_to_content; i++)
		if (str_equal(attribute, bound_to_content[i]))
			return true;
	return false;
}

/* *dropped: was there any? */
static int drop_bound_attributes(struct model *m, uint32_t node, bool *dropped, struct err *err)
{
	const struct model_xattr_set *set;
	autofree struct model_xattr *kept = NULL;
	size_t all, len = 0;

	*dropped = false;
	if (m->nodes[node].xattrs == 0)
		return 0;
	set = &m->sets[m->nodes[node].xattrs];
	all = set->len;
	kept = calloc(all + 1, sizeof *kept);
	if (!kept)
		return err_nomem(err);
	for (size_t i = 0; i < all; i++)
		if (!is_bound_to_content(set->at[i].name))
			kept[len++] = set->at[i];
	*dropped = len < all;
	return *dropped ? model_xattrs(m, kept, len, &m->nodes[node].xattrs, err) : 0;
}

static char *make_content(const char *text, size_t len, struct err *err)
{
	char *content = malloc(len + 1);

	if (!content) {
		err_nomem(err);
		return NULL;
	}
	if (len)
		memcpy(content, text, len);
	content[len] = '\0';
	return content;
}

static int replace_content(struct edit *e, uint32_t node, const char *text, size_t len,
			   enum account_kind kind, const char *why, struct err *err)
{
	char *content = make_content(text, len, err);
	struct model_node *n = &e->model->nodes[node];
	bool dropped;

	if (!content)
		return -1;
	free(n->content);
	n->content = content;
	n->size = len;
	n->data = len ? MODEL_DENSE : MODEL_HOLES;
	n->first = n->count = 0;
	n->reader_flags = 0;
	n->mtime_sec = e->time;
	n->mtime_nsec = 0;
	if (drop_bound_attributes(e->model, node, &dropped, err) < 0)
		return -1;
	return edit_account(
		e, kind, node, why,
		dropped ? "; left out: attributes that held for the old bytes only" : "", err);
}

int edit_write(struct edit *e, const char *path, const char *text, size_t len, const char *why,
	       struct err *err)
{
	uint32_t node = edit_find_file(e->model, path);

	if (node == MODEL_NONE)
		return err_set(err, ERR_FAILED, "cannot edit /%s for the image: no such file",
			       path + strspn(path, "/"));
	return replace_content(e, node, text, len, ACCOUNT_EDITED, why, err);
}

/* A node of our own under a new name.  Takes content. */
static int add_node(struct edit *e, uint32_t dir, const char *name, uint32_t mode, char *content,
		    size_t len, uint32_t *out, struct err *err)
{
	const struct model_node node = {
		.mode = mode,
		.size = len,
		.content = content,
		.data = len ? MODEL_DENSE : MODEL_HOLES,
		.mtime_sec = e->time,
		.parent = MODEL_NONE,
		.mounted = MODEL_NONE,
	};

	if (strlen(name) > NAME_MAX) {
		free(content);
		return err_set(err, ERR_FAILED, "a name for the image has more than %d bytes",
			       NAME_MAX);
	}
	*out = model_add(e->model, &node, err);
	if (*out == MODEL_NONE)
		return -1;
	return model_link(e->model, dir, name, strlen(name), *out, err);
}

/* The directory path, made if it is not there; above is the one it stands in. */
static int make_directory(struct edit *e, const char *path, uint32_t above, uint32_t *out,
			  struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	*out = find_directory(e->model, path);
	if (*out != MODEL_NONE)
		return 0;
	if (model_lookup(e->model, above, name) != MODEL_NONE)
		return err_set(err, ERR_FAILED,
			       "/%s is no directory, but the image needs one there", path);
	return add_node(e, above, name, S_IFDIR | 0755, NULL, 0, out, err);
}

/* All directories above the last component of text. */
static int make_directories(struct edit *e, char *text, uint32_t *dir, struct err *err)
{
	*dir = edit_directory_top(e->model, MODEL_ROOT);
	for (char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc = 0;

		*slash = '\0';
		if (slash[-1] != '/' && slash[-1] != '\0')
			rc = make_directory(e, text, *dir, dir, err);
		*slash = '/';
		if (rc < 0)
			return -1;
	}
	return 0;
}

int edit_create(struct edit *e, const char *path, const char *text, size_t len, uint32_t mode,
		const char *why, struct err *err)
{
	autofree char *copy = trimmed(path, err);
	char *content;
	const char *slash, *name;
	uint32_t dir, node;

	if (!copy || make_directories(e, copy, &dir, err) < 0)
		return -1;
	slash = strrchr(copy, '/');
	name = slash ? slash + 1 : copy;
	if (!*name || model_lookup(e->model, dir, name) != MODEL_NONE)
		return err_set(err, ERR_FAILED,
			       "/%s is there already; it was to be made for the image", copy);
	content = make_content(text, len, err);
	if (!content || add_node(e, dir, name, S_IFREG | (mode & 07777), content, len, &node, err))
		return -1;
	return edit_account(e, ACCOUNT_EDITED, node, why, "", err);
}

int edit_remove(struct edit *e, const char *path, const char *why, struct err *err)
{
	autoplace struct place p;

	if (place_find(e, path, &p, err) < 0)
		return -1;
	if (p.node == MODEL_NONE)
		return 0;
	if (edit_directory_top(e->model, p.node) != p.node)
		return err_set(err, ERR_FAILED,
			       "cannot take /%s out of the image: a filesystem is mounted there",
			       path + strspn(path, "/"));
	if (account_place(e, ACCOUNT_RESET, &p, why, err) < 0)
		return -1;
	model_unlink(e->model, p.dir, p.name);
	return 0;
}

/* From the first on, since that is found at once.  What something is mounted on
 * stays.
 */
static void unlink_all(struct model *m, uint32_t dir)
{
	const struct model_node *d = &m->nodes[dir];
	uint32_t stay = 0;

	while (stay < d->count) {
		const struct model_entry entry = m->entries[d->first + stay];

		if (edit_directory_top(m, entry.node) == entry.node)
			model_unlink(m, dir, model_string(m, entry.name));
		else
			stay++;
	}
}

int edit_remove_content(struct edit *e, const char *dir, const char *why, struct err *err)
{
	uint32_t node = find_directory(e->model, dir);

	if (node == MODEL_NONE || e->model->nodes[node].count == 0)
		return 0;
	if (edit_account(e, ACCOUNT_RESET, node, why, "; the directory stays, empty", err) < 0)
		return -1;
	unlink_all(e->model, node);
	return 0;
}

static int replace_link(struct edit *e, const struct place *p, const char *why, struct err *err)
{
	char *content = make_content("", 0, err);
	uint32_t node;

	if (!content)
		return -1;
	model_unlink(e->model, p->dir, p->name);
	if (add_node(e, p->dir, p->name, S_IFREG | 0444, content, 0, &node, err) < 0)
		return -1;
	return account_place(e, ACCOUNT_RESET, p, why, err);
}

int edit_empty(struct edit *e, const char *path, const char *why, struct err *err)
{
	autoplace struct place p;
	const struct model_node *n;

	if (place_find(e, path, &p, err) < 0)
		return -1;
	if (p.node == MODEL_NONE)
		return 0;
	n = &e->model->nodes[p.node];
	if (S_ISLNK(n->mode))
		return replace_link(e, &p, why, err);
	if (!S_ISREG(n->mode) || n->size == 0)
		return 0;
	return replace_content(e, p.node, "", 0, ACCOUNT_RESET, why, err);
}
