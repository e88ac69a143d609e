/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_EXT4_KIT_H
#define CCSNAP_TEST_EXT4_KIT_H

/* What a reader of ext4 needs, written from the kernel's documentation and
 * independent of the encoders and of libext2fs.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED_OF_TEST 0x12345678u /* any number does as the seed of a checksum */

static inline uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static inline uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	for (const uint8_t *p = data; len-- > 0; p++) {
		crc ^= *p;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

struct half_md4 {
	uint32_t hash, minor;
};

static inline void half_md4_step(uint32_t s[4], uint32_t mixed, uint32_t word, unsigned by)
{
	const uint32_t sum = s[0] + mixed + word;

	/* The registers change their places after each step. */
	s[0] = s[3];
	s[3] = s[2];
	s[2] = s[1];
	s[1] = sum << by | sum >> (32 - by);
}

static inline void half_md4_block(uint32_t state[4], const uint32_t in[8])
{
	static const unsigned order[3][8] = { { 0, 1, 2, 3, 4, 5, 6, 7 },
					      { 1, 3, 5, 7, 0, 2, 4, 6 },
					      { 3, 7, 2, 6, 1, 5, 0, 4 } };
	static const unsigned by[3][4] = { { 3, 7, 11, 19 }, { 3, 5, 9, 13 }, { 3, 9, 11, 15 } };
	static const uint32_t constant[3] = { 0, 0x5a827999, 0x6ed9eba1 };
	uint32_t s[4];

	memcpy(s, state, sizeof s);
	for (unsigned i = 0; i < 24; i++) {
		const unsigned round = i / 8;
		const uint32_t x = s[1], y = s[2], z = s[3];
		const uint32_t mixed[3] = { z ^ (x & (y ^ z)), (x & y) + ((x ^ y) & z), x ^ y ^ z };

		half_md4_step(s, mixed[round], in[order[round][i % 8]] + constant[round],
			      by[round][i % 4]);
	}
	for (unsigned i = 0; i < 4; i++)
		state[i] += s[i];
}

/* 32 bytes of a name at a time, as signed characters, filled up with its length. */
static inline void half_md4_words(const char *name, size_t len, uint32_t in[8])
{
	const uint32_t pad = (uint32_t)len * 0x01010101u;
	uint32_t value = pad;
	size_t n = 0, i = 0;

	for (; i < len && i < 32; i++) {
		value = (uint32_t)(signed char)name[i] + (value << 8);
		if (i % 4 == 3) {
			in[n++] = value;
			value = pad;
		}
	}
	if (n < 8)
		in[n++] = value;
	while (n < 8)
		in[n++] = pad;
}

static inline struct half_md4 half_md4(const char *name, size_t len, const uint32_t seed[4])
{
	uint32_t state[4], in[8];
	struct half_md4 out;

	memcpy(state, seed, sizeof state);
	for (size_t at = 0; at < len; at += 32) {
		half_md4_words(name + at, len - at, in);
		half_md4_block(state, in);
	}
	out.hash = state[1] & ~1u;
	if (out.hash == 0xfffffffe)
		out.hash = 0xfffffffc;
	out.minor = state[2];
	return out;
}

/* Numbers that look random and are the same in every run. */
static inline uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

#endif
