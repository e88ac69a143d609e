/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXTENT_H
#define CCSNAP_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct extent {
	uint64_t offset;
	uint64_t length; /* never 0 */
	bool zero;	 /* reads as zeros; need not be read at all */
};

struct extent_list {
	struct extent *at;
	size_t len, cap;
};

/* Append [offset, offset+length) behind the last one; a length of 0 is
 * nothing, a neighbour of the same kind grows.
 */
int extent_list_add(struct extent_list *list, uint64_t offset, uint64_t length, bool zero,
		    struct err *err);

/* Sort by offset and make one of those that overlap or have at most gap bytes
 * between them.
 */
void extent_list_merge(struct extent_list *list, uint64_t gap);

void extent_list_free(struct extent_list *list);

#endif
