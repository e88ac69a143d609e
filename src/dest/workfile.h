/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WORKFILE_H
#define CCSNAP_WORKFILE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

/* Where an image is built that is then sent away: a file without a name in the work
 * directory, which nothing can leave behind; or the file that --output asks for, which
 * stays.
 */
struct dest;
struct dest_config;
struct err;
struct workfile;

/* dest's, as cfg->work_dir and ->keep_path say, and dest's path with it; nothing is made yet.
 * NULL when no image is to go there.
 */
int workfile_open(struct dest *dest, const struct dest_config *cfg, struct workfile **out,
		  struct err *err);
void workfile_free(struct workfile *w); /* NULL is fine; removes what was not kept */

/* Instead of reserve: fd holds the finished image, and stays the caller's. */
void workfile_adopt(struct workfile *w, int fd);
bool workfile_is_adopted(const struct workfile *w);

/* dest gets its free_bytes and free_known.  Changes nothing. */
int workfile_check(struct workfile *w, struct dest *dest, uint64_t need, struct err *err);

void workfile_tidy(struct workfile *w);
int workfile_reserve(struct workfile *w, int *fd, struct err *err);
int workfile_fd(const struct workfile *w); /* of the image */

/* Give it its name, whole and synced, before it is sent: what then fails can be done again
 * from it.  dest's receipt.is_kept says whether there is such a file.
 */
int workfile_keep(struct workfile *w, struct dest *dest, struct err *err);

/* After sending failed (-1): how it can be done again, as a line for a shell.  name: of the
 * image, where as in --to; or NULL.
 */
int workfile_hint(const struct dest *dest, const char *name, const char *where, struct err *err);

/* A file without a name in dir (NULL: TMPDIR or /var/tmp), read and write, 0600. */
int workfile_unnamed(const char *dir, int *fd, struct err *err);

CLEANUP_TYPE(struct workfile, workfile, workfile_free)
#define autoworkfile CLEANUP(workfile_cleanup)

#endif
