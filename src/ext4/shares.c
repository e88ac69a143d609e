// SPDX-License-Identifier: Apache-2.0
#include "ext4/shares.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/err.h"
#include "ext4/volmap.h"
#include "ext4/xattr.h"

#include <stdlib.h>
#include <string.h>

/* struct ext2_ext_attr_header: the count, and where the body begins. */
#define COUNT_AT 4u
#define BODY_AT	 32u
#define BODY	 (MODEL_BLOCK - BODY_AT)

/* Slots that are looked at before one is overwritten: names and values are
 * hostile, and a block too few shared does no harm.
 */
#define PROBES 8u

int shares_init(struct shares *s, uint32_t sets, struct err *err)
{
	uint32_t size = 16;

	while (size < sets && size < UINT32_C(1) << 31)
		size *= 2;
	*s = (struct shares){
		.by_set = calloc((size_t)sets + 1, sizeof *s->by_set),
		.table = calloc(size, sizeof *s->table),
		.table_size = size,
	};
	if (!s->by_set || !s->table) {
		shares_free(s);
		return err_nomem(err);
	}
	return 0;
}

void shares_free(struct shares *s)
{
	free(s->at);
	free(s->by_set);
	free(s->table);
	*s = (struct shares){ 0 };
}

static uint64_t hash_body(const uint8_t *body)
{
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15), word;

	for (size_t i = 0; i < BODY; i += sizeof word) {
		memcpy(&word, body + i, sizeof word);
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
	}
	return hash;
}

bool share_holds(const struct volmap *map, uint64_t place, const struct xattr_image *image)
{
	uint8_t block[MODEL_BLOCK];

	volmap_get(map, place, block);
	return memcmp(block + BODY_AT, image->block + BODY_AT, BODY) == 0;
}

static bool has_room(const struct shares *s, uint32_t number)
{
	return number > 0 && s->at[number - 1].count < XATTR_BLOCK_SHARES;
}

/* The slot of a block with that body, else a free one, else the first tried. */
static uint32_t *find(const struct shares *s, const struct volmap *map, uint64_t hash,
		      const struct xattr_image *image)
{
	const uint32_t start = (uint32_t)(hash >> 32) & (s->table_size - 1);

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t *slot = &s->table[(start + i) & (s->table_size - 1)];
		const struct share *share = *slot ? &s->at[*slot - 1] : NULL;

		if (!share || (share->hash == hash && share_holds(map, share->place, image)))
			return slot;
	}
	return &s->table[start];
}

static bool slot_holds(const struct shares *s, const struct volmap *map, const uint32_t *slot,
		       uint64_t hash, const struct xattr_image *image)
{
	return *slot && s->at[*slot - 1].hash == hash &&
	       share_holds(map, s->at[*slot - 1].place, image);
}

static int place_block(struct alloc *a, struct volmap *map, const struct xattr_image *image,
		       uint64_t *place, struct err *err)
{
	if (alloc_take_block(a, place, err) < 0)
		return -1;
	return volmap_put_lent(map, *place, image->block, image->lent, image->lent_count, err);
}

static int make_share(struct shares *s, struct alloc *a, struct volmap *map, uint64_t hash,
		      const struct xattr_image *image, struct err *err)
{
	struct share share = { .hash = hash };

	if (!array_room(s->at, s->cap, (size_t)s->len + 1))
		return err_nomem(err);
	if (place_block(a, map, image, &share.place, err) < 0)
		return -1;
	s->at[s->len++] = share;
	return 0;
}

int shares_take(struct shares *s, struct alloc *a, struct volmap *map, uint32_t set,
		const struct xattr_image *image, uint64_t *place, struct err *err)
{
	uint32_t number = s->by_set[set];

	if (!has_room(s, number)) {
		const uint64_t hash = hash_body(image->block + BODY_AT);
		uint32_t *slot = find(s, map, hash, image);

		if (!slot_holds(s, map, slot, hash, image) || !has_room(s, *slot)) {
			if (make_share(s, a, map, hash, image, err) < 0)
				return -1;
			*slot = s->len;
		}
		number = s->by_set[set] = *slot;
	}
	s->at[number - 1].count++;
	*place = s->at[number - 1].place;
	return 0;
}

static int seal(struct volmap *map, uint64_t place, uint32_t count, uint32_t fs_seed,
		struct err *err)
{
	uint8_t block[MODEL_BLOCK];

	volmap_get(map, place, block);
	xattr_block_seal(block, count, place, fs_seed);
	return volmap_put(map, place, block, err);
}

int shares_seal(const struct shares *s, struct volmap *map, uint32_t fs_seed, struct err *err)
{
	for (uint32_t i = 0; i < s->len; i++)
		if (seal(map, s->at[i].place, s->at[i].count, fs_seed, err) < 0)
			return -1;
	return 0;
}

int share_take_own(struct alloc *a, struct volmap *map, const struct xattr_image *image,
		   uint32_t fs_seed, uint64_t *place, struct err *err)
{
	if (place_block(a, map, image, place, err) < 0)
		return -1;
	return seal(map, *place, 1, fs_seed, err);
}

int share_give(struct alloc *a, struct volmap *map, uint64_t place, uint32_t fs_seed,
	       struct err *err)
{
	static const uint8_t zeros[MODEL_BLOCK];
	uint8_t block[MODEL_BLOCK];
	uint32_t count;

	volmap_get(map, place, block);
	count = get_le32(block + COUNT_AT);
	if (count > 1)
		return seal(map, place, count - 1, fs_seed, err);
	if (volmap_put(map, place, zeros, err) < 0)
		return -1;
	return alloc_give(a, (struct alloc_range){ place, 1 }, err);
}
