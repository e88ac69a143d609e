// SPDX-License-Identifier: Apache-2.0
#include "dest/folder_inner.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/kinds.h"
#include "dest/outfile_report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* --- checks --- */

int folder_open_directory(struct folder *f, struct err *err)
{
	if (f->dirfd >= 0)
		return 0;
	f->dirfd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dirfd >= 0)
		return 0;
	if (errno != ENOENT)
		return err_errno(err, ERR_REFUSED, "cannot open the folder %s", f->path);
	if (f->is_default)
		return 1;
	return err_set(err, ERR_REFUSED, "the folder %s does not exist; create it first", f->path);
}

/* The image that has the name now is in the way, in whatever format it is. */
static int check_current(const struct folder *f, struct err *err)
{
	struct image_info current;
	int rc = folder_find_current(f, &current, err);

	if (rc < 0 && f->existing == OUTFILE_REPLACE)
		return 0;
	if (rc < 0) {
		err->kind = ERR_REFUSED;
		return err_context(err, "%s: remove %s or use --overwrite", f->path, f->manifest);
	}
	if (rc == 1) {
		rc = outfile_check_name(f->dirfd, f->path, current.file, f->existing, err);
		image_info_free(&current);
	}
	return rc;
}

int folder_check_names(const struct folder *f, struct err *err)
{
	if (outfile_check_name(f->dirfd, f->path, f->file, f->existing, err) < 0 ||
	    outfile_check_name(f->dirfd, f->path, f->manifest, OUTFILE_REPLACE, err) < 0 ||
	    outfile_check_report(f->dirfd, f->path, f->report, err) < 0)
		return -1;
	return check_current(f, err);
}

static int folder_check(struct dest *dest, uint64_t need, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	int rc = folder_open_directory(f, err);

	dest->free_known = false;
	if (rc > 0)
		return dest_check_room_above(dest, f->path, need, err);
	if (rc < 0 || dest_check_room(dest, f->dirfd, f->path, need, err) < 0)
		return -1;
	return folder_check_names(f, err);
}

/* --- life --- */

static void folder_close(struct dest *dest)
{
	struct folder *f = (struct folder *)dest;

	outfile_close(f->out);
	if (f->dirfd >= 0)
		close(f->dirfd);
	free(f->path);
	free(f->image_name);
	free(f->file);
	free(f->manifest);
	free(f->report);
	free(dest->name);
	free(dest->path);
	free(dest->receipt.image_id);
	free(f);
}

static const struct dest_ops folder_ops = {
	.name = "folder",
	.tidy = folder_tidy,
	.check = folder_check,
	.reserve = folder_reserve,
	.publish = folder_publish,
	.attach_report = folder_attach_report,
	.list = folder_list,
	.remove = folder_remove,
	.fetch = folder_fetch,
	.close = folder_close,
};

/* Names are bytes: what a file name can hold is allowed. */
static int check_image_name(const char *name, const char *suffix, struct err *err)
{
	size_t longest = NAME_MAX - MAX(strlen(suffix), strlen(DEST_MANIFEST_SUFFIX));

	if (*name && !strchr(name, '/') && !str_equal(name, ".") && !str_equal(name, "..") &&
	    strlen(name) <= longest)
		return 0;
	return err_set(
		err, ERR_USAGE,
		"NAME '%s' cannot be an image's name; accepted are 1 to %zu bytes without /, "
		"not . or ..",
		name, longest);
}

static int set_names(struct folder *f, const char *name, const char *suffix, struct err *err)
{
	if (check_image_name(name, suffix, err) < 0)
		return -1;
	f->image_name = strdup(name);
	f->file = str_format("%s%s", name, suffix);
	f->manifest = str_format("%s" DEST_MANIFEST_SUFFIX, name);
	f->report = str_format("%s" DEST_REPORT_SUFFIX, name);
	if (!f->image_name || !f->file || !f->manifest || !f->report)
		return err_nomem(err);
	f->base.path = str_format("%s/%s", f->path, f->file);
	return f->base.path ? 0 : err_nomem(err);
}

static struct folder *folder_new(const char *path)
{
	struct folder *f = calloc(1, sizeof *f);
	size_t len = strlen(path);

	if (!f)
		return NULL;
	while (len > 1 && path[len - 1] == '/')
		len--;
	f->base.ops = &folder_ops;
	f->dirfd = -1;
	f->path = strndup(path, len);
	return f;
}

struct folder *folder_of_image(const struct folder *store, const struct image_info *info,
			       struct err *err)
{
	struct folder *f = folder_new(store->path);

	if (!f || !f->path || !str_starts(info->file, info->name)) {
		err_nomem(err);
	} else if (set_names(f, info->name, info->file + strlen(info->name), err) == 0) {
		f->is_default = store->is_default;
		return f;
	}
	dest_close(f ? &f->base : NULL);
	return NULL;
}

struct dest *folder_open(const struct dest_config *cfg, const char *rest, struct err *err)
{
	struct folder *f = rest && *rest ? folder_new(rest) : NULL;
	autodest struct dest *dest = f ? &f->base : NULL;
	autofree char *standard = dest_default();

	if (!rest || !*rest) {
		err_set(err, ERR_USAGE, "--to=folder: needs a path behind the colon");
		return NULL;
	}
	if (!f || !f->path) {
		err_nomem(err);
		return NULL;
	}
	f->existing = cfg->overwrite ? OUTFILE_REPLACE : OUTFILE_KEEP;
	f->wait_seconds = cfg->lock_wait_seconds;
	f->is_default = standard && str_equal(standard, cfg->where);
	if (cfg->image_name && set_names(f, cfg->image_name, cfg->suffix, err) < 0)
		return NULL;
	dest->name = strdup(dest->path ? dest->path : f->path);
	if (!dest->name) {
		err_nomem(err);
		return NULL;
	}
	return steal(&dest);
}
