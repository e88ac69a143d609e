// SPDX-License-Identifier: Apache-2.0
#include "dest/workfile.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/dest.h"
#include "dest/kinds.h"
#include "dest/tmpname.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct workfile {
	struct dest *keep; /* the file that stays, as a destination of its own, or NULL */
	char *dir;	   /* without one */
	int fd;		   /* of the file without a name; -1: none */
	int kept_fd;	   /* keep's own */
};

static const char *default_dir(void)
{
	const char *dir = getenv("TMPDIR");

	/* not /tmp, which may be memory */
	return dir && *dir ? dir : "/var/tmp";
}

struct workfile *workfile_new(const struct dest_config *cfg, struct err *err)
{
	struct workfile *w = calloc(1, sizeof *w);
	autoworkfile struct workfile *made = w;

	if (!w) {
		err_nomem(err);
		return NULL;
	}
	w->fd = w->kept_fd = -1;
	if (cfg->keep_path) {
		w->keep = file_open(cfg, cfg->keep_path, err);
		return w->keep ? steal(&made) : NULL;
	}
	w->dir = strdup(cfg->work_dir ? cfg->work_dir : default_dir());
	if (!w->dir) {
		err_nomem(err);
		return NULL;
	}
	return steal(&made);
}

void workfile_free(struct workfile *w)
{
	if (!w)
		return;
	dest_close(w->keep);
	if (w->fd >= 0)
		close(w->fd);
	free(w->dir);
	free(w);
}

static int check_kept(struct workfile *w, struct dest *dest, uint64_t need, struct err *err)
{
	int rc = w->keep->ops->check(w->keep, need, err);

	dest->free_known = w->keep->free_known;
	dest->free_bytes = w->keep->free_bytes;
	return rc;
}

int workfile_check(struct workfile *w, struct dest *dest, uint64_t need, struct err *err)
{
	autoclose int fd = -1;

	if (w->keep)
		return check_kept(w, dest, need, err);
	dest->free_known = false;
	fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, ERR_REFUSED,
				 "cannot open the work directory %s (see --work-dir)", w->dir);
	return dest_check_room(dest, fd, w->dir, need, err);
}

void workfile_tidy(struct workfile *w)
{
	if (w->keep)
		w->keep->ops->tidy(w->keep);
}

/* Where the filesystem has no files without a name: one that has its name for an
 * instant.
 */
static int create_and_unlink(const char *dir, struct err *err)
{
	autoclose int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1], note[NAME_MAX + 1];
	autoclose int fd = -1;

	if (tmpname_make("work", name, note, err) < 0)
		return -1;
	if (dirfd >= 0)
		fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, ERR_REFUSED, "cannot create a file in %s", dir);
	if (unlinkat(dirfd, name, 0) < 0)
		return err_errno(err, ERR_FAILED, "cannot remove %s/%s", dir, name);
	return steal_fd(&fd);
}

int workfile_unnamed(const char *dir, int *fd, struct err *err)
{
	const char *where = dir ? dir : default_dir();

	/* O_EXCL: it shall never get a name */
	*fd = open(where, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (*fd < 0)
		*fd = create_and_unlink(where, err);
	return *fd < 0 ? -1 : 0;
}

int workfile_reserve(struct workfile *w, int *fd, struct err *err)
{
	if (w->keep) {
		int rc = w->keep->ops->reserve(w->keep, &w->kept_fd, err);

		*fd = w->kept_fd;
		return rc;
	}
	if (workfile_unnamed(w->dir, &w->fd, err) < 0)
		return -1;
	*fd = w->fd;
	return 0;
}

const char *workfile_path(const struct workfile *w)
{
	return w->keep ? w->keep->path : NULL;
}

int workfile_keep(struct workfile *w, struct err *err)
{
	struct image_info info = { 0 };
	struct stat st;
	int rc;

	if (!w->keep)
		return 0;
	if (fstat(w->kept_fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", w->keep->path);
	info.size = (uint64_t)st.st_size;
	rc = w->keep->ops->publish(w->keep, &info, err);
	image_info_free(&info);
	return rc;
}
