// SPDX-License-Identifier: Apache-2.0
#include "system/names.h"

#include <stddef.h>
#include <string.h>

/* SHA-256 (FIPS 180-4) of a few short pieces.  Our own, because libcrypto's may
 * fail for want of memory, and names cannot.
 */
struct sha256 {
	uint32_t state[8];
	uint8_t block[64];
	uint64_t len;
};

static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void expand(const uint8_t block[64], uint32_t w[64])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void compress(struct sha256 *h)
{
	uint32_t w[64], s[8];

	expand(h->block, w);
	memcpy(s, h->state, sizeof s);
	for (size_t i = 0; i < 64; i++) {
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
			       choice + constants[i] + w[i];
		uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;

		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += one;
		s[0] = one + two;
	}
	for (size_t i = 0; i < 8; i++)
		h->state[i] += s[i];
}

static void put_byte(struct sha256 *h, uint8_t byte)
{
	h->block[h->len++ % sizeof h->block] = byte;
	if (h->len % sizeof h->block == 0)
		compress(h);
}

static void put(struct sha256 *h, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put_byte(h, ((const uint8_t *)bytes)[i]);
}

static void finish(struct sha256 *h, uint8_t digest[32])
{
	uint64_t bits = h->len * 8;

	put_byte(h, 0x80);
	while (h->len % sizeof h->block != 56)
		put_byte(h, 0);
	for (int shift = 56; shift >= 0; shift -= 8)
		put_byte(h, (uint8_t)(bits >> shift));
	for (size_t i = 0; i < 32; i++)
		digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* What is hashed: use, NUL, name. */
void names_derive_uuid(const void *name, unsigned long len, const char *use, uint8_t uuid[16])
{
	struct sha256 h = { 0 };
	uint8_t digest[32];

	memcpy(h.state, initial, sizeof initial);
	put(&h, use, strlen(use) + 1);
	put(&h, name, len);
	finish(&h, digest);
	memcpy(uuid, digest, 16);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x80);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}
