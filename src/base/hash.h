/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_HASH_H
#define CCSNAP_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* What the SHA-256 was on the way: the digest of the first step bytes, of the
 * first 2 * step, and so on, each cut to 16 digits.  They cost nothing, and
 * tell where a file began to differ.
 */
enum { CHECKPOINTS_MAX = 1024, CHECKPOINT_DIGITS = 16 };

struct checkpoints {
	uint64_t step; /* doubles when there would be too many */
	size_t count;
	char prefix[CHECKPOINTS_MAX][CHECKPOINT_DIGITS + 1];
};

/* All the digests that are ever wanted of a file, computed side by side, one
 * thread each.  Used from one thread at a time.
 */
struct digests {
	char sha256[65]; /* lower-case hex, as sha256sum prints it */
	char sha512[129];
	struct checkpoints checkpoints;
};

bool digests_equal(const struct digests *a, const struct digests *b);

/* Of two files of the same size whose digests differ: the first difference is
 * in [*start, *end).
 */
void digests_difference(const struct digests *a, const struct digests *b, uint64_t size,
			uint64_t *start, uint64_t *end);

struct hash;

struct hash *hash_start(struct err *err);
int hash_update(struct hash *hash, const void *buf, size_t len, struct err *err);
int hash_zeros(struct hash *hash, uint64_t len, struct err *err);
int hash_finish(struct hash *hash, struct digests *out, struct err *err);
void hash_stop(struct hash *hash); /* NULL is fine */

/* A single SHA-256 in the calling thread, for what is small. */
struct sha256;

struct sha256 *sha256_start(struct err *err);
int sha256_update(struct sha256 *s, const void *buf, size_t len, struct err *err);
int sha256_finish(struct sha256 *s, char hex[65], struct err *err);
void sha256_stop(struct sha256 *s); /* NULL is fine */

/* Of a file's first size bytes; name is for messages.  Calls progress (may be
 * NULL) with the bytes done, and ends early with ERR_INTERRUPTED.
 */
int hash_file(int fd, const char *name, uint64_t size, struct digests *out,
	      void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err);

#endif
