/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_RUNS_H
#define CCSNAP_EXT4_RUNS_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

/* Which file's bytes a block of the disk holds, of files that are read from
 * outside: sorted by place.
 */
struct err;

struct run {
	uint64_t place;
	uint32_t count, node, logical; /* blocks, the file, the file's block at place */
};

struct runs {
	struct run *at;
	size_t len, cap;
};

/* Append; places ascend. */
int runs_add(struct runs *runs, const struct run *run, struct err *err);
void runs_free(struct runs *runs);
#define autoruns CLEANUP(runs_free)

/* The run that holds the block, or the first behind it; NULL when there is none. */
const struct run *runs_find(const struct runs *runs, uint64_t block);

/* Those of node go, and these come in their place. */
int runs_replace(struct runs *runs, uint32_t node, const struct runs *with, struct err *err);

#endif
