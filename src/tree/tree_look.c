// SPDX-License-Identifier: Apache-2.0
#include "tree/tree_inner.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "walk/exclude.h"
#include "walk/mounts.h"
#include "walk/reach.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is being written all the time never calms down; the settle pass has it. */
#define CALM_ROUNDS 3
#define CALM_MS	    100

static int open_root(struct tree *t, struct err *err)
{
	t->source.name = realpath(t->cfg.path, NULL);
	if (!t->source.name)
		return err_errno(err, ERR_FAILED, "cannot open %s", t->cfg.path);
	t->root_fd = open(t->source.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->root_fd < 0)
		return err_errno(err, ERR_FAILED, "cannot open %s", t->source.name);
	return 0;
}

static int read_mounts(struct tree *t, struct err *err)
{
	struct mounts_config cfg = {
		.source = t->source.name,
		.include = t->cfg.include_mounts,
		.one_file_system = t->cfg.one_file_system,
		.mountinfo = "/proc/self/mountinfo",
	};
	struct statx stx;

	if (statx(t->root_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &stx) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s", t->source.name);
	cfg.source_id = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0;
	t->is_mount_root = (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	t->mounts = mounts_read(&cfg, err);
	return t->mounts ? 0 : -1;
}

static int for_each(const char *const *list, struct excludes *x,
		    int (*add)(struct excludes *x, const char *text, struct err *err),
		    struct err *err)
{
	for (; list && *list; list++)
		if (add(x, *list, err) < 0)
			return -1;
	return 0;
}

static int read_excludes(struct tree *t, struct err *err)
{
	const struct tree_config *cfg = &t->cfg;

	t->excludes = excludes_new(err);
	if (!t->excludes || (cfg->default_excludes && excludes_add_defaults(t->excludes, err) < 0))
		return -1;
	for (const char *const *path = cfg->excludes; path && *path; path++)
		if (excludes_add_path(t->excludes, t->source.name, *path, err) < 0)
			return -1;
	return for_each(cfg->exclude_globs, t->excludes, excludes_add_pattern, err) < 0
		       ? -1
		       : for_each(cfg->exclude_files, t->excludes, excludes_add_file, err);
}

/* What the caller calls its own, and swap files in use. */
static int list_own(struct tree *t, struct err *err)
{
	size_t n = t->cfg.own_count;

	if (mounts_read_swaps("/proc/swaps", &t->swaps, &t->swap_count, err) < 0)
		return -1;
	t->own = calloc(n + t->swap_count + 1, sizeof *t->own);
	if (!t->own)
		return err_nomem(err);
	if (n)
		memcpy(t->own, t->cfg.own, n * sizeof *t->own);
	for (size_t i = 0; i < t->swap_count; i++)
		t->own[n + i] = (struct walk_own){ .dev = t->swaps[i].dev,
						   .ino = t->swaps[i].ino,
						   .what = "a swap file in use" };
	return 0;
}

static void count_progress(void *ctx, uint64_t entries)
{
	struct tree *t = ctx;

	atomic_store(&t->pulse, entries);
	if (t->cfg.progress)
		t->cfg.progress(t->cfg.progress_ctx, entries);
}

/* Only where they were allowed. */
static void tell_idle_excludes(struct tree *t)
{
	const struct exclude_use *uses;
	size_t count = excludes_uses(t->excludes, &uses);

	for (size_t i = 0; i < count; i++)
		if (excludes_is_idle(t->excludes, i))
			account_add(t->cfg.account, ACCOUNT_EXCLUDED, uses[i].text, "hit nothing");
}

/* A file that was written to just before it was looked at can be written to
 * again without a trace in its times.  So those few are looked at once more when
 * the clock has moved on.
 */
static int calm(struct tree *t, bool *calm_now, struct err *err)
{
	*calm_now = true;
	for (uint32_t i = 0; i < t->model.node_count; i++) {
		struct stat now;
		int fd;

		if (!(t->model.nodes[i].reader_flags & WALK_RACY) || !t->model.nodes[i].names)
			continue;
		if (*calm_now)
			clock_sleep_ms(CALM_MS);
		*calm_now = false;
		fd = reach_file(t->reach, i, &now);
		if (fd < 0)
			continue; /* whoever reads it will see */
		if (walk_again(&t->walk, &t->model, i, fd, err) < 0) {
			close(fd);
			return -1;
		}
		close(fd);
	}
	return interrupt_check(err);
}

static int calm_down(struct tree *t, struct err *err)
{
	bool calm_now = false;

	for (unsigned round = 0; round < CALM_ROUNDS && !calm_now; round++)
		if (calm(t, &calm_now, err) < 0)
			return -1;
	return 0;
}

int tree_look(struct tree *t, struct err *err)
{
	if (open_root(t, err) < 0 || read_mounts(t, err) < 0 || read_excludes(t, err) < 0 ||
	    list_own(t, err) < 0)
		return -1;
	t->walk = (struct walk_config){
		.root_fd = t->root_fd,
		.excludes = t->excludes,
		.mounts = t->mounts,
		.own = t->own,
		.own_count = t->cfg.own_count + t->swap_count,
		.keep_going = t->cfg.keep_going || t->cfg.intent == SOURCE_LOOK,
		.measure_excluded = t->cfg.intent == SOURCE_LOOK,
		.account = t->cfg.account,
		.progress = count_progress,
		.progress_ctx = t,
	};
	if (tree_walk(&t->walk, &t->model, &t->totals, err) < 0)
		return -1;
	if (!t->cfg.allow_idle_excludes && excludes_check_hits(t->excludes, err) < 0)
		return -1;
	tell_idle_excludes(t);
	t->reach = reach_new(&t->model, t->root_fd, err);
	return t->reach ? calm_down(t, err) : -1;
}
