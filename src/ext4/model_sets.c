// SPDX-License-Identifier: Apache-2.0
#include "ext4/model.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Sets of extended attributes, each kept once: of a labelled system's many files
 * most have one of a few.
 */
struct model_index {
	uint32_t *slots; /* numbers of sets, 0: free */
	size_t cap;	 /* a power of two, more than twice the sets */
};

void model_free_sets(struct model *m)
{
	for (uint32_t i = 0; i < m->set_count; i++)
		free(m->sets[i].at);
	free(m->sets);
	if (m->index)
		free(m->index->slots);
	free(m->index);
}

/* Fowler, Noll, Vo: FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_set(const struct model_xattr_set *set)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < set->len; i++) {
		h = hash_bytes(h, set->at[i].name, strlen(set->at[i].name) + 1);
		h = hash_bytes(h, &set->at[i].size, sizeof set->at[i].size);
		h = hash_bytes(h, set->at[i].value, set->at[i].size);
	}
	return h;
}

static bool equal_sets(const struct model_xattr_set *a, const struct model_xattr_set *b)
{
	if (a->len != b->len)
		return false;
	for (size_t i = 0; i < a->len; i++)
		if (!str_equal(a->at[i].name, b->at[i].name) || a->at[i].size != b->at[i].size ||
		    (a->at[i].size && memcmp(a->at[i].value, b->at[i].value, a->at[i].size) != 0))
			return false;
	return true;
}

static uint32_t *slot_of(const struct model *m, const struct model_xattr_set *set)
{
	struct model_index *index = m->index;
	size_t i = hash_set(set) & (index->cap - 1);

	while (index->slots[i] && !equal_sets(&m->sets[index->slots[i]], set))
		i = (i + 1) & (index->cap - 1);
	return &index->slots[i];
}

static int grow_index(struct model *m, struct err *err)
{
	struct model_index *index = m->index;
	size_t cap = index->cap ? index->cap * 2 : 64;
	uint32_t *slots = calloc(cap, sizeof *slots);

	if (!slots)
		return err_nomem(err);
	free(index->slots);
	*index = (struct model_index){ .slots = slots, .cap = cap };
	for (uint32_t i = 1; i < m->set_count; i++)
		*slot_of(m, &m->sets[i]) = i;
	return 0;
}

/* One more set, and the index with room for it. */
static int make_room(struct model *m, struct err *err)
{
	if (!m->index && !(m->index = calloc(1, sizeof *m->index)))
		return err_nomem(err);
	if (m->set_count + 2 > m->set_cap) {
		uint32_t cap = m->set_cap ? m->set_cap * 2 : 16;
		struct model_xattr_set *sets = reallocarray(m->sets, cap, sizeof *sets);

		if (!sets)
			return err_nomem(err);
		m->sets = sets;
		m->set_cap = cap;
	}
	if (m->set_count == 0)
		m->sets[m->set_count++] = (struct model_xattr_set){ 0 };
	return m->index->cap / 2 > m->set_count ? 0 : grow_index(m, err);
}

static int by_name(const void *a, const void *b)
{
	const struct model_xattr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Names and values behind the array, in one allocation. */
static struct model_xattr *copy_list(const struct model_xattr *list, size_t len, struct err *err)
{
	size_t size = len * sizeof *list;
	struct model_xattr *copy;
	char *at;

	for (size_t i = 0; i < len; i++)
		size += strlen(list[i].name) + 1 + list[i].size;
	copy = malloc(size);
	if (!copy) {
		err_nomem(err);
		return NULL;
	}
	at = (char *)(copy + len);
	for (size_t i = 0; i < len; i++) {
		size_t name = strlen(list[i].name) + 1;

		copy[i] = (struct model_xattr){ at, at + name, list[i].size };
		memcpy(at, list[i].name, name);
		if (list[i].size)
			memcpy(at + name, list[i].value, list[i].size);
		at += name + list[i].size;
	}
	qsort(copy, len, sizeof *copy, by_name);
	return copy;
}

int model_xattrs(struct model *m, const struct model_xattr *list, size_t len, uint32_t *set,
		 struct err *err)
{
	struct model_xattr_set wanted = { .len = len };
	uint32_t *slot;

	*set = 0;
	if (make_room(m, err) < 0)
		return -1;
	if (len == 0)
		return 0;
	wanted.at = copy_list(list, len, err);
	if (!wanted.at)
		return -1;
	slot = slot_of(m, &wanted);
	if (*slot) {
		free(wanted.at);
	} else {
		*slot = m->set_count;
		m->sets[m->set_count++] = wanted;
	}
	*set = *slot;
	return 0;
}

bool model_has_xattr(const struct model *m, uint32_t node, const char *name)
{
	uint32_t set = m->nodes[node].xattrs;

	for (size_t i = 0; set && i < m->sets[set].len; i++)
		if (str_equal(m->sets[set].at[i].name, name))
			return true;
	return false;
}
