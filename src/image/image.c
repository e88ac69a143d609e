// SPDX-License-Identifier: Apache-2.0
#include "image/image.h"

#include "base/err.h"
#include "base/size.h"

#include <string.h>

struct image *qcow2_create(const struct image_config *cfg, struct err *err);
uint64_t qcow2_size_max(size_t cluster_size);
uint64_t qcow2_overhead(uint64_t size, size_t cluster_size, uint64_t clusters);
struct image *raw_create(const struct image_config *cfg, struct err *err);
uint64_t raw_size_max(size_t cluster_size);
uint64_t raw_overhead(uint64_t size, size_t cluster_size, uint64_t clusters);

static const char *const qcow2_compressions[] = { "zstd", "zlib", "none", NULL };
static const char *const raw_compressions[] = { "none", NULL };

const struct image_format image_formats[] = {
	{
		.name = "qcow2",
		.suffix = ".qcow2",
		.compressions = qcow2_compressions,
		.cluster_min = 4 * KIB,
		.cluster_max = 2 * MIB,
		.cluster_default = 64 * KIB,
		.size_max = qcow2_size_max,
		.overhead = qcow2_overhead,
		.create = qcow2_create,
	},
	{
		.name = "raw",
		.suffix = ".raw",
		.compressions = raw_compressions,
		.cluster_min = 4 * KIB,
		.cluster_max = 4 * KIB,
		.cluster_default = 4 * KIB,
		.hashed_in_passing = true,
		.size_max = raw_size_max,
		.overhead = raw_overhead,
		.create = raw_create,
	},
	{ 0 },
};

const struct image_format *image_format_find(const char *name)
{
	for (const struct image_format *f = image_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

int image_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	return img->ops->put(img, chunk, err);
}

int image_finish(struct image *img, struct err *err)
{
	return img->ops->finish(img, err);
}

void image_close(struct image *img)
{
	if (img)
		img->ops->close(img);
}
