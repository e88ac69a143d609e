// SPDX-License-Identifier: Apache-2.0
#include "ext4/volmap.h"

#include "base/err.h"
#include "base/size.h"
#include "source/extent.h"

#include <stdlib.h>
#include <string.h>

/* A radix tree of three levels: 512 blocks a leaf, 512 leaves a branch, so that
 * neither a large volume nor one with little in it costs much.
 */
#define FAN	    512u
#define FAN_BITS    9u
#define BITS_A_WORD 64u

struct leaf {
	uint8_t *at[FAN]; /* NULL: zeros */
	uint64_t packed[FAN / BITS_A_WORD];
	uint64_t changed[FAN / BITS_A_WORD];
};

struct branch {
	struct leaf *at[FAN];
};

struct volmap {
	uint64_t blocks, branches;
	struct branch *at[]; /* NULL: zeros */
};

static bool bit_get(const uint64_t *bits, unsigned i)
{
	return bits[i / BITS_A_WORD] >> i % BITS_A_WORD & 1;
}

static void bit_set(uint64_t *bits, unsigned i)
{
	bits[i / BITS_A_WORD] |= UINT64_C(1) << i % BITS_A_WORD;
}

static void bit_clear(uint64_t *bits, unsigned i)
{
	bits[i / BITS_A_WORD] &= ~(UINT64_C(1) << i % BITS_A_WORD);
}

/* --- packed blocks ------------------------------------------------------------- */

/* Eight bytes with a bit for each of the 64 lines of 64 bytes that is not zero;
 * for each of those a byte with a bit for each of its eight words that is not
 * zero, and these words.  Small for a directory with two entries as for a block
 * of inodes.
 */
#define LINES	     64u
#define LINE	     64u
#define WORDS	     8u
#define WORD	     8u
#define PACKED_LIMIT (sizeof(uint64_t) + LINES * (1 + LINE))

static uint8_t *pack_line(uint8_t *out, const uint8_t *line)
{
	uint8_t *mask = out++;
	uint64_t words[WORDS];

	memcpy(words, line, sizeof words);
	*mask = 0;
	for (unsigned i = 0; i < WORDS; i++) {
		if (words[i] == 0)
			continue;
		*mask |= (uint8_t)(1u << i);
		memcpy(out, &words[i], WORD);
		out += WORD;
	}
	return *mask ? out : mask;
}

static size_t pack(uint8_t out[PACKED_LIMIT], const uint8_t *bytes)
{
	uint8_t *end = out + sizeof(uint64_t);
	uint64_t lines = 0;

	for (unsigned i = 0; i < LINES; i++) {
		uint8_t *next = pack_line(end, bytes + i * LINE);

		if (next != end)
			lines |= UINT64_C(1) << i;
		end = next;
	}
	memcpy(out, &lines, sizeof lines);
	return lines ? (size_t)(end - out) : 0;
}

static void unpack(uint8_t *bytes, const uint8_t *packed)
{
	uint64_t lines;

	memcpy(&lines, packed, sizeof lines);
	packed += sizeof lines;
	memset(bytes, 0, VOLMAP_BLOCK);
	for (; lines; lines &= lines - 1) {
		uint8_t *line = bytes + (unsigned)__builtin_ctzll(lines) * LINE;

		for (unsigned mask = *packed++; mask; mask &= mask - 1, packed += WORD)
			memcpy(line + (unsigned)__builtin_ctz(mask) * WORD, packed, WORD);
	}
}

/* --- the tree ------------------------------------------------------------------- */

struct volmap *volmap_new(uint64_t blocks, struct err *err)
{
	const uint64_t branches = (blocks >> 2 * FAN_BITS) + 1;
	struct volmap *v = calloc(1, sizeof *v + branches * sizeof v->at[0]);

	if (!v) {
		err_nomem(err);
		return NULL;
	}
	v->blocks = blocks;
	v->branches = branches;
	return v;
}

static void branch_free(struct branch *branch)
{
	for (unsigned i = 0; branch && i < FAN; i++) {
		for (unsigned k = 0; branch->at[i] && k < FAN; k++)
			free(branch->at[i]->at[k]);
		free(branch->at[i]);
	}
	free(branch);
}

void volmap_free(struct volmap *v)
{
	if (!v)
		return;
	for (uint64_t i = 0; i < v->branches; i++)
		branch_free(v->at[i]);
	free(v);
}

/* The leaf of the block, NULL where there is none. */
static struct leaf *leaf_of(const struct volmap *v, uint64_t block)
{
	const struct branch *branch =
		block < v->blocks ? v->at[block >> 2 * FAN_BITS] : (const struct branch *)NULL;

	return branch ? branch->at[block >> FAN_BITS & (FAN - 1)] : NULL;
}

static struct leaf *leaf_make(struct volmap *v, uint64_t block, struct err *err)
{
	struct branch **branch = &v->at[block >> 2 * FAN_BITS];
	struct leaf **leaf;

	if (!*branch)
		*branch = calloc(1, sizeof **branch);
	if (!*branch) {
		err_nomem(err);
		return NULL;
	}
	leaf = &(*branch)->at[block >> FAN_BITS & (FAN - 1)];
	if (!*leaf)
		*leaf = calloc(1, sizeof **leaf);
	if (!*leaf)
		err_nomem(err);
	return *leaf;
}

static unsigned slot_of(uint64_t block)
{
	return block & (FAN - 1);
}

static bool is_inside(const struct volmap *v, uint64_t block, struct err *err)
{
	if (block >= v->blocks)
		err_set(err, ERR_FAILED, "block %llu lies behind the end of the filesystem",
			(unsigned long long)block);
	return block < v->blocks;
}

static void leaf_get(const struct leaf *leaf, unsigned i, uint8_t bytes[VOLMAP_BLOCK])
{
	if (!leaf || !leaf->at[i])
		memset(bytes, 0, VOLMAP_BLOCK);
	else if (bit_get(leaf->packed, i))
		unpack(bytes, leaf->at[i]);
	else
		memcpy(bytes, leaf->at[i], VOLMAP_BLOCK);
}

uint8_t *volmap_edit(struct volmap *v, uint64_t block, struct err *err)
{
	struct leaf *leaf = is_inside(v, block, err) ? leaf_make(v, block, err) : NULL;
	const unsigned i = slot_of(block);
	uint8_t *whole;

	if (!leaf)
		return NULL;
	bit_set(leaf->changed, i);
	if (leaf->at[i] && !bit_get(leaf->packed, i))
		return leaf->at[i];
	whole = malloc(VOLMAP_BLOCK);
	if (!whole) {
		err_nomem(err);
		return NULL;
	}
	leaf_get(leaf, i, whole);
	free(leaf->at[i]);
	leaf->at[i] = whole;
	bit_clear(leaf->packed, i);
	return whole;
}

static void drop(struct leaf *leaf, unsigned i)
{
	if (!leaf || !leaf->at[i])
		return;
	free(leaf->at[i]);
	leaf->at[i] = NULL;
	bit_clear(leaf->packed, i);
	bit_set(leaf->changed, i);
}

int volmap_put(struct volmap *v, uint64_t block, const uint8_t bytes[VOLMAP_BLOCK], struct err *err)
{
	uint8_t packed[PACKED_LIMIT];
	const size_t size = pack(packed, bytes);
	const bool whole = size >= VOLMAP_BLOCK;
	struct leaf *leaf;
	uint8_t *copy;

	if (!is_inside(v, block, err))
		return -1;
	if (size == 0) {
		drop(leaf_of(v, block), slot_of(block));
		return 0;
	}
	leaf = leaf_make(v, block, err);
	copy = leaf ? malloc(whole ? VOLMAP_BLOCK : size) : NULL;
	if (!copy)
		return err_nomem(err);
	memcpy(copy, whole ? bytes : packed, whole ? VOLMAP_BLOCK : size);
	drop(leaf, slot_of(block));
	leaf->at[slot_of(block)] = copy;
	bit_set(leaf->changed, slot_of(block));
	if (!whole)
		bit_set(leaf->packed, slot_of(block));
	return 0;
}

bool volmap_has(const struct volmap *v, uint64_t block)
{
	const struct leaf *leaf = leaf_of(v, block);

	return leaf && leaf->at[slot_of(block)];
}

void volmap_get(const struct volmap *v, uint64_t block, uint8_t bytes[VOLMAP_BLOCK])
{
	leaf_get(leaf_of(v, block), slot_of(block), bytes);
}

/* The first block behind this one that another leaf, or another branch, holds. */
static uint64_t next_leaf(const struct volmap *v, uint64_t block)
{
	const unsigned bits = v->at[block >> 2 * FAN_BITS] ? FAN_BITS : 2 * FAN_BITS;

	return ((block >> bits) + 1) << bits;
}

uint64_t volmap_next(const struct volmap *v, uint64_t block, uint64_t limit)
{
	const uint64_t end = MIN(limit, v->blocks);

	while (block < end) {
		const struct leaf *leaf = leaf_of(v, block);

		if (!leaf)
			block = next_leaf(v, block);
		else if (leaf->at[slot_of(block)])
			return block;
		else
			block++;
	}
	return limit;
}

static int take_leaf(struct leaf *leaf, uint64_t offset, struct extent_list *out, struct err *err)
{
	for (unsigned w = 0; w < FAN / BITS_A_WORD; w++) {
		for (; leaf->changed[w]; leaf->changed[w] &= leaf->changed[w] - 1) {
			const unsigned i =
				w * BITS_A_WORD + (unsigned)__builtin_ctzll(leaf->changed[w]);

			if (extent_list_add(out, offset + i * (uint64_t)VOLMAP_BLOCK, VOLMAP_BLOCK,
					    false, err) < 0)
				return -1;
		}
	}
	return 0;
}

int volmap_take_changes(struct volmap *v, uint64_t base, struct extent_list *out, struct err *err)
{
	for (uint64_t block = 0; block < v->blocks; block = next_leaf(v, block)) {
		struct leaf *leaf = leaf_of(v, block);

		if (leaf && take_leaf(leaf, base + block * VOLMAP_BLOCK, out, err) < 0)
			return -1;
	}
	return 0;
}
