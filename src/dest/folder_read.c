// SPDX-License-Identifier: Apache-2.0
#include "dest/folder_inner.h"

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* --- one image --- */

/* The image that NAME's manifest speaks of (malloc), NULL when that cannot be
 * one.  Names in JSON are made UTF-8, so the true bytes of the file's name are
 * NAME's own and what follows them in "file".
 */
static char *image_file(const struct image_info *info, const char *image_name)
{
	autofree char *utf8 = str_to_utf8(image_name);
	const char *suffix;

	if (!utf8 || !str_equal(info->name, utf8) || !str_starts(info->file, utf8))
		return NULL;
	suffix = info->file + strlen(utf8);
	if (suffix[0] != '.' || str_equal(suffix, DEST_MANIFEST_SUFFIX) ||
	    str_equal(suffix, DEST_REPORT_SUFFIX))
		return NULL;
	return str_format("%s%s", image_name, suffix);
}

int folder_read_manifest(int dirfd, const char *manifest, const char *image_name,
			 struct image_info *info, struct err *err)
{
	size_t len;
	autofree char *text = io_read_file(dirfd, manifest, MANIFEST_MAX, &len, err);
	char *file, *name;

	memset(info, 0, sizeof *info);
	if (!text || manifest_from_json(text, len, manifest, info, err) < 0)
		return -1;
	file = image_file(info, image_name);
	name = strdup(image_name);
	if (!file || !name) {
		free(file);
		free(name);
		image_info_free(info);
		return err_set(err, ERR_FAILED, "%s speaks of another image", manifest);
	}
	free(info->file);
	free(info->name);
	info->file = file;
	info->name = name;
	return 0;
}

bool folder_stat_regular(int dirfd, const char *name, uint64_t *size)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	errno = EINVAL;
	if (!S_ISREG(st.st_mode))
		return false;
	*size = (uint64_t)st.st_size;
	return true;
}

int folder_find_current(const struct folder *f, struct image_info *info, struct err *err)
{
	uint64_t size;

	memset(info, 0, sizeof *info);
	if (!folder_stat_regular(f->dirfd, f->manifest, &size))
		return 0;
	if (folder_read_manifest(f->dirfd, f->manifest, f->image_name, info, err) < 0)
		return -1;
	if (folder_stat_regular(f->dirfd, info->file, &size))
		return 1;
	image_info_free(info);
	return 0;
}

/* --- the list --- */

/* May the image that a manifest speaks of be shown?  Without an image it is part
 * of a publish that is under way or was killed, which needs no warning.
 */
static bool has_image(const struct folder *f, const char *manifest, const struct image_info *info)
{
	uint64_t size;

	if (folder_stat_regular(f->dirfd, info->file, &size)) {
		if (size == info->size)
			return true;
		log_warn("%s/%s: its image %s has another size", f->path, manifest, info->file);
	} else if (errno == ENOENT) {
		log_debug("%s/%s: its image %s is not there", f->path, manifest, info->file);
	} else {
		log_warn("%s/%s: its image %s is no regular file", f->path, manifest, info->file);
	}
	return false;
}

/* 1: info is an image of the store, 0: it is not (and why was said). */
static int load(const struct folder *f, const char *manifest, struct image_info *info)
{
	size_t name_len = strlen(manifest) - strlen(DEST_MANIFEST_SUFFIX);
	char name[NAME_MAX + 1];
	struct err err;
	uint64_t size;

	memcpy(name, manifest, name_len);
	name[name_len] = '\0';
	if (!folder_stat_regular(f->dirfd, manifest, &size)) {
		if (errno != ENOENT) /* removed since it was found */
			log_warn("%s/%s is not a regular file", f->path, manifest);
		return 0;
	}
	if (folder_read_manifest(f->dirfd, manifest, name, info, &err) < 0) {
		if (err.sys_errno != ENOENT)
			log_warn("%s: %s", f->path, err.text);
		return 0;
	}
	if (has_image(f, manifest, info))
		return 1;
	image_info_free(info);
	return 0;
}

static bool is_manifest(const char *name)
{
	return str_ends(name, DEST_MANIFEST_SUFFIX) && !str_equal(name, DEST_MANIFEST_SUFFIX);
}

static int list_entries(const struct folder *f, const struct image_filter *filter,
			struct image_list *out, struct err *err)
{
	autodir DIR *entries = outfile_open_dir(f->dirfd, f->path, err);
	struct dirent *entry;

	if (!entries)
		return -1;
	while (errno = 0, (entry = readdir(entries))) {
		struct image_info info = { 0 };
		int rc = 0;

		if (!is_manifest(entry->d_name) || !load(f, entry->d_name, &info))
			continue;
		if (image_matches(&info, filter))
			rc = image_list_add(out, &info, err);
		image_info_free(&info);
		if (rc < 0)
			return -1;
	}
	return errno ? err_errno(err, ERR_FAILED, "cannot read %s", f->path) : 0;
}

static int by_time_then_name(const void *left, const void *right)
{
	const struct image_info *a = left, *b = right;
	int order = strcmp(a->created_at, b->created_at);

	return order ? order : strcmp(a->name, b->name);
}

int folder_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		struct err *err)
{
	struct folder *f = (struct folder *)dest;
	int rc = folder_open_directory(f, err);

	memset(out, 0, sizeof *out);
	if (rc != 0)
		return rc > 0 ? 0 : -1;
	if (list_entries(f, filter, out, err) < 0) {
		image_list_free(out);
		return -1;
	}
	if (out->len > 1)
		qsort(out->at, out->len, sizeof *out->at, by_time_then_name);
	return 0;
}
