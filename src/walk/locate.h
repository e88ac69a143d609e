/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_LOCATE_H
#define CCSNAP_WALK_LOCATE_H

#include "base/cleanup.h"

#include <stdbool.h>

/* What a path on the command line names in a tree.  There are two ways to read it;
 * in both the last component is not followed, and links on the way are, as if
 * the tree were the root.
 */
struct err;

/* Paths from the source's root, normalised, without a slash in front, "" for the
 * source itself.  NULL: that reading leads out of the source, or nowhere.
 */
struct location {
	char *seen; /* as the user sees it, from the current directory or from / */
	bool seen_exists;
	char *relative; /* from the source's root, also with a slash in front */
	bool relative_exists;
};

/* source: an absolute path without links. */
int locate(const char *source, const char *text, struct location *out, struct err *err);
void location_free(struct location *l);
#define autolocation CLEANUP(location_free)

/* The part of an absolute path below a directory ("" for itself), inside path; NULL
 * when it is not there.  By text only.
 */
const char *path_below(const char *directory, const char *path);

#endif
