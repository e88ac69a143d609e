// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "walk/beneath.h"
#include "walk/mounts.h"

#include <fcntl.h>
#include <linux/btrfs_tree.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

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

uint32_t border_add_underneath(struct walker *w, const struct entry *e, struct err *err)
{
	autoclose int bare = open_without_mounts(w->fd);
	struct statx st;

	if (bare >= 0 && statx(bare, e->name, LOOK_FLAGS, STATX_BASIC_STATS, &st) == 0)
		return entry_add_empty(w, e->name, bare, &st, err);
	st = e->st;
	if (!entry_is_dir(e))
		st.stx_mode = (uint16_t)(S_IFREG | (st.stx_mode & ~S_IFMT));
	return entry_add_empty(w, e->name, -1, &st, err);
}

/* --- by role ------------------------------------------------------------------ */

static int skip(struct walker *w, const struct entry *e, const char *why, struct err *err)
{
	account_add(w->cfg->account, ACCOUNT_SKIPPED_MOUNT, walker_path(w, e->name), "%s", why);
	return border_add_underneath(w, e, err) == MODEL_NONE ? -1 : 0;
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

int border_enter(struct walker *w, const struct entry *e, struct err *err)
{
	const struct mount *m = find_mount(w, e);
	const bool boot = m && m->role == MOUNT_BOOT, esp = m && m->role == MOUNT_ESP;
	uint32_t *root = boot ? &w->totals->boot_root : &w->totals->esp_root;

	if (!m)
		return skip(w, e, "not yet mounted when the mounts were listed", err);
	if (m->role == MOUNT_SKIP)
		return skip(w, e, m->why, err);
	if (!boot && !esp)
		return fold(w, e, m, err);
	if (!entry_is_dir(e) || *root != MODEL_NONE)
		return skip(w, e, "mounted once more", err);
	*(boot ? &w->totals->boot : &w->totals->esp) = m;
	return enter(w, e, root, err);
}
