// SPDX-License-Identifier: Apache-2.0
#include "dest/workfile.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/dest.h"
#include "dest/kinds.h"
#include "dest/tmpname.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct workfile {
	struct dest *keep; /* the file that stays, as a destination of its own, or NULL */
	char *dir;	   /* without one */
	int fd;		   /* of the image; -1: none yet */
	bool is_adopted;   /* it is the caller's */
};

static const char *default_dir(void)
{
	const char *dir = getenv("TMPDIR");

	/* not /tmp, which may be memory */
	return dir && *dir ? dir : "/var/tmp";
}

static struct workfile *workfile_new(const struct dest_config *cfg, struct err *err)
{
	struct workfile *w = calloc(1, sizeof *w);
	autoworkfile struct workfile *made = w;

	if (!w) {
		err_nomem(err);
		return NULL;
	}
	w->fd = -1;
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
	if (!w->keep && !w->is_adopted && w->fd >= 0)
		close(w->fd);
	free(w->dir);
	free(w);
}

int workfile_open(struct dest *dest, const struct dest_config *cfg, struct workfile **out,
		  struct err *err)
{
	*out = NULL;
	if (!cfg->image_name)
		return 0;
	*out = workfile_new(cfg, err);
	if (!*out)
		return -1;
	if (!(*out)->keep)
		return 0;
	dest->path = strdup((*out)->keep->path);
	return dest->path ? 0 : err_nomem(err);
}

void workfile_adopt(struct workfile *w, int fd)
{
	w->fd = fd;
	w->is_adopted = true;
}

bool workfile_is_adopted(const struct workfile *w)
{
	return w->is_adopted;
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

	dest->free_known = w->is_adopted;
	dest->free_bytes = UINT64_MAX;
	if (w->is_adopted)
		return 0;
	if (w->keep)
		return check_kept(w, dest, need, err);
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
	int rc = w->keep ? w->keep->ops->reserve(w->keep, &w->fd, err)
			 : workfile_unnamed(w->dir, &w->fd, err);

	*fd = w->fd;
	return rc;
}

int workfile_fd(const struct workfile *w)
{
	return w->fd;
}

int workfile_keep(struct workfile *w, struct dest *dest, struct err *err)
{
	struct image_info info = { 0 };
	struct stat st;

	if (!w->keep || w->is_adopted)
		return 0;
	if (fstat(w->fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", dest->path);
	info.size = (uint64_t)st.st_size;
	dest->receipt.is_kept = w->keep->ops->publish(w->keep, &info, err) == 0;
	image_info_free(&info);
	return dest->receipt.is_kept ? 0 : -1;
}

/* --- how it can be done again --- */

static bool is_plain(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789%+,-./:=@_";

	return *text && !text[strspn(text, plain)];
}

/* " WORD" as a shell (POSIX 2.2.2) reads it, "" for NULL (malloc). */
static char *shell_word(const char *text)
{
	size_t len = text ? strlen(text) : 0;
	autofree char *word = malloc(4 * len + 4);
	char *out = word;

	if (!word)
		return NULL;
	if (!text || is_plain(text)) {
		sprintf(word, "%s%s", text ? " " : "", text ? text : "");
		return steal(&word);
	}
	out += sprintf(out, " '");
	for (; *text; text++)
		out += sprintf(out, *text == '\'' ? "'\\''" : "%c", *text);
	strcpy(out, "'");
	return steal(&word);
}

int workfile_hint(const struct dest *dest, const char *name, const char *where, struct err *err)
{
	autofree char *option = where ? str_format("--to=%s", where) : NULL;
	autofree char *path = NULL, *word = NULL, *to = NULL;

	if (!dest->receipt.is_kept)
		return -1;
	path = shell_word(dest->path);
	word = shell_word(name);
	to = shell_word(option);
	if (!path || !word || !to)
		return -1;
	return err_hint(err, "the image is in %s: send it with ccsnap upload%s%s%s%s", dest->path,
			path, word, to,
			where ? " and the same --property, --tag and --series" : "");
}
