/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_EXT4_DIR_KIT_H
#define CCSNAP_TEST_EXT4_DIR_KIT_H

/* Directories to encode, and a reader that looks names up as the kernel does
 * and takes offence at everything that is not as it must be.
 */
#include "base/err.h"
#include "base/size.h"
#include "ext4-kit.h"
#include "ext4/dir.h"

#include <stdio.h>
#include <sys/stat.h>

enum { BLOCK = 4096, OWN = 1234, PARENT = 99, FIRST = 20 };

/* With this seed "S3Tm_" has the hash that is reserved for the end of a directory. */
static const uint32_t seed[4] = { 0x11111111, 0x22222222, 0x33333333, 0x44444444 };

struct names {
	struct dir_entry *at;
	char (*text)[256];
	size_t len;
};

static inline struct names names_new(size_t cap)
{
	struct names n = { calloc(cap, sizeof *n.at), calloc(cap, 256), 0 };

	assert_non_null(n.at);
	assert_non_null(n.text);
	return n;
}

static inline void names_free(struct names *n)
{
	free(n->at);
	free(n->text);
}

static const uint32_t types[] = { S_IFREG, S_IFDIR, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK };

/* A name of so many bytes that begins with prefix, filled up with dots. */
static inline void names_add(struct names *n, const char *prefix, size_t len)
{
	char *text = n->text[n->len];
	const size_t used = strlen(prefix);

	memset(text, '.', 255);
	memcpy(text, prefix, used);
	n->at[n->len] = (struct dir_entry){ .name = text,
					    .len = (uint8_t)MAX(len, used),
					    .ino = (uint32_t)(FIRST + n->len),
					    .mode = types[n->len % 7] };
	n->len++;
}

static inline struct names numbered(size_t count, size_t len)
{
	struct names n = names_new(count);
	char prefix[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(prefix, sizeof prefix, "%07zu", i);
		names_add(&n, prefix, len);
	}
	return n;
}

static inline struct dir_blocks encode(const struct names *n, uint32_t min_blocks)
{
	struct dir_config cfg = { .ino = OWN,
				  .parent_ino = PARENT,
				  .entries = n->at,
				  .count = n->len,
				  .checksum_seed = SEED_OF_TEST,
				  .min_blocks = min_blocks };
	struct dir_blocks out;
	struct err err = { 0 };

	for (int i = 0; i < 4; i++)
		cfg.hash_seed[i] = htole32(seed[i]);
	if (dir_encode(&cfg, &out, &err))
		fail_msg("%s", err.text);
	assert_true(out.count <= MAX(dir_blocks_max(n->at, n->len), (uint64_t)min_blocks));
	return out;
}

/* The entry at p as it must look, and the next. */
static inline const uint8_t *expect_entry(const uint8_t *p, uint32_t ino, const char *name,
					  uint8_t type)
{
	assert_int_equal(get32(p), ino);
	assert_int_equal(p[6], strlen(name));
	assert_memory_equal(p + 8, name, p[6]);
	assert_int_equal(p[7], type);
	return p + get16(p + 4);
}

static inline void expect_tail(const uint8_t *block)
{
	const uint8_t *tail = block + 4084;

	assert_int_equal(get32(tail), 0);
	assert_int_equal(get16(tail + 4), 12);
	assert_int_equal(tail[6], 0);
	assert_int_equal(tail[7], 0xde);
	assert_int_equal(get32(tail + 8), crc32c(SEED_OF_TEST, block, 4084));
}

/* Does the block, from offset at, hold the name?  All records must be sound. */
static inline bool search(const uint8_t *block, size_t at, const struct dir_entry *want)
{
	static const uint8_t on_disk[] = { 1, 2, 3, 4, 5, 6, 7 };
	bool found = false;

	while (at < 4084) {
		const uint8_t *p = block + at;
		const size_t len = get16(p + 4);

		assert_true(len % 4 == 0 && len >= 8u + p[6] && at + len <= 4084);
		if (get32(p) && p[6] == want->len && !memcmp(p + 8, want->name, want->len)) {
			assert_int_equal(get32(p), want->ino);
			for (size_t i = 0; i < 7; i++) {
				if (types[i] == (want->mode & S_IFMT))
					assert_int_equal(p[7], on_disk[i]);
			}
			found = true;
		}
		at += len;
	}
	return found;
}

struct index {
	const uint8_t *base; /* of the counters, which are slot 0 */
	size_t count;
};

static inline uint32_t slot_key(const struct index *index, size_t slot)
{
	return slot ? get32(index->base + slot * 8) : 0;
}

static inline struct index open_index(const struct dir_blocks *dir, uint32_t block, size_t at)
{
	const uint8_t *p = dir->bytes + (size_t)block * BLOCK;
	const struct index index = { p + at, get16(p + at + 2) };

	assert_int_equal(get16(p + at), at == 32 ? 507 : 510);
	assert_in_range(index.count, 1, get16(p + at));
	return index;
}

static inline void expect_index(const struct dir_blocks *dir, uint32_t block, size_t at)
{
	const struct index index = open_index(dir, block, at);
	const uint8_t *p = dir->bytes + (size_t)block * BLOCK;
	uint32_t sum;

	sum = crc32c(SEED_OF_TEST, p, at + index.count * 8);
	sum = crc32c(sum, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(get32(p + at + get16(p + at) * 8 + 4), sum);
	for (size_t i = 1; i < index.count; i++)
		assert_true(slot_key(&index, i) > slot_key(&index, i - 1));
}

/* The last slot whose key is not above the hash (the kernel's dx_probe). */
static inline size_t probe(const struct index *index, uint32_t hash)
{
	size_t slot = 0;

	while (slot + 1 < index->count && slot_key(index, slot + 1) <= hash)
		slot++;
	return slot;
}

static inline uint32_t slot_block(const struct dir_blocks *dir, const struct index *index,
				  size_t slot)
{
	const uint32_t block = get32(index->base + slot * 8 + 4);

	assert_in_range(block, 1, dir->count - 1);
	return block;
}

/* The kernel's ext4_dx_find_entry: on to the next leaf only if its key says so. */
static inline bool htree_find(const struct dir_blocks *dir, const struct dir_entry *want)
{
	const uint32_t hash = half_md4(want->name, want->len, seed).hash;
	const struct index root = open_index(dir, 0, 32);
	size_t top = probe(&root, hash), slot = 0;
	struct index node = root;
	const bool deep = dir->bytes[30] == 1;

	assert_true(dir->bytes[30] <= 1);
	if (deep)
		node = open_index(dir, slot_block(dir, &root, top), 8);
	slot = deep ? probe(&node, hash) : top;
	for (;;) {
		uint32_t key;

		if (search(dir->bytes + (size_t)slot_block(dir, &node, slot) * BLOCK, 0, want))
			return true;
		if (++slot == node.count) {
			if (!deep || ++top == root.count)
				return false;
			node = open_index(dir, slot_block(dir, &root, top), 8);
			slot = 0;
		}
		key = slot ? slot_key(&node, slot) : slot_key(&root, top);
		if (!(key & 1) || (key & ~1u) != hash)
			return false;
	}
}

/* What a kernel without an index sees: every block is a list of entries. */
static inline size_t count_entries(const struct dir_blocks *dir)
{
	size_t count = 0;

	for (size_t at = 0; at < (size_t)dir->count * BLOCK;) {
		const uint8_t *p = dir->bytes + at;
		const size_t len = get16(p + 4);

		assert_true(len >= 8 && at % BLOCK + len <= BLOCK);
		count += get32(p) != 0;
		at += len;
	}
	return count;
}

static inline void expect_sorted_leaf(const uint8_t *block, uint32_t *hash)
{
	expect_tail(block);
	for (size_t at = 0; at < 4084; at += get16(block + at + 4)) {
		const uint8_t *p = block + at;
		const uint32_t own = half_md4((const char *)p + 8, p[6], seed).hash;

		assert_true(own >= *hash);
		*hash = own;
	}
}

static inline void expect_htree(const struct names *n, const struct dir_blocks *dir)
{
	const uint8_t *p = dir->bytes;
	const struct index root = open_index(dir, 0, 32);
	const size_t nodes = p[30] ? root.count : 0;
	uint32_t hash = 0;

	assert_true(dir->indexed);
	expect_index(dir, 0, 32);
	p = expect_entry(p, OWN, ".", 2);
	assert_int_equal(get16(p + 4), BLOCK - 12);
	expect_entry(p, PARENT, "..", 2);
	assert_memory_equal(p + 12, "\0\0\0\0\1\x08", 6); /* half MD4, 8 bytes of information */
	for (size_t i = 1; i <= nodes; i++) {
		assert_memory_equal(dir->bytes + i * BLOCK, "\0\0\0\0\0\x10\0\0", 8);
		expect_index(dir, (uint32_t)i, 8);
	}
	for (size_t i = 1 + nodes; i < dir->count; i++)
		expect_sorted_leaf(dir->bytes + i * BLOCK, &hash);
	assert_int_equal(count_entries(dir), n->len + 2);
	for (size_t i = 0; i < n->len; i++)
		assert_true(htree_find(dir, &n->at[i]));
}

#endif
