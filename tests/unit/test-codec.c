// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "compress/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

enum { CLUSTER = 65536 };

static uint8_t text[CLUSTER], noise[CLUSTER];

static int fill_samples(void **state)
{
	uint32_t x = 12345;

	(void)state;
	for (size_t i = 0; i < CLUSTER; i++) {
		x = x * 1664525u + 1013904223u;
		noise[i] = (uint8_t)(x >> 24);
		text[i] = (uint8_t)("the quick brown fox "[i % 20] + (x >> 31));
	}
	/* a match that lies further back than a 4 KiB window reaches */
	memcpy(text + 40000, text, 8000);
	return 0;
}

/* What QEMU does: raw inflate with a window of 12 bits. */
static size_t unpack_zlib(const uint8_t *src, size_t len, uint8_t *dst)
{
	z_stream s = { .next_in = (uint8_t *)src, .avail_in = (uInt)len };

	s.next_out = dst;
	s.avail_out = CLUSTER;
	assert_int_equal(inflateInit2(&s, -12), Z_OK);
	assert_int_equal(inflate(&s, Z_FINISH), Z_STREAM_END);
	inflateEnd(&s);
	return s.total_out;
}

static size_t unpack_zstd(const uint8_t *src, size_t len, uint8_t *dst)
{
	size_t n = ZSTD_decompress(dst, CLUSTER, src, len);

	assert_false(ZSTD_isError(n));
	return n;
}

static size_t unpack(const struct codec *codec, const uint8_t *src, size_t len, uint8_t *dst)
{
	return strcmp(codec->name, "zstd") == 0 ? unpack_zstd(src, len, dst)
						: unpack_zlib(src, len, dst);
}

static void check_level(const struct codec *codec, int level)
{
	static uint8_t packed[CLUSTER], again[CLUSTER], plain[CLUSTER];
	struct err err = { 0 };
	void *state = codec->start(level, CLUSTER, &err);
	long n, m;

	assert_non_null(state);
	n = codec->pack(state, packed, CLUSTER - 1, text, CLUSTER, &err);
	assert_in_range(n, 1, CLUSTER - 1);
	assert_int_equal(unpack(codec, packed, (size_t)n, plain), CLUSTER);
	assert_memory_equal(plain, text, CLUSTER);

	assert_int_equal(codec->pack(state, packed, CLUSTER - 1, noise, CLUSTER, &err), 0);
	assert_int_equal(codec->pack(state, packed, (size_t)n - 1, text, CLUSTER, &err), 0);

	m = codec->pack(state, again, CLUSTER - 1, text, CLUSTER, &err);
	assert_int_equal(m, n);
	assert_int_equal(codec->pack(state, packed, CLUSTER - 1, text, CLUSTER, &err), n);
	assert_memory_equal(packed, again, (size_t)n);
	codec->stop(state);
}

static void every_level_unpacks_to_what_it_packed(void **state)
{
	(void)state;
	for (size_t i = 0; codecs[i]; i++)
		for (int level = codecs[i]->level_min; level <= codecs[i]->level_max; level++)
			check_level(codecs[i], level);
}

/* A state's place in memory and what it packed before must not matter.  A few
 * bytes are repeated at random places so that early matches, the ones that
 * shared tables could spoil, are frequent.
 */
static void every_state_packs_alike(void **state)
{
	enum { SIZE = 8192, ROUNDS = 20000 };
	static uint8_t src[SIZE], one[SIZE], two[SIZE];
	struct err err;
	uint32_t x = 99;

	(void)state;
	for (int level = 1; level <= 3; level++) {
		const struct codec *zlib = codec_find("zlib");
		void *first = zlib->start(level, SIZE, &err),
		     *second = zlib->start(level, SIZE, &err);

		for (int round = 0; round < ROUNDS; round++) {
			long n, m;

			for (size_t i = 0; i < SIZE; i++) {
				x = x * 1664525u + 1013904223u;
				src[i] = (uint8_t)(x >> 27);
			}
			for (size_t i = 100; i < SIZE - 16; i += 256 + (x >> 24))
				memcpy(src + i, src + i % 3, 5);
			n = zlib->pack(first, one, SIZE - 1, src, SIZE, &err);
			m = zlib->pack(second, two, SIZE - 1, src, SIZE, &err);
			assert_int_equal(n, m);
			assert_memory_equal(one, two, (size_t)n);
		}
		zlib->stop(first);
		zlib->stop(second);
	}
}

static void defaults_are_levels(void **state)
{
	(void)state;
	for (size_t i = 0; codecs[i]; i++) {
		const struct codec *c = codecs[i];

		assert_in_range(c->level_default, c->level_min, c->level_max);
		assert_ptr_equal(codec_find(c->name), c);
		assert_true(c->library(c->level_min).version[0]);
		assert_true(c->library(c->level_max).version[0]);
		c->stop(NULL);
	}
	assert_null(codec_find("none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_level_unpacks_to_what_it_packed),
		cmocka_unit_test(every_state_packs_alike),
		cmocka_unit_test(defaults_are_levels),
	};

	return cmocka_run_group_tests(tests, fill_samples, NULL);
}
