// SPDX-License-Identifier: Apache-2.0
#include "image/formats.h"

#include "base/err.h"
#include "base/io.h"
#include "base/size.h"

#include <string.h>

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

int image_write_at(const struct image *img, const void *buf, size_t len, uint64_t offset,
		   struct err *err)
{
	if (io_pwrite(img->fd, buf, len, offset) < 0)
		return err_errno(err, ERR_FAILED, "cannot write %s at offset %llu", img->name,
				 (unsigned long long)offset);
	return 0;
}

int image_read_at(const struct image *img, void *buf, size_t len, uint64_t offset, struct err *err)
{
	ssize_t n = io_pread(img->fd, buf, len, offset, NULL);

	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read %s back at offset %llu", img->name,
				 (unsigned long long)offset);
	return (size_t)n < len ? image_say_changed(img, err) : 0;
}

int image_say_changed(const struct image *img, struct err *err)
{
	return err_set(err, ERR_FAILED,
		       "%s was changed by something else while it was made; make it again",
		       img->name);
}
