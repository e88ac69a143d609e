/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_BYTES_H
#define CCSNAP_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Numbers as they are on disk, at any address. */
static inline void put_le16(void *p, uint16_t n)
{
	n = htole16(n);
	memcpy(p, &n, sizeof n);
}

static inline void put_le32(void *p, uint32_t n)
{
	n = htole32(n);
	memcpy(p, &n, sizeof n);
}

static inline void put_le64(void *p, uint64_t n)
{
	n = htole64(n);
	memcpy(p, &n, sizeof n);
}

static inline uint16_t get_le16(const void *p)
{
	uint16_t n;

	memcpy(&n, p, sizeof n);
	return le16toh(n);
}

static inline uint32_t get_le32(const void *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof n);
	return le32toh(n);
}

static inline uint64_t get_le64(const void *p)
{
	uint64_t n;

	memcpy(&n, p, sizeof n);
	return le64toh(n);
}

static inline uint32_t get_be32(const void *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof n);
	return be32toh(n);
}

static inline uint64_t get_be64(const void *p)
{
	uint64_t n;

	memcpy(&n, p, sizeof n);
	return be64toh(n);
}

#endif
