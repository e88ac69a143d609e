/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_PATTERN_H
#define CCSNAP_WALK_PATTERN_H

#include <stdbool.h>

/* One exclude pattern (docs/ccsnap.1, EXCLUDES): components with * ? [ ] as
 * fnmatch has them, byte by byte and a leading dot included, "**" for any number
 * of directories.  Pure.
 */
struct err;
struct pattern;

enum { PATTERN_MAX = 4095 }; /* bytes */

/* *out is NULL for a blank line and a comment.  ERR_USAGE for what has no meaning;
 * the message does not say where it stands.
 */
int pattern_parse(const char *text, struct pattern **out, struct err *err);
void pattern_free(struct pattern *p); /* NULL is fine */

/* Does it take back what an earlier one left out? */
bool pattern_takes_back(const struct pattern *p);

/* path: from the source's root, without a slash in front.  Takes time
 * proportional to the lengths of both at most.
 */
bool pattern_matches(const struct pattern *p, const char *path, bool directory);

#endif
