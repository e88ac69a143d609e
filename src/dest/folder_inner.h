/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_FOLDER_INNER_H
#define CCSNAP_FOLDER_INNER_H

#include "dest/dest.h"
#include "dest/outfile.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

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
 * finishing what was begun (tidy, reserve, remove), with or without --overwrite,
 * and also when it is then refused; only dry runs leave all as it is.  At no time
 * is NAME without an image.  Readers in between see sizes that differ and skip
 * it.
 *
 * NAME is removed: report, image, manifest.  Killed before the image goes, there
 * is an image without a report; after it, debris.
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

/* --- folder.c: the directory and the names in it --- */

/* 0: open now, 1: it is missing, -1. */
int folder_open_directory(struct folder *f, struct err *err);

/* May NAME be made here? */
int folder_check_names(const struct folder *f, struct err *err);

/* The store again, as if it had been opened for that image of its. */
struct folder *folder_of_image(const struct folder *store, const struct image_info *info,
			       struct err *err);

/* --- folder_read.c: what is there --- */

/* Read a manifest of NAME and put the true names in.  0, or -1. */
int folder_read_manifest(int dirfd, const char *manifest, const char *image_name,
			 struct image_info *info, struct err *err);

/* True: a regular file of that name is there, and its size; otherwise errno is
 * EINVAL for what is no regular file.
 */
bool folder_stat_regular(int dirfd, const char *name, uint64_t *size);

/* What NAME's manifest says, if it and the image that it names are both there: 1,
 * 0 for none, -1 for a manifest that cannot be understood.
 */
int folder_find_current(const struct folder *f, struct image_info *info, struct err *err);

int folder_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		struct err *err);

/* --- folder_fetch.c --- */

int folder_fetch(struct dest *dest, struct image_info *info, int fd, struct err *err);

/* --- folder_publish.c: what changes it --- */

void folder_tidy(struct dest *dest);
int folder_reserve(struct dest *dest, int *fd, struct err *err);
int folder_publish(struct dest *dest, struct image_info *info, struct err *err);
int folder_attach_report(struct dest *dest, const char *json, struct err *err);
int folder_remove(struct dest *dest, const struct image_info *info, struct err *err);

#endif
