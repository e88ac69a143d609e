// SPDX-License-Identifier: Apache-2.0
#include "ext4/model.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Offsets into the strings are 32 bits wide, and so are all numbers. */
#define COUNT_MAX (UINT32_MAX - 1)

void model_init(struct model *m)
{
	*m = (struct model){ 0 };
}

void model_free(struct model *m)
{
	for (uint32_t i = 0; i < m->node_count; i++)
		free(m->nodes[i].content);
	free(m->nodes);
	free(m->entries);
	free(m->segments);
	free(m->strings);
	free(m->names);
	model_free_sets(m);
	model_init(m);
}

static void drop_names(struct model *m)
{
	free(m->names);
	m->names = NULL;
	m->names_len = 0;
}

/* Room for `more` beyond count elements of size bytes. */
static void *grown(void *array, uint32_t count, uint32_t *cap, uint32_t more, size_t size,
		   struct err *err)
{
	uint64_t wanted = (uint64_t)count + more, next = *cap ? *cap + *cap / 2 : 256;

	if (wanted <= *cap)
		return array;
	if (wanted > COUNT_MAX) {
		err_set(err, ERR_REFUSED, "the tree has more entries than an image can hold");
		return NULL;
	}
	if (next < wanted)
		next = wanted;
	if (next > COUNT_MAX)
		next = COUNT_MAX;
	array = reallocarray(array, next, size);
	if (!array)
		err_nomem(err);
	else
		*cap = (uint32_t)next;
	return array;
}

#define MAKE_ROOM(m, array, count, cap, more, err)                                                 \
	({                                                                                         \
		void *room_ =                                                                      \
			grown((m)->array, (m)->count, &(m)->cap, more, sizeof *(m)->array, err);   \
		if (room_)                                                                         \
			(m)->array = room_;                                                        \
		room_ ? 0 : -1;                                                                    \
	})

/* The string's number; "" is 0. */
static int add_string(struct model *m, const char *text, size_t len, uint32_t *string,
		      struct err *err)
{
	bool first = m->strings_len == 0;

	if (len >= COUNT_MAX ||
	    MAKE_ROOM(m, strings, strings_len, strings_cap, (uint32_t)len + 2, err) < 0)
		return len >= COUNT_MAX ? err_nomem(err) : -1;
	if (first)
		m->strings[m->strings_len++] = '\0';
	*string = m->strings_len;
	memcpy(m->strings + m->strings_len, text, len);
	m->strings_len += (uint32_t)len;
	m->strings[m->strings_len++] = '\0';
	return 0;
}

uint32_t model_add(struct model *m, const struct model_node *node, struct err *err)
{
	uint32_t empty, id = m->node_count;

	if (MAKE_ROOM(m, nodes, node_count, node_cap, 1, err) < 0 ||
	    (m->strings_len == 0 && add_string(m, "", 0, &empty, err) < 0)) {
		free(node->content);
		return MODEL_NONE;
	}
	m->nodes[m->node_count++] = *node;
	m->nodes[id].name = 0;
	m->nodes[id].names = 0;
	m->nodes[id].first = m->nodes[id].count = 0;
	m->nodes[id].mounted = MODEL_NONE;
	return id;
}

/* The entries of a directory are neighbours: those of dir become the last ones. */
static int move_to_end(struct model *m, struct model_node *dir, struct err *err)
{
	if (MAKE_ROOM(m, entries, entry_count, entry_cap, dir->count + 1, err) < 0)
		return -1;
	if (dir->first + dir->count == m->entry_count)
		return 0;
	if (dir->count)
		memcpy(m->entries + m->entry_count, m->entries + dir->first,
		       dir->count * sizeof *m->entries);
	dir->first = m->entry_count;
	m->entry_count += dir->count;
	return 0;
}

int model_link(struct model *m, uint32_t dir, const char *name, size_t len, uint32_t node,
	       struct err *err)
{
	struct model_node *d = &m->nodes[dir], *n = &m->nodes[node];
	uint32_t string;

	assert(S_ISDIR(d->mode));
	if (add_string(m, name, len, &string, err) < 0 || move_to_end(m, d, err) < 0)
		return -1;
	drop_names(m);
	m->entries[m->entry_count++] = (struct model_entry){ .name = string, .node = node };
	d->count++;
	if (n->names++ == 0) {
		n->parent = dir;
		n->name = string;
	}
	return 0;
}

/* Another name that leads to node becomes the first one.  Rare, so all are looked at. */
static void find_first_name(struct model *m, uint32_t node)
{
	for (uint32_t dir = 0; dir < m->node_count; dir++) {
		const struct model_node *d = &m->nodes[dir];

		for (uint32_t i = 0; S_ISDIR(d->mode) && i < d->count; i++) {
			if (m->entries[d->first + i].node != node)
				continue;
			m->nodes[node].parent = dir;
			m->nodes[node].name = m->entries[d->first + i].name;
			return;
		}
	}
}

static void unlink_entry(struct model *m, uint32_t dir, uint32_t i);

static void unlink_all(struct model *m, uint32_t dir)
{
	/* A list of what is still to be emptied instead of recursion: a tree
	 * can be deeper than the stack.
	 */
	uint32_t at = dir;

	for (;;) {
		struct model_node *d = &m->nodes[at];
		uint32_t last;

		if (d->count == 0) {
			if (at == dir)
				return;
			at = d->parent;
			unlink_entry(m, at, m->nodes[at].count - 1);
			continue;
		}
		last = m->entries[d->first + d->count - 1].node;
		if (S_ISDIR(m->nodes[last].mode) && m->nodes[last].count > 0)
			at = last;
		else
			unlink_entry(m, at, d->count - 1);
	}
}

static void unlink_entry(struct model *m, uint32_t dir, uint32_t i)
{
	struct model_node *d = &m->nodes[dir];
	struct model_entry *entry = &m->entries[d->first + i];
	uint32_t node = entry->node, name = entry->name;

	memmove(entry, entry + 1, (d->count - i - 1) * sizeof *entry);
	d->count--;
	if (--m->nodes[node].names > 0 && m->nodes[node].name == name)
		find_first_name(m, node);
}

static uint32_t find_entry(const struct model *m, uint32_t dir, const char *name)
{
	const struct model_node *d = &m->nodes[dir];

	for (uint32_t i = 0; S_ISDIR(d->mode) && i < d->count; i++)
		if (str_equal(model_string(m, m->entries[d->first + i].name), name))
			return i;
	return MODEL_NONE;
}

void model_unlink(struct model *m, uint32_t dir, const char *name)
{
	uint32_t i = find_entry(m, dir, name), node;

	if (i == MODEL_NONE)
		return;
	drop_names(m);
	node = m->entries[m->nodes[dir].first + i].node;
	if (S_ISDIR(m->nodes[node].mode))
		unlink_all(m, node);
	unlink_entry(m, dir, i);
}

int model_add_segment(struct model *m, uint32_t node, uint32_t block, uint32_t count,
		      struct err *err)
{
	struct model_node *n = &m->nodes[node];

	assert(S_ISREG(n->mode));
	if (MAKE_ROOM(m, segments, segment_count, segment_cap, 1, err) < 0)
		return -1;
	if (n->count == 0)
		n->first = m->segment_count;
	assert(n->first + n->count == m->segment_count);
	m->segments[m->segment_count++] = (struct model_segment){ .block = block, .count = count };
	n->count++;
	return 0;
}

uint64_t model_data_blocks(const struct model *m, uint32_t node)
{
	const struct model_node *n = &m->nodes[node];
	uint64_t sum = 0;

	if (!S_ISREG(n->mode) || n->data == MODEL_HOLES)
		return 0;
	if (n->data == MODEL_DENSE)
		return div_up(n->size, MODEL_BLOCK);
	for (uint32_t i = 0; i < n->count; i++)
		sum += m->segments[n->first + i].count;
	return sum;
}

uint32_t model_lookup(const struct model *m, uint32_t dir, const char *name)
{
	uint32_t i = find_entry(m, dir, name);

	return i == MODEL_NONE ? MODEL_NONE : m->entries[m->nodes[dir].first + i].node;
}

/* --- paths ------------------------------------------------------------------- */

#define LINKS_MAX 40 /* as the kernel's MAXSYMLINKS */

/* Into what is mounted, however often. */
static uint32_t through_mounts(const struct model *m, uint32_t node)
{
	while (node != MODEL_NONE && m->nodes[node].mounted != MODEL_NONE)
		node = m->nodes[node].mounted;
	return node;
}

static uint32_t parent_of(const struct model *m, uint32_t node)
{
	while (node != MODEL_ROOT && m->nodes[node].name == 0)
		node = m->nodes[node].parent; /* a mounted root: its mount point */
	return node == MODEL_ROOT ? MODEL_ROOT : m->nodes[node].parent;
}

/* Prepend a link's target to what is left of the path; *at starts over for an
 * absolute one.  The new text replaces *rest.
 */
static bool follow(const struct model *m, uint32_t link, uint32_t *at, char **text, char **rest)
{
	const char *target = m->nodes[link].content ? m->nodes[link].content : "";
	size_t first = strlen(target), second = strlen(*rest);
	char *joined = malloc(first + second + 2);

	if (!joined)
		return false;
	memcpy(joined, target, first);
	joined[first] = '/';
	memcpy(joined + first + 1, *rest, second + 1);
	if (*target == '/')
		*at = through_mounts(m, MODEL_ROOT);
	free(*text);
	*text = *rest = joined;
	return *target != '\0';
}

/* Cut the next component off *rest; NULL at the end. */
static char *next_component(char **rest)
{
	char *start = *rest + strspn(*rest, "/"), *end = start + strcspn(start, "/");

	if (*start == '\0')
		return NULL;
	*rest = *end ? end + 1 : end;
	*end = '\0';
	return start;
}

static bool is_last(const char *rest)
{
	return rest[strspn(rest, "/")] == '\0';
}

uint32_t model_resolve(const struct model *m, const char *path, enum model_last last)
{
	autofree char *text = strdup(path);
	char *rest = text, *name;
	uint32_t at = m->node_count ? through_mounts(m, MODEL_ROOT) : MODEL_NONE;
	unsigned links = 0;

	while (text && at != MODEL_NONE && (name = next_component(&rest))) {
		uint32_t next;

		if (str_equal(name, "."))
			continue;
		next = str_equal(name, "..") ? parent_of(m, at) : model_lookup(m, at, name);
		next = through_mounts(m, next);
		if (next == MODEL_NONE || !S_ISLNK(m->nodes[next].mode) ||
		    (last == MODEL_NOFOLLOW && is_last(rest)))
			at = next;
		else if (++links > LINKS_MAX || !follow(m, next, &at, &text, &rest))
			return MODEL_NONE;
	}
	return text ? at : MODEL_NONE;
}

char *model_path(const struct model *m, uint32_t node)
{
	size_t len = 0, depth = 0;
	char *path, *end;

	for (uint32_t n = node; n != MODEL_ROOT && depth <= m->node_count; depth++) {
		const struct model_node *at = &m->nodes[n];

		len += at->name ? strlen(model_string(m, at->name)) + 1 : 0;
		n = at->parent;
	}
	path = malloc((len ? len : 1) + 1);
	if (!path)
		return NULL;
	path[0] = '/';
	end = path + (len ? len : 1);
	*end = '\0';
	for (uint32_t n = node; end > path && n != MODEL_ROOT; n = m->nodes[n].parent) {
		const char *name = model_string(m, m->nodes[n].name);
		size_t size = strlen(name);

		if (size == 0)
			continue;
		end -= size + 1;
		*end = '/';
		memcpy(end + 1, name, size);
	}
	return path;
}

/* --- order ------------------------------------------------------------------- */

static int compare_entries(const void *a, const void *b, void *model)
{
	const struct model_entry *x = a, *y = b;

	return strcmp(model_string(model, x->name), model_string(model, y->name));
}

void model_sort(struct model *m)
{
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct model_node *n = &m->nodes[i];

		if (S_ISDIR(n->mode) && n->count > 1)
			qsort_r(m->entries + n->first, n->count, sizeof *m->entries,
				compare_entries, m);
	}
}
