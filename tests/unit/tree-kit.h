/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_TREE_KIT_H
#define CCSNAP_TEST_TREE_KIT_H

/* A model and what edits it, made from a table of files: by content only, or
 * found as real files in a directory of its own.
 */
#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/edit.h"
#include "walk/reach.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TREE_TIME 1700000000u /* mtime of all edits */

/* Ends with a NULL path; directories on the way are made. */
struct tree_file {
	const char *path;
	const char *content; /* or the target of a link; NULL: "" */
	mode_t mode;	     /* 0: a regular file 0644; with S_IFLNK: a link */
	const char *same_as; /* one more name for a path that stands before */
};

#define TREE_FILE(p, text)                                                                         \
	{                                                                                          \
		.path = (p), .content = (text)                                                     \
	}
#define TREE_MODE(p, text, bits)                                                                   \
	{                                                                                          \
		.path = (p), .content = (text), .mode = (bits)                                     \
	}
#define TREE_LINK(p, target)                                                                       \
	{                                                                                          \
		.path = (p), .content = (target), .mode = S_IFLNK | 0777                           \
	}
#define TREE_DIR(p)                                                                                \
	{                                                                                          \
		.path = (p), .mode = S_IFDIR | 0755                                                \
	}
#define TREE_SAME(p, other)                                                                        \
	{                                                                                          \
		.path = (p), .same_as = (other)                                                    \
	}

struct tree {
	char dir[64]; /* "" when there are no real files */
	int root_fd;
	struct model model;
	struct account account;
	struct edit edit;
	struct err err;
};

static inline void tree_join(const struct tree *t, const char *path, char *out, size_t cap)
{
	assert_true(snprintf(out, cap, "%s/%s", t->dir, path) < (int)cap);
}

static inline void tree_make_real(const struct tree *t, const struct tree_file *f, mode_t mode)
{
	const char *content = f->content ? f->content : "";
	char full[512], other[512];

	tree_join(t, f->path, full, sizeof full);
	if (f->same_as) {
		tree_join(t, f->same_as, other, sizeof other);
		assert_int_equal(link(other, full), 0);
	} else if (S_ISDIR(mode)) {
		assert_int_equal(mkdir(full, mode & 07777), 0);
	} else if (S_ISLNK(mode)) {
		assert_int_equal(symlink(content, full), 0);
	} else {
		autoclose int fd = open(full, O_CREAT | O_EXCL | O_WRONLY, 0600);

		assert_true(fd >= 0);
		assert_int_equal(write(fd, content, strlen(content)), strlen(content));
		assert_int_equal(fchmod(fd, mode & 07777), 0);
	}
}

/* What the walk would enter. */
static inline struct model_node tree_node_of(const struct tree *t, const struct tree_file *f,
					     mode_t mode)
{
	struct model_node n = { .mode = mode, .parent = MODEL_NONE, .mounted = MODEL_NONE };
	char full[512];
	struct stat st;

	if (!S_ISDIR(mode) && (S_ISLNK(mode) || !*t->dir))
		n.content = strdup(f->content ? f->content : "");
	if (!S_ISDIR(mode))
		n.size = f->content ? strlen(f->content) : 0;
	n.data = S_ISREG(mode) && n.size ? MODEL_DENSE : MODEL_HOLES;
	if (*t->dir) {
		tree_join(t, f->path, full, sizeof full);
		assert_int_equal(lstat(full, &st), 0);
		n.found_dev = st.st_dev;
		n.found_ino = st.st_ino;
	}
	return n;
}

static inline uint32_t tree_find(const struct tree *t, const char *path)
{
	return model_resolve(&t->model, path, MODEL_NOFOLLOW);
}

static inline void tree_enter(struct tree *t, const struct tree_file *f)
{
	const mode_t mode = f->mode ? f->mode : S_IFREG | 0644;
	const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path;
	autofree char *above = strndup(f->path, slash ? (size_t)(slash - f->path) : 0);
	uint32_t dir, node;

	if (slash && tree_find(t, above) == MODEL_NONE)
		tree_enter(t, &(struct tree_file){ .path = above, .mode = S_IFDIR | 0755 });
	dir = tree_find(t, above);
	assert_int_not_equal(dir, MODEL_NONE);
	if (*t->dir)
		tree_make_real(t, f, mode);
	if (f->same_as) {
		node = tree_find(t, f->same_as);
	} else {
		const struct model_node n = tree_node_of(t, f, mode);

		node = model_add(&t->model, &n, &t->err);
	}
	assert_int_not_equal(node, MODEL_NONE);
	assert_int_equal(model_link(&t->model, dir, name, strlen(name), node, &t->err), 0);
}

static inline void tree_fill(struct tree *t, const struct tree_file *files)
{
	const struct model_node root =
		tree_node_of(t, &(struct tree_file){ .path = "." }, S_IFDIR | 0755);

	model_init(&t->model);
	assert_int_equal(model_add(&t->model, &root, &t->err), MODEL_ROOT);
	for (; files->path; files++)
		tree_enter(t, files);
	model_sort(&t->model);
	t->edit = (struct edit){ &t->model, NULL, &t->account, TREE_TIME };
}

static inline void tree_start(struct tree *t, const struct tree_file *files)
{
	*t = (struct tree){ .root_fd = -1 };
	tree_fill(t, files);
	t->edit.reach = reach_new(&t->model, -1, &t->err);
	assert_non_null(t->edit.reach);
}

/* As tree_start, with real files in t->dir. */
static inline void tree_start_real(struct tree *t, const struct tree_file *files)
{
	*t = (struct tree){ .dir = "/tmp/ccsnap-test-tree-XXXXXX" };
	assert_non_null(mkdtemp(t->dir));
	t->root_fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t->root_fd >= 0);
	tree_fill(t, files);
	t->edit.reach = reach_new(&t->model, t->root_fd, &t->err);
	assert_non_null(t->edit.reach);
}

static inline int tree_delete(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void tree_stop(struct tree *t)
{
	reach_free(t->edit.reach);
	model_free(&t->model);
	account_free(&t->account);
	if (t->root_fd >= 0)
		close(t->root_fd);
	if (*t->dir)
		nftw(t->dir, tree_delete, 16, FTW_DEPTH | FTW_PHYS);
}

static inline bool tree_has(const struct tree *t, const char *path)
{
	return tree_find(t, path) != MODEL_NONE;
}

/* The detail of an entry, NULL when there is none; path without slash in front. */
static inline const char *tree_told(const struct tree *t, enum account_kind kind, const char *path)
{
	for (size_t i = 0; i < t->account.len; i++)
		if (t->account.at[i].kind == kind && str_equal(t->account.at[i].path + 1, path))
			return t->account.at[i].detail;
	return NULL;
}

static inline void assert_text(struct tree *t, const char *path, const char *expected)
{
	size_t len = 0;
	bool missing;
	autofree char *text = edit_read(&t->edit, path, &len, &missing, &t->err);

	assert_non_null(text);
	assert_int_equal(len, strlen(expected));
	assert_string_equal(text, expected);
}

#define autotree CLEANUP(tree_stop)

#endif
