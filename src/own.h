/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OWN_H
#define CCSNAP_OWN_H

#include <stddef.h>

/* What a tree may hold that is ccsnap's own and must not capture itself: images
 * of stores with what belongs to them, the image and report to be, files that our
 * output goes to.  Whatever else lies beside them is the user's.
 */
struct err;
struct plan;
struct walk_own;

/* destination: path of the image to be, NULL when it goes elsewhere.  malloc. */
int own_list(const struct plan *plan, const char *destination, struct walk_own **list,
	     size_t *count, struct err *err);

#endif
