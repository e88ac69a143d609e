// SPDX-License-Identifier: Apache-2.0
#include "dest/outfile_report.h"

#include "base/err.h"
#include "base/io.h"
#include "dest/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int outfile_check_report(int dirfd, const char *dir, const char *name, struct err *err)
{
	static const char begin[] = "{\n  \"schema\": \"ccsnap.report/";
	char text[sizeof begin - 1];
	autoclose int fd = -1;
	ssize_t n;

	if (outfile_check_name(dirfd, dir, name, OUTFILE_REPLACE, err) < 0)
		return -1;
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return 0;
	n = fd < 0 ? -1 : io_pread(fd, text, sizeof text, 0, NULL);
	if (n < 0)
		return err_errno(err, ERR_REFUSED, "cannot look at %s/%s", dir, name);
	if (n == 0 || (n == sizeof text && memcmp(text, begin, sizeof text) == 0))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%s/%s exists and is no report of ccsnap; it is never replaced by one", dir,
		       name);
}

static int replace(const struct outfile_place *place, const char *text, struct err *err)
{
	autooutfile struct outfile *out = NULL;

	if (outfile_check_report(place->dirfd, place->dir, place->final, err) < 0)
		return -1;
	out = outfile_reserve_at_once(place, err);
	if (!out)
		return -1;
	if (io_pwrite(outfile_fd(out), text, strlen(text), 0) < 0)
		return err_errno(err, ERR_FAILED, "cannot write %s/%s", place->dir, place->final);
	return outfile_publish(out, OUTFILE_REPLACE, err);
}

int outfile_replace(const struct outfile_place *place, const char *text, struct err *err)
{
	if (replace(place, text, err) == 0)
		return 0;
	err->kind = ERR_FAILED;
	return -1;
}

int outfile_replace_path(const char *path, const char *text, struct err *err)
{
	struct outfile_place place;
	autofree char *dir = io_directory(path, &place.final);
	autoclose int fd = -1;

	if (!dir)
		return err_nomem(err);
	if (outfile_check_final(path, place.final, err) < 0) {
		err->kind = ERR_FAILED;
		return -1;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, ERR_FAILED, "cannot write %s: cannot open %s", path, dir);
	place.dirfd = fd;
	place.dir = dir;
	place.key = place.final;
	return outfile_replace(&place, text, err);
}
