/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_LISTING_H
#define CCSNAP_WALK_LISTING_H

#include <stddef.h>

/* The names in a directory, sorted by bytes, without "." and "..". */
struct listing {
	char **names;
	size_t count;

	/* Kept for the next directory. */
	size_t names_cap, text_len, text_cap;
	char *text;
};

/* fd has not been read from before.  -1 with errno; then count is 0. */
int listing_read(struct listing *l, int fd);

void listing_free(struct listing *l);

#endif
