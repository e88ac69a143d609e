/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_WALK_KIT_H
#define CCSNAP_TEST_WALK_KIT_H

/* A directory of real files, walked into a model, and a second opinion on it:
 * every entry by lstat and its like, found by plain recursion.
 */
#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "walk/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534

struct walked {
	char dir[64];
	int fd;
	struct account account;
	struct model model;
	struct walk_totals totals;
	struct walk_config cfg;
	struct err err;
};

static inline void walked_start(struct walked *w)
{
	*w = (struct walked){ .dir = "/var/tmp/ccsnap-test-walk-XXXXXX" };
	assert_non_null(mkdtemp(w->dir));
	assert_int_equal(chmod(w->dir, 0755), 0);
	w->fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->fd >= 0);
	model_init(&w->model);
	w->cfg.root_fd = w->fd;
	w->cfg.account = &w->account;
}

static inline int walked_do(struct walked *w)
{
	model_free(&w->model);
	account_free(&w->account);
	memset(&w->err, 0, sizeof w->err);
	return tree_walk(&w->cfg, &w->model, &w->totals, &w->err);
}

/* However deep: what is below moves up until everything lies on top. */
static inline void kit_empty(int fd)
{
	unsigned moved = 0;
	bool again = true;

	while (again) {
		int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		autodir DIR *dir = fdopendir(copy);
		const struct dirent *d;

		again = false;
		while ((d = readdir(dir))) {
			autodir DIR *sub = NULL;
			const struct dirent *s;
			int subfd;

			if (str_equal(d->d_name, ".") || str_equal(d->d_name, ".."))
				continue;
			if (unlinkat(fd, d->d_name, 0) == 0)
				continue;
			fchmodat(fd, d->d_name, 0700, 0);
			subfd = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
			sub = subfd < 0 ? NULL : fdopendir(subfd);
			while (sub && (s = readdir(sub))) {
				char name[32];

				if (str_equal(s->d_name, ".") || str_equal(s->d_name, ".."))
					continue;
				if (unlinkat(subfd, s->d_name, 0) == 0)
					continue;
				fchmodat(subfd, s->d_name, 0700, 0);
				snprintf(name, sizeof name, ".moved-%u", moved++);
				renameat(subfd, s->d_name, fd, name);
			}
			again |= unlinkat(fd, d->d_name, AT_REMOVEDIR) == 0;
		}
	}
}

static inline void walked_stop(struct walked *w)
{
	model_free(&w->model);
	account_free(&w->account);
	kit_empty(w->fd);
	close(w->fd);
	assert_int_equal(rmdir(w->dir), 0);
}

#define autowalked CLEANUP(walked_stop)

/* --- making ------------------------------------------------------------------ */

static inline void make_dir(const struct walked *w, const char *path)
{
	assert_int_equal(mkdirat(w->fd, path, 0755), 0);
}

static inline void make_file(const struct walked *w, const char *path, const char *text)
{
	autoclose int fd = openat(w->fd, path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static inline void set_mtime(const struct walked *w, const char *path, int64_t sec, long nsec)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = sec, .tv_nsec = nsec } };

	assert_int_equal(utimensat(w->fd, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* --- asking ------------------------------------------------------------------ */

static inline uint32_t node_at(const struct walked *w, const char *path)
{
	return model_resolve(&w->model, path, MODEL_NOFOLLOW);
}

static inline const struct model_node *node_of(const struct walked *w, const char *path)
{
	uint32_t node = node_at(w, path);

	assert_int_not_equal(node, MODEL_NONE);
	return &w->model.nodes[node];
}

/* The detail of what the account says about it; NULL: nothing. */
static inline const char *told(const struct walked *w, enum account_kind kind, const char *path)
{
	for (size_t i = 0; i < w->account.len; i++)
		if (w->account.at[i].kind == kind && str_equal(w->account.at[i].path, path))
			return w->account.at[i].detail;
	return NULL;
}

/* As somebody whom permissions concern; as_before with what it returned. */
static inline uid_t as_ordinary_user(void)
{
	uid_t before = geteuid();

	if (before == 0) {
		assert_int_equal(seteuid(NOBODY), 0);
		assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	}
	return before;
}

static inline void as_before(uid_t before)
{
	assert_int_equal(seteuid(before), 0);
}

/* --- the second opinion ------------------------------------------------------- */

struct compare {
	const struct walked *w;
	size_t entries;
	struct {
		dev_t dev;
		ino_t ino;
		uint32_t node;
	} seen[4096]; /* inodes with several names */
	size_t seen_len;
};

static inline void compare_xattrs(const struct walked *w, const struct model_node *n, int dirfd,
				  const char *name)
{
	const struct model_xattr_set *set = &w->model.sets[n->xattrs];
	char path[512], names[4096], value[65536];
	ssize_t len;
	size_t count = 0;

	snprintf(path, sizeof path, "/proc/self/fd/%d/%s", dirfd, name);
	len = llistxattr(path, names, sizeof names);
	if (len < 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		len = 0;
	}
	for (const char *x = names; x < names + len; x += strlen(x) + 1, count++) {
		ssize_t size = lgetxattr(path, x, value, sizeof value);
		size_t i = 0;

		while (i < set->len && !str_equal(set->at[i].name, x))
			i++;
		assert_true(i < set->len);
		assert_int_equal(set->at[i].size, size);
		assert_memory_equal(set->at[i].value, value, (size_t)size);
	}
	assert_int_equal(n->xattrs ? set->len : 0, count);
}

static inline bool model_has_block(const struct walked *w, const struct model_node *n, uint64_t b)
{
	if (n->data != MODEL_SPARSE)
		return n->data == MODEL_DENSE;
	for (uint32_t i = 0; i < n->count; i++) {
		const struct model_segment *s = &w->model.segments[n->first + i];

		if (b >= s->block && b < (uint64_t)s->block + s->count)
			return true;
	}
	return false;
}

/* Block by block; only for files of few of them. */
static inline void compare_holes(const struct walked *w, const struct model_node *n, int fd)
{
	uint64_t blocks = (n->size + MODEL_BLOCK - 1) / MODEL_BLOCK;

	for (uint64_t b = 0; b < blocks && blocks < 100000; b++) {
		off_t data = lseek(fd, (off_t)(b * MODEL_BLOCK), SEEK_DATA);
		bool is_data = data >= 0 && (uint64_t)data < (b + 1) * MODEL_BLOCK;

		assert_int_equal(model_has_block(w, n, b), is_data);
	}
}

static inline void compare_opened(const struct walked *w, const struct model_node *n, int dirfd,
				  const char *name)
{
	const int carried = FS_SECRM_FL | FS_UNRM_FL | FS_COMPR_FL | FS_SYNC_FL | FS_IMMUTABLE_FL |
			    FS_APPEND_FL | FS_NODUMP_FL | FS_NOATIME_FL | FS_JOURNAL_DATA_FL |
			    FS_DIRSYNC_FL | FS_TOPDIR_FL;
	autoclose int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW);
	int flags = 0;

	assert_true(fd >= 0);
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0)
		assert_int_equal(n->flags, flags & carried);
	if (S_ISREG(n->mode))
		compare_holes(w, n, fd);
}

static inline void compare_link(const struct model_node *n, int dirfd, const char *name)
{
	char target[5000];
	ssize_t len = readlinkat(dirfd, name, target, sizeof target);

	assert_true(len > 0);
	assert_int_equal(n->size, len);
	assert_non_null(n->content);
	assert_memory_equal(n->content, target, (size_t)len);
	assert_int_equal(n->content[len], '\0');
}

static inline void compare_names(struct compare *c, uint32_t node, const struct stat *st)
{
	for (size_t i = 0; i < c->seen_len; i++) {
		bool same = c->seen[i].dev == st->st_dev && c->seen[i].ino == st->st_ino;

		assert_int_equal(same, c->seen[i].node == node);
		if (same)
			return;
	}
	assert_true(c->seen_len < sizeof c->seen / sizeof *c->seen);
	c->seen[c->seen_len].dev = st->st_dev;
	c->seen[c->seen_len].ino = st->st_ino;
	c->seen[c->seen_len++].node = node;
}

static inline void compare_stat(const struct model_node *n, const struct stat *st)
{
	assert_int_equal(n->mode, st->st_mode);
	assert_int_equal(n->uid, st->st_uid);
	assert_int_equal(n->gid, st->st_gid);
	assert_int_equal(n->mtime_sec, st->st_mtim.tv_sec);
	assert_int_equal(n->mtime_nsec, st->st_mtim.tv_nsec);
	assert_int_equal(n->found_ctime_sec, st->st_ctim.tv_sec);
	assert_int_equal(n->found_ctime_nsec, st->st_ctim.tv_nsec);
	assert_int_equal(n->found_dev, st->st_dev);
	assert_int_equal(n->found_ino, st->st_ino);
	if (S_ISREG(st->st_mode))
		assert_int_equal(n->size, st->st_size);
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		assert_int_equal(makedev(n->rdev_major, n->rdev_minor), st->st_rdev);
}

static inline void compare_entry(struct compare *c, uint32_t node, int dirfd, const char *name)
{
	const struct model_node *n = &c->w->model.nodes[node];
	struct stat st;

	c->entries++;
	assert_int_equal(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	compare_stat(n, &st);
	compare_xattrs(c->w, n, dirfd, name);
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		compare_opened(c->w, n, dirfd, name);
	if (S_ISLNK(st.st_mode))
		compare_link(n, dirfd, name);
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
		compare_names(c, node, &st);
}

static inline void compare_directory(struct compare *c, uint32_t node, int fd)
{
	const struct model *m = &c->w->model;
	autodir DIR *dir = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY));
	const struct dirent *d;
	size_t count = 0;

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		uint32_t id = model_lookup(m, node, d->d_name);

		if (str_equal(d->d_name, ".") || str_equal(d->d_name, ".."))
			continue;
		count++;
		assert_int_not_equal(id, MODEL_NONE);
		compare_entry(c, id, fd, d->d_name);
		if (S_ISDIR(m->nodes[id].mode)) {
			autoclose int sub = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY);

			assert_true(sub >= 0);
			compare_directory(c, id, sub);
		}
	}
	assert_int_equal(m->nodes[node].count, count);
	for (uint32_t i = 1; i < m->nodes[node].count; i++) {
		const struct model_entry *e = &m->entries[m->nodes[node].first + i];

		assert_true(strcmp(model_string(m, e[-1].name), model_string(m, e->name)) < 0);
	}
}

/* Is the model what is there?  Returns the number of entries. */
static inline size_t assert_all_equal(const struct walked *w)
{
	struct compare *c = calloc(1, sizeof *c);
	size_t entries;

	assert_non_null(c);
	c->w = w;
	compare_entry(c, MODEL_ROOT, w->fd, ".");
	compare_directory(c, MODEL_ROOT, w->fd);
	entries = c->entries;
	free(c);
	return entries;
}

#endif
