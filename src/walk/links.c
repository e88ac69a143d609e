// SPDX-License-Identifier: Apache-2.0
#include "walk/links.h"

#include "base/err.h"
#include "ext4/model.h"

#include <stdbool.h>
#include <stdlib.h>

#define CAP_MIN 64

static uint64_t hash(const struct link_key *key)
{
	uint64_t h = (key->ino ^ key->dev << 40 ^ key->volume) * 0x9e3779b97f4a7c15u;

	return h ^ h >> 29;
}

static bool equal(const struct link_key *a, const struct link_key *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->volume == b->volume;
}

/* Its place, or the free one where it belongs. */
static struct link *find(const struct links *l, const struct link_key *key)
{
	size_t i = hash(key) & (l->cap - 1);

	while (l->at[i].node != MODEL_NONE && !equal(&l->at[i].key, key))
		i = (i + 1) & (l->cap - 1);
	return &l->at[i];
}

uint32_t links_find(const struct links *l, const struct link_key *key)
{
	return l->cap ? find(l, key)->node : MODEL_NONE;
}

static int grow(struct links *l, struct err *err)
{
	struct links bigger = { .len = l->len, .cap = l->cap ? l->cap * 2 : CAP_MIN };

	bigger.at = calloc(bigger.cap, sizeof *bigger.at);
	if (!bigger.at)
		return err_nomem(err);
	for (size_t i = 0; i < bigger.cap; i++)
		bigger.at[i].node = MODEL_NONE;
	for (size_t i = 0; i < l->cap; i++)
		if (l->at[i].node != MODEL_NONE)
			*find(&bigger, &l->at[i].key) = l->at[i];
	free(l->at);
	*l = bigger;
	return 0;
}

int links_put(struct links *l, const struct link_key *key, uint32_t node, struct err *err)
{
	struct link *link;

	if (l->len >= l->cap / 2 && grow(l, err) < 0)
		return -1;
	link = find(l, key);
	l->len += link->node == MODEL_NONE;
	*link = (struct link){ .key = *key, .node = node };
	return 0;
}

void links_free(struct links *l)
{
	free(l->at);
	*l = (struct links){ 0 };
}
