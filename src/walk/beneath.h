/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_BENEATH_H
#define CCSNAP_WALK_BENEATH_H

#include <stdbool.h>

/* Opens directories below another one, never through a symbolic link and never
 * out of it, by paths of any length.
 */
struct beneath {
	/* Many components at once; else one after the other (Linux before 5.6,
	 * and sandboxes that forbid what they do not know).
	 */
	bool has_openat2;
};

struct beneath beneath_probe(int dirfd);

/* path: names each with a slash behind, none of them "." or ".."; "" is from
 * itself.  It is written to.  -1 with errno: ESTALE when something else than a
 * directory is on the way.
 */
int beneath_open(const struct beneath *b, int from, char *path);

#endif
