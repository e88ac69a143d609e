/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_LINKS_H
#define CCSNAP_WALK_LINKS_H

#include <stddef.h>
#include <stdint.h>

/* Which node an inode with several names has become.  One thread at a time. */
struct err;

/* volume: the root node of the image's filesystem that the name is in, since
 * none can be in two.
 */
struct link_key {
	uint64_t dev, ino;
	uint32_t volume;
};

struct link {
	struct link_key key;
	uint32_t node; /* MODEL_NONE: free */
};

struct links {
	struct link *at;
	size_t len, cap; /* a power of two, more than len */
};

/* MODEL_NONE when it is new. */
uint32_t links_find(const struct links *l, const struct link_key *key);

/* key then leads to node, whatever it led to before. */
int links_put(struct links *l, const struct link_key *key, uint32_t node, struct err *err);

void links_free(struct links *l);

#endif
