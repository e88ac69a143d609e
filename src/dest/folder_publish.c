// SPDX-License-Identifier: Apache-2.0
#include "dest/folder_inner.h"

#include "base/err.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "dest/kinds.h"
#include "dest/manifest.h"
#include "dest/outfile_report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- what killed runs began --- */

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
	struct image_info old;

	remove_replaced(f, f->report);
	if (folder_find_current(f, &old, &ignored) != 1)
		return;
	if (!str_equal(old.file, new_file))
		remove_replaced(f, old.file);
	image_info_free(&old);
}

/* A note whose image is in place becomes the manifest; one that does not fit
 * what is there is dropped.
 */
static int settle_note(const struct folder *f, const char *note, struct err *err)
{
	struct image_info info;
	uint64_t size;
	int rc = folder_read_manifest(f->dirfd, note, f->image_name, &info, err);

	if (rc < 0 || !folder_stat_regular(f->dirfd, info.file, &size) || size != info.size) {
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

void folder_tidy(struct dest *dest)
{
	struct folder *f = (struct folder *)dest;
	autooutfile struct outfile *out = NULL;
	struct outfile_place place;
	struct err err;
	int rc = folder_open_directory(f, &err);

	if (rc == 0) {
		place = place_of(f, f->file);
		out = outfile_tidy(&place, &err);
		rc = out ? settle(f, out, &err) : -1;
	}
	if (rc < 0)
		log_debug("not tidied up: %s", err.text);
}

/* --- publishing --- */

int folder_reserve(struct dest *dest, int *fd, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	struct outfile_place place;
	int rc = folder_open_directory(f, err);

	if (rc > 0)
		rc = folder_make(f->path, 0700, err) < 0 ? -1 : folder_open_directory(f, err);
	if (rc > 0)
		return err_set(err, ERR_REFUSED, "the folder %s has gone", f->path);
	if (rc < 0)
		return -1;
	place = place_of(f, f->file);
	f->out = outfile_reserve(&place, f->wait_seconds, err);
	if (!f->out || settle(f, f->out, err) < 0 || folder_check_names(f, err) < 0)
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
	struct image_info old;
	struct err ignored;
	uint64_t size;

	if (folder_stat_regular(f->dirfd, f->file, &size))
		return true;
	if (folder_find_current(f, &old, &ignored) != 1)
		return false;
	image_info_free(&old);
	return true;
}

int folder_publish(struct dest *dest, struct image_info *info, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	autofree char *json = NULL;

	if (folder_check_names(f, err) < 0 || complete_info(f, info, err) < 0)
		return -1;
	json = manifest_to_json(info, err);
	if (!json || outfile_write_note(f->out, json, err) < 0)
		return -1;
	if ((is_taken(f) ? publish_over(f, err) : publish_new(f, err)) < 0)
		return -1;
	if (set_text(&dest->receipt.image_id, info->id) < 0)
		return err_nomem(err);
	return dest_prove_file(dest, outfile_fd(f->out), dest->path, info->size, err);
}

int folder_attach_report(struct dest *dest, const char *json, struct err *err)
{
	struct folder *f = (struct folder *)dest;
	struct outfile_place place = place_of(f, f->report);

	return outfile_replace(&place, json, err);
}

/* --- removing --- */

/* What is no report of ours is not for us to remove. */
static void remove_report(const struct folder *f)
{
	struct err err;

	if (outfile_check_report(f->dirfd, f->path, f->report, &err) < 0 ||
	    outfile_remove(f->dirfd, f->path, f->report, &err) < 0)
		log_warn("%s/%s stays: %s", f->path, f->report, err.text);
}

static int remove_parts(const struct folder *f, const struct image_info *current, struct err *err)
{
	remove_report(f);
	if (outfile_remove(f->dirfd, f->path, current->file, err) < 0)
		return -1;
	return outfile_remove(f->dirfd, f->path, f->manifest, err);
}

/* Another image of that name is none of ours: then the one with this id is gone. */
static int remove_if_current(const struct folder *f, const char *id, struct err *err)
{
	struct image_info current;
	int rc = folder_find_current(f, &current, err);

	if (rc == 1) {
		rc = str_equal(current.id, id) ? remove_parts(f, &current, err) : 0;
		image_info_free(&current);
	}
	return rc;
}

/* No other run can publish that name meanwhile. */
static int remove_alone(struct folder *f, const char *id, struct err *err)
{
	autooutfile struct outfile *lock = NULL;
	struct outfile_place place;
	int rc = folder_open_directory(f, err);

	if (rc != 0)
		return rc > 0 ? 0 : -1;
	place = place_of(f, f->file);
	lock = outfile_tidy(&place, err);
	if (!lock || settle(f, lock, err) < 0)
		return -1;
	return remove_if_current(f, id, err);
}

int folder_remove(struct dest *dest, const struct image_info *info, struct err *err)
{
	struct folder *f = folder_of_image((const struct folder *)dest, info, err);
	int rc = f ? remove_alone(f, info->id, err) : -1;

	dest_close(f ? &f->base : NULL);
	return rc;
}
