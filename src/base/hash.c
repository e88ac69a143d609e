// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* One line for each digest; the rest of the file walks this table. */
enum { SHA256, SHA512 };

static const struct digest_kind {
	const EVP_MD *(*md)(void);
	size_t bytes;
	size_t member; /* where its hex text stands in struct digests */
} kinds[] = {
	[SHA256] = { EVP_sha256, 32, offsetof(struct digests, sha256) },
	[SHA512] = { EVP_sha512, 64, offsetof(struct digests, sha512) },
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

/* Shorter than this a digest is done sooner than a thread wakes up. */
#define WORTH_WAKING (16 * KIB)

#define PIECE	  (1 * MIB)
#define HOLE_STEP (256 * MIB) /* so that progress moves within long holes */

/* Not const: in .bss these are all the one zero page, in .rodata a part of
 * the program's file.
 */
static uint8_t zeros[PIECE];

/* A lane is one digest and its thread.  The caller posts a buffer (turn goes
 * up, busy is the number of lanes), each lane takes it once and counts busy
 * down, the caller waits for 0 before it posts again.  A lane's ctx belongs to
 * its thread while busy > 0 and to the caller otherwise.  One lock, and nobody
 * waits for anything else while holding it.
 */
struct lane {
	struct hash *hash;
	EVP_MD_CTX *ctx;
	pthread_t thread;
	bool running; /* the caller's */
};

struct hash {
	pthread_mutex_t lock; /* guards buf .. quit */
	pthread_cond_t posted, taken;
	const void *buf;
	size_t len;
	unsigned turn, busy;
	bool failed, quit;
	struct lane lanes[KIND_COUNT];

	uint64_t done;			/* the caller's, as the next: bytes posted */
	struct checkpoints checkpoints; /* up to done at most */
};

static void *lane_run(void *arg)
{
	struct lane *lane = arg;
	struct hash *hash = lane->hash;
	unsigned seen = 0;

	pthread_mutex_lock(&hash->lock);
	for (;;) {
		const void *buf;
		size_t len;
		bool ok;

		while (hash->turn == seen && !hash->quit)
			pthread_cond_wait(&hash->posted, &hash->lock);
		if (hash->turn == seen)
			break;
		seen = hash->turn;
		buf = hash->buf;
		len = hash->len;
		pthread_mutex_unlock(&hash->lock);
		ok = EVP_DigestUpdate(lane->ctx, buf, len) == 1;
		pthread_mutex_lock(&hash->lock);
		if (!ok)
			hash->failed = true;
		if (--hash->busy == 0)
			pthread_cond_signal(&hash->taken);
	}
	pthread_mutex_unlock(&hash->lock);
	return NULL;
}

/* The lanes leave every signal to the other threads, so that one which ends
 * a blocking call of theirs does.
 */
static int lane_start(struct lane *lane, const struct digest_kind *kind, struct err *err)
{
	sigset_t all, before;

	lane->ctx = EVP_MD_CTX_new();
	if (!lane->ctx || EVP_DigestInit_ex(lane->ctx, kind->md(), NULL) != 1)
		return err_set(err, ERR_FAILED, "cannot start a %s digest",
			       EVP_MD_get0_name(kind->md()));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(&lane->thread, NULL, lane_run, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errno)
		return err_errno(err, ERR_FAILED, "cannot start a thread");
	lane->running = true;
	return 0;
}

struct hash *hash_start(struct err *err)
{
	struct hash *hash = calloc(1, sizeof *hash);

	if (!hash) {
		err_nomem(err);
		return NULL;
	}
	pthread_mutex_init(&hash->lock, NULL);
	pthread_cond_init(&hash->posted, NULL);
	pthread_cond_init(&hash->taken, NULL);
	hash->checkpoints.step = PIECE;
	for (size_t i = 0; i < KIND_COUNT; i++) {
		hash->lanes[i].hash = hash;
		if (lane_start(&hash->lanes[i], &kinds[i], err) < 0) {
			hash_stop(hash);
			return NULL;
		}
	}
	return hash;
}

static int say_crypto_failed(struct err *err)
{
	return err_set(err, ERR_FAILED, "libcrypto failed to compute a digest");
}

static int wait_taken(struct hash *hash, struct err *err)
{
	bool failed;

	pthread_mutex_lock(&hash->lock);
	while (hash->busy > 0)
		pthread_cond_wait(&hash->taken, &hash->lock);
	failed = hash->failed;
	pthread_mutex_unlock(&hash->lock);
	return failed ? say_crypto_failed(err) : 0;
}

static void to_hex(char *text, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* Every second one goes. */
static void checkpoints_thin_out(struct checkpoints *c)
{
	c->count /= 2;
	c->step *= 2;
	for (size_t i = 0; i < c->count; i++)
		memcpy(c->prefix[i], c->prefix[2 * i + 1], sizeof c->prefix[i]);
}

/* Is one due at hash->done?  The lanes must be at rest. */
static int checkpoint(struct hash *hash, struct err *err)
{
	struct checkpoints *c = &hash->checkpoints;
	unsigned char bytes[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *ctx;
	int ok;

	if (hash->done < (c->count + 1) * c->step)
		return 0;
	ctx = EVP_MD_CTX_new();
	ok = ctx && EVP_MD_CTX_copy_ex(ctx, hash->lanes[SHA256].ctx) == 1 &&
	     EVP_DigestFinal_ex(ctx, bytes, NULL) == 1;
	EVP_MD_CTX_free(ctx);
	if (!ok)
		return say_crypto_failed(err);
	to_hex(c->prefix[c->count++], bytes, CHECKPOINT_DIGITS / 2);
	if (c->count == CHECKPOINTS_MAX)
		checkpoints_thin_out(c);
	return 0;
}

static int settle(struct hash *hash, struct err *err)
{
	return wait_taken(hash, err) < 0 ? -1 : checkpoint(hash, err);
}

static void post(struct hash *hash, const void *buf, size_t len)
{
	pthread_mutex_lock(&hash->lock);
	hash->buf = buf;
	hash->len = len;
	hash->busy = KIND_COUNT;
	hash->turn++;
	pthread_cond_broadcast(&hash->posted);
	pthread_mutex_unlock(&hash->lock);
}

static int update_here(struct hash *hash, const void *buf, size_t len, struct err *err)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (EVP_DigestUpdate(hash->lanes[i].ctx, buf, len) != 1)
			return say_crypto_failed(err);
	return 0;
}

/* Returns while the lanes are still at it: buf must stay as it is until they
 * are waited for.
 */
static int advance(struct hash *hash, const uint8_t *buf, size_t len, struct err *err)
{
	while (len > 0) {
		uint64_t step = hash->checkpoints.step;
		size_t n = (size_t)MIN(len, step - hash->done % step);

		if (settle(hash, err) < 0)
			return -1;
		if (n >= WORTH_WAKING)
			post(hash, buf, n);
		else if (update_here(hash, buf, n, err) < 0)
			return -1;
		hash->done += n;
		buf += n;
		len -= n;
	}
	return 0;
}

int hash_update(struct hash *hash, const void *buf, size_t len, struct err *err)
{
	return advance(hash, buf, len, err) < 0 ? -1 : wait_taken(hash, err);
}

int hash_zeros(struct hash *hash, uint64_t len, struct err *err)
{
	while (len > 0) {
		size_t n = (size_t)MIN(len, sizeof zeros);

		if (interrupt_check(err) < 0 || hash_update(hash, zeros, n, err) < 0)
			return -1;
		len -= n;
	}
	return 0;
}

int hash_finish(struct hash *hash, struct digests *out, struct err *err)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];

	if (settle(hash, err) < 0)
		return -1;
	out->checkpoints = hash->checkpoints;
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (EVP_DigestFinal_ex(hash->lanes[i].ctx, bytes, NULL) != 1)
			return say_crypto_failed(err);
		to_hex((char *)out + kinds[i].member, bytes, kinds[i].bytes);
	}
	return 0;
}

void hash_stop(struct hash *hash)
{
	if (!hash)
		return;
	pthread_mutex_lock(&hash->lock);
	hash->quit = true;
	pthread_cond_broadcast(&hash->posted);
	pthread_mutex_unlock(&hash->lock);
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (hash->lanes[i].running)
			pthread_join(hash->lanes[i].thread, NULL);
		EVP_MD_CTX_free(hash->lanes[i].ctx);
	}
	pthread_cond_destroy(&hash->taken);
	pthread_cond_destroy(&hash->posted);
	pthread_mutex_destroy(&hash->lock);
	free(hash);
}

bool digests_equal(const struct digests *a, const struct digests *b)
{
	return strcmp(a->sha256, b->sha256) == 0 && strcmp(a->sha512, b->sha512) == 0;
}

void digests_difference(const struct digests *a, const struct digests *b, uint64_t size,
			uint64_t *start, uint64_t *end)
{
	const struct checkpoints *p = &a->checkpoints, *q = &b->checkpoints;
	size_t i = 0;

	*start = 0;
	*end = size;
	if (p->step != q->step)
		return;
	while (i < p->count && i < q->count && strcmp(p->prefix[i], q->prefix[i]) == 0)
		i++;
	*start = MIN(i * p->step, size);
	*end = MIN(*start + p->step, size);
}

CLEANUP_TYPE(struct hash, hash, hash_stop)
#define autohash CLEANUP(hash_cleanup)

/* Where a file is read: what is known of its holes. */
struct span {
	int fd;
	const char *name;
	uint64_t size;
	uint64_t data_end; /* no need to ask again before this */
	bool synced;
};

/* Bytes that are said to be a hole from offset on, 0 for data. */
static uint64_t ask_hole(struct span *span, uint64_t offset)
{
	off_t data = lseek(span->fd, (off_t)offset, SEEK_DATA), hole;

	if (data < 0 && errno == ENXIO)
		return span->size - offset;
	if (data > (off_t)offset)
		return MIN((uint64_t)data, span->size) - offset;
	hole = data < 0 ? -1 : lseek(span->fd, (off_t)offset, SEEK_HOLE);
	span->data_end = hole > (off_t)offset ? (uint64_t)hole : span->size;
	return 0;
}

/* A hole is believed only once the file is synced, since some filesystems
 * show data that is still on its way as one; data wrongly shown costs nothing
 * but time.  Where nothing can be synced, everything is read.
 */
static int hole_at(struct span *span, uint64_t offset, uint64_t *length, struct err *err)
{
	*length = offset < span->data_end ? 0 : ask_hole(span, offset);
	if (*length == 0 || span->synced)
		return 0;
	if (fsync(span->fd) == 0) {
		span->synced = true;
		*length = ask_hole(span, offset);
	} else if (errno == EINVAL || errno == EROFS) {
		span->data_end = span->size;
		*length = 0;
	} else {
		return err_errno(err, ERR_FAILED, "cannot sync %s", span->name);
	}
	return 0;
}

static int read_piece(const struct span *span, void *buf, size_t len, uint64_t offset,
		      struct err *err)
{
	size_t done;
	ssize_t n = io_pread(span->fd, buf, len, offset, &done);

	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read %s at offset %llu", span->name,
				 (unsigned long long)(offset + done));
	if ((size_t)n < len)
		return err_set(err, ERR_FAILED,
			       "%s became shorter while it was read: it ends at %llu", span->name,
			       (unsigned long long)(offset + done));
	return 0;
}

/* The next piece into the hash; data is still being worked on in buf when
 * this returns.  *length: how much that was.
 */
static int feed(struct hash *hash, struct span *span, uint64_t offset, void *buf, uint64_t *length,
		struct err *err)
{
	uint64_t hole;

	if (interrupt_check(err) < 0 || hole_at(span, offset, &hole, err) < 0)
		return -1;
	if (hole > 0) {
		*length = MIN(hole, HOLE_STEP);
		return hash_zeros(hash, *length, err);
	}
	*length = MIN(MIN(span->data_end, span->size) - offset, PIECE);
	if (read_piece(span, buf, (size_t)*length, offset, err) < 0)
		return -1;
	return advance(hash, buf, (size_t)*length, err);
}

int hash_file(int fd, const char *name, uint64_t size, struct digests *out,
	      void (*progress)(void *ctx, uint64_t done), void *ctx, struct err *err)
{
	struct span span = { .fd = fd, .name = name, .size = size };
	autofree uint8_t *bufs = malloc(2 * PIECE);
	autohash struct hash *hash = hash_start(err); /* ends before bufs does */
	uint64_t length, offset = 0;
	unsigned turn = 0;
	struct stat st;

	if (!hash)
		return -1;
	if (!bufs)
		return err_nomem(err);
	if (fstat(fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", name);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < size)
		return err_set(err, ERR_FAILED, "%s is shorter than expected: %llu of %llu bytes",
			       name, (unsigned long long)st.st_size, (unsigned long long)size);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	for (; offset < size; offset += length) {
		if (feed(hash, &span, offset, bufs + (turn++ % 2) * PIECE, &length, err) < 0)
			return -1;
		if (progress)
			progress(ctx, offset + length);
	}
	return hash_finish(hash, out, err);
}

/* --- a single one --------------------------------------------------------------- */

static EVP_MD_CTX *ctx_of(struct sha256 *s)
{
	return (EVP_MD_CTX *)s;
}

struct sha256 *sha256_start(struct err *err)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1)
		return (struct sha256 *)ctx;
	EVP_MD_CTX_free(ctx);
	err_nomem(err);
	return NULL;
}

int sha256_update(struct sha256 *s, const void *buf, size_t len, struct err *err)
{
	return EVP_DigestUpdate(ctx_of(s), buf, len) == 1 ? 0 : err_nomem(err);
}

int sha256_finish(struct sha256 *s, char hex[65], struct err *err)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(ctx_of(s), bytes, NULL) != 1)
		return err_nomem(err);
	to_hex(hex, bytes, 32);
	return 0;
}

void sha256_stop(struct sha256 *s)
{
	EVP_MD_CTX_free(ctx_of(s));
}
