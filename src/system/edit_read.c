// SPDX-License-Identifier: Apache-2.0
#include "system/edit.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "system/edit_inner.h"
#include "walk/reach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define READ_MAX (4 * MIB)

bool edit_exists(const struct edit *e, const char *path)
{
	return model_resolve(e->model, path, MODEL_FOLLOW) != MODEL_NONE;
}

static int too_large(const char *path, struct err *err)
{
	return err_set(err, ERR_FAILED, "cannot edit /%s for the image: more than %s",
		       path + strspn(path, "/"), size_format(READ_MAX).text);
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
	path += strspn(path, "/");
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
		err_errno(err, ERR_FAILED, "cannot read /%s", path + strspn(path, "/"));
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
		err_errno(err, ERR_FAILED, "cannot read /%s", path + strspn(path, "/"));
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
