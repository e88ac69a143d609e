// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "walk/beneath.h"
#include "walk/locate.h"
#include "walk/mounts.h"

#include <fcntl.h>
#include <linux/btrfs_tree.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of a file beneath a mount. */
#define UNDERNEATH_MAX 65536u

bool entry_is_subvolume(const struct walker *w, const struct entry *e)
{
	return entry_is_dir(e) && e->st.stx_ino == BTRFS_FIRST_FREE_OBJECTID &&
	       statx_dev(&e->st) != w->model->nodes[w->at.node].found_dev;
}

static bool has_mount_id(const struct entry *e)
{
	return e->st.stx_mask & STATX_MNT_ID;
}

/* Linux before 5.8 tells no mount ids: then by device, which misses a directory
 * of the same filesystem that is mounted elsewhere once more.
 */
bool border_is_here(const struct walker *w, const struct entry *e)
{
	if (has_mount_id(e))
		return e->st.stx_mnt_id != w->at.mount_id;
	return statx_dev(&e->st) != w->model->nodes[w->at.node].found_dev &&
	       !entry_is_subvolume(w, e);
}

/* The last one hides those before it. */
static const struct mount *find_by_path(const struct mounts *mounts, const char *path)
{
	const struct mount *found = NULL, *m;

	for (size_t i = 0; (m = mounts_at(mounts, i)); i++)
		if (str_equal(m->point, path))
			found = m;
	return found;
}

static const struct mount *find_mount(struct walker *w, const struct entry *e)
{
	if (!w->cfg->mounts)
		return NULL;
	return has_mount_id(e) ? mounts_find(w->cfg->mounts, e->st.stx_mnt_id)
			       : find_by_path(w->cfg->mounts, walker_path(w, e->name) + 1);
}

/* The directory at hand as root of a private mount, on which nothing is mounted.
 * Root only, in the mount namespace that it owns.
 */
static int open_without_mounts(int dirfd)
{
	return (int)syscall(SYS_open_tree, dirfd, "",
			    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* Now or never: no path leads there.  NULL when it cannot be had, or is large. */
static char *read_underneath(int bare, const char *name, const struct statx *st)
{
	autoclose int fd = S_ISREG(st->stx_mode) && st->stx_size <= UNDERNEATH_MAX
				   ? quiet_open(bare, name, 0)
				   : -1;
	autofree char *content = fd < 0 ? NULL : malloc(st->stx_size + 1);

	if (!content || io_pread(fd, content, st->stx_size, 0, NULL) != (ssize_t)st->stx_size)
		return NULL;
	content[st->stx_size] = '\0';
	return steal(&content);
}

/* A bind mount over a file, as containers have over /etc/hosts, leaves the file. */
static void carry_underneath(struct walker *w, uint32_t id, int bare, const char *name,
			     const struct statx *st)
{
	struct model_node *n = &w->model->nodes[id];
	char *content = read_underneath(bare, name, st);

	if (!content)
		return;
	free(n->content);
	n->content = content;
	n->size = st->stx_size;
	n->data = n->size ? MODEL_DENSE : MODEL_HOLES;
	w->totals->apparent_bytes += n->size;
	w->totals->data_bytes += model_data_blocks(w->model, id) * MODEL_BLOCK;
}

uint32_t border_add_underneath(struct walker *w, const struct entry *e, struct err *err)
{
	autoclose int bare = open_without_mounts(w->fd);
	struct statx st;
	uint32_t id;

	if (bare >= 0 && statx(bare, e->name, LOOK_FLAGS, STATX_BASIC_STATS, &st) == 0) {
		id = entry_add_empty(w, e->name, bare, &st, err);
		if (id != MODEL_NONE)
			carry_underneath(w, id, bare, e->name, &st);
		return id;
	}
	st = e->st;
	if (!entry_is_dir(e))
		st.stx_mode = (uint16_t)(S_IFREG | (st.stx_mode & ~S_IFMT));
	return entry_add_empty(w, e->name, -1, &st, err);
}

/* --- by role ------------------------------------------------------------------ */

static int skip(struct walker *w, const struct entry *e, const char *why, struct err *err)
{
	uint32_t id = border_add_underneath(w, e, err);
	const char *left;

	if (id == MODEL_NONE)
		return -1;
	left = entry_is_dir(e)		      ? ""
	       : w->model->nodes[id].size > 0 ? "; the file underneath is in the image"
					      : "; in the image it is an empty file";
	account_add(w->cfg->account, ACCOUNT_SKIPPED_MOUNT, walker_path(w, e->name), "%s%s", why,
		    left);
	return 0;
}

static int fold(struct walker *w, const struct entry *e, const struct mount *m, struct err *err)
{
	int ret = entry_add(w, e, err);

	if (ret == 0)
		account_add(w->cfg->account, ACCOUNT_FOLDED_MOUNT, walker_path(w, e->name),
			    "%s on %s", m->fstype, m->device);
	return ret;
}

/* A filesystem of its own in the image: *root gets the node of its root. */
static int enter(struct walker *w, const struct entry *e, uint32_t *root, struct err *err)
{
	uint32_t point = border_add_underneath(w, e, err);
	struct model_node node = entry_node(&e->st);
	struct place place = { .mount_id = e->st.stx_mnt_id };

	if (point == MODEL_NONE)
		return -1;
	node.parent = point;
	*root = model_add(w->model, &node, err);
	if (*root == MODEL_NONE)
		return -1;
	w->model->nodes[point].mounted = *root;
	w->totals->directories++;
	place.node = place.volume = *root;
	return walker_push(w, &place, err);
}

static int meet(struct walker *w, const struct mount *m, struct err *err)
{
	if (!array_room(w->met, w->met_cap, w->met_count + 1))
		return err_nomem(err);
	w->met[w->met_count++] = m;
	return 0;
}

int border_enter(struct walker *w, const struct entry *e, struct err *err)
{
	const struct mount *m = find_mount(w, e);
	const bool boot = m && m->role == MOUNT_BOOT, esp = m && m->role == MOUNT_ESP;
	uint32_t *root = boot ? &w->totals->boot_root : &w->totals->esp_root;

	if (!m)
		return skip(w, e, "not yet mounted when the mounts were listed", err);
	if (m->role == MOUNT_SKIP)
		return skip(w, e, m->why, err);
	if (m->included && meet(w, m, err) < 0)
		return -1;
	if (!boot && !esp)
		return fold(w, e, m, err);
	if (!entry_is_dir(e) || *root != MODEL_NONE)
		return skip(w, e, "mounted once more", err);
	*(boot ? &w->totals->boot : &w->totals->esp) = m;
	return enter(w, e, root, err);
}

/* --- what was asked for -------------------------------------------------------- */

static bool was_met(const struct walker *w, const struct mount *m)
{
	for (size_t i = 0; i < w->met_count; i++)
		if (w->met[i] == m)
			return true;
	return false;
}

/* Of the path or one above it; NULL: the account does not say. */
static const struct account_entry *find_left_out(const struct account *account, const char *point)
{
	static const bool is_left_out[ACCOUNT_KINDS] = {
		[ACCOUNT_EXCLUDED] = true,
		[ACCOUNT_SKIPPED_MOUNT] = true,
		[ACCOUNT_VANISHED] = true,
		[ACCOUNT_UNREADABLE] = true,
	};

	for (size_t i = 0; i < account->len; i++)
		if (is_left_out[account->at[i].kind] && path_below(account->at[i].path + 1, point))
			return &account->at[i];
	return NULL;
}

static int refuse_unmet(const struct walker *w, const struct mount *m, struct err *err)
{
	const struct account_entry *above = find_left_out(w->cfg->account, m->point);

	if (!above)
		return err_set(
			err, ERR_USAGE,
			"--include-mount: /%s was not come across; it is gone, or lies below "
			"what is left out",
			m->point);
	if (str_equal(above->path + 1, m->point))
		return err_set(err, ERR_USAGE,
			       "--include-mount: %s is left out (%s); leave one of the two away",
			       above->path, above->detail);
	return err_set(err, ERR_USAGE,
		       "--include-mount: /%s lies below %s, which is left out (%s); leave one of "
		       "the two away",
		       m->point, above->path, above->detail);
}

int border_check(const struct walker *w, struct err *err)
{
	const struct mount *m;

	for (size_t i = 0; w->cfg->mounts && (m = mounts_at(w->cfg->mounts, i)); i++)
		if (m->included && !was_met(w, m))
			return refuse_unmet(w, m, err);
	return 0;
}
