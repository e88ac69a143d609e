// SPDX-License-Identifier: Apache-2.0
#include "image/formats.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/size.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* The disk as it is, zeros as holes.  Bytes come in file order, so the digests
 * are had in passing, until a chunk is put again.
 */
struct raw {
	struct image base;
	uint64_t next; /* all before was put */
	bool is_again; /* what is being put was put before */
	struct hash
		*hash; /* of all before next; NULL when some was put again, or it is not wanted */
	struct digests digests;
};

static int write_zeros(struct raw *raw, uint64_t len, uint64_t offset, struct err *err)
{
	static uint8_t zeros[64 * KIB]; /* never written; not const, so that it takes no room */

	for (uint64_t done = 0, n; done < len; done += n) {
		n = MIN(len - done, sizeof zeros);
		if (image_write_at(&raw->base, zeros, (size_t)n, offset + done, err) < 0)
			return -1;
	}
	return 0;
}

/* Where nothing was put yet, there is a hole. */
static int put_zeros(struct raw *raw, uint64_t len, uint64_t offset, struct err *err)
{
	if (!raw->is_again)
		return raw->hash ? hash_zeros(raw->hash, len, err) : 0;
	if (fallocate(raw->base.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)len) == 0)
		return 0;
	return write_zeros(raw, len, offset, err);
}

static int put_data(struct raw *raw, const uint8_t *data, size_t len, uint64_t offset,
		    struct err *err)
{
	if (image_write_at(&raw->base, data, len, offset, err) < 0)
		return -1;
	return raw->hash ? hash_update(raw->hash, data, len, err) : 0;
}

/* One step for neighbours in the chunk that are all zero or all data. */
static int put_run(struct raw *raw, const struct chunk *chunk, size_t first, size_t end,
		   struct err *err)
{
	const struct cluster *c = &chunk->clusters[first];
	size_t unit = raw->base.cluster_size;
	uint64_t offset = chunk->offset + first * unit;
	uint64_t len = MIN((end - first) * unit, chunk->length - first * unit);

	if (c->form == CLUSTER_ZERO)
		return put_zeros(raw, len, offset, err);
	return put_data(raw, chunk->data + c->at, (size_t)len, offset, err);
}

static bool is_neighbour(const struct cluster *a, const struct cluster *b)
{
	return a->form == b->form && (a->form == CLUSTER_ZERO || a->at + a->size == b->at);
}

static int raw_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct raw *raw = (struct raw *)img;
	size_t i = 0;

	raw->is_again = chunk->offset < raw->next;
	if (raw->is_again) {
		hash_stop(raw->hash);
		raw->hash = NULL;
	}
	raw->next = MAX(raw->next, chunk->offset + chunk->length);
	if (chunk->zero)
		return put_zeros(raw, chunk->length, chunk->offset, err);
	while (i < chunk->cluster_count) {
		size_t first = i++;

		while (i < chunk->cluster_count &&
		       is_neighbour(&chunk->clusters[i - 1], &chunk->clusters[i]))
			i++;
		if (put_run(raw, chunk, first, i, err) < 0)
			return -1;
	}
	return 0;
}

static int raw_finish(struct image *img, struct err *err)
{
	struct raw *raw = (struct raw *)img;

	if (!raw->hash)
		return 0;
	if (hash_finish(raw->hash, &raw->digests, err) < 0)
		return -1;
	img->digests = &raw->digests;
	return 0;
}

static void raw_close(struct image *img)
{
	struct raw *raw = (struct raw *)img;

	hash_stop(raw->hash);
	free(raw);
}

static const struct image_ops raw_ops = {
	.put = raw_put,
	.finish = raw_finish,
	.close = raw_close,
};

uint64_t raw_size_max(size_t cluster_size)
{
	(void)cluster_size;
	return INT64_MAX;
}

uint64_t raw_overhead(uint64_t size, size_t cluster_size, uint64_t clusters)
{
	(void)size;
	(void)cluster_size;
	(void)clusters;
	return 0;
}

struct image *raw_create(const struct image_config *cfg, struct err *err)
{
	struct raw *raw = calloc(1, sizeof *raw);

	if (!raw) {
		err_nomem(err);
		return NULL;
	}
	raw->base = (struct image){
		.ops = &raw_ops,
		.size = cfg->size,
		.cluster_size = cfg->cluster_size,
		.fd = cfg->fd,
		.name = cfg->name,
	};
	if (cfg->hashing == IMAGE_HASH_IN_PASSING && !(raw->hash = hash_start(HASH_OURS, err)))
		goto fail;
	if (ftruncate(cfg->fd, (off_t)cfg->size) < 0) {
		err_errno(err, ERR_FAILED, "cannot make %s %llu bytes long", cfg->name,
			  (unsigned long long)cfg->size);
		goto fail;
	}
	return &raw->base;
fail:
	raw_close(&raw->base);
	return NULL;
}
