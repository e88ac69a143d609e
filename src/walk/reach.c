// SPDX-License-Identifier: Apache-2.0
#include "walk/reach.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "walk/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 48

/* A directory that is open; node MODEL_NONE: an empty slot. */
struct slot {
	uint32_t node;
	int fd;
	unsigned pins; /* not closed while somebody uses it */
	uint64_t used;
};

struct reach {
	const struct model *model;
	int root_fd;
	struct beneath beneath;

	/* Guards the rest.  Nothing that could hang is done under it. */
	pthread_mutex_t lock;
	uint64_t clock;
	struct slot slots[SLOTS];
};

/* A directory for the time of one call. */
struct held {
	int fd;
	struct slot *slot; /* NULL: fd is ours alone */
};

struct reach *reach_new(const struct model *model, int root_fd, struct err *err)
{
	struct reach *r = calloc(1, sizeof *r);

	if (!r || pthread_mutex_init(&r->lock, NULL)) {
		free(r);
		err_nomem(err);
		return NULL;
	}
	r->model = model;
	r->root_fd = root_fd;
	r->beneath = beneath_probe(root_fd);
	for (size_t i = 0; i < SLOTS; i++)
		r->slots[i] = (struct slot){ .node = MODEL_NONE, .fd = -1 };
	return r;
}

void reach_free(struct reach *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		if (r->slots[i].fd >= 0)
			close(r->slots[i].fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Under the lock. */
static struct slot *slot_find(struct reach *r, uint32_t node)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (r->slots[i].node == node)
			return &r->slots[i];
	return NULL;
}

/* Under the lock: the one that was used longest ago, NULL when all are in use. */
static struct slot *slot_oldest(struct reach *r)
{
	struct slot *best = NULL;

	for (size_t i = 0; i < SLOTS; i++)
		if (!r->slots[i].pins && (!best || r->slots[i].used < best->used))
			best = &r->slots[i];
	return best;
}

static void slot_pin(struct reach *r, struct slot *s)
{
	s->pins++;
	s->used = ++r->clock;
}

/* Leaves errno alone. */
static void held_end(struct reach *r, struct held *h)
{
	int saved = errno;

	if (h->slot) {
		pthread_mutex_lock(&r->lock);
		h->slot->pins--;
		pthread_mutex_unlock(&r->lock);
	} else if (h->fd >= 0) {
		close(h->fd);
	}
	errno = saved;
}

/* Keep fd open for later; what it replaces is closed. */
static struct held held_keep(struct reach *r, uint32_t node, int fd)
{
	struct held h = { .fd = fd };
	int old = -1;

	pthread_mutex_lock(&r->lock);
	if (!slot_find(r, node))
		h.slot = slot_oldest(r);
	if (h.slot) {
		old = h.slot->fd;
		h.slot->node = node;
		h.slot->fd = fd;
		slot_pin(r, h.slot);
	}
	pthread_mutex_unlock(&r->lock);
	if (old >= 0)
		close(old);
	return h;
}

/* Hold the nearest ancestor of node (or itself) that is open; *length gets
 * that of the path from there to node, each component with a slash.
 */
static uint32_t hold_nearest(struct reach *r, uint32_t node, struct held *h, size_t *length)
{
	const struct model *m = r->model;

	*h = (struct held){ .fd = r->root_fd };
	*length = 0;
	pthread_mutex_lock(&r->lock);
	for (;;) {
		h->slot = slot_find(r, node);
		if (h->slot || node == MODEL_ROOT)
			break;
		*length += strlen(model_string(m, m->nodes[node].name)) + 1;
		node = m->nodes[node].parent;
	}
	if (h->slot) {
		slot_pin(r, h->slot);
		h->fd = h->slot->fd;
	}
	pthread_mutex_unlock(&r->lock);
	return node;
}

/* The path from top down to node, "" for top itself; the root of a mount has
 * no name of its own.  malloc.
 */
static char *relative_path(const struct model *m, uint32_t top, uint32_t node, size_t length)
{
	char *path = malloc(length + 1), *p = path + length;

	if (!path)
		return NULL;
	*p = '\0';
	for (; node != top; node = m->nodes[node].parent) {
		const char *name = model_string(m, m->nodes[node].name);
		size_t len = strlen(name);

		if (!len)
			continue;
		*--p = '/';
		p -= len;
		memcpy(p, name, len);
	}
	memmove(path, p, strlen(p) + 1);
	return path;
}

static bool is_same(const struct model_node *n, const struct stat *st)
{
	return n->found_dev == st->st_dev && n->found_ino == st->st_ino &&
	       (n->mode & S_IFMT) == (st->st_mode & S_IFMT);
}

static int open_checked(struct reach *r, uint32_t node)
{
	struct held from;
	size_t length;
	uint32_t top = hold_nearest(r, node, &from, &length);
	autofree char *path = relative_path(r->model, top, node, length);
	autoclose int fd = -1;
	struct stat st;

	if (path)
		fd = beneath_open(&r->beneath, from.fd, path);
	else
		errno = ENOMEM;
	if (from.slot)
		held_end(r, &from);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (!is_same(&r->model->nodes[node], &st)) {
		errno = ESTALE;
		return -1;
	}
	return steal_fd(&fd);
}

static int hold(struct reach *r, uint32_t node, struct held *h)
{
	int fd;

	pthread_mutex_lock(&r->lock);
	h->slot = slot_find(r, node);
	if (h->slot) {
		slot_pin(r, h->slot);
		h->fd = h->slot->fd;
	}
	pthread_mutex_unlock(&r->lock);
	if (h->slot)
		return 0;
	fd = open_checked(r, node);
	if (fd < 0)
		return -1;
	*h = held_keep(r, node, fd);
	return 0;
}

static bool was_found(const struct reach *r, uint32_t node)
{
	return r->model->nodes[node].found_dev || r->model->nodes[node].found_ino;
}

int reach_directory(struct reach *r, uint32_t node)
{
	struct held h;
	int fd;

	if (!was_found(r, node)) {
		errno = ENOENT;
		return -1;
	}
	if (hold(r, node, &h))
		return -1;
	fd = fcntl(h.fd, F_DUPFD_CLOEXEC, 0);
	held_end(r, &h);
	return fd;
}

/* A symbolic link in its place. */
static int stale_link(void)
{
	errno = errno == ELOOP ? ESTALE : errno;
	return -1;
}

/* The second look is for what was put there in between; what could block or
 * do something when it is opened was told apart by the first.
 */
static int open_same(const struct model_node *n, int dirfd, const char *name, struct stat *now)
{
	autoclose int fd = -1;

	if (fstatat(dirfd, name, now, AT_SYMLINK_NOFOLLOW))
		return -1;
	if (is_same(n, now) && S_ISREG(now->st_mode)) {
		fd = quiet_open(dirfd, name, 0);
		if (fd < 0)
			return stale_link();
		if (fstat(fd, now))
			return -1;
		if (is_same(n, now))
			return steal_fd(&fd);
	}
	errno = ESTALE;
	return -1;
}

/* -1 with errno; ENOENT also when dir is not what it was. */
static int hold_found(struct reach *r, uint32_t dir, struct held *h)
{
	if (!was_found(r, dir))
		errno = ENOENT;
	else if (hold(r, dir, h) == 0)
		return 0;
	else if (errno == ESTALE)
		errno = ENOENT;
	return -1;
}

static int open_named(struct reach *r, uint32_t node, uint32_t dir, uint32_t name, struct stat *now)
{
	struct held h;
	int fd;

	if (hold_found(r, dir, &h))
		return -1;
	fd = open_same(&r->model->nodes[node], h.fd, model_string(r->model, name), now);
	held_end(r, &h);
	return fd;
}

/* As long as the model may change it has no index: all names are looked at. */
static int open_by_search(struct reach *r, uint32_t node)
{
	const struct model *m = r->model;
	struct stat ignored;

	for (uint32_t dir = 0; dir < m->node_count; dir++) {
		const struct model_node *d = &m->nodes[dir];

		for (uint32_t i = d->first; S_ISDIR(d->mode) && i < d->first + d->count; i++) {
			int fd = -1;

			if (m->entries[i].node == node)
				fd = open_named(r, node, dir, m->entries[i].name, &ignored);
			if (fd >= 0)
				return fd;
		}
	}
	return -1;
}

/* Try the names besides the first. */
static int open_by_others(struct reach *r, uint32_t node)
{
	uint32_t count;
	const struct model_name *names = model_names(r->model, node, &count);
	struct stat ignored;

	if (!names)
		return open_by_search(r, node);
	for (uint32_t i = 0; i < count; i++) {
		int fd = open_named(r, node, names[i].dir, names[i].name, &ignored);

		if (fd >= 0)
			return fd;
	}
	return -1;
}

int reach_file(struct reach *r, uint32_t node, struct stat *now)
{
	const struct model_node *n = &r->model->nodes[node];
	int fd, saved;

	memset(now, 0, sizeof *now);
	fd = was_found(r, node) ? open_named(r, node, n->parent, n->name, now) : -1;
	if (fd >= 0)
		return fd;
	saved = was_found(r, node) ? errno : ENOENT;
	if (n->names > 1 && (saved == ENOENT || saved == ESTALE))
		fd = open_by_others(r, node);
	if (fd >= 0 && !fstat(fd, now))
		return fd;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

int reach_stat_name(struct reach *r, uint32_t dir, const char *name, struct stat *now)
{
	struct held h;
	int ret;

	if (hold_found(r, dir, &h))
		return -1;
	ret = fstatat(h.fd, name, now, AT_SYMLINK_NOFOLLOW);
	held_end(r, &h);
	return ret;
}

bool reach_is_unchanged(const struct model_node *node, const struct stat *now)
{
	return now->st_ino == node->found_ino && now->st_dev == node->found_dev &&
	       (uint64_t)now->st_size == node->size && now->st_mtim.tv_sec == node->mtime_sec &&
	       (uint32_t)now->st_mtim.tv_nsec == node->mtime_nsec &&
	       now->st_ctim.tv_sec == node->found_ctime_sec &&
	       (uint32_t)now->st_ctim.tv_nsec == node->found_ctime_nsec;
}

bool reach_is_gone(int error)
{
	return error == ENOENT || error == ESTALE || error == ELOOP || error == ENOTDIR;
}
