// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/dest.h"
#include "dest/kinds.h"
#include "dest/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* "file:PATH": one file at that path, nothing beside it. */
struct file_dest {
	struct dest base;
	struct outfile_place place;
	char *dir;
	enum outfile_existing existing;
	unsigned wait_seconds;
	struct outfile *out;
};

static int open_parent(struct file_dest *f, struct err *err)
{
	if (f->place.dirfd >= 0)
		return 0;
	f->place.dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->place.dirfd >= 0)
		return 0;
	if (errno == ENOENT)
		return err_set(err, ERR_REFUSED, "%s does not exist; create it first", f->dir);
	return err_errno(err, ERR_REFUSED, "cannot open %s", f->dir);
}

static int check_name(const struct file_dest *f, struct err *err)
{
	return outfile_check_name(f->place.dirfd, f->dir, f->place.final, f->existing, err);
}

static void file_tidy(struct dest *dest)
{
	struct file_dest *f = (struct file_dest *)dest;
	struct err err;
	autooutfile struct outfile *out = NULL;

	if (open_parent(f, &err) == 0)
		out = outfile_tidy(&f->place, &err);
	if (!out)
		log_debug("not tidied up: %s", err.text);
}

static int file_check(struct dest *dest, uint64_t need, struct err *err)
{
	struct file_dest *f = (struct file_dest *)dest;

	dest->free_known = false;
	if (open_parent(f, err) < 0 || dest_check_room(dest, f->place.dirfd, f->dir, need, err) < 0)
		return -1;
	return check_name(f, err);
}

static int file_reserve(struct dest *dest, int *fd, struct err *err)
{
	struct file_dest *f = (struct file_dest *)dest;

	if (open_parent(f, err) < 0 || check_name(f, err) < 0)
		return -1;
	f->out = outfile_reserve(&f->place, f->wait_seconds, err);
	/* again: the run we may have waited for can have made it */
	if (!f->out || check_name(f, err) < 0)
		return -1;
	*fd = outfile_fd(f->out);
	return 0;
}

static int file_publish(struct dest *dest, struct image_info *info, struct err *err)
{
	struct file_dest *f = (struct file_dest *)dest;

	free(info->file);
	info->file = strdup(dest->name);
	if (!info->file)
		return err_nomem(err);
	if (outfile_publish(f->out, f->existing, err) < 0)
		return -1;
	return dest_prove_file(dest, outfile_fd(f->out), dest->path, info->size, err);
}

/* So there is nothing that fetch or remove could be told. */
static int file_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		     struct err *err)
{
	(void)filter;
	(void)out;
	return err_set(err, ERR_USAGE, "%s is a single file: it has no list", dest->name);
}

static void file_close(struct dest *dest)
{
	struct file_dest *f = (struct file_dest *)dest;

	outfile_close(f->out);
	if (f->place.dirfd >= 0)
		close(f->place.dirfd);
	free(f->dir);
	free(dest->name);
	free(dest->path);
	free(f);
}

static const struct dest_ops file_ops = {
	.name = "file",
	.tidy = file_tidy,
	.check = file_check,
	.reserve = file_reserve,
	.publish = file_publish,
	.list = file_list,
	.close = file_close,
};

struct dest *file_open(const struct dest_config *cfg, const char *rest, struct err *err)
{
	struct file_dest *f = calloc(1, sizeof *f);
	autodest struct dest *dest = f ? &f->base : NULL;

	rest = rest ? rest : ""; /* which names no file, as will be said */
	if (!f) {
		err_nomem(err);
		return NULL;
	}
	dest->ops = &file_ops;
	f->place.dirfd = -1;
	dest->name = strdup(rest);
	dest->path = strdup(rest);
	f->dir = dest->name && dest->path ? io_directory(dest->name, &f->place.final) : NULL;
	if (!f->dir) {
		err_nomem(err);
		return NULL;
	}
	if (outfile_check_final(rest, f->place.final, err) < 0) {
		err_context(err, "--output (or --to=file:)");
		return NULL;
	}
	f->place.dir = f->dir;
	f->place.key = f->place.final;
	f->existing = cfg->overwrite ? OUTFILE_REPLACE : OUTFILE_KEEP;
	f->wait_seconds = cfg->lock_wait_seconds;
	return steal(&dest);
}
