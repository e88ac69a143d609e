// SPDX-License-Identifier: Apache-2.0
#include "source/extent.h"

#include "base/err.h"
#include "base/size.h"

#include <stdlib.h>

int extent_list_add(struct extent_list *list, uint64_t offset, uint64_t length, bool zero,
		    struct err *err)
{
	struct extent *last = list->len ? &list->at[list->len - 1] : NULL;

	if (length == 0)
		return 0;
	if (last && last->zero == zero && last->offset + last->length == offset) {
		last->length += length;
		return 0;
	}
	if (list->len == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 16;
		struct extent *at = reallocarray(list->at, cap, sizeof *at);

		if (!at)
			return err_nomem(err);
		list->at = at;
		list->cap = cap;
	}
	list->at[list->len++] = (struct extent){ .offset = offset, .length = length, .zero = zero };
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

void extent_list_merge(struct extent_list *list, uint64_t gap)
{
	size_t kept = 0;

	if (list->len)
		qsort(list->at, list->len, sizeof *list->at, by_offset);
	for (size_t i = 1; i < list->len; i++) {
		struct extent *last = &list->at[kept], *e = &list->at[i];
		uint64_t end = last->offset + last->length;

		if (e->offset > end && e->offset - end > gap)
			list->at[++kept] = *e;
		else
			last->length = MAX(end, e->offset + e->length) - last->offset;
	}
	list->len = list->len ? kept + 1 : 0;
}

void extent_list_free(struct extent_list *list)
{
	free(list->at);
	*list = (struct extent_list){ 0 };
}
