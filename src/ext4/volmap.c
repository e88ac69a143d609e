// SPDX-License-Identifier: Apache-2.0
#include "ext4/volmap.h"

#include "base/err.h"
#include "base/size.h"
#include "source/extent.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A radix tree of three levels: 512 blocks a leaf, 512 leaves a branch, so that
 * neither a large volume nor one with little in it costs much.
 */
#define FAN	    512u
#define FAN_BITS    9u
#define BITS_A_WORD 64u

struct leaf {
	uint8_t *at[FAN];		    /* NULL: zeros */
	uint64_t packed[FAN / BITS_A_WORD]; /* neither: the whole block */
	uint64_t lent[FAN / BITS_A_WORD];
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
#define PACKED_ZEROS sizeof(uint64_t)

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
	return (size_t)(end - out);
}

static void unpack(uint8_t *bytes, const uint8_t *packed)
{
	uint64_t lines;

	memcpy(&lines, packed, sizeof lines);
	packed += sizeof lines;
	memset(bytes, 0, MODEL_BLOCK);
	for (; lines; lines &= lines - 1) {
		uint8_t *line = bytes + (unsigned)__builtin_ctzll(lines) * LINE;

		for (unsigned mask = *packed++; mask; mask &= mask - 1, packed += WORD)
			memcpy(line + (unsigned)__builtin_ctz(mask) * WORD, packed, WORD);
	}
}

/* --- lent bytes ------------------------------------------------------------------ */

/* Behind the loans lies the rest, packed, with zeros where they go. */
struct lent {
	size_t count;
	struct volmap_loan loans[];
};

/* malloc; NULL without memory. */
static uint8_t *lent_make(const uint8_t *bytes, const struct volmap_loan *loans, size_t count)
{
	const size_t size = sizeof(struct lent) + count * sizeof *loans;
	uint8_t rest[MODEL_BLOCK], packed[PACKED_LIMIT];
	struct lent *lent;
	size_t packed_size;

	memcpy(rest, bytes, sizeof rest);
	for (size_t i = 0; i < count; i++) {
		assert(loans[i].at + loans[i].len <= MODEL_BLOCK);
		memset(rest + loans[i].at, 0, loans[i].len);
	}
	packed_size = pack(packed, rest);
	lent = malloc(size + packed_size);
	if (!lent)
		return NULL;
	lent->count = count;
	memcpy(lent->loans, loans, count * sizeof *loans);
	memcpy((uint8_t *)lent + size, packed, packed_size);
	return (uint8_t *)lent;
}

static void lent_get(uint8_t *bytes, const uint8_t *stored)
{
	const struct lent *lent = (const void *)stored;

	unpack(bytes, (const uint8_t *)(lent->loans + lent->count));
	for (size_t i = 0; i < lent->count; i++)
		memcpy(bytes + lent->loans[i].at, lent->loans[i].bytes, lent->loans[i].len);
}

/* Those that the new bytes of the block have, too. */
static size_t lent_still(const uint8_t *stored, const uint8_t *bytes,
			 struct volmap_loan still[VOLMAP_LOANS_MAX])
{
	const struct lent *lent = (const void *)stored;
	size_t count = 0;

	for (size_t i = 0; i < lent->count; i++) {
		const struct volmap_loan *loan = &lent->loans[i];

		if (memcmp(bytes + loan->at, loan->bytes, loan->len) == 0)
			still[count++] = *loan;
	}
	return count;
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

static void leaf_get(const struct leaf *leaf, unsigned i, uint8_t bytes[MODEL_BLOCK])
{
	if (!leaf || !leaf->at[i])
		memset(bytes, 0, MODEL_BLOCK);
	else if (bit_get(leaf->packed, i))
		unpack(bytes, leaf->at[i]);
	else if (bit_get(leaf->lent, i))
		lent_get(bytes, leaf->at[i]);
	else
		memcpy(bytes, leaf->at[i], MODEL_BLOCK);
}

uint8_t *volmap_edit(struct volmap *v, uint64_t block, struct err *err)
{
	struct leaf *leaf = is_inside(v, block, err) ? leaf_make(v, block, err) : NULL;
	const unsigned i = slot_of(block);
	uint8_t *whole;

	if (!leaf)
		return NULL;
	bit_set(leaf->changed, i);
	if (leaf->at[i] && !bit_get(leaf->packed, i) && !bit_get(leaf->lent, i))
		return leaf->at[i];
	whole = malloc(MODEL_BLOCK);
	if (!whole) {
		err_nomem(err);
		return NULL;
	}
	leaf_get(leaf, i, whole);
	free(leaf->at[i]);
	leaf->at[i] = whole;
	bit_clear(leaf->packed, i);
	bit_clear(leaf->lent, i);
	return whole;
}

static void drop(struct leaf *leaf, unsigned i)
{
	if (!leaf || !leaf->at[i])
		return;
	free(leaf->at[i]);
	leaf->at[i] = NULL;
	bit_clear(leaf->packed, i);
	bit_clear(leaf->lent, i);
	bit_set(leaf->changed, i);
}

/* Takes stored; form: the bits that say how it is stored, NULL for whole. */
static void leaf_set(struct leaf *leaf, unsigned i, uint8_t *stored, uint64_t *form)
{
	drop(leaf, i);
	leaf->at[i] = stored;
	bit_set(leaf->changed, i);
	if (form)
		bit_set(form, i);
}

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size);

	return copy ? memcpy(copy, bytes, size) : NULL;
}

int volmap_put_lent(struct volmap *v, uint64_t block, const uint8_t bytes[MODEL_BLOCK],
		    const struct volmap_loan *loans, size_t count, struct err *err)
{
	uint8_t packed[PACKED_LIMIT];
	const size_t size = pack(packed, bytes);
	const bool whole = size >= MODEL_BLOCK;
	struct leaf *leaf;
	uint8_t *stored;

	assert(count <= VOLMAP_LOANS_MAX);
	if (!is_inside(v, block, err))
		return -1;
	if (size == PACKED_ZEROS) {
		drop(leaf_of(v, block), slot_of(block));
		return 0;
	}
	leaf = leaf_make(v, block, err);
	if (!leaf)
		return -1;
	stored = count	 ? lent_make(bytes, loans, count)
		 : whole ? copy_of(bytes, MODEL_BLOCK)
			 : copy_of(packed, size);
	if (!stored)
		return err_nomem(err);
	leaf_set(leaf, slot_of(block), stored, count ? leaf->lent : whole ? NULL : leaf->packed);
	return 0;
}

int volmap_put(struct volmap *v, uint64_t block, const uint8_t bytes[MODEL_BLOCK], struct err *err)
{
	const struct leaf *leaf = leaf_of(v, block);
	const unsigned i = slot_of(block);
	struct volmap_loan still[VOLMAP_LOANS_MAX];
	size_t count = 0;

	if (leaf && bit_get(leaf->lent, i))
		count = lent_still(leaf->at[i], bytes, still);
	return volmap_put_lent(v, block, bytes, still, count, err);
}

bool volmap_has(const struct volmap *v, uint64_t block)
{
	const struct leaf *leaf = leaf_of(v, block);

	return leaf && leaf->at[slot_of(block)];
}

void volmap_get(const struct volmap *v, uint64_t block, uint8_t bytes[MODEL_BLOCK])
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

			if (extent_list_add(out, offset + i * (uint64_t)MODEL_BLOCK, MODEL_BLOCK,
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

		if (leaf && take_leaf(leaf, base + block * MODEL_BLOCK, out, err) < 0)
			return -1;
	}
	return 0;
}
