// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "walk/beneath.h"
#include "walk/exclude.h"
#include "walk/measure.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static int compare_own(const void *a, const void *b)
{
	const struct walk_own *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

int omit_start(struct walker *w, struct err *err)
{
	size_t count = w->cfg->own_count;

	w->own = calloc(count + 1, sizeof *w->own);
	if (!w->own)
		return err_nomem(err);
	if (count)
		memcpy(w->own, w->cfg->own, count * sizeof *w->own);
	qsort(w->own, count, sizeof *w->own, compare_own);
	return 0;
}

static const struct walk_own *find_own(const struct walker *w, const struct statx *st)
{
	const struct walk_own wanted = { .dev = statx_dev(st), .ino = st->stx_ino };

	if (!S_ISREG(st->stx_mode))
		return NULL;
	return bsearch(&wanted, w->own, w->cfg->own_count, sizeof *w->own, compare_own);
}

static enum omit omit_own(struct walker *w, const struct entry *e)
{
	const struct walk_own *own = find_own(w, &e->st);

	if (!own)
		return OMIT_NOT;
	account_add(w->cfg->account, ACCOUNT_EXCLUDED, walker_path(w, e->name), "%s", own->what);
	return OMIT_ALL;
}

static int measure(struct walker *w, const struct entry *e, uint64_t *bytes, struct err *err)
{
	*bytes = 0;
	if (!w->cfg->measure_excluded || border_is_here(w, e))
		return 0;
	if (entry_is_dir(e))
		return measure_below(w->fd, e->name, bytes, err);
	*bytes = e->st.stx_blocks * 512;
	return 0;
}

static int omit_by_name(struct walker *w, const struct entry *e, enum omit *out, struct err *err)
{
	const struct exclude_use *uses;
	const char *path = walker_path(w, e->name);
	enum exclude_verdict verdict;
	uint64_t bytes;
	size_t which;

	*out = OMIT_NOT;
	if (!w->cfg->excludes || !excludes_uses(w->cfg->excludes, &uses))
		return 0;
	verdict = excludes_match(w->cfg->excludes, path + 1, entry_is_dir(e), &which);
	if (verdict == EXCLUDE_NO || (verdict == EXCLUDE_CONTENT && !entry_is_dir(e)))
		return 0;
	if (measure(w, e, &bytes, err) < 0)
		return -1;
	excludes_count(w->cfg->excludes, which, 1, bytes);
	account_add(w->cfg->account, ACCOUNT_EXCLUDED, path, "%s", uses[which].text);
	*out = verdict == EXCLUDE_ALL ? OMIT_ALL : OMIT_CONTENT;
	return 0;
}

/* A snapshot holds the same files once more, as they were. */
static bool is_snapshot(const struct walker *w, const struct entry *e)
{
	static const uint8_t none[BTRFS_UUID_SIZE];
	struct btrfs_ioctl_get_subvol_info_args info = { 0 };
	autoclose int fd = -1;

	if (!entry_is_subvolume(w, e) || border_is_here(w, e))
		return false;
	fd = quiet_open(w->fd, e->name, O_DIRECTORY);
	/* Kernels return 1 as well, with the structure filled in. */
	return fd >= 0 && ioctl(fd, BTRFS_IOC_GET_SUBVOL_INFO, &info) >= 0 &&
	       memcmp(info.parent_uuid, none, sizeof none) != 0;
}

int omit_ask(struct walker *w, const struct entry *e, enum omit *out, struct err *err)
{
	*out = omit_own(w, e);
	if (*out == OMIT_NOT && omit_by_name(w, e, out, err) < 0)
		return -1;
	if (*out != OMIT_NOT || !is_snapshot(w, e))
		return 0;
	account_add(w->cfg->account, ACCOUNT_EXCLUDED, walker_path(w, e->name), "a btrfs snapshot");
	*out = OMIT_ALL;
	return 0;
}
