// SPDX-License-Identifier: Apache-2.0
#include "walk/mounts.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/mountinfo.h"
#include "base/str.h"
#include "walk/locate.h"
#include "walk/mounts_inner.h"

#include <string.h>

CLEANUP_TYPE(struct mounts, mounts, mounts_free)
#define automounts CLEANUP(mounts_cleanup)

void mounts_free(struct mounts *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++) {
		free(m->entries[i].shown);
		free(m->entries[i].why);
	}
	free(m->entries);
	free(m->by_id);
	free(m->listed);
	free(m->followed);
	mountinfo_free(&m->info);
	free(m);
}

/* A directory comes right before all that is below. */
static int path_rank(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : 2 + (unsigned char)c;
}

static int compare_paths(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return path_rank(*a) - path_rank(*b);
}

/* Entries of the same path stay in the table's order, which is that of their strings. */
static int compare_entries(const void *a, const void *b)
{
	const struct mount_entry *x = a, *y = b;
	int order = compare_paths(x->mount.point, y->mount.point);

	if (order)
		return order;
	return x->mount.fs_root < y->mount.fs_root ? -1 : x->mount.fs_root > y->mount.fs_root;
}

static int compare_ids(const void *a, const void *b)
{
	const struct mount_entry *x = *(struct mount_entry *const *)a,
				 *y = *(struct mount_entry *const *)b;

	return x->mount.id < y->mount.id ? -1 : x->mount.id > y->mount.id;
}

static struct mount_entry entry_of(const struct mountinfo_line *line, char *point)
{
	return (struct mount_entry){
		.mount = { .id = line->id,
			   .major = line->major,
			   .minor = line->minor,
			   .fstype = line->fstype,
			   .device = line->device,
			   .fs_root = line->root,
			   .point = point,
			   .options = line->options },
		.parent = line->parent,
	};
}

static char *join(const char *directory, const char *path)
{
	return str_format("%s%s%s", directory, *path && !str_ends(directory, "/") ? "/" : "", path);
}

/* The mount that the source's root lies on, which may be mounted further up. */
static int add_source(struct mounts *m, struct err *err)
{
	for (size_t i = 0; i < m->info.count; i++) {
		const struct mountinfo_line *line = &m->info.lines[i];
		const char *below = path_below(line->point, m->cfg->source);

		if (line->id != m->cfg->source_id || !below)
			continue;
		m->entries[0] = entry_of(line, line->point + strlen(line->point));
		m->entries[0].mount.role = MOUNT_SOURCE;
		m->entries[0].shown = join(line->root, below);
		m->count = 1;
		return m->entries[0].shown ? 0 : err_nomem(err);
	}
	return err_set(err, ERR_FAILED, "the mount that %s lies on is not in %s; try again",
		       m->cfg->source, m->cfg->mountinfo);
}

static void add_below(struct mounts *m)
{
	for (size_t i = 0; i < m->info.count; i++) {
		const struct mountinfo_line *line = &m->info.lines[i];
		const char *below = path_below(m->cfg->source, line->point);

		if (below && *below)
			m->entries[m->count++] =
				entry_of(line, line->point + (below - line->point));
	}
	qsort(m->entries + 1, m->count - 1, sizeof *m->entries, compare_entries);
}

/* Of the entries [i, end) with one point: the one on top, starting on above; NULL
 * when all of them are mounted on what is hidden itself.
 */
static struct mount_entry *top_of(struct mounts *m, size_t i, size_t end,
				  const struct mount_entry *above)
{
	struct mount_entry *top = NULL, *before;

	for (size_t passes = i; passes < end; passes++) {
		before = top;
		for (size_t k = i; k < end; k++) {
			struct mount_entry *e = &m->entries[k];

			if (e->parent == (top ? top->mount.id : above->mount.id) ||
			    (top && e > top && e->parent == top->parent))
				top = e;
		}
		if (top == before)
			break;
	}
	return top;
}

static size_t end_of_point(const struct mounts *m, size_t i)
{
	size_t end = i + 1;

	while (end < m->count && str_equal(m->entries[end].mount.point, m->entries[i].mount.point))
		end++;
	return end;
}

static struct mount_entry *entry_above(struct mount_entry *last, const char *point)
{
	while (last->above && !path_below(last->mount.point, point))
		last = last->above;
	return last;
}

/* Drop what something else is mounted over: nothing of it can be reached. */
static void drop_hidden(struct mounts *m)
{
	struct mount_entry *last = &m->entries[0];
	size_t kept = 1, end;

	for (size_t i = 1; i < m->count; i = end) {
		struct mount_entry *above = entry_above(last, m->entries[i].mount.point), *top;

		end = end_of_point(m, i);
		top = top_of(m, i, end, above);
		if (!top)
			continue;
		last = &m->entries[kept++];
		*last = *top;
		last->above = above;
	}
	m->count = kept;
}

static struct mount_entry *find_point(const struct mounts *m, const char *point)
{
	for (size_t i = 1; point && i < m->count; i++)
		if (str_equal(m->entries[i].mount.point, point))
			return &m->entries[i];
	return NULL;
}

static int include(struct mounts *m, const char *text, struct err *err)
{
	autolocation struct location l = { 0 };
	struct mount_entry *seen, *relative;

	if (locate(m->cfg->source, text, &l, err) < 0)
		return -1;
	seen = find_point(m, l.seen);
	relative = find_point(m, l.relative);
	if (!seen && !relative)
		return err_set(err, ERR_USAGE,
			       "--include-mount: %s is no mount point below %s; findmnt lists them",
			       text, m->cfg->source);
	if (seen && relative && seen != relative)
		return err_set(err, ERR_USAGE,
			       "--include-mount: %s could mean /%s or /%s, counted from %s, and "
			       "both are mounts; write that instead, with /..%s in front",
			       text, l.seen, l.relative, m->cfg->source, m->cfg->source);
	(seen ? seen : relative)->mount.included = true;
	return 0;
}

static int include_all(struct mounts *m, struct err *err)
{
	for (const char *const *text = m->cfg->include; text && *text; text++)
		if (include(m, *text, err) < 0)
			return -1;
	return 0;
}

static int make_lists(struct mounts *m, struct err *err)
{
	m->by_id = calloc(m->count, sizeof(struct mount_entry *));
	m->listed = calloc(m->count, sizeof(struct mount_entry *));
	m->followed = calloc(m->count, sizeof(struct mount_entry *));
	return m->by_id && m->listed && m->followed ? 0 : err_nomem(err);
}

static void fill_lists(struct mounts *m)
{
	for (size_t i = 0; i < m->count; i++) {
		m->by_id[i] = &m->entries[i];
		if (!m->entries[i].is_nested)
			m->listed[m->listed_count++] = &m->entries[i];
	}
	qsort(m->by_id, m->count, sizeof(struct mount_entry *), compare_ids);
}

static int fill(struct mounts *m, struct err *err)
{
	if (mountinfo_read(m->cfg->mountinfo, &m->info, err) < 0)
		return -1;
	m->entries = calloc(m->info.count + 1, sizeof *m->entries);
	if (!m->entries)
		return err_nomem(err);
	if (add_source(m, err) < 0)
		return -1;
	add_below(m);
	drop_hidden(m);
	if (make_lists(m, err) < 0 || include_all(m, err) < 0 || mounts_choose_roles(m, err) < 0)
		return -1;
	fill_lists(m);
	return 0;
}

struct mounts *mounts_read(const struct mounts_config *cfg, struct err *err)
{
	automounts struct mounts *m = calloc(1, sizeof *m);

	if (!m) {
		err_nomem(err);
		return NULL;
	}
	m->cfg = cfg;
	if (fill(m, err) < 0)
		return NULL;
	m->cfg = NULL;
	return steal(&m);
}

const struct mount *mounts_find(const struct mounts *m, uint64_t id)
{
	const struct mount_entry key = { .mount = { .id = id } }, *wanted = &key;
	struct mount_entry **found =
		bsearch(&wanted, m->by_id, m->count, sizeof *m->by_id, compare_ids);

	return found ? &(*found)->mount : NULL;
}

const struct mount *mounts_at(const struct mounts *m, size_t i)
{
	return i < m->listed_count ? &m->listed[i]->mount : NULL;
}
