// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "walk/beneath.h"
#include "walk/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define STAT_WANTED (STATX_BASIC_STATS | STATX_MNT_ID)

/* Entries between two looks at the signals. */
#define TICK 1024u

/* ext4's; some filesystems have longer ones. */
#define NAME_LEN_MAX 255u

/* How often a name may be given to another file while we look. */
#define LOOKS_MAX 5

static int tick(struct walker *w, struct err *err)
{
	if (++w->entries % TICK)
		return 0;
	if (w->cfg->progress)
		w->cfg->progress(w->cfg->progress_ctx, w->entries);
	return interrupt_check(err);
}

int walker_push(struct walker *w, const struct place *place, struct err *err)
{
	if (!array_room(w->places, w->place_cap, w->place_count + 1))
		return err_nomem(err);
	w->places[w->place_count++] = *place;
	return 0;
}

/* --- an entry ----------------------------------------------------------------- */

/* What is left out altogether, what stays empty, what goes in. */
static int add_found(struct walker *w, const struct entry *e, struct err *err)
{
	enum omit omit;
	uint32_t id;

	if (omit_ask(w, e, &omit, err) < 0)
		return -1;
	if (omit == OMIT_ALL)
		return 0;
	if (omit == OMIT_NOT)
		return border_is_here(w, e) ? border_enter(w, e, err) : entry_add(w, e, err);
	id = border_is_here(w, e) ? border_add_underneath(w, e, err)
				  : entry_add_empty(w, e->name, w->fd, &e->st, err);
	return id == MODEL_NONE ? -1 : 0;
}

static int vanished(struct walker *w, const char *path)
{
	account_add(w->cfg->account, ACCOUNT_VANISHED, path, "gone before it could be looked at");
	return 0;
}

static int look(struct walker *w, const char *name, struct err *err)
{
	struct entry e = { .name = name };
	int ret = 1;

	if (strchr(name, '/') || strlen(name) > NAME_LEN_MAX)
		return walker_unreadable(w, walker_path(w, name), ENAMETOOLONG, err);
	for (int i = 0; ret == 1 && i < LOOKS_MAX; i++) {
		if (statx(w->fd, name, LOOK_FLAGS, STAT_WANTED, &e.st) == 0)
			ret = add_found(w, &e, err);
		else if (reach_is_gone(errno))
			ret = vanished(w, walker_path(w, name));
		else
			ret = walker_unreadable(w, walker_path(w, name), errno, err);
	}
	return ret == 1 ? vanished(w, walker_path(w, name)) : ret;
}

/* --- a directory -------------------------------------------------------------- */

static int forget(struct walker *w, uint32_t node, struct err *err)
{
	const struct model_node *n = &w->model->nodes[node];
	autofree char *name = strdup(model_string(w->model, n->name));

	if (!name)
		return err_nomem(err);
	model_unlink(w->model, n->parent, name);
	w->totals->directories--;
	return 0;
}

/* It stays, empty, with what can be had from outside of it. */
static int keep_closed(struct walker *w, uint32_t node, struct err *err)
{
	const struct model_node *n = &w->model->nodes[node];
	autoclose int parent = n->name ? reach_directory(w->reach, n->parent) : -1;
	autofree char *name = strdup(model_string(w->model, n->name));
	uint32_t xattrs = 0;

	if (!name)
		return err_nomem(err);
	if (parent >= 0 &&
	    attributes_read_at(&w->attributes, parent, name, w->model, &xattrs, err) < 0)
		return -1;
	w->model->nodes[node].xattrs = xattrs;
	return 0;
}

static int directory_failed(struct walker *w, uint32_t node, int error, struct err *err)
{
	autofree char *path = model_path(w->model, node);

	if (!path)
		return err_nomem(err);
	if (w->model->nodes[node].name == 0) {
		errno = error;
		return err_errno(err, ERR_FAILED, "cannot read %s", path);
	}
	if (reach_is_gone(error))
		return forget(w, node, err) < 0 ? -1 : vanished(w, path);
	return walker_unreadable(w, path, error, err);
}

static int look_at_all(struct walker *w, struct err *err)
{
	for (size_t i = 0; i < w->listing.count; i++)
		if (tick(w, err) < 0 || look(w, w->listing.names[i], err) < 0)
			return -1;
	return 0;
}

/* The first directory found becomes the next one to be listed. */
static void reverse(struct place *places, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct place other = places[count - 1 - i];

		places[count - 1 - i] = places[i];
		places[i] = other;
	}
}

static int read_own_attributes(struct walker *w, struct err *err)
{
	const uint32_t node = w->at.node;
	uint32_t xattrs, flags;

	if (attributes_read(&w->attributes, w->fd, w->model, &xattrs, &flags, err) < 0)
		return -1;
	w->model->nodes[node].xattrs = xattrs;
	w->model->nodes[node].flags = flags;
	return 0;
}

static int list_directory(struct walker *w, const struct place *place, struct err *err)
{
	const size_t mark = w->place_count;
	autoclose int fd = reach_directory(w->reach, place->node);

	w->at = *place;
	w->fd = fd;
	w->dir_len = 0;
	w->looking_at = NULL;
	if (fd < 0) {
		int error = errno;

		if (!reach_is_gone(error) && keep_closed(w, place->node, err) < 0)
			return -1;
		return directory_failed(w, place->node, error, err);
	}
	if (read_own_attributes(w, err) < 0)
		return -1;
	if (listing_read(&w->listing, fd) < 0)
		return directory_failed(w, place->node, errno, err);
	if (look_at_all(w, err) < 0)
		return -1;
	reverse(w->places + mark, w->place_count - mark);
	return 0;
}

/* --- the tree ----------------------------------------------------------------- */

static int add_root(struct walker *w, struct err *err)
{
	struct place place = { .node = MODEL_ROOT, .volume = MODEL_ROOT };
	struct model_node node;
	struct statx st;

	if (statx(w->cfg->root_fd, "", AT_EMPTY_PATH, STAT_WANTED, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at the source");
	node = entry_node(&st);
	if (model_add(w->model, &node, err) != MODEL_ROOT)
		return -1;
	w->totals->directories = 1;
	w->totals->times_newest = node.mtime_sec > 0 ? (uint64_t)node.mtime_sec : 0;
	place.mount_id = st.stx_mnt_id;
	return walker_push(w, &place, err);
}

static int walk_all(struct walker *w, struct err *err)
{
	w->reach = reach_new(w->model, w->cfg->root_fd, err);
	if (!w->reach || omit_start(w, err) < 0 || add_root(w, err) < 0)
		return -1;
	while (w->place_count > 0) {
		struct place place = w->places[--w->place_count];

		if (list_directory(w, &place, err) < 0)
			return -1;
	}
	model_sort(w->model);
	if (w->cfg->progress)
		w->cfg->progress(w->cfg->progress_ctx, w->entries);
	return walker_verdict(w, err) < 0 ? -1 : border_check(w, err);
}

int tree_walk(const struct walk_config *cfg, struct model *model, struct walk_totals *totals,
	      struct err *err)
{
	struct walker w = {
		.cfg = cfg,
		.model = model,
		.totals = totals,
		.attributes = { .lost = walker_lost, .ctx = &w },
	};
	int ret;

	*totals = (struct walk_totals){ .boot_root = MODEL_NONE, .esp_root = MODEL_NONE };
	ret = walk_all(&w, err);
	reach_free(w.reach);
	links_free(&w.links);
	attributes_free(&w.attributes);
	listing_free(&w.listing);
	free(w.own);
	free(w.met);
	free(w.places);
	free(w.path);
	free(w.first_unreadable);
	return ret;
}
