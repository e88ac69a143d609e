// SPDX-License-Identifier: Apache-2.0
#include "own.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "dest/outfile.h"
#include "image/image.h"
#include "plan.h"
#include "walk/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct list {
	struct walk_own *at;
	size_t len, cap;
};

static int add(struct list *list, const struct stat *st, const char *what, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return 0;
	if (!array_room(list->at, list->cap, list->len + 1))
		return err_nomem(err);
	list->at[list->len++] =
		(struct walk_own){ .dev = st->st_dev, .ino = st->st_ino, .what = what };
	return 0;
}

static int add_path(struct list *list, const char *path, const char *what, struct err *err)
{
	struct stat st;

	return path && stat(path, &st) == 0 ? add(list, &st, what, err) : 0;
}

static int add_stream(struct list *list, int fd, struct err *err)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? add(list, &st, "what this run prints", err) : 0;
}

/* --- directories that images go to ----------------------------------------------- */

/* NAME+suffix, where NAME has a manifest. */
static bool has_manifest(int dir, const char *file, const char *suffix)
{
	autofree char *manifest = NULL;

	if (!str_ends(file, suffix))
		return false;
	manifest = str_format("%.*s%s", (int)(strlen(file) - strlen(suffix)), file,
			      DEST_MANIFEST_SUFFIX);
	return manifest && faccessat(dir, manifest, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whatever else lies beside the images is not ours. */
static bool is_of_store(int dir, const char *file)
{
	if (has_manifest(dir, file, DEST_MANIFEST_SUFFIX) ||
	    has_manifest(dir, file, DEST_REPORT_SUFFIX))
		return true;
	for (const struct image_format *f = image_formats; f->name; f++)
		if (has_manifest(dir, file, f->suffix))
			return true;
	return false;
}

static int add_directory(struct list *list, const char *path, struct err *err)
{
	autodir DIR *dir = opendir(path);
	int fd = dir ? dirfd(dir) : -1;
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		bool unfinished = outfile_name_is_temporary(entry->d_name);

		if (!unfinished && !is_of_store(fd, entry->d_name))
			continue;
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    add(list, &st, unfinished ? "an unfinished image" : "of the image store", err) <
			    0)
			return -1;
	}
	return 0;
}

static int add_destination(struct list *list, const char *destination, struct err *err)
{
	autofree char *store = dest_default();
	autofree char *dir = NULL;
	const char *last;

	dir = io_directory(destination, &last);
	if (!dir)
		return err_nomem(err);
	if (add_path(list, destination, "the image to be replaced", err) < 0 ||
	    add_directory(list, dir, err) < 0)
		return -1;
	return store && str_starts(store, "folder:")
		       ? add_directory(list, store + strlen("folder:"), err)
		       : 0;
}

int own_list(const struct plan *plan, const char *destination, struct walk_own **own, size_t *count,
	     struct err *err)
{
	struct list list = { 0 };
	int done = add_destination(&list, destination, err);

	if (done == 0)
		done = add_path(&list, plan->report, "the report", err);
	if (done == 0)
		done = add_stream(&list, STDOUT_FILENO, err);
	if (done == 0)
		done = add_stream(&list, STDERR_FILENO, err);
	*own = list.at;
	*count = list.len;
	return done;
}
