// SPDX-License-Identifier: Apache-2.0
#include "system/identity_inner.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "system/edit.h"

#include <string.h>
#include <sys/stat.h>

static void globbed_cleanup(char ***paths)
{
	edit_glob_free(*paths);
}

#define autoglob CLEANUP(globbed_cleanup)

int identity_each(struct edit *e, const char *pattern,
		  int (*each)(struct edit *e, const char *path, void *ctx, struct err *err),
		  void *ctx, struct err *err)
{
	autoglob char **paths = edit_glob(e, pattern, err);

	if (!paths)
		return -1;
	for (char **path = paths; *path; path++)
		if (each(e, *path, ctx, err) < 0)
			return -1;
	return 0;
}

static int remove_path(struct edit *e, const char *path, void *ctx, struct err *err)
{
	const struct identity_removal *r = ctx;
	uint32_t node = model_resolve(e->model, path, MODEL_NOFOLLOW);

	if (r->action == REMOVE_CONTENT)
		return edit_remove_content(e, path, r->why, err);
	if (node == MODEL_NONE ||
	    (r->action == REMOVE_FILES && S_ISDIR(e->model->nodes[node].mode)))
		return 0;
	return edit_remove(e, path, r->why, err);
}

int identity_remove(struct edit *e, const struct identity_removal *table, struct err *err)
{
	for (; table->pattern; table++) {
		struct identity_removal row = *table;
		int rc;

		if (strpbrk(row.pattern, "*?["))
			rc = identity_each(e, row.pattern, remove_path, &row, err);
		else
			rc = remove_path(e, row.pattern, &row, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

char *identity_text(struct edit *e, const char *path)
{
	struct err err;
	size_t len;
	bool missing;
	char *text = edit_read(e, path, &len, &missing, &err);

	if (!text && !missing)
		log_debug("%s", err.text);
	return text;
}

bool identity_mentions(const char *text, const char *word)
{
	for (const char *at = text; (at = strstr(at, word)); at++) {
		const char *line = at;

		while (line > text && line[-1] != '\n')
			line--;
		line += strspn(line, " \t");
		if (*line != '#' && *line != ';')
			return true;
	}
	return false;
}

bool identity_matches(const struct edit *e, const char *pattern)
{
	struct err ignored;
	autoglob char **paths = edit_glob(e, pattern, &ignored);

	return paths && *paths;
}

void identity_keep(struct edit *e, const char *path, const char *why)
{
	autofree char *full = str_format("/%s", path);

	account_add(e->account, ACCOUNT_KEPT, full ? full : path, "%s", why);
}

bool identity_is_masked(const struct edit *e, const char *unit)
{
	autofree char *path = str_format("etc/systemd/system/%s", unit);
	uint32_t node = path ? model_resolve(e->model, path, MODEL_NOFOLLOW) : MODEL_NONE;
	const struct model_node *n = node == MODEL_NONE ? NULL : &e->model->nodes[node];

	return n && S_ISLNK(n->mode) && n->content && str_equal(n->content, "/dev/null");
}
