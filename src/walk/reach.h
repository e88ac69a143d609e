/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_REACH_H
#define CCSNAP_WALK_REACH_H

#include "ext4/model.h"

#include <stdbool.h>
#include <sys/types.h>

/* Opens what a model's nodes were found as, below the source's descriptor and
 * never through a symbolic link: whatever happens to the tree meanwhile,
 * nothing outside of it is opened.  Paths may be of any length.  Directories
 * are kept open for the next call; from any thread, as long as the model stays
 * as it is meanwhile.
 */
struct err;
struct reach;
struct stat;

struct reach *reach_new(const struct model *model, int root_fd, struct err *err);

/* NULL is fine; not root_fd.  Never while a thread is stuck in one of the
 * calls below.
 */
void reach_free(struct reach *r);

/* A descriptor of the directory node, owned by the caller; -1 with errno.
 * ESTALE when something else stands at its path now (device and inode).
 */
int reach_directory(struct reach *r, uint32_t node);

/* The file node by its first name, or by whatever other name still leads to
 * it; O_NOATIME where we may.  Only regular files are opened, never a FIFO or
 * device that was put in the place: -1 with errno, ESTALE when it is another
 * file now, which *now then describes; ENOENT when nothing is there, or its
 * directory is no longer the one that was walked.
 */
int reach_file(struct reach *r, uint32_t node, struct stat *now);

/* Is the file still as the walk found it: inode, size, times? */
bool reach_is_unchanged(const struct model_node *node, const struct stat *now);

/* Does errno say that something else, or nothing, stands in its place? */
bool reach_is_gone(int error);

/* What stands at that name now, as lstat has it; -1 with errno: ENOENT also when its
 * directory is no longer the one that was walked.
 */
int reach_stat_name(struct reach *r, uint32_t dir, const char *name, struct stat *now);

#endif
