/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_EXT4_XATTR_KIT_H
#define CCSNAP_TEST_EXT4_XATTR_KIT_H

/* A reader of attributes that takes offence at everything that is not as it
 * must be: include it once a program.
 */
#include "base/err.h"
#include "base/size.h"
#include "ext4-kit.h"
#include "ext4/xattr.h"

#include <stdio.h>

enum { BLOCK = 4096, MANY = 9000 };

/* What the decoder found. */
struct found {
	uint8_t index, name_length;
	char name[256];
	const uint8_t *value;
	uint32_t size;
	bool in_block;
};

static struct found found[MANY];
static size_t found_count;

struct drops {
	size_t count;
	char name[MANY][64]; /* of the first so many bytes */
	const char *why;
};

static struct drops drops;
static struct xattr_image image;

static inline void note_drop(void *ctx, const char *name, const char *why)
{
	struct drops *d = ctx;

	snprintf(d->name[d->count], sizeof d->name[0], "%.63s", name);
	d->why = why;
	d->count++;
}

static inline uint32_t fold(uint32_t hash, unsigned by, uint32_t with)
{
	return (hash << by | hash >> (32 - by)) ^ with;
}

/* ext4_xattr_hash_entry: the name, then the value word by word, zeros behind it. */
static inline uint32_t hash_of(const struct found *f)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < f->name_length; i++)
		hash = fold(hash, 5, (uint8_t)f->name[i]);
	for (size_t i = 0; i < f->size; i += 4)
		hash = fold(hash, 16, get32(f->value + i));
	return hash;
}

static inline int compare_found(const struct found *a, const struct found *b)
{
	if (a->index != b->index)
		return a->index - b->index;
	if (a->name_length != b->name_length)
		return a->name_length - b->name_length;
	return memcmp(a->name, b->name, a->name_length);
}

/* Entries from at on, values that end where the region of len bytes ends; each
 * byte that is neither must be 0.  Returns the hash of all.
 */
static inline uint32_t decode(const uint8_t *region, size_t len, size_t at, size_t origin)
{
	static uint8_t used[BLOCK];
	const struct found *last = NULL;
	uint32_t all = 0;

	memset(used, 0, sizeof used);
	while (get32(region + at)) {
		const uint8_t *entry = region + at;
		struct found *f = &found[found_count++];
		const size_t value = origin + get16(entry + 2);
		const uint32_t hash = get32(entry + 12);

		*f = (struct found){ entry[1],	     entry[0],	       "",
				     region + value, get32(entry + 8), len == BLOCK };
		memcpy(f->name, entry + 16, f->name_length);
		assert_int_equal(get32(entry + 4), 0);
		assert_true(!last || compare_found(last, f) < 0);
		assert_int_equal(hash, f->in_block ? hash_of(f) : 0);
		memset(used + at, 1, 16 + f->name_length);
		at += round_up(16 + f->name_length, 4);
		assert_true(at + 4 <= len);
		if (f->size) {
			assert_true(value % 4 == 0 && value + f->size <= len);
			assert_null(memchr(used + value, 1, f->size));
			memset(used + value, 1, f->size);
		} else {
			assert_int_equal(get16(entry + 2), 0);
		}
		all = fold(all, 16, hash);
		last = f;
	}
	for (size_t i = at; i < len; i++)
		assert_true(used[i] || region[i] == 0);
	assert_null(memchr(used + at, 1, 4)); /* the end mark is nobody's value */
	return all;
}

static inline void decode_image(void)
{
	const uint8_t *b = image.block;

	found_count = 0;
	if (get32(image.inode)) {
		assert_int_equal(get32(image.inode), 0xea020000);
		decode(image.inode, 96, 4, 4);
		assert_true(found_count > 0);
	}
	if (!image.has_block)
		return;
	assert_int_equal(get32(b), 0xea020000);
	assert_int_equal(get32(b + 4), 1);
	assert_int_equal(get32(b + 8), 1);
	assert_int_equal(get32(b + 12), decode(b, BLOCK, 32, 0));
	for (size_t i = 16; i < 32; i++)
		assert_int_equal(b[i], 0);
	assert_true(found[found_count - 1].in_block);
}

static inline void encode(struct model_xattr *list, size_t len)
{
	const struct model_xattr_set set = { list, len };
	struct err err = { 0 };

	drops.count = 0;
	memset(&image, 0xee, sizeof image);
	if (xattr_encode(&set, &image, note_drop, &drops, &err))
		fail_msg("%s", err.text);
	decode_image();
}

static inline const struct found *find(const char *full)
{
	static const struct {
		const char *prefix;
		uint8_t index;
	} kinds[] = { { "user.", 1 },
		      { "system.posix_acl_access", 2 },
		      { "system.posix_acl_default", 3 },
		      { "trusted.", 4 },
		      { "security.", 6 } };

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		const size_t len = strlen(kinds[k].prefix);

		for (size_t i = 0; i < found_count && !strncmp(full, kinds[k].prefix, len); i++) {
			if (found[i].index == kinds[k].index && !strcmp(found[i].name, full + len))
				return &found[i];
		}
	}
	return NULL;
}

static inline bool is_dropped(const char *name)
{
	for (size_t i = 0; i < drops.count; i++) {
		if (!strncmp(drops.name[i], name, sizeof drops.name[i] - 1))
			return true;
	}
	return false;
}

static inline void expect_stored(const struct model_xattr *x)
{
	const struct found *f = find(x->name);

	assert_non_null(f);
	assert_int_equal(f->size, x->size);
	if (x->size)
		assert_memory_equal(f->value, x->value, x->size);
}

static const char text[70000] = "value";

#endif
