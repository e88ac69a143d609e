/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WORKFILE_H
#define CCSNAP_WORKFILE_H

#include "base/cleanup.h"

#include <stdint.h>

/* Where an image is built that is then sent away: a file without a name in the work
 * directory, which nothing can leave behind; or the file that --output asks for, which
 * stays.
 */
struct dest;
struct dest_config;
struct err;
struct workfile;

/* cfg->work_dir and ->keep_path; nothing is made yet. */
struct workfile *workfile_new(const struct dest_config *cfg, struct err *err);
void workfile_free(struct workfile *w); /* NULL is fine; removes what was not kept */

/* dest gets its free_bytes and free_known.  Changes nothing. */
int workfile_check(struct workfile *w, struct dest *dest, uint64_t need, struct err *err);

void workfile_tidy(struct workfile *w);
int workfile_reserve(struct workfile *w, int *fd, struct err *err);

/* The path of the file that stays, NULL without one; borrowed. */
const char *workfile_path(const struct workfile *w);

/* Give it its name, whole and synced; nothing to do without one. */
int workfile_keep(struct workfile *w, struct err *err);

/* A file without a name in dir (NULL: TMPDIR or /var/tmp), read and write, 0600. */
int workfile_unnamed(const char *dir, int *fd, struct err *err);

CLEANUP_TYPE(struct workfile, workfile, workfile_free)
#define autoworkfile CLEANUP(workfile_cleanup)

#endif
