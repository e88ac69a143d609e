// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "dest/dest.h"
#include "dest/kinds.h"
#include "dest/manifest.h"
#include "dest/outfile.h"
#include "dest/outfile_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* "folder:PATH": a store of images.
 *
 * NAME+suffix is the image, NAME.manifest.json says what it is; the manifest is
 * what makes an image of the store: without one a file is not listed, and a
 * manifest whose image is missing is debris, not listed and replaced without
 * asking.  So that a run may be killed at any instant, publishing goes:
 *
 * A new NAME: manifest, then image.  Killed in between, there is debris and no
 * image; the next run for NAME just works, and a list passes over it without a
 * word.  Never is there an image in the store without its manifest.
 *
 * NAME is replaced (--overwrite): the new manifest is first written aside as
 * the image's note (outfile.h); then the image's rename, the removal of an old
 * image in another format, the note's rename.  Killed before the image's
 * rename, all is as it was.  Killed after it, the old manifest stands beside the
 * new image and the waiting note tells so; the next run for NAME begins by
 * finishing what was begun (tidy, reserve), with or without --overwrite, and
 * also when it is then refused; only dry runs leave all as it is.  At no time
 * is NAME without an image.  Readers in between see sizes that differ and skip
 * it.
 */
struct folder {
	struct dest base;
	char *path;
	char *image_name, *file, *manifest, *report; /* NULL for a list */
	enum outfile_existing existing;
	unsigned wait_seconds;
	bool is_default; /* created when missing */
	int dirfd;	 /* -1: not open (yet) */
	struct outfile *out;
};

/* --- the directory --- */

/* 0: open now, 1: it is missing, -1. */
static int open_folder(struct folder *f, struct err *err)
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

/* --- what is there --- */

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

/* Read a manifest of NAME and put the true names in.  0, or -1. */
static int read_manifest(int dirfd, const char *manifest, const char *image_name,
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

/* 1: a regular file of that name is there, and its size; 0 otherwise, with
 * errno, which is EINVAL for what is no regular file.
 */
static int stat_regular(int dirfd, const char *name, uint64_t *size)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	errno = EINVAL;
	if (!S_ISREG(st.st_mode))
		return 0;
	*size = (uint64_t)st.st_size;
	return 1;
}

/* The image that NAME's manifest names, if both are there: 1 and *file
 * (malloc), 0 for none, -1 for a manifest that cannot be understood.
 */
static int find_current(const struct folder *f, char **file, struct err *err)
{
	struct image_info info;
	uint64_t size;
	int found;

	if (!stat_regular(f->dirfd, f->manifest, &size))
		return 0;
	if (read_manifest(f->dirfd, f->manifest, f->image_name, &info, err) < 0)
		return -1;
	found = stat_regular(f->dirfd, info.file, &size);
	if (found)
		*file = steal(&info.file);
	image_info_free(&info);
	return found;
}

/* May NAME be made here? */
static int check_names(const struct folder *f, struct err *err)
{
	autofree char *other = NULL;
	int found;

	if (outfile_check_name(f->dirfd, f->path, f->file, f->existing, err) < 0 ||
	    outfile_check_name(f->dirfd, f->path, f->manifest, OUTFILE_REPLACE, err) < 0 ||
	    outfile_check_report(f->dirfd, f->path, f->report, err) < 0)
		return -1;
	found = find_current(f, &other, err);
	if (f->existing == OUTFILE_REPLACE)
		return found > 0 ? outfile_check_name(f->dirfd, f->path, other, f->existing, err)
				 : 0;
	if (found < 0) {
		err->kind = ERR_REFUSED;
		return err_context(err, "%s: remove %s or use --overwrite", f->path, f->manifest);
	}
	if (found)
		return err_set(err, ERR_REFUSED, "%s/%s exists; use --overwrite to replace it",
			       f->path, other);
	return 0;
}

static int folder_check(struct dest *dest, uint64_t need, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	int rc = open_folder(f, err);

	dest->free_known = false;
	if (rc > 0)
		return dest_check_room_above(dest, f->path, need, err);
	if (rc < 0 || dest_check_room(dest, f->dirfd, f->path, need, err) < 0)
		return -1;
	return check_names(f, err);
}

/* --- publishing --- */

static void remove_replaced(const struct folder *f, const char *name)
{
	struct err err;

	if (outfile_remove(f->dirfd, f->path, name, &err) < 0)
		log_warn("%s/%s was replaced, but stays: %s", f->path, name, err.text);
}

/* Before a new manifest takes the old one's place, what belongs to the old one
 * goes: its report, and its image unless that is the new one's, too.
 */
static void remove_old(const struct folder *f, const char *new_file)
{
	struct err ignored;
	autofree char *old = NULL;

	remove_replaced(f, f->report);
	if (find_current(f, &old, &ignored) == 1 && !str_equal(old, new_file))
		remove_replaced(f, old);
}

/* A note whose image is in place becomes the manifest; one that does not fit
 * what is there is dropped.
 */
static int settle_note(const struct folder *f, const char *note, struct err *err)
{
	struct image_info info;
	uint64_t size;
	int rc = read_manifest(f->dirfd, note, f->image_name, &info, err);

	if (rc < 0 || !stat_regular(f->dirfd, info.file, &size) || size != info.size) {
		rc = outfile_remove(f->dirfd, f->path, note, err);
	} else if (outfile_check_name(f->dirfd, f->path, f->manifest, OUTFILE_REPLACE, err) < 0) {
		rc = -1;
	} else {
		remove_old(f, info.file);
		rc = renameat(f->dirfd, note, f->dirfd, f->manifest);
		if (rc < 0)
			err_errno(err, ERR_FAILED, "cannot rename to %s/%s", f->path, f->manifest);
	}
	image_info_free(&info);
	return rc < 0 ? err_context(err, "cannot finish what a killed run began (%s)", note) : 0;
}

/* out: holds the key or the directory. */
static int settle(const struct folder *f, const struct outfile *out, struct err *err)
{
	char note[NAME_MAX + 1];
	int found;

	while ((found = outfile_find_note(out, note, err)) == 1)
		if (settle_note(f, note, err) < 0)
			return -1;
	return found;
}

static struct outfile_place place_of(const struct folder *f, const char *final)
{
	return (struct outfile_place){
		.dirfd = f->dirfd, .dir = f->path, .final = final, .key = f->image_name
	};
}

static void folder_tidy(struct dest *dest)
{
	struct folder *f = (struct folder *)dest;
	autooutfile struct outfile *out = NULL;
	struct outfile_place place;
	struct err err;
	int rc = open_folder(f, &err);

	if (rc == 0) {
		place = place_of(f, f->file);
		out = outfile_tidy(&place, &err);
		rc = out ? settle(f, out, &err) : -1;
	}
	if (rc < 0)
		log_debug("not tidied up: %s", err.text);
}

static int folder_reserve(struct dest *dest, int *fd, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	struct outfile_place place;
	int rc = open_folder(f, err);

	if (rc > 0)
		rc = dest_make_directory(f->path, err) < 0 ? -1 : open_folder(f, err);
	if (rc > 0)
		return err_set(err, ERR_REFUSED, "the folder %s has gone", f->path);
	if (rc < 0)
		return -1;
	place = place_of(f, f->file);
	f->out = outfile_reserve(&place, f->wait_seconds, err);
	if (!f->out || settle(f, f->out, err) < 0 || check_names(f, err) < 0)
		return -1;
	*fd = outfile_fd(f->out);
	return 0;
}

static int set_text(char **text, const char *value)
{
	free(*text);
	*text = strdup(value);
	return *text ? 0 : -1;
}

/* What only the store knows of the image. */
static int complete_info(const struct folder *f, struct image_info *info, struct err *err)
{
	struct uuid_text id;
	struct stat st;

	if (fstat(outfile_fd(f->out), &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", f->base.name);
	if ((uint64_t)st.st_size != info->size)
		return err_set(err, ERR_FAILED, "%s has %llu bytes and not the %llu that were made",
			       f->base.name, (unsigned long long)st.st_size,
			       (unsigned long long)info->size);
	if (uuid_random(&id, err) < 0)
		return -1;
	if (set_text(&info->id, id.text) < 0 || set_text(&info->name, f->image_name) < 0 ||
	    set_text(&info->file, f->file) < 0)
		return err_nomem(err);
	return 0;
}

static int publish_new(const struct folder *f, struct err *err)
{
	struct err ignored;

	if (outfile_publish_note(f->out, f->manifest, err) < 0)
		return -1;
	if (outfile_publish(f->out, f->existing, err) == 0)
		return 0;
	if (!outfile_is_published(f->out))
		outfile_remove(f->dirfd, f->path, f->manifest, &ignored);
	return -1;
}

static int publish_over(const struct folder *f, struct err *err)
{
	if (outfile_publish(f->out, f->existing, err) < 0)
		return -1;
	remove_old(f, f->file);
	return outfile_publish_note(f->out, f->manifest, err);
}

/* Is there anything that --overwrite would replace? */
static bool is_taken(const struct folder *f)
{
	autofree char *old = NULL;
	struct err ignored;
	uint64_t size;

	return stat_regular(f->dirfd, f->file, &size) || find_current(f, &old, &ignored) == 1;
}

static int folder_publish(struct dest *dest, struct image_info *info, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	autofree char *json = NULL;

	if (check_names(f, err) < 0 || complete_info(f, info, err) < 0)
		return -1;
	json = manifest_to_json(info, err);
	if (!json || outfile_write_note(f->out, json, err) < 0)
		return -1;
	return is_taken(f) ? publish_over(f, err) : publish_new(f, err);
}

static int folder_attach_report(struct dest *dest, const char *json, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	struct outfile_place place = place_of(f, f->report);

	return outfile_replace(&place, json, err);
}

/* --- listing --- */

static int list_add(struct image_list *list, struct image_info *info, struct err *err)
{
	if (list->len == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 16;
		struct image_info *at = reallocarray(list->at, cap, sizeof *at);

		if (!at)
			return err_nomem(err);
		list->at = at;
		list->cap = cap;
	}
	list->at[list->len++] = *info;
	memset(info, 0, sizeof *info);
	return 0;
}

/* May the image that a manifest speaks of be shown?  Without an image it is part
 * of a publish that is under way or was killed, which needs no warning.
 */
static bool has_image(const struct folder *f, const char *manifest, const struct image_info *info)
{
	uint64_t size;

	if (stat_regular(f->dirfd, info->file, &size)) {
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
	if (!stat_regular(f->dirfd, manifest, &size)) {
		if (errno != ENOENT) /* removed since it was found */
			log_warn("%s/%s is not a regular file", f->path, manifest);
		return 0;
	}
	if (read_manifest(f->dirfd, manifest, name, info, &err) < 0) {
		if (err.sys_errno != ENOENT)
			log_warn("%s: %s", f->path, err.text);
		return 0;
	}
	if (has_image(f, manifest, info))
		return 1;
	image_info_free(info);
	return 0;
}

static int by_time_then_name(const void *left, const void *right)
{
	const struct image_info *a = left, *b = right;
	int order = strcmp(a->created_at, b->created_at);

	return order ? order : strcmp(a->name, b->name);
}

static int list_entries(const struct folder *f, struct image_list *out, struct err *err)
{
	autodir DIR *entries = outfile_open_dir(f->dirfd, f->path, err);
	struct image_info info;
	struct dirent *entry;

	if (!entries)
		return -1;
	while (errno = 0, (entry = readdir(entries))) {
		const char *name = entry->d_name;

		if (!str_ends(name, DEST_MANIFEST_SUFFIX) ||
		    str_equal(name, DEST_MANIFEST_SUFFIX) || !load(f, name, &info))
			continue;
		if (list_add(out, &info, err) < 0) {
			image_info_free(&info);
			return -1;
		}
	}
	return errno ? err_errno(err, ERR_FAILED, "cannot read %s", f->path) : 0;
}

static int folder_list(struct dest *dest, struct image_list *out, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	int rc = open_folder(f, err);

	memset(out, 0, sizeof *out);
	if (rc != 0)
		return rc > 0 ? 0 : -1;
	if (list_entries(f, out, err) < 0) {
		image_list_free(out);
		return -1;
	}
	if (out->len > 1)
		qsort(out->at, out->len, sizeof *out->at, by_time_then_name);
	return 0;
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

static int set_names(struct folder *f, const struct dest_config *cfg, struct err *err)
{
	if (check_image_name(cfg->image_name, cfg->suffix, err) < 0)
		return -1;
	f->image_name = strdup(cfg->image_name);
	f->file = str_format("%s%s", cfg->image_name, cfg->suffix);
	f->manifest = str_format("%s" DEST_MANIFEST_SUFFIX, cfg->image_name);
	f->report = str_format("%s" DEST_REPORT_SUFFIX, cfg->image_name);
	if (!f->image_name || !f->file || !f->manifest || !f->report)
		return err_nomem(err);
	f->base.name = str_format("%s/%s", f->path, f->file);
	return 0;
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

struct dest *folder_open(const struct dest_config *cfg, const char *rest, struct err *err)
{
	struct folder *f = *rest ? folder_new(rest) : NULL;
	autodest struct dest *dest = f ? &f->base : NULL;
	autofree char *standard = dest_default();

	if (!*rest) {
		err_set(err, ERR_USAGE, "--to='folder:' needs a path behind the colon");
		return NULL;
	}
	if (!f || !f->path) {
		err_nomem(err);
		return NULL;
	}
	f->existing = cfg->overwrite ? OUTFILE_REPLACE : OUTFILE_KEEP;
	f->wait_seconds = cfg->lock_wait_seconds;
	f->is_default = standard && str_equal(standard, cfg->where);
	if (cfg->image_name && set_names(f, cfg, err) < 0)
		return NULL;
	if (!dest->name)
		dest->name = strdup(f->path);
	if (!dest->name) {
		err_nomem(err);
		return NULL;
	}
	return steal(&dest);
}
