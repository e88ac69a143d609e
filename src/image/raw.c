// SPDX-License-Identifier: Apache-2.0
#include "image/image.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/size.h"

#include <stdlib.h>

/* The disk as it is, zeros as holes.  Bytes come in file order, so the digests
 * are had in passing.
 */
struct raw {
	struct image base;
	struct hash *hash;
	struct digests digests;
};

struct image *raw_create(const struct image_config *cfg, struct err *err);
uint64_t raw_size_max(size_t cluster_size);
uint64_t raw_overhead(uint64_t size, size_t cluster_size, uint64_t clusters);

/* One write for neighbours in the chunk that are all data. */
static int write_run(struct raw *raw, const struct chunk *chunk, size_t first, size_t end,
		     struct err *err)
{
	size_t unit = raw->base.cluster_size;
	uint64_t offset = chunk->offset + first * unit;
	size_t len = (size_t)MIN((end - first) * unit, chunk->length - first * unit);
	const uint8_t *data = chunk->data + chunk->clusters[first].at;

	if (io_pwrite(raw->base.fd, data, len, offset) < 0)
		return err_errno(err, ERR_FAILED, "cannot write %s at offset %llu", raw->base.name,
				 (unsigned long long)offset);
	return hash_update(raw->hash, data, len, err);
}

static int raw_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct raw *raw = (struct raw *)img;
	size_t unit = img->cluster_size, i = 0;

	if (chunk->zero)
		return hash_zeros(raw->hash, chunk->length, err);
	while (i < chunk->cluster_count) {
		enum cluster_form form = chunk->clusters[i].form;
		size_t first = i++;

		while (i < chunk->cluster_count && chunk->clusters[i].form == form &&
		       (form == CLUSTER_ZERO ||
			chunk->clusters[i].at == chunk->clusters[i - 1].at + unit))
			i++;
		if (form == CLUSTER_ZERO) {
			uint64_t len = MIN((i - first) * unit, chunk->length - first * unit);

			if (hash_zeros(raw->hash, len, err) < 0)
				return -1;
		} else if (write_run(raw, chunk, first, i, err) < 0) {
			return -1;
		}
	}
	return 0;
}

static int raw_finish(struct image *img, struct err *err)
{
	struct raw *raw = (struct raw *)img;

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
	raw->hash = hash_start(err);
	if (!raw->hash)
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
