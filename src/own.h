/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OWN_H
#define CCSNAP_OWN_H

#include <stddef.h>

/* What a tree may hold that is ccsnap's own and must not capture itself: stores,
 * the image and report to be, files that our output goes to.
 */
struct err;
struct plan;
struct walk_own;

/* destination: path of the image to be.  malloc. */
int own_list(const struct plan *plan, const char *destination, struct walk_own **list,
	     size_t *count, struct err *err);

#endif
