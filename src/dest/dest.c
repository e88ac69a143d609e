// SPDX-License-Identifier: Apache-2.0
#include "dest/dest.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

const struct dest_kind dest_kinds[] = {
	{ "folder", folder_open },
	{ "file", file_open },
	{ NULL, NULL },
};

static const struct dest_kind *find_kind(const char *where, const char **rest)
{
	for (const struct dest_kind *kind = dest_kinds; kind->scheme; kind++) {
		size_t len = strlen(kind->scheme);

		if (strncmp(where, kind->scheme, len) == 0 && where[len] == ':') {
			*rest = where + len + 1;
			return kind;
		}
	}
	return NULL;
}

static void list_kinds(char *text, size_t cap)
{
	size_t len = 0;

	for (const struct dest_kind *kind = dest_kinds; kind->scheme && len < cap; kind++)
		len += (size_t)snprintf(text + len, cap - len, "%s%s:PATH", len ? ", " : "",
					kind->scheme);
}

struct dest *dest_open(const struct dest_config *cfg, struct err *err)
{
	const char *rest, *hint = "";
	const struct dest_kind *kind = find_kind(cfg->where, &rest);
	char accepted[128];

	if (kind)
		return kind->open(cfg, rest, err);
	list_kinds(accepted, sizeof accepted);
	if (!strchr(cfg->where, ':') || strchr("/.~", cfg->where[0]))
		hint = "; for a directory put folder: in front";
	err_set(err, ERR_USAGE, "--to='%s' is no destination; accepted are %s%s", cfg->where,
		accepted, hint);
	return NULL;
}

static int check_file_size_limit(uint64_t need, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >= need)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "the limit on file sizes (ulimit -f) is too low: %s needed, %s allowed",
		       size_format(need).text, size_format(limit.rlim_cur).text);
}

int dest_check_room(struct dest *dest, int dirfd, const char *dir, uint64_t need, struct err *err)
{
	struct statvfs fs;

	dest->free_known = fstatvfs(dirfd, &fs) == 0;
	if (!dest->free_known)
		return err_errno(err, ERR_REFUSED, "cannot ask for the free space in %s", dir);
	/* no blocks at all: a filesystem that does not count (tmpfs without a limit) */
	dest->free_bytes = fs.f_blocks ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
	if (faccessat(dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_errno(err, ERR_REFUSED, "cannot write to %s", dir);
	if (fs.f_files > 0 && fs.f_favail == 0)
		return err_set(err, ERR_REFUSED, "no free inode in the filesystem of %s", dir);
	if (dest->free_bytes < need)
		return err_set(err, ERR_REFUSED, "not enough space in %s: %s needed, %s free", dir,
			       size_format(need).text, size_format(dest->free_bytes).text);
	return check_file_size_limit(need, err);
}

int dest_check_room_above(struct dest *dest, const char *dir, uint64_t need, struct err *err)
{
	autofree char *path = strdup(dir);
	autoclose int fd = -1;

	if (!path)
		return err_nomem(err);
	while (fd < 0) {
		char *slash = strrchr(path, '/');

		if (!slash || !path[1])
			return err_set(err, ERR_REFUSED, "cannot create the folder %s", dir);
		slash[slash == path] = '\0';
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return err_errno(err, ERR_REFUSED, "cannot open %s", path);
	}
	return dest_check_room(dest, fd, path, need, err);
}

int dest_make_directory(const char *dir, struct err *err)
{
	autofree char *path = strdup(dir);

	if (!path)
		return err_nomem(err);
	for (char *slash = path; slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_errno(err, ERR_REFUSED, "cannot create the folder %s", path);
		if (slash)
			*slash = '/';
	}
	return 0;
}

void dest_close(struct dest *dest)
{
	if (dest)
		dest->ops->close(dest);
}

char *dest_default(void)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return strdup("folder:/var/lib/ccsnap/images");
	/* the XDG rules have relative paths ignored */
	if (data && data[0] == '/')
		return str_format("folder:%s/ccsnap/images", data);
	if (home && home[0] == '/')
		return str_format("folder:%s/.local/share/ccsnap/images", home);
	return NULL;
}

void image_info_free(struct image_info *info)
{
	free(info->id);
	free(info->name);
	free(info->file);
	free(info->format);
	free(info->compression);
	free(info->created_at);
	for (char **p = info->properties; p && *p; p++)
		free(*p);
	free(info->properties);
	memset(info, 0, sizeof *info);
}

void image_list_free(struct image_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		image_info_free(&list->at[i]);
	free(list->at);
	memset(list, 0, sizeof *list);
}
