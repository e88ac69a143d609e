// SPDX-License-Identifier: Apache-2.0
#include "dest/outfile.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/tmpname.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define POLL_MS 50

/* A directory is locked for milliseconds; whoever holds it longer is not one
 * of us.
 */
#define DIR_LOCK_SECONDS 10

struct outfile {
	int dirfd; /* the caller's */
	int fd, note_fd;
	int lock_fd; /* the directory's, of outfile_tidy and outfile_reserve_at_once */
	char *dir, *final;
	char stem[STEM_MAX + 1];
	char tmp[NAME_MAX + 1]; /* "": not created, or published */
	char note[NAME_MAX + 1];
};

/* --- names --- */

int outfile_name_is_temporary(const char *name)
{
	return tmpname_has_tail(name, TMP_TAIL) || tmpname_has_tail(name, NOTE_TAIL);
}

int outfile_check_final(const char *path, const char *final, struct err *err)
{
	if (!*final || str_equal(final, ".") || str_equal(final, ".."))
		return err_set(err, ERR_USAGE, "'%s' does not name a file; give the path of one",
			       path);
	if (strlen(final) > NAME_MAX)
		return err_set(err, ERR_USAGE,
			       "a file's name may be at most %d bytes long, this one has %zu: %s",
			       NAME_MAX, strlen(final), final);
	if (outfile_name_is_temporary(final))
		return err_set(err, ERR_USAGE,
			       "'%s' looks like one of our temporary files, which are swept away; "
			       "choose another name",
			       final);
	return 0;
}

/* --- checks --- */

int outfile_check_name(int dirfd, const char *dir, const char *name, enum outfile_existing existing,
		       struct err *err)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			       ? 0
			       : err_errno(err, ERR_REFUSED, "cannot look at %s/%s", dir, name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_REFUSED,
			       "%s/%s exists and is not a regular file; it is never replaced", dir,
			       name);
	if (io_is_protected(&st))
		return err_set(err, ERR_REFUSED, "%s/%s is the source; it is never replaced", dir,
			       name);
	if (existing == OUTFILE_KEEP)
		return err_set(err, ERR_REFUSED, "%s/%s exists; use --overwrite to replace it", dir,
			       name);
	return 0;
}

int outfile_remove(int dirfd, const char *dir, const char *name, struct err *err)
{
	if (outfile_check_name(dirfd, dir, name, OUTFILE_REPLACE, err) < 0)
		return -1;
	if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return err_errno(err, ERR_FAILED, "cannot remove %s/%s", dir, name);
	return 0;
}

DIR *outfile_open_dir(int dirfd, const char *dir, struct err *err)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (!entries) {
		err_errno(err, ERR_FAILED, "cannot read %s", dir);
		if (fd >= 0)
			close(fd);
	}
	return entries;
}

/* --- locks --- */

enum lock_result { LOCKED, LOCK_HELD, LOCK_NONE };

/* LOCK_NONE: this filesystem has no such locks (NFS has none on directories). */
static enum lock_result try_lock(int fd, int operation)
{
	while (flock(fd, operation | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return LOCK_HELD;
		if (errno != EINTR)
			return LOCK_NONE;
	}
	return LOCKED;
}

static int wait_a_little(struct err *err)
{
	clock_sleep_ms(POLL_MS);
	return interrupt_check(err);
}

/* For what is to be written also, and just then, when a signal has come. */
static int wait_undisturbed(struct err *err)
{
	(void)err;
	clock_sleep_ms(POLL_MS);
	return 0;
}

/* A descriptor of its own that holds the directory's lock until it is closed.
 * Between runs that create, sweep and look for each other under it, nobody
 * sees a file that is created but not yet locked.  Where directories have no
 * locks it is a descriptor without: see create_locked.
 */
static int lock_directory(const struct outfile *out, int (*wait)(struct err *err), struct err *err)
{
	autoclose int fd = openat(out->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t start = clock_ns();

	if (fd < 0)
		return err_errno(err, ERR_FAILED, "cannot open %s", out->dir);
	while (try_lock(fd, LOCK_EX) == LOCK_HELD) {
		if (clock_seconds_since(start) > DIR_LOCK_SECONDS)
			return err_set(err, ERR_BUSY, "%s is locked by another program", out->dir);
		if (wait(err) < 0)
			return -1;
	}
	return steal_fd(&fd);
}

/* --- sweeping --- */

/* What is behind a temporary name. */
enum life { LIFE_FOREIGN, LIFE_HELD, LIFE_DEAD };

/* By a shared lock, so that two who ask do not take each other for the owner.
 * Looked at first, because opening a device can already do something.  A source
 * may have such a name, too: somebody saves what a killed run had made.
 */
static enum life life_of(int dirfd, const char *name)
{
	autoclose int fd = -1;
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || io_is_protected(&st))
		return LIFE_FOREIGN;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	switch (fd < 0 ? LOCK_NONE : try_lock(fd, LOCK_SH)) {
	case LOCKED:
		return LIFE_DEAD;
	case LOCK_HELD:
		return LIFE_HELD;
	case LOCK_NONE:
		break;
	}
	return LIFE_FOREIGN;
}

/* The note first: left alone it would say that its file is published. */
static void remove_leftover(const struct outfile *out, const char *name)
{
	char note[NAME_MAX + 1];
	struct err err;

	tmpname_partner(note, name, TMP_TAIL, NOTE_TAIL);
	if (outfile_remove(out->dirfd, out->dir, note, &err) < 0 ||
	    outfile_remove(out->dirfd, out->dir, name, &err) < 0)
		log_debug("%s", err.text);
	else
		log_debug("removed %s, left by a run that was killed", name);
}

/* Whose leftovers? */
enum sweep { SWEEP_ALL, SWEEP_OWN };

static bool sweep_one(const struct outfile *out, const char *name, enum sweep whose)
{
	bool tmp = tmpname_has_tail(name, TMP_TAIL);
	bool ours = tmpname_has_stem(name, tmp ? TMP_TAIL : NOTE_TAIL, out->stem);
	bool look = ours || (tmp && whose == SWEEP_ALL);
	enum life life = look ? life_of(out->dirfd, name) : LIFE_FOREIGN;

	if (tmp && life == LIFE_DEAD)
		remove_leftover(out, name);
	return ours && life == LIFE_HELD;
}

/* Remove what dead runs left; 1 when our key is held by a live one, 0, or -1.
 * A note without its file stays: see outfile_find_note.
 */
static int sweep(const struct outfile *out, enum sweep whose, struct err *err)
{
	autodir DIR *entries = outfile_open_dir(out->dirfd, out->dir, err);
	struct dirent *entry;
	int held = 0;

	if (!entries)
		return -1;
	while (errno = 0, (entry = readdir(entries)))
		held |= sweep_one(out, entry->d_name, whose);
	return errno ? err_errno(err, ERR_FAILED, "cannot read %s", out->dir) : held;
}

/* --- creating --- */

/* A sweeping run holds what it looks at for a moment. */
static enum lock_result lock_patiently(int fd)
{
	enum lock_result lock;

	for (int i = 0; (lock = try_lock(fd, LOCK_EX)) == LOCK_HELD && i < 400; i++)
		clock_sleep_ms(5);
	return lock;
}

/* Without the directory's lock (NFS, and always for notes), a sweeping run can
 * meet the file before it is locked, and remove it if it is no note: then it has
 * no name any more.
 */
static int create_locked(const struct outfile *out, const char *name, struct err *err)
{
	autoclose int fd =
		openat(out->dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	enum lock_result lock;
	struct stat st;

	if (fd < 0)
		return err_errno(err, ERR_FAILED, "cannot create %s/%s under a temporary name",
				 out->dir, out->final);
	lock = lock_patiently(fd);
	if (lock == LOCK_NONE && name == out->tmp)
		log_note("%s has no file locks: two runs for the same name are told apart only "
			 "at the end, and what a killed run leaves is not removed",
			 out->dir);
	/* fchmod: a umask may have taken more than it should */
	if (lock == LOCK_HELD || fchmod(fd, 0600) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0) {
		unlinkat(out->dirfd, name, 0);
		return err_set(err, ERR_BUSY, "another run sweeps %s", out->dir);
	}
	return steal_fd(&fd);
}

static int create_tmp(struct outfile *out, struct err *err)
{
	int tries = 5;

	do {
		if (tmpname_make(out->stem, out->tmp, out->note, err) < 0)
			return -1;
		out->fd = create_locked(out, out->tmp, err);
	} while (out->fd < 0 && (err->kind == ERR_BUSY || err->sys_errno == EEXIST) && --tries);
	if (out->fd < 0)
		out->tmp[0] = '\0';
	return out->fd < 0 ? -1 : 0;
}

/* 0: created, 1: another run holds the key, -1. */
static int try_reserve(struct outfile *out, struct err *err)
{
	autoclose int lock = lock_directory(out, wait_a_little, err);
	int held = lock < 0 ? -1 : sweep(out, SWEEP_ALL, err);

	if (held != 0 || create_tmp(out, err) == 0)
		return held;
	if (err->kind == ERR_FAILED)
		err->kind = ERR_REFUSED; /* nothing was done yet */
	return -1;
}

static struct outfile *outfile_new(const struct outfile_place *place, struct err *err)
{
	struct outfile *out = calloc(1, sizeof *out);

	if (!out) {
		err_nomem(err);
		return NULL;
	}
	out->dirfd = place->dirfd;
	out->fd = out->note_fd = out->lock_fd = -1;
	out->dir = strdup(place->dir);
	out->final = strdup(place->final);
	tmpname_stem(out->stem, place->key);
	if (!out->dir || !out->final) {
		outfile_close(out);
		err_nomem(err);
		return NULL;
	}
	return out;
}

static void set_busy(const struct outfile *out, struct err *err)
{
	err_set(err, ERR_BUSY, "another run is making %s/%s; wait for it with --lock-wait",
		out->dir, out->final);
}

struct outfile *outfile_tidy(const struct outfile_place *place, struct err *err)
{
	autooutfile struct outfile *out = outfile_new(place, err);
	int held;

	if (!out)
		return NULL;
	out->lock_fd = lock_directory(out, wait_a_little, err);
	held = out->lock_fd < 0 ? -1 : sweep(out, SWEEP_ALL, err);
	if (held > 0)
		set_busy(out, err);
	return held == 0 ? steal(&out) : NULL;
}

struct outfile *outfile_reserve(const struct outfile_place *place, unsigned wait_seconds,
				struct err *err)
{
	autooutfile struct outfile *out = outfile_new(place, err);
	uint64_t start = clock_ns();
	int rc;

	while (out && (rc = try_reserve(out, err)) != 0) {
		if (rc < 0)
			return NULL;
		if (clock_seconds_since(start) >= wait_seconds) {
			set_busy(out, err);
			return NULL;
		}
		if (wait_a_little(err) < 0)
			return NULL;
	}
	return steal(&out);
}

struct outfile *outfile_reserve_at_once(const struct outfile_place *place, struct err *err)
{
	autooutfile struct outfile *out = outfile_new(place, err);

	if (!out)
		return NULL;
	out->lock_fd = lock_directory(out, wait_undisturbed, err);
	if (out->lock_fd < 0 || sweep(out, SWEEP_OWN, err) < 0 || create_tmp(out, err) < 0)
		return NULL;
	return steal(&out);
}

int outfile_fd(const struct outfile *out)
{
	return out->fd;
}

/* --- publishing --- */

/* Whoever looks where we were told to put it must find it there. */
static int check_still_there(const struct outfile *out, struct err *err)
{
	struct stat held, named;

	if (fstat(out->dirfd, &held) == 0 && stat(out->dir, &named) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino)
		return 0;
	return err_set(err, ERR_FAILED,
		       "%s was moved, replaced or unmounted meanwhile; %s was not put there",
		       out->dir, out->final);
}

int outfile_write_note(struct outfile *out, const char *text, struct err *err)
{
	if (check_still_there(out, err) < 0)
		return -1;
	out->note_fd = create_locked(out, out->note, err);
	if (out->note_fd < 0)
		return -1;
	if (io_pwrite(out->note_fd, text, strlen(text), 0) < 0 || fsync(out->note_fd) < 0)
		return err_errno(err, ERR_FAILED, "cannot write what goes with %s/%s", out->dir,
				 out->final);
	return 0;
}

/* RENAME_NOREPLACE, or a hard link where the filesystem knows no such rename,
 * or the two steps where it knows no hard link either.
 */
static int rename_new(const struct outfile *out)
{
	struct stat st;

	if (renameat2(out->dirfd, out->tmp, out->dirfd, out->final, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (linkat(out->dirfd, out->tmp, out->dirfd, out->final, 0) == 0)
		return unlinkat(out->dirfd, out->tmp, 0);
	if (errno == EEXIST)
		return -1;
	if (fstatat(out->dirfd, out->final, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(out->dirfd, out->tmp, out->dirfd, out->final);
}

static int sync_directory(const struct outfile *out, struct err *err)
{
	autoclose int fd = openat(out->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* EINVAL: a filesystem that does not do this for directories */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		return err_errno(err, ERR_FAILED, "%s/%s is in place, but cannot sync %s", out->dir,
				 out->final, out->dir);
	return 0;
}

int outfile_publish(struct outfile *out, enum outfile_existing existing, struct err *err)
{
	int rc;

	if (fsync(out->fd) < 0)
		return err_errno(err, ERR_FAILED, "cannot write %s/%s", out->dir, out->final);
	if (check_still_there(out, err) < 0 ||
	    outfile_check_name(out->dirfd, out->dir, out->final, existing, err) < 0)
		return -1;
	if (existing == OUTFILE_REPLACE)
		rc = renameat(out->dirfd, out->tmp, out->dirfd, out->final);
	else
		rc = rename_new(out);
	if (rc < 0 && errno == EEXIST)
		return err_set(err, ERR_REFUSED,
			       "%s/%s has come into being meanwhile; use --overwrite to replace it",
			       out->dir, out->final);
	if (rc < 0)
		return err_errno(err, ERR_FAILED, "cannot rename to %s/%s", out->dir, out->final);
	out->tmp[0] = '\0';
	return sync_directory(out, err);
}

int outfile_publish_note(struct outfile *out, const char *name, struct err *err)
{
	if (outfile_check_name(out->dirfd, out->dir, name, OUTFILE_REPLACE, err) < 0)
		return -1;
	if (renameat(out->dirfd, out->note, out->dirfd, name) < 0)
		return err_errno(err, ERR_FAILED, "cannot rename to %s/%s", out->dir, name);
	return sync_directory(out, err);
}

int outfile_is_published(const struct outfile *out)
{
	return !out->tmp[0];
}

static bool note_is_orphan(const struct outfile *out, const char *name)
{
	char tmp[NAME_MAX + 1];
	struct stat st;

	if (!tmpname_has_stem(name, NOTE_TAIL, out->stem))
		return false;
	tmpname_partner(tmp, name, NOTE_TAIL, TMP_TAIL);
	return fstatat(out->dirfd, tmp, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
	       life_of(out->dirfd, name) == LIFE_DEAD;
}

int outfile_find_note(const struct outfile *out, char name[NAME_MAX + 1], struct err *err)
{
	autodir DIR *entries = outfile_open_dir(out->dirfd, out->dir, err);
	struct dirent *entry;

	if (!entries)
		return -1;
	while (errno = 0, (entry = readdir(entries))) {
		if (note_is_orphan(out, entry->d_name)) {
			strcpy(name, entry->d_name);
			return 1;
		}
	}
	return errno ? err_errno(err, ERR_FAILED, "cannot read %s", out->dir) : 0;
}

/* The note of a published file stays for the next run to finish. */
void outfile_close(struct outfile *out)
{
	if (!out)
		return;
	if (out->tmp[0] && out->note_fd >= 0)
		unlinkat(out->dirfd, out->note, 0);
	if (out->tmp[0])
		unlinkat(out->dirfd, out->tmp, 0);
	if (out->note_fd >= 0)
		close(out->note_fd);
	if (out->fd >= 0)
		close(out->fd);
	if (out->lock_fd >= 0)
		close(out->lock_fd);
	free(out->dir);
	free(out->final);
	free(out);
}
