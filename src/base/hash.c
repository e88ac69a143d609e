// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash_inner.h"
#include "base/interrupt.h"
#include "base/size.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* One line for each digest; the rest of the file walks this table. */
static const struct digest_kind {
	unsigned flag;
	const EVP_MD *(*md)(void);
	size_t member; /* where its hex text stands in struct digests */
} kinds[] = {
	{ HASH_SHA256, EVP_sha256, offsetof(struct digests, sha256) },
	{ HASH_SHA512, EVP_sha512, offsetof(struct digests, sha512) },
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

/* Shorter than this a digest is done sooner than a thread wakes up. */
#define WORTH_WAKING (16 * KIB)

#define FIRST_STEP MIB /* between checkpoints */

/* Not const: in .bss these are all the one zero page, in .rodata a part of
 * the program's file.
 */
static uint8_t zeros[MIB];

/* A lane is one digest and its thread.  The caller posts buffers into a ring; each
 * lane takes all of them, in order and at its own pace, so that on few CPUs no lane
 * waits for another.  One lock, and nobody waits for anything else while holding it.
 */
struct lane {
	struct hash *hash;
	const struct digest_kind *kind; /* NULL: none of the table */
	pthread_t thread;
	bool running; /* the caller's */

	uint64_t taken; /* buffers; guarded by hash->lock */

	/* The thread's while taken is less than posted, else the caller's. */
	EVP_MD_CTX *ctx;
	uint64_t done;			 /* bytes */
	struct checkpoints *checkpoints; /* NULL: this digest has none */
};

struct hash {
	pthread_mutex_t lock; /* guards ring .. quit, and taken of each lane */
	pthread_cond_t was_posted, was_taken;
	struct {
		const uint8_t *buf;
		size_t len;
	} ring[HASH_AHEAD];
	uint64_t posted;
	bool failed, quit;

	struct lane lanes[KIND_COUNT]; /* the caller's, as the next */
	size_t lane_count;
	struct checkpoints checkpoints; /* the SHA-256 lane's */
};

static int say_crypto_failed(struct err *err)
{
	return err_set(err, ERR_FAILED, "libcrypto failed to compute a digest");
}

void hash_hex(char *text, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* --- in a lane's thread, or in the caller's while the lane is at rest ----------- */

/* Every second one goes. */
static void checkpoints_thin_out(struct checkpoints *c)
{
	c->count /= 2;
	c->step *= 2;
	for (size_t i = 0; i < c->count; i++)
		memcpy(c->prefix[i], c->prefix[2 * i + 1], sizeof c->prefix[i]);
}

static bool checkpoint(const struct lane *lane)
{
	struct checkpoints *c = lane->checkpoints;
	unsigned char bytes[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_MD_CTX_copy_ex(ctx, lane->ctx) == 1 &&
		  EVP_DigestFinal_ex(ctx, bytes, NULL) == 1;

	EVP_MD_CTX_free(ctx);
	if (!ok)
		return false;
	hash_hex(c->prefix[c->count++], bytes, CHECKPOINT_DIGITS / 2);
	if (c->count == CHECKPOINTS_MAX)
		checkpoints_thin_out(c);
	return true;
}

static bool lane_take(struct lane *lane, const uint8_t *buf, size_t len)
{
	const struct checkpoints *c = lane->checkpoints;

	while (len > 0) {
		size_t n = c ? (size_t)MIN(len, c->step - lane->done % c->step) : len;

		if (EVP_DigestUpdate(lane->ctx, buf, n) != 1)
			return false;
		lane->done += n;
		buf += n;
		len -= n;
		if (c && lane->done % c->step == 0 && !checkpoint(lane))
			return false;
	}
	return true;
}

static void *lane_run(void *arg)
{
	struct lane *lane = arg;
	struct hash *hash = lane->hash;

	pthread_mutex_lock(&hash->lock);
	for (;;) {
		const uint8_t *buf;
		size_t len;
		bool ok;

		while (lane->taken == hash->posted && !hash->quit)
			pthread_cond_wait(&hash->was_posted, &hash->lock);
		if (lane->taken == hash->posted)
			break;
		buf = hash->ring[lane->taken % HASH_AHEAD].buf;
		len = hash->ring[lane->taken % HASH_AHEAD].len;
		pthread_mutex_unlock(&hash->lock);
		ok = lane_take(lane, buf, len);
		pthread_mutex_lock(&hash->lock);
		hash->failed |= !ok;
		lane->taken++;
		pthread_cond_signal(&hash->was_taken);
	}
	pthread_mutex_unlock(&hash->lock);
	return NULL;
}

/* --- life ----------------------------------------------------------------------- */

static struct hash *hash_new(struct err *err)
{
	struct hash *hash = calloc(1, sizeof *hash);

	if (!hash) {
		err_nomem(err);
		return NULL;
	}
	pthread_mutex_init(&hash->lock, NULL);
	pthread_cond_init(&hash->was_posted, NULL);
	pthread_cond_init(&hash->was_taken, NULL);
	hash->checkpoints.step = FIRST_STEP;
	return hash;
}

/* The lanes leave every signal to the other threads, so that one which ends
 * a blocking call of theirs does.
 */
static int lane_start(struct hash *hash, const EVP_MD *md, const struct digest_kind *kind,
		      struct err *err)
{
	struct lane *lane = &hash->lanes[hash->lane_count++];
	sigset_t all, before;

	lane->hash = hash;
	lane->kind = kind;
	if (kind && kind->flag == HASH_SHA256)
		lane->checkpoints = &hash->checkpoints;
	lane->ctx = EVP_MD_CTX_new();
	if (!lane->ctx || EVP_DigestInit_ex(lane->ctx, md, NULL) != 1)
		return err_set(err, ERR_FAILED, "cannot start a %s digest", EVP_MD_get0_name(md));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(&lane->thread, NULL, lane_run, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errno)
		return err_errno(err, ERR_FAILED, "cannot start a thread");
	lane->running = true;
	return 0;
}

struct hash *hash_start(unsigned which, struct err *err)
{
	autohash struct hash *hash = hash_new(err);

	for (size_t i = 0; hash && i < KIND_COUNT; i++)
		if ((which & kinds[i].flag) && lane_start(hash, kinds[i].md(), &kinds[i], err) < 0)
			return NULL;
	return steal(&hash);
}

void hash_stop(struct hash *hash)
{
	if (!hash)
		return;
	pthread_mutex_lock(&hash->lock);
	hash->quit = true;
	pthread_cond_broadcast(&hash->was_posted);
	pthread_mutex_unlock(&hash->lock);
	for (size_t i = 0; i < hash->lane_count; i++) {
		if (hash->lanes[i].running)
			pthread_join(hash->lanes[i].thread, NULL);
		EVP_MD_CTX_free(hash->lanes[i].ctx);
	}
	pthread_cond_destroy(&hash->was_taken);
	pthread_cond_destroy(&hash->was_posted);
	pthread_mutex_destroy(&hash->lock);
	free(hash);
}

/* --- work ----------------------------------------------------------------------- */

static bool is_behind(const struct hash *hash, uint64_t most)
{
	for (size_t i = 0; i < hash->lane_count; i++)
		if (hash->posted - hash->lanes[i].taken > most)
			return true;
	return false;
}

/* Until no lane has more than so many buffers before it.  Holds the lock. */
static bool wait_taken(struct hash *hash, uint64_t most)
{
	while (is_behind(hash, most))
		pthread_cond_wait(&hash->was_taken, &hash->lock);
	return !hash->failed;
}

static int wait_rest(struct hash *hash, struct err *err)
{
	bool ok;

	pthread_mutex_lock(&hash->lock);
	ok = wait_taken(hash, 0);
	pthread_mutex_unlock(&hash->lock);
	return ok ? 0 : say_crypto_failed(err);
}

static int update_here(struct hash *hash, const void *buf, size_t len, struct err *err)
{
	if (wait_rest(hash, err) < 0)
		return -1;
	for (size_t i = 0; i < hash->lane_count; i++)
		if (!lane_take(&hash->lanes[i], buf, len))
			return say_crypto_failed(err);
	return 0;
}

int hash_post(struct hash *hash, const void *buf, size_t len, struct err *err)
{
	bool ok;

	if (len < WORTH_WAKING)
		return update_here(hash, buf, len, err);
	pthread_mutex_lock(&hash->lock);
	ok = wait_taken(hash, HASH_AHEAD - 1);
	hash->ring[hash->posted % HASH_AHEAD].buf = buf;
	hash->ring[hash->posted % HASH_AHEAD].len = len;
	hash->posted++;
	pthread_cond_broadcast(&hash->was_posted);
	pthread_mutex_unlock(&hash->lock);
	return ok ? 0 : say_crypto_failed(err);
}

int hash_update(struct hash *hash, const void *buf, size_t len, struct err *err)
{
	return hash_post(hash, buf, len, err) < 0 ? -1 : wait_rest(hash, err);
}

int hash_zeros(struct hash *hash, uint64_t len, struct err *err)
{
	while (len > 0) {
		size_t n = (size_t)MIN(len, sizeof zeros);

		if (interrupt_check(err) < 0 || hash_post(hash, zeros, n, err) < 0)
			return -1;
		len -= n;
	}
	return 0;
}

static int lane_finish(const struct lane *lane, char *hex, struct err *err)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned count;

	if (EVP_DigestFinal_ex(lane->ctx, bytes, &count) != 1)
		return say_crypto_failed(err);
	hash_hex(hex, bytes, count);
	return 0;
}

int hash_finish(struct hash *hash, struct digests *out, struct err *err)
{
	if (wait_rest(hash, err) < 0)
		return -1;
	memset(out, 0, sizeof *out);
	out->checkpoints = hash->checkpoints;
	for (size_t i = 0; i < hash->lane_count; i++)
		if (lane_finish(&hash->lanes[i], (char *)out + hash->lanes[i].kind->member, err) <
		    0)
			return -1;
	return 0;
}

/* --- what came of it ------------------------------------------------------------ */

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

/* --- one of any kind ------------------------------------------------------------ */

/* OpenSSL writes "sha3-256" and "blake2b512".  XOFs have no length of their own, so that
 * their name alone says too little.
 */
static EVP_MD *fetch_md(const char *algorithm)
{
	char name[32];
	EVP_MD *md;

	if (strlen(algorithm) >= sizeof name - 3)
		return NULL;
	for (size_t i = 0; (name[i] = algorithm[i] == '_' ? '-' : algorithm[i]); i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", name[i]))
			return NULL;
	if (strcmp(name, "blake2b") == 0)
		strcat(name, "512");
	else if (strcmp(name, "blake2s") == 0)
		strcat(name, "256");
	md = EVP_MD_fetch(NULL, name, NULL);
	if (md && EVP_MD_get_size(md) > 0 && EVP_MD_get_size(md) <= HASH_HEX_MAX / 2 &&
	    !(EVP_MD_get_flags(md) & EVP_MD_FLAG_XOF))
		return md;
	EVP_MD_free(md);
	return NULL;
}

int hash_start_by_name(const char *algorithm, struct hash **out, struct err *err)
{
	EVP_MD *md = fetch_md(algorithm);
	autohash struct hash *hash = NULL;
	int started;

	if (!md)
		return 0;
	hash = hash_new(err);
	started = hash ? lane_start(hash, md, NULL, err) : -1;
	EVP_MD_free(md); /* the lane's context has its own reference */
	if (started < 0)
		return -1;
	*out = steal(&hash);
	return 1;
}

int hash_finish_by_name(struct hash *hash, char *hex, struct err *err)
{
	return wait_rest(hash, err) < 0 ? -1 : lane_finish(&hash->lanes[0], hex, err);
}
