// SPDX-License-Identifier: Apache-2.0
#include "ext4/model.h"

#include "base/err.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Names lead to nodes; here is the way back, for the few nodes that have several. */

typedef void visitor(struct model *m, const struct model_name *name);

static void for_each_name(struct model *m, visitor *visit)
{
	for (uint32_t dir = 0; dir < m->node_count; dir++) {
		const struct model_node *d = &m->nodes[dir];

		for (uint32_t i = 0; S_ISDIR(d->mode) && i < d->count; i++) {
			const struct model_entry *e = &m->entries[d->first + i];

			if (m->nodes[e->node].names > 1)
				visit(m, &(struct model_name){ e->node, dir, e->name });
		}
	}
}

static void count_name(struct model *m, const struct model_name *name)
{
	(void)name;
	m->names_len++;
}

static void add_name(struct model *m, const struct model_name *name)
{
	m->names[m->names_len++] = *name;
}

/* Of one node in the order of the walk. */
static int compare_names(const void *a, const void *b)
{
	const struct model_name *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

int model_index_names(struct model *m, struct err *err)
{
	struct model_name *names;

	m->names_len = 0;
	for_each_name(m, count_name);
	names = reallocarray(m->names, m->names_len + 1, sizeof *names);
	if (!names) {
		m->names_len = 0;
		return err_nomem(err);
	}
	m->names = names;
	m->names_len = 0;
	for_each_name(m, add_name);
	qsort(names, m->names_len, sizeof *names, compare_names);
	return 0;
}

/* The first one that is not before node. */
static uint32_t names_from(const struct model *m, uint32_t node)
{
	uint32_t low = 0, high = m->names_len;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->names[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct model_name *model_names(const struct model *m, uint32_t node, uint32_t *count)
{
	uint32_t first = names_from(m, node), end = first;

	while (end < m->names_len && m->names[end].node == node)
		end++;
	*count = end - first;
	return *count ? &m->names[first] : NULL;
}
