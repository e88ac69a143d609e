/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CODEC_H
#define CCSNAP_CODEC_H

#include <stddef.h>

/* Bytes to fewer bytes, one cluster at a time, each on its own: what a cluster
 * becomes depends on its bytes, the codec, the level and the library (ISA-L's
 * level 3 also on what vectors the CPU has), on nothing else.
 */
struct err;

/* Whose bytes they are: other versions may pack the same data differently. */
struct codec_library {
	const char *name, *version;
};

struct codec {
	const char *name;
	int level_min, level_max, level_default;

	/* One state per worker, so pack() never locks. */
	void *(*start)(int level, size_t cluster_size, struct err *err);
	void (*stop)(void *state); /* NULL is fine */

	/* Packed length; 0 when it would not fit in cap (a normal outcome);
	 * -1 on error.
	 */
	long (*pack)(void *state, void *dst, size_t cap, const void *src, size_t len,
		     struct err *err);

	struct codec_library (*library)(int level);
};

/* Ends with NULL.  "none" is not here: it is no codec. */
extern const struct codec *const codecs[];

/* NULL when there is none of that name. */
const struct codec *codec_find(const char *name);

#endif
