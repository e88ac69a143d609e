// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* With a slash at its end. */
static bool make_dir_path(struct walker *w)
{
	autofree char *dir = model_path(w->model, w->at.node);
	size_t len = dir ? strlen(dir) : 0;

	if (!dir || !array_room(w->path, w->path_cap, len + 2))
		return false;
	memcpy(w->path, dir, len);
	if (dir[len - 1] != '/')
		w->path[len++] = '/';
	w->dir_len = len;
	return true;
}

const char *walker_path(struct walker *w, const char *name)
{
	size_t size = strlen(name) + 1;

	if ((!w->dir_len && !make_dir_path(w)) ||
	    !array_room(w->path, w->path_cap, w->dir_len + size))
		return "?";
	memcpy(w->path + w->dir_len, name, size);
	return w->path;
}

int walker_unreadable(struct walker *w, const char *path, int error, struct err *err)
{
	errno = error;
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return err_errno(err, ERR_FAILED, "cannot read %s", path);
	if (w->cfg->keep_going) {
		account_add(w->cfg->account, ACCOUNT_UNREADABLE, path, "%s", strerror(error));
		return 0;
	}
	if (w->unreadable++)
		return 0;
	w->first_errno = error;
	w->first_unreadable = strdup(path);
	return w->first_unreadable ? 0 : err_nomem(err);
}

void walker_lost(void *ctx, const char *which, const char *why)
{
	struct walker *w = ctx;
	autofree char *dir = w->looking_at ? NULL : model_path(w->model, w->at.node);
	const char *path = w->looking_at ? walker_path(w, w->looking_at) : dir;

	account_add(w->cfg->account, ACCOUNT_ATTRIBUTE, path ? path : "?", "%s: %s", which, why);
}

int walker_verdict(const struct walker *w, struct err *err)
{
	const bool denied = w->first_errno == EACCES || w->first_errno == EPERM;
	const char *help = denied && geteuid() != 0 ? "run as root, " : "";

	if (!w->unreadable)
		return 0;
	if (w->unreadable == 1)
		return err_set(err, ERR_FAILED,
			       "cannot read %s (%s): %sexclude it, or use --keep-going",
			       w->first_unreadable, strerror(w->first_errno), help);
	return err_set(err, ERR_FAILED,
		       "cannot read %s (%s; and %llu more): %sexclude them, or use --keep-going",
		       w->first_unreadable, strerror(w->first_errno),
		       (unsigned long long)w->unreadable - 1, help);
}
