// SPDX-License-Identifier: Apache-2.0
#include "pipeline/cursor.h"

#include "base/err.h"
#include "base/size.h"
#include "source/source.h"

/* How far extents are asked for at a time, a multiple of any chunk.  It bounds
 * what a badly fragmented disk costs in memory, and a piece of zeros, so that
 * even those show progress.
 */
#define WINDOW_SIZE GIB

static int load_window(struct cursor *c, struct err *err)
{
	uint64_t len = MIN(WINDOW_SIZE, c->end - c->offset);

	c->extents.len = 0;
	c->i = 0;
	if (source_extents(c->src, c->offset, len, &c->extents, err) < 0)
		return -1;
	c->window_end = c->offset + len;
	return 0;
}

static uint64_t extent_end(const struct extent *e)
{
	return e->offset + e->length;
}

/* The whole clusters that extent e proves zero: [*start, return value). */
static uint64_t zero_clusters(const struct cursor *c, const struct extent *e, uint64_t *start)
{
	uint64_t end = extent_end(e);

	*start = round_up(MAX(e->offset, c->offset), c->cluster_size);
	if (!e->zero)
		return *start;
	if (end != c->end)
		end = round_down(end, c->cluster_size);
	return MAX(end, *start);
}

/* Where the data that begins at c->offset ends: before the next zero cluster,
 * at the chunk's or the window's end.
 */
static uint64_t data_end(const struct cursor *c)
{
	uint64_t limit = MIN(round_down(c->offset, c->chunk_size) + c->chunk_size, c->window_end);

	for (size_t i = c->i; i < c->extents.len && c->extents.at[i].offset < limit; i++) {
		uint64_t start;

		if (zero_clusters(c, &c->extents.at[i], &start) > start)
			return MIN(start, limit);
	}
	return limit;
}

int cursor_next(struct cursor *c, struct piece *piece, struct err *err)
{
	uint64_t start, end;

	if (c->offset == c->end)
		return 0;
	if (c->offset == c->window_end && load_window(c, err) < 0)
		return -1;
	while (c->i + 1 < c->extents.len && extent_end(&c->extents.at[c->i]) <= c->offset)
		c->i++;
	end = zero_clusters(c, &c->extents.at[c->i], &start);
	*piece = (struct piece){ .offset = c->offset, .zero = start == c->offset && end > start };
	if (!piece->zero)
		end = data_end(c);
	piece->length = end - c->offset;
	c->offset = end;
	return 1;
}

void cursor_free(struct cursor *c)
{
	extent_list_free(&c->extents);
}
