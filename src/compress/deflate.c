// SPDX-License-Identifier: Apache-2.0
#include "compress/codec.h"

#include "base/err.h"

#define ZLIB_CONST
#include <assert.h>
#include <isa-l.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

/* "zlib" in a qcow2 image is raw deflate.  QEMU inflates with a window of
 * 4 KiB (block/qcow2-threads.c: inflateInit2 with -12), so no match may reach
 * further back.  The fast levels are ISA-L's, which are several times faster
 * than zlib's fastest at about its size; above them zlib packs tighter.
 */
#define WINDOW_BITS    12
#define LEVEL_ISAL_MAX 3

/* ISA-L's working memory for a level: tables (a little more than its "REQ"),
 * then room for the symbols of one deflate block.  A block ends when that is
 * full, and shorter blocks have codes that fit better, but take time to make.
 */
#define BLOCK_SYMBOLS (8 * 1024)
#define TABLES_EXTRA  4096
#define ISAL_BUF(tables)                                                                           \
	{                                                                                          \
		.zeroed = (tables) + TABLES_EXTRA, .size = (tables) + 4 * BLOCK_SYMBOLS            \
	}

static const struct {
	uint32_t zeroed, size;
} isal_bufs[] = {
	[1] = ISAL_BUF(ISAL_DEF_LVL1_REQ),
	[2] = ISAL_BUF(ISAL_DEF_LVL2_REQ),
	[3] = ISAL_BUF(ISAL_DEF_LVL3_REQ),
};

/* Levels 1 and 2 of ISA-L 2.30 depend on where the stream lies in memory: the
 * vector code (isal_deflate_icf_body_hash_hist) enters position 2 of the input
 * into its match table under the CRC-32C of bits 16 to 47 of the stream's
 * address, since it keeps the pointer in the register that it hashes from.  The
 * output is right but now and then a byte longer or shorter.  So that the same
 * input gives the same bytes in every thread and every run, a stream lies where
 * that hash is 0.  CRCs are linear: there is exactly one such place in each
 * aligned span of 2^15 units of 64 KiB for a table of up to 2^15 entries.
 */
#define STREAM_UNIT ((uintptr_t)1 << 16)
#define STREAM_SPAN (STREAM_UNIT << 15)
#define HASH_MASK   ((1u << 15) - 1)

/* More than there can be workers, each with a stream. */
#define STREAM_TRIES 1024

struct deflate {
	int level;
	struct isal_zstream *isal;
	uint8_t *isal_buf;
	z_stream zlib;
};

extern const struct codec codec_zlib;

static void deflate_stop(void *state)
{
	struct deflate *d = state;

	if (!d)
		return;
	if (d->level > LEVEL_ISAL_MAX)
		deflateEnd(&d->zlib);
	free(d->isal_buf);
	if (d->isal)
		munmap(d->isal, sizeof *d->isal);
	free(d);
}

/* In the span that begins there. */
static uintptr_t stream_place(uintptr_t span)
{
	for (uintptr_t at = span; at < span + STREAM_SPAN; at += STREAM_UNIT) {
		uint32_t hashed = (uint32_t)(at >> 16);

		if ((crc32_iscsi((unsigned char *)&hashed, sizeof hashed, 0) & HASH_MASK) == 0)
			return at;
	}
	assert(!"a CRC that is not linear");
	return span;
}

/* Spans are tried downwards from where the kernel puts mappings by itself. */
static struct isal_zstream *stream_map(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	size_t size = sizeof(struct isal_zstream);
	void *at = mmap(NULL, size, PROT_NONE, flags, -1, 0);
	uintptr_t span = (uintptr_t)at / STREAM_SPAN * STREAM_SPAN;

	if (at == MAP_FAILED)
		return NULL;
	munmap(at, size);
	for (int i = 0; i < STREAM_TRIES; i++, span -= STREAM_SPAN) {
		at = mmap((void *)stream_place(span), size, PROT_READ | PROT_WRITE,
			  flags | MAP_FIXED_NOREPLACE, -1, 0);
		if (at != MAP_FAILED)
			return at;
	}
	return NULL;
}

static int isal_start(struct deflate *d)
{
	d->isal_buf = malloc(isal_bufs[d->level].size);
	d->isal = stream_map();
	return d->isal_buf && d->isal ? 0 : -1;
}

static void *deflate_start(int level, size_t cluster_size, struct err *err)
{
	struct deflate *d = calloc(1, sizeof *d);
	int r;

	(void)cluster_size;
	if (!d) {
		err_nomem(err);
		return NULL;
	}
	d->level = level;
	if (level <= LEVEL_ISAL_MAX)
		r = isal_start(d);
	else
		r = deflateInit2(&d->zlib, level, Z_DEFLATED, -WINDOW_BITS, 9, Z_DEFAULT_STRATEGY);
	if (r == 0)
		return d;
	deflate_stop(d);
	err_nomem(err);
	return NULL;
}

static long pack_isal(struct deflate *d, void *dst, size_t cap, const void *src, size_t len,
		      struct err *err)
{
	struct isal_zstream *s = d->isal;
	int r;

	isal_deflate_stateless_init(s);
	/* what is left of earlier clusters there would change the matches found */
	memset(d->isal_buf, 0, isal_bufs[d->level].zeroed);
	s->level = (uint32_t)d->level;
	s->level_buf = d->isal_buf;
	s->level_buf_size = isal_bufs[d->level].size;
	s->hist_bits = WINDOW_BITS;
	s->end_of_stream = 1;
	s->next_in = (uint8_t *)src;
	s->avail_in = (uint32_t)len;
	s->next_out = dst;
	s->avail_out = (uint32_t)cap;
	r = isal_deflate_stateless(s);
	if (r == COMP_OK)
		return s->total_out;
	return r == STATELESS_OVERFLOW ? 0 : err_set(err, ERR_FAILED, "ISA-L deflate: error %d", r);
}

static long pack_zlib(struct deflate *d, void *dst, size_t cap, const void *src, size_t len,
		      struct err *err)
{
	z_stream *s = &d->zlib;
	int r;

	if (deflateReset(s) != Z_OK)
		return err_set(err, ERR_FAILED, "zlib: cannot reset");
	s->next_in = src;
	s->avail_in = (uInt)len;
	s->next_out = dst;
	s->avail_out = (uInt)cap;
	r = deflate(s, Z_FINISH);
	if (r == Z_STREAM_END)
		return (long)s->total_out;
	return r == Z_OK || r == Z_BUF_ERROR ? 0 : err_set(err, ERR_FAILED, "zlib: error %d", r);
}

static long deflate_pack(void *state, void *dst, size_t cap, const void *src, size_t len,
			 struct err *err)
{
	struct deflate *d = state;

	return d->level > LEVEL_ISAL_MAX ? pack_zlib(d, dst, cap, src, len, err)
					 : pack_isal(d, dst, cap, src, len, err);
}

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

static struct codec_library deflate_library(int level)
{
	if (level > LEVEL_ISAL_MAX)
		return (struct codec_library){ "zlib", zlibVersion() };
	/* ISA-L tells its version only to the compiler */
	return (struct codec_library){ "isa-l",
				       STRING(ISAL_MAJOR_VERSION) "." STRING(
					       ISAL_MINOR_VERSION) "." STRING(ISAL_PATCH_VERSION) };
}

const struct codec codec_zlib = {
	.name = "zlib",
	.level_min = 1,
	.level_max = 9,
	.level_default = 2,
	.start = deflate_start,
	.stop = deflate_stop,
	.pack = deflate_pack,
	.library = deflate_library,
};
