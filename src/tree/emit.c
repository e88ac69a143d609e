// SPDX-License-Identifier: Apache-2.0
#include "tree/emit.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "walk/reach.h"
#include "walk/walk.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

/* A file of more than one read stays open for the next, whichever thread that is. */
struct open_file {
	uint32_t node; /* MODEL_NONE: free */
	int fd;
	bool busy;
	uint64_t used; /* when, for the one that has to go */
};

struct emit {
	struct emit_config cfg;
	pthread_mutex_t lock; /* guards the rest; nothing is opened or read under it */
	struct open_file *files;
	uint64_t uses;
	struct emit_suspect *suspects;
	size_t suspect_count, suspect_cap;
	uint8_t *is_suspect; /* a bit for each node */
	atomic_bool out_of_memory;
};

struct emit *emit_new(const struct emit_config *cfg, struct err *err)
{
	struct emit *e = calloc(1, sizeof *e);

	if (e) {
		e->files = calloc(cfg->open_files, sizeof *e->files);
		e->is_suspect = calloc(cfg->model->node_count / 8 + 1, 1);
	}
	if (!e || !e->files || !e->is_suspect) {
		if (e) {
			free(e->files);
			free(e->is_suspect);
		}
		free(e);
		err_nomem(err);
		return NULL;
	}
	e->cfg = *cfg;
	pthread_mutex_init(&e->lock, NULL);
	for (unsigned i = 0; i < cfg->open_files; i++)
		e->files[i] = (struct open_file){ .node = MODEL_NONE, .fd = -1 };
	return e;
}

static void close_files(struct emit *e)
{
	for (unsigned i = 0; i < e->cfg.open_files; i++) {
		cleanup_close(&e->files[i].fd);
		e->files[i] = (struct open_file){ .node = MODEL_NONE, .fd = -1 };
	}
}

void emit_free(struct emit *e)
{
	if (!e)
		return;
	close_files(e);
	pthread_mutex_destroy(&e->lock);
	free(e->files);
	free(e->suspects);
	free(e->is_suspect);
	free(e);
}

/* --- suspects ---------------------------------------------------------------- */

static struct emit_suspect *find_or_add(struct emit *e, uint32_t node)
{
	uint8_t *bits = &e->is_suspect[node / 8], bit = (uint8_t)(1u << node % 8);

	/* Reads of one file follow each other, so it is one of the last. */
	for (size_t i = *bits & bit ? e->suspect_count : 0; i > 0; i--)
		if (e->suspects[i - 1].node == node)
			return &e->suspects[i - 1];
	if (e->suspect_count == e->suspect_cap) {
		size_t cap = e->suspect_cap ? e->suspect_cap * 2 : 64;
		struct emit_suspect *list = reallocarray(e->suspects, cap, sizeof *list);

		if (!list)
			return NULL;
		e->suspects = list;
		e->suspect_cap = cap;
	}
	e->suspects[e->suspect_count] =
		(struct emit_suspect){ .node = node, .size = e->cfg.model->nodes[node].size };
	*bits |= bit;
	return &e->suspects[e->suspect_count++];
}

static void suspect(struct emit *e, uint32_t node, int error, uint64_t size)
{
	struct emit_suspect *s;

	pthread_mutex_lock(&e->lock);
	s = find_or_add(e, node);
	if (s) {
		s->sys_errno = error ? error : s->sys_errno;
		s->size = MIN(s->size, size);
	} else {
		e->out_of_memory = true;
	}
	pthread_mutex_unlock(&e->lock);
}

size_t emit_take_suspects(struct emit *e, struct emit_suspect **suspects)
{
	size_t count = e->suspect_count;

	close_files(e);
	for (size_t i = 0; i < count; i++)
		e->is_suspect[e->suspects[i].node / 8] = 0;
	*suspects = steal(&e->suspects);
	e->suspect_count = e->suspect_cap = 0;
	return count;
}

/* --- open files -------------------------------------------------------------- */

/* The one with the node's file, or the one whose turn it is to go; busy then.
 * NULL when all are.
 */
static struct open_file *take(struct emit *e, uint32_t node)
{
	struct open_file *found = NULL;

	pthread_mutex_lock(&e->lock);
	for (unsigned i = 0; i < e->cfg.open_files; i++) {
		struct open_file *f = &e->files[i];

		if (f->busy)
			continue;
		if (!found || f->used < found->used || f->node == node)
			found = f;
		if (f->node == node)
			break;
	}
	if (found)
		found->busy = true;
	pthread_mutex_unlock(&e->lock);
	return found;
}

static void give_back(struct emit *e, struct open_file *file)
{
	pthread_mutex_lock(&e->lock);
	file->used = ++e->uses;
	file->busy = false;
	pthread_mutex_unlock(&e->lock);
}

/* --- reading ----------------------------------------------------------------- */

struct request {
	uint32_t node;
	uint8_t *buf;
	size_t len; /* inside the file's size */
	uint64_t offset;
};

static int say_unreadable(struct emit *e, const struct request *r, int error, struct err *err)
{
	autofree char *path = NULL;

	if (e->cfg.keep_going || reach_is_gone(error)) {
		suspect(e, r->node, error, 0);
		return 0;
	}
	path = model_path(e->cfg.model, r->node);
	errno = error;
	return err_errno(err, ERR_FAILED, "cannot read %s at offset %llu", path ? path : "a file",
			 (unsigned long long)r->offset);
}

/* From fd; what is not there stays zero and makes a suspect. */
static int read_file(struct emit *e, int fd, const struct request *r, struct err *err)
{
	const struct model_node *node = &e->cfg.model->nodes[r->node];
	ssize_t got = io_pread(fd, r->buf, r->len, r->offset, NULL);
	struct stat now;

	if (got < 0) {
		memset(r->buf, 0, r->len);
		return say_unreadable(e, r, errno, err);
	}
	if ((size_t)got < r->len) {
		memset(r->buf + got, 0, r->len - (size_t)got);
		suspect(e, r->node, 0, r->offset + (uint64_t)got);
	} else if (fstat(fd, &now) < 0 || !reach_is_unchanged(node, &now) ||
		   node->reader_flags & WALK_RACY) {
		suspect(e, r->node, 0, UINT64_MAX);
	}
	return 0;
}

static int open_node(struct emit *e, const struct request *r, struct err *err)
{
	struct stat now;
	int fd = reach_file(e->cfg.reach, r->node, &now);

	if (fd < 0) {
		memset(r->buf, 0, r->len);
		return say_unreadable(e, r, errno, err) < 0 ? -2 : -1;
	}
	return fd;
}

static int read_once(struct emit *e, const struct request *r, struct err *err)
{
	autoclose int fd = open_node(e, r, err);

	return fd < 0 ? (fd == -1 ? 0 : -1) : read_file(e, fd, r, err);
}

static int read_kept(struct emit *e, const struct request *r, struct open_file *file,
		     struct err *err)
{
	if (file->node != r->node || file->fd < 0) {
		cleanup_close(&file->fd);
		file->node = r->node;
		file->fd = open_node(e, r, err);
		if (file->fd < 0)
			return file->fd == -1 ? 0 : -1;
	}
	return read_file(e, file->fd, r, err);
}

static int read_inside(struct emit *e, const struct request *r, struct err *err)
{
	bool whole = r->offset == 0 && r->len == e->cfg.model->nodes[r->node].size;
	struct open_file *file = whole ? NULL : take(e, r->node);
	int done;

	if (!file)
		return read_once(e, r, err);
	done = read_kept(e, r, file, err);
	give_back(e, file);
	return done;
}

int emit_read(struct emit *e, uint32_t node, void *buf, size_t len, uint64_t offset,
	      struct err *err)
{
	uint64_t size = e->cfg.model->nodes[node].size;
	size_t there = offset < size ? (size_t)MIN(len, size - offset) : 0;
	const struct request r = { node, buf, there, offset };

	memset((uint8_t *)buf + there, 0, len - there);
	if (there > 0 && read_inside(e, &r, err) < 0)
		return -1;
	return e->out_of_memory ? err_nomem(err) : 0;
}
