// SPDX-License-Identifier: Apache-2.0
#include "walk/walk_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "walk/beneath.h"
#include "walk/holes.h"
#include "walk/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_AGAIN 1

/* A change within the same tick of the clock that stamps files leaves no trace;
 * some filesystems have whole seconds only.
 */
#define TICK_MS	       50
#define COARSE_TICK_MS 2000

static int64_t ms_between(const struct timespec *now, const struct statx_timestamp *t)
{
	int64_t seconds;

	/* Any number may stand in a file's times. */
	if (__builtin_sub_overflow((int64_t)now->tv_sec, (int64_t)t->tv_sec, &seconds) ||
	    seconds < -100 || seconds > 100)
		return INT64_MAX;
	return seconds * 1000 + (now->tv_nsec - (int64_t)t->tv_nsec) / 1000000;
}

bool entry_is_racy(const struct statx *st, const struct timespec *now)
{
	const bool coarse = !st->stx_mtime.tv_nsec && !st->stx_ctime.tv_nsec;
	const int64_t tick = coarse ? COARSE_TICK_MS : TICK_MS;
	const int64_t changed = ms_between(now, &st->stx_ctime);
	const int64_t modified = ms_between(now, &st->stx_mtime);

	if (!S_ISREG(st->stx_mode))
		return false;
	return (changed <= tick && changed >= -tick) || (modified <= tick && modified >= -tick);
}

struct model_node entry_node(const struct statx *st)
{
	const bool device = S_ISCHR(st->stx_mode) || S_ISBLK(st->stx_mode);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (struct model_node){
		.size = S_ISREG(st->stx_mode) ? st->stx_size : 0,
		.mtime_sec = st->stx_mtime.tv_sec,
		.mtime_nsec = st->stx_mtime.tv_nsec,
		.mode = st->stx_mode,
		.uid = st->stx_uid,
		.gid = st->stx_gid,
		.rdev_major = device ? st->stx_rdev_major : 0,
		.rdev_minor = device ? st->stx_rdev_minor : 0,
		.mounted = MODEL_NONE,
		.data = MODEL_HOLES,
		.reader_flags = entry_is_racy(st, &now) ? WALK_RACY : 0,
		.found_dev = statx_dev(st),
		.found_ino = st->stx_ino,
		.found_ctime_sec = st->stx_ctime.tv_sec,
		.found_ctime_nsec = st->stx_ctime.tv_nsec,
	};
}

/* --- totals ------------------------------------------------------------------- */

static void count_node(struct walk_totals *t, const struct model_node *n)
{
	const struct {
		uint32_t type;
		uint64_t *count;
	} kinds[] = {
		{ S_IFREG, &t->files },	   { S_IFDIR, &t->directories }, { S_IFLNK, &t->symlinks },
		{ S_IFCHR, &t->devices },  { S_IFBLK, &t->devices },	 { S_IFIFO, &t->fifos },
		{ S_IFSOCK, &t->sockets },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((n->mode & S_IFMT) == kinds[i].type)
			++*kinds[i].count;
	if (S_ISREG(n->mode))
		t->apparent_bytes += n->size;
	if (n->mtime_sec > 0)
		t->times_newest = MAX(t->times_newest, (uint64_t)n->mtime_sec);
}

/* The node's number, MODEL_NONE on error. */
static uint32_t add_node(struct walker *w, const char *name, const struct model_node *node,
			 struct err *err)
{
	uint32_t id = model_add(w->model, node, err);

	if (id == MODEL_NONE || model_link(w->model, w->at.node, name, strlen(name), id, err) < 0)
		return MODEL_NONE;
	count_node(w->totals, node);
	return id;
}

/* --- hard links --------------------------------------------------------------- */

static struct link_key link_key(const struct walker *w, const struct statx *st)
{
	return (struct link_key){ statx_dev(st), st->stx_ino, w->at.volume };
}

static bool has_links(const struct statx *st)
{
	return st->stx_nlink > 1 && !S_ISDIR(st->stx_mode);
}

/* One more name for a node that is there: 1; else 0. */
static int add_name(struct walker *w, const struct entry *e, struct err *err)
{
	const struct link_key key = link_key(w, &e->st);
	uint32_t node = has_links(&e->st) ? links_find(&w->links, &key) : MODEL_NONE;

	if (node == MODEL_NONE ||
	    (w->model->nodes[node].mode & S_IFMT) != (e->st.stx_mode & S_IFMT))
		return 0;
	w->totals->hard_links++;
	return model_link(w->model, w->at.node, e->name, strlen(e->name), node, err) < 0 ? -1 : 1;
}

static int remember(struct walker *w, const struct statx *st, uint32_t node, struct err *err)
{
	const struct link_key key = link_key(w, st);

	return has_links(st) ? links_put(&w->links, &key, node, err) : 0;
}

/* --- kinds -------------------------------------------------------------------- */

static int add_directory(struct walker *w, const struct entry *e, struct err *err)
{
	const struct model_node node = entry_node(&e->st);
	uint32_t id = add_node(w, e->name, &node, err);
	const struct place place = { id, w->at.volume, e->st.stx_mnt_id };

	return id == MODEL_NONE ? -1 : walker_push(w, &place, err);
}

/* What cannot be opened: nobody knows what that would do. */
static int add_special(struct walker *w, const struct entry *e, struct err *err)
{
	struct model_node node = entry_node(&e->st);
	uint32_t id;

	w->looking_at = e->name;
	if (attributes_read_at(&w->attributes, w->fd, e->name, w->model, &node.xattrs, err) < 0)
		return -1;
	id = add_node(w, e->name, &node, err);
	return id == MODEL_NONE ? -1 : remember(w, &e->st, id, err);
}

static int add_symlink(struct walker *w, const struct entry *e, struct err *err)
{
	struct model_node node = entry_node(&e->st);
	char target[PATH_MAX + 1];
	ssize_t len = readlinkat(w->fd, e->name, target, sizeof target);
	uint32_t id;

	if (len < 0 && errno == EINVAL)
		return LOOK_AGAIN;
	if (len < 0 && reach_is_gone(errno)) {
		account_add(w->cfg->account, ACCOUNT_VANISHED, walker_path(w, e->name),
			    "gone before it could be read");
		return 0;
	}
	if (len < 0)
		return walker_unreadable(w, walker_path(w, e->name), errno, err);
	w->looking_at = e->name;
	if (attributes_read_at(&w->attributes, w->fd, e->name, w->model, &node.xattrs, err) < 0)
		return -1;
	node.content = strndup(target, (size_t)len);
	node.size = (uint64_t)len;
	if (!node.content)
		return err_nomem(err);
	id = add_node(w, e->name, &node, err);
	return id == MODEL_NONE ? -1 : remember(w, &e->st, id, err);
}

static int add_opened(struct walker *w, const struct entry *e, int fd, struct err *err)
{
	struct model_node node = entry_node(&e->st);
	uint32_t id;

	w->looking_at = e->name;
	if (attributes_read(&w->attributes, fd, w->model, &node.xattrs, &node.flags, err) < 0)
		return -1;
	id = add_node(w, e->name, &node, err);
	if (id == MODEL_NONE || holes_find(w->model, id, fd, e->st.stx_blocks * 512, err) < 0)
		return -1;
	w->totals->data_bytes += model_data_blocks(w->model, id) * MODEL_BLOCK;
	return remember(w, &e->st, id, err);
}

/* Opened, since that costs no more than to ask for the attributes by name, shows
 * whether it may be read, and is the only way to its flags and holes.
 */
static int add_file(struct walker *w, const struct entry *e, struct err *err)
{
	autoclose int fd = quiet_open(w->fd, e->name, 0);
	struct stat st;

	if (fd < 0 && reach_is_gone(errno))
		return LOOK_AGAIN;
	if (fd < 0 || fstat(fd, &st) < 0)
		return walker_unreadable(w, walker_path(w, e->name), errno, err);
	if (st.st_ino != e->st.stx_ino || st.st_dev != statx_dev(&e->st))
		return LOOK_AGAIN;
	return add_opened(w, e, fd, err);
}

int entry_add(struct walker *w, const struct entry *e, struct err *err)
{
	static const struct {
		uint32_t type;
		int (*add)(struct walker *w, const struct entry *e, struct err *err);
	} kinds[] = {
		{ S_IFREG, add_file },	   { S_IFDIR, add_directory }, { S_IFLNK, add_symlink },
		{ S_IFCHR, add_special },  { S_IFBLK, add_special },   { S_IFIFO, add_special },
		{ S_IFSOCK, add_special },
	};
	int known = add_name(w, e, err);

	if (known)
		return known < 0 ? -1 : 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if ((e->st.stx_mode & S_IFMT) == kinds[i].type)
			return kinds[i].add(w, e, err);
	return walker_unreadable(w, walker_path(w, e->name), ENOTSUP, err);
}

/* --- what stays empty --------------------------------------------------------- */

static int read_attributes(struct walker *w, const char *name, int dirfd, struct model_node *node,
			   struct err *err)
{
	autoclose int fd = S_ISDIR(node->mode) ? quiet_open(dirfd, name, O_DIRECTORY) : -1;

	w->looking_at = name;
	if (fd >= 0)
		return attributes_read(&w->attributes, fd, w->model, &node->xattrs, &node->flags,
				       err);
	return attributes_read_at(&w->attributes, dirfd, name, w->model, &node->xattrs, err);
}

uint32_t entry_add_empty(struct walker *w, const char *name, int dirfd, const struct statx *st,
			 struct err *err)
{
	struct model_node node = entry_node(st);

	node.size = 0;
	node.reader_flags = 0;
	if (dirfd >= 0 && read_attributes(w, name, dirfd, &node, err) < 0)
		return MODEL_NONE;
	if (S_ISREG(node.mode) && !(node.content = strdup(""))) {
		err_nomem(err);
		return MODEL_NONE;
	}
	return add_node(w, name, &node, err);
}

/* --- once more, for the settle pass --------------------------------------------- */

struct again {
	struct account *account;
	const char *path;
};

static void note_lost(void *ctx, const char *which, const char *why)
{
	const struct again *again = ctx;

	account_add(again->account, ACCOUNT_ATTRIBUTE, again->path, "%s: %s", which, why);
}

/* What the model knows besides what stat says stays. */
static void renew(struct model_node *n, const struct statx *st)
{
	struct model_node fresh = entry_node(st);

	fresh.parent = n->parent;
	fresh.name = n->name;
	fresh.names = n->names;
	fresh.ino = n->ino;
	fresh.content = n->content;
	*n = fresh;
}

int walk_again(const struct walk_config *cfg, struct model *model, uint32_t node, int fd,
	       struct err *err)
{
	autofree char *path = model_path(model, node);
	struct again again = { cfg->account, path };
	struct attributes attributes = { .lost = note_lost, .ctx = &again };
	struct statx st;
	uint32_t xattrs, flags;
	int ret;

	if (!path)
		return err_nomem(err);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot look at %s again", path);
	if (!S_ISREG(st.stx_mode))
		return err_set(err, ERR_FAILED, "%s is no regular file any more", path);
	ret = attributes_read(&attributes, fd, model, &xattrs, &flags, err);
	attributes_free(&attributes);
	if (ret < 0)
		return -1;
	renew(&model->nodes[node], &st);
	model->nodes[node].xattrs = xattrs;
	model->nodes[node].flags = flags;
	return holes_find(model, node, fd, st.stx_blocks * 512, err);
}
