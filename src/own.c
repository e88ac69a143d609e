// SPDX-License-Identifier: Apache-2.0
#include "own.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "dest/manifest.h"
#include "dest/outfile.h"
#include "dest/uploads.h"
#include "plan.h"
#include "walk/walk.h"

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

static int add_named(struct list *list, int dir, const char *name, const char *what,
		     struct err *err)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? add(list, &st, what, err) : 0;
}

/* A manifest, its image, its report; whatever else is called so is not ours. */
static int add_of_manifest(struct list *list, int dir, const char *manifest, struct err *err)
{
	static const char what[] = "of the image store";
	size_t stem = strlen(manifest) - strlen(DEST_MANIFEST_SUFFIX), len;
	autofree char *report = str_format("%.*s%s", (int)stem, manifest, DEST_REPORT_SUFFIX);
	struct image_info info;
	struct err ignored;
	autofree char *text = io_read_file(dir, manifest, MANIFEST_MAX, &len, &ignored);
	int done;

	if (!report)
		return err_nomem(err);
	if (!text || manifest_from_json(text, len, manifest, &info, &ignored) < 0)
		return 0;
	done = add_named(list, dir, manifest, what, err) < 0 ||
			       add_named(list, dir, info.file, what, err) < 0 ||
			       add_named(list, dir, report, what, err) < 0
		       ? -1
		       : 0;
	image_info_free(&info);
	return done;
}

static int add_directory(struct list *list, const char *path, struct err *err)
{
	autodir DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		int done = 0;

		if (outfile_name_is_temporary(name))
			done = add_named(list, dirfd(dir), name, "an unfinished image", err);
		else if (str_ends(name, DEST_MANIFEST_SUFFIX))
			done = add_of_manifest(list, dirfd(dir), name, err);
		if (done < 0)
			return -1;
	}
	return 0;
}

/* path: of the image to be; NULL when it goes elsewhere. */
static int add_image(struct list *list, const char *path, struct err *err)
{
	const char *last;
	autofree char *dir = path ? io_directory(path, &last) : NULL;

	if (path && !dir)
		return err_nomem(err);
	if (add_path(list, path, "the image to be replaced", err) < 0)
		return -1;
	return dir ? add_directory(list, dir, err) : 0;
}

static int add_store(struct list *list, struct err *err)
{
	autofree char *store = dest_default();

	return store && str_starts(store, "folder:")
		       ? add_directory(list, store + strlen("folder:"), err)
		       : 0;
}

/* Of unfinished uploads, this run's own among them. */
static int add_upload_notes(struct list *list, struct err *err)
{
	autofree char *path = uploads_default_folder();
	autodir DIR *dir = path ? opendir(path) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (add_named(list, dirfd(dir), entry->d_name, "a note of an upload", err) < 0)
			return -1;
	return 0;
}

int own_list(const struct plan *plan, const char *destination, struct walk_own **own, size_t *count,
	     struct err *err)
{
	struct list list = { 0 };
	int done = add_image(&list, destination, err);

	if (done == 0)
		done = add_store(&list, err);
	if (done == 0)
		done = add_upload_notes(&list, err);
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
