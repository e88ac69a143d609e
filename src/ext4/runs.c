// SPDX-License-Identifier: Apache-2.0
#include "ext4/runs.h"

#include "base/array.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>

int runs_add(struct runs *runs, const struct run *run, struct err *err)
{
	struct run *last = runs->len ? &runs->at[runs->len - 1] : NULL;

	assert(!last || last->place + last->count <= run->place);
	if (last && last->node == run->node && last->place + last->count == run->place &&
	    (uint64_t)last->logical + last->count == run->logical &&
	    run->count <= UINT32_MAX - last->count) {
		last->count += run->count;
		return 0;
	}
	if (!array_room(runs->at, runs->cap, runs->len + 1))
		return err_nomem(err);
	runs->at[runs->len++] = *run;
	return 0;
}

void runs_free(struct runs *runs)
{
	free(runs->at);
	*runs = (struct runs){ 0 };
}

const struct run *runs_find(const struct runs *runs, uint64_t block)
{
	size_t low = 0, high = runs->len;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (runs->at[middle].place + runs->at[middle].count <= block)
			low = middle + 1;
		else
			high = middle;
	}
	return low < runs->len ? &runs->at[low] : NULL;
}

static void drop_node(struct runs *runs, uint32_t node)
{
	size_t kept = 0;

	for (size_t i = 0; i < runs->len; i++)
		if (runs->at[i].node != node)
			runs->at[kept++] = runs->at[i];
	runs->len = kept;
}

/* Merge from the end, so that nothing has to be moved twice. */
int runs_replace(struct runs *runs, uint32_t node, const struct runs *with, struct err *err)
{
	size_t i, k = with->len, end;

	if (with->len && !array_room(runs->at, runs->cap, runs->len + with->len))
		return err_nomem(err);
	drop_node(runs, node);
	i = runs->len;
	end = runs->len += with->len;
	while (k > 0) {
		if (i > 0 && runs->at[i - 1].place > with->at[k - 1].place)
			runs->at[--end] = runs->at[--i];
		else
			runs->at[--end] = with->at[--k];
	}
	return 0;
}
