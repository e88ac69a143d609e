// SPDX-License-Identifier: Apache-2.0
#include "ext4/memio.h"

#include "base/err.h"
#include "base/size.h"
#include "ext4/volmap.h"

#include <stdlib.h>
#include <string.h>

struct memio {
	struct volmap *map; /* NULL: not attached yet */
	struct err err;	    /* of the first write that failed */
};

static void channel_free(io_channel channel)
{
	free(channel->name);
	free(channel->private_data);
	free(channel);
}

static errcode_t memio_open(const char *name, int flags, io_channel *channel)
{
	io_channel c = calloc(1, sizeof *c);

	(void)flags;
	if (!c)
		return EXT2_ET_NO_MEMORY;
	c->magic = EXT2_ET_MAGIC_IO_CHANNEL;
	c->manager = memio_manager;
	c->name = strdup(name);
	c->private_data = calloc(1, sizeof(struct memio));
	c->block_size = 1024;
	c->refcount = 1;
	if (!c->name || !c->private_data) {
		channel_free(c);
		return EXT2_ET_NO_MEMORY;
	}
	*channel = c;
	return 0;
}

void memio_attach(io_channel channel, struct volmap *map)
{
	struct memio *m = channel->private_data;

	m->map = map;
}

const struct err *memio_error(io_channel channel)
{
	const struct memio *m = channel->private_data;

	return m->err.kind == ERR_NONE ? NULL : &m->err;
}

static errcode_t memio_close(io_channel channel)
{
	if (--channel->refcount > 0)
		return 0;
	channel_free(channel);
	return 0;
}

static errcode_t memio_set_blksize(io_channel channel, int size)
{
	channel->block_size = size;
	return 0;
}

static errcode_t memio_flush(io_channel channel)
{
	(void)channel;
	return 0;
}

/* The library's unit changes on the way (1024 around the superblock) and a
 * negative count means bytes: all becomes bytes first.
 */
struct range {
	uint64_t offset, length;
};

static struct range range_of(io_channel channel, unsigned long long block, int count)
{
	const uint64_t unit = (uint64_t)channel->block_size;

	return (struct range){ block * unit,
			       count < 0 ? (uint64_t) - (int64_t)count : (uint64_t)count * unit };
}

/* The part of the range that lies in its first block. */
static size_t part_of(const struct range *range)
{
	return MIN(range->length, MODEL_BLOCK - range->offset % MODEL_BLOCK);
}

static void advance(struct range *range, size_t part)
{
	range->offset += part;
	range->length -= part;
}

static errcode_t memio_read(io_channel channel, unsigned long long block, int count, void *data)
{
	struct range range = range_of(channel, block, count);
	const struct memio *m = channel->private_data;
	uint8_t bytes[MODEL_BLOCK], *out = data;

	if (!m->map)
		return EXT2_ET_BAD_DEVICE_NAME;
	while (range.length > 0) {
		const size_t part = part_of(&range);

		volmap_get(m->map, range.offset / MODEL_BLOCK, bytes);
		memcpy(out, bytes + range.offset % MODEL_BLOCK, part);
		out += part;
		advance(&range, part);
	}
	return 0;
}

/* NULL: zeros. */
static errcode_t write_part(struct memio *m, uint64_t offset, const uint8_t *data, size_t len)
{
	static const uint8_t zeros[MODEL_BLOCK];
	const uint8_t *from = data ? data : zeros;
	uint8_t bytes[MODEL_BLOCK], *to = bytes + offset % MODEL_BLOCK;
	struct err err;

	volmap_get(m->map, offset / MODEL_BLOCK, bytes);
	if (memcmp(to, from, len) == 0)
		return 0;
	memcpy(to, from, len);
	if (volmap_put(m->map, offset / MODEL_BLOCK, bytes, &err) == 0)
		return 0;
	if (m->err.kind == ERR_NONE)
		m->err = err;
	return EXT2_ET_SHORT_WRITE;
}

static errcode_t memio_write(io_channel channel, unsigned long long block, int count,
			     const void *data)
{
	struct range range = range_of(channel, block, count);
	struct memio *m = channel->private_data;
	const uint8_t *from = data;
	errcode_t code = m->map ? 0 : EXT2_ET_BAD_DEVICE_NAME;

	while (range.length > 0 && !code) {
		const size_t part = part_of(&range);

		code = write_part(m, range.offset, from, part);
		from += part;
		advance(&range, part);
	}
	return code;
}

/* What was never written is zero: a journal of a GiB costs nothing. */
static errcode_t memio_zero(io_channel channel, unsigned long long block, unsigned long long count)
{
	const uint64_t unit = (uint64_t)channel->block_size;
	struct range range = { block * unit, count * unit };
	struct memio *m = channel->private_data;
	errcode_t code = m->map ? 0 : EXT2_ET_BAD_DEVICE_NAME;

	while (range.length > 0 && !code) {
		const uint64_t end = range.offset + range.length, at = range.offset / MODEL_BLOCK,
			       limit = div_up(end, MODEL_BLOCK),
			       next = volmap_next(m->map, at, limit);

		if (next > at)
			advance(&range, MIN(range.length, next * MODEL_BLOCK - range.offset));
		if (range.length == 0)
			break;
		code = write_part(m, range.offset, NULL, part_of(&range));
		advance(&range, part_of(&range));
	}
	return code;
}

static errcode_t memio_read_old(io_channel channel, unsigned long block, int count, void *data)
{
	return memio_read(channel, block, count, data);
}

static errcode_t memio_write_old(io_channel channel, unsigned long block, int count,
				 const void *data)
{
	return memio_write(channel, block, count, data);
}

static struct struct_io_manager manager = {
	.magic = EXT2_ET_MAGIC_IO_MANAGER,
	.name = "memory",
	.open = memio_open,
	.close = memio_close,
	.set_blksize = memio_set_blksize,
	.read_blk = memio_read_old,
	.write_blk = memio_write_old,
	.flush = memio_flush,
	.read_blk64 = memio_read,
	.write_blk64 = memio_write,
	.discard = memio_zero,
	.zeroout = memio_zero,
};

io_manager const memio_manager = &manager;
