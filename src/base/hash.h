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

/* The digests that are wanted of every file, computed side by side, one thread
 * each.  Used from one thread at a time.
 */
struct digests {
	char sha256[65]; /* lower-case hex, as sha256sum prints it; "": not computed */
	char sha512[129];
	struct checkpoints checkpoints;
};

/* Which of them; or'ed. */
enum { HASH_SHA256 = 1, HASH_SHA512 = 2, HASH_OURS = HASH_SHA256 | HASH_SHA512 };

bool digests_equal(const struct digests *a, const struct digests *b);

/* Of two files of the same size whose digests differ: the first difference is
 * in [*start, *end).
 */
void digests_difference(const struct digests *a, const struct digests *b, uint64_t size,
			uint64_t *start, uint64_t *end);

struct hash;

struct hash *hash_start(unsigned which, struct err *err);
int hash_update(struct hash *hash, const void *buf, size_t len, struct err *err);

/* As hash_update, but the work goes on after it returns: buf must stay as it is until
 * HASH_AHEAD more have been posted, or until hash_update, hash_finish or hash_stop.  So
 * HASH_AHEAD + 1 buffers in turn keep the threads busy.
 */
enum { HASH_AHEAD = 3 };
int hash_post(struct hash *hash, const void *buf, size_t len, struct err *err);

int hash_zeros(struct hash *hash, uint64_t len, struct err *err);
int hash_finish(struct hash *hash, struct digests *out, struct err *err);
void hash_stop(struct hash *hash); /* NULL is fine */

/* A single SHA-256 in the calling thread, for what is small. */
struct sha256;

struct sha256 *sha256_start(struct err *err);
int sha256_update(struct sha256 *s, const void *buf, size_t len, struct err *err);
int sha256_finish(struct sha256 *s, char hex[65], struct err *err);
void sha256_stop(struct sha256 *s); /* NULL is fine */

/* By its name in lower case, as hashlib and OpenStack's os_hash_algo have it ("sha512",
 * "sha3_256"): 1 and hex (the caller's, HASH_HEX_MAX + 1 bytes), 0 when we do not know
 * it, -1.  Of a file as in hash_file.
 */
enum { HASH_HEX_MAX = 128 };
int hash_file_by_name(int fd, const char *name, uint64_t size, const char *algorithm, char *hex,
		      struct err *err);

/* HASH_OURS of a file's first size bytes; name is for messages.  Calls progress (may be
 * NULL) with the bytes done, and ends early with ERR_INTERRUPTED.
 */
int hash_file(int fd, const char *name, uint64_t size, struct digests *out,
	      void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err);

/* The same, and a copy of these bytes in the empty file to, holes as holes. */
int hash_copy(int from, int to, const char *name, uint64_t size, struct digests *out,
	      void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err);

#endif
