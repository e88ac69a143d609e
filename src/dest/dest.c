// SPDX-License-Identifier: Apache-2.0
#include "dest/dest.h"

#include "base/array.h"
#include "base/err.h"
#include "base/own_folder.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "dest/kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

const struct dest_kind dest_kinds[] = {
	{ "folder", "folder:PATH", folder_open, false, true },
	{ "file", "file:PATH", file_open, false, false },
	{ "glance", "glance[:CLOUD]", glance_open, true, true },
	{ "https", "https://HOST/PATH", put_open, true, false },
	{ "http", "http://HOST/PATH", put_open, true, false },
	{ 0 },
};

const struct dest_kind *dest_kind_find(const char *where, const char **rest)
{
	for (const struct dest_kind *kind = dest_kinds; kind->scheme; kind++) {
		size_t len = strlen(kind->scheme);

		if (strncasecmp(where, kind->scheme, len) == 0 &&
		    (where[len] == ':' || (where[len] == '\0' && kind->form[len] == '['))) {
			*rest = where[len] ? where + len + 1 : NULL;
			return kind;
		}
	}
	return NULL;
}

static void list_kinds(char *text, size_t cap)
{
	size_t len = 0;

	for (const struct dest_kind *kind = dest_kinds; kind->scheme && len < cap; kind++)
		len += (size_t)snprintf(text + len, cap - len, "%s%s", len ? ", " : "", kind->form);
}

struct dest *dest_open(const struct dest_config *cfg, struct err *err)
{
	const char *rest, *hint = "";
	const struct dest_kind *kind = dest_kind_find(cfg->where, &rest);
	autofree char *shown = NULL;
	char accepted[128];

	if (kind)
		return kind->open(cfg, rest, err);
	shown = dest_for_messages(cfg->where);
	list_kinds(accepted, sizeof accepted);
	if (!strchr(cfg->where, ':') || strchr("/.~", cfg->where[0]))
		hint = "; for a directory put folder: in front";
	err_set(err, ERR_USAGE, "--to='%s' is no destination; accepted are %s%s",
		shown ? shown : "", accepted, hint);
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

/* A password may hold what it should not: the last @ counts. */
char *dest_for_messages(const char *where)
{
	const char *rest = strstr(where, "://"), *host, *at;

	if (!rest)
		return strdup(where);
	host = rest + 3;
	at = strrchr(host, '@');
	host = at ? at + 1 : host;
	return str_format("%.*s://%.*s", (int)(rest - where), where, (int)strcspn(host, "?#"),
			  host);
}

int dest_check(struct dest *dest, uint64_t need, struct err *err)
{
	int done = dest->ops->check(dest, need, err);

	if (done < 0 && err->kind == ERR_FAILED)
		err->kind = ERR_REFUSED;
	return done;
}

int dest_prove_file(struct dest *dest, int fd, const char *path, uint64_t size, struct err *err)
{
	struct stat ours, theirs;

	dest->receipt.attempts = 1;
	dest->receipt.sent_bytes = size;
	if (fstat(fd, &ours) < 0 || stat(path, &theirs) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", path);
	if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino ||
	    (uint64_t)theirs.st_size != size)
		return err_set(err, ERR_FAILED, "%s was replaced while it was published", path);
	dest->receipt.verified = true;
	dest->receipt.verified_by = "file";
	return 0;
}

/* --- finding --- */

static int list_either(struct dest *dest, const char *text, struct image_list *out, struct err *err)
{
	struct image_filter by_id = { .id = text }, by_name = { .name = text };
	uint8_t id[16];

	memset(out, 0, sizeof *out);
	if (uuid_parse(text, id) && dest->ops->list(dest, &by_id, out, err) < 0)
		return -1;
	return out->len > 0 ? 0 : dest->ops->list(dest, &by_name, out, err);
}

/* Oldest first, and the newest told first, as many as fit. */
static int refuse_several(const char *text, const struct image_list *list, struct err *err)
{
	char ids[512];
	size_t len = 0;

	for (size_t i = list->len; i-- > 0 && len < sizeof ids;)
		len += (size_t)snprintf(ids + len, sizeof ids - len, "%s%s (%s)", len ? ", " : "",
					list->at[i].id, list->at[i].created_at);
	return err_set(err, ERR_REFUSED, "%zu images are called %s; give the id of one: %s",
		       list->len, text, ids);
}

/* A service lists the images of a project, and shows others to whoever knows their id. */
static int refuse_none(const struct dest *dest, const char *text, struct err *err)
{
	uint8_t id[16];
	bool has_others = str_equal(dest->ops->name, "glance") && !uuid_parse(text, id);

	return err_set(err, ERR_REFUSED, "there is no image %s in %s%s", text, dest->name,
		       has_others ? " (of this project; an image of another one is found by its id)"
				  : "");
}

int dest_find(struct dest *dest, const char *id_or_name, struct image_info *out, struct err *err)
{
	struct image_list list;
	int done = -1;

	if (list_either(dest, id_or_name, &list, err) < 0)
		return -1;
	if (list.len == 0) {
		refuse_none(dest, id_or_name, err);
	} else if (list.len > 1) {
		refuse_several(id_or_name, &list, err);
	} else {
		*out = list.at[0];
		list.len = 0;
		done = 0;
	}
	image_list_free(&list);
	return done;
}

void dest_close(struct dest *dest)
{
	if (dest)
		dest->ops->close(dest);
}

char *dest_default(void)
{
	autofree char *folder = own_folder("XDG_DATA_HOME", ".local/share", "images");

	return folder ? str_format("folder:%s", folder) : NULL;
}

void image_info_free(struct image_info *info)
{
	free(info->id);
	free(info->name);
	free(info->file);
	free(info->format);
	free(info->compression);
	free(info->created_at);
	str_list_free(info->properties);
	str_list_free(info->tags);
	free(info->status);
	free(info->hash_algo);
	free(info->hash_value);
	memset(info, 0, sizeof *info);
}

void image_list_free(struct image_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		image_info_free(&list->at[i]);
	free(list->at);
	memset(list, 0, sizeof *list);
}

int image_list_add(struct image_list *list, struct image_info *info, struct err *err)
{
	if (!array_room(list->at, list->cap, list->len + 1))
		return err_nomem(err);
	list->at[list->len++] = *info;
	memset(info, 0, sizeof *info);
	return 0;
}

const char *image_property(const struct image_info *info, const char *key)
{
	size_t len = strlen(key);

	for (char **p = info->properties; p && *p; p++)
		if (strncmp(*p, key, len) == 0 && (*p)[len] == '=')
			return *p + len + 1;
	return NULL;
}

static bool has_tag(const struct image_info *info, const char *tag)
{
	for (char **p = info->tags; p && *p; p++)
		if (str_equal(*p, tag))
			return true;
	return false;
}

bool image_matches(const struct image_info *info, const struct image_filter *filter)
{
	const char *series = image_property(info, PROPERTY_SERIES);

	return (!filter->id || strcasecmp(info->id, filter->id) == 0) &&
	       (!filter->name || str_equal(info->name, filter->name)) &&
	       (!filter->tag || has_tag(info, filter->tag)) &&
	       (!filter->series || (series && str_equal(series, filter->series)));
}
