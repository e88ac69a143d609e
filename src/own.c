// SPDX-License-Identifier: Apache-2.0
#include "own.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "plan.h"
#include "walk/walk.h"

#include <string.h>
#include <sys/stat.h>

enum { OWN_MAX = 8 };

struct list {
	struct walk_own at[OWN_MAX];
	size_t count;
};

static void add(struct list *list, const struct stat *st, const char *what)
{
	list->at[list->count++] = (struct walk_own){
		.dev = st->st_dev, .ino = st->st_ino, .what = what, .content = S_ISDIR(st->st_mode)
	};
}

static void add_path(struct list *list, const char *path, const char *what)
{
	struct stat st;

	if (path && stat(path, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		add(list, &st, what);
}

static void add_stream(struct list *list, int fd, const char *what)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		add(list, &st, what);
}

/* A store is a directory of images; a single file has neighbours of all kinds. */
static int add_destination(struct list *list, const struct plan *plan, const char *destination,
			   struct err *err)
{
	autofree char *dir = NULL;
	autofree char *store = dest_default();
	const char *last;

	add_path(list, destination, "the image to be replaced");
	if (store && str_starts(store, "folder:"))
		add_path(list, store + strlen("folder:"), "the image store");
	if (!str_starts(plan->where, "folder:"))
		return 0;
	dir = io_directory(destination, &last);
	if (!dir)
		return err_nomem(err);
	add_path(list, dir, "the image store");
	return 0;
}

int own_list(const struct plan *plan, const char *destination, struct walk_own **own, size_t *count,
	     struct err *err)
{
	struct list list = { 0 };

	if (add_destination(&list, plan, destination, err) < 0)
		return -1;
	add_path(&list, plan->report, "the report");
	add_stream(&list, STDOUT_FILENO, "what this run prints");
	add_stream(&list, STDERR_FILENO, "what this run prints");
	*own = malloc(sizeof list.at);
	if (!*own)
		return err_nomem(err);
	memcpy(*own, list.at, sizeof list.at);
	*count = list.count;
	return 0;
}
