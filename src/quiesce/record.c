// SPDX-License-Identifier: Apache-2.0
#include "quiesce/record.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "base/str.h"
#include "base/uuid.h"
#include "quiesce/record_inner.h"
#include "quiesce/record_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

/* A record is one page, always: its text, and newlines up to the end.  The kernel copies a
 * page in one go, so a writer that is killed leaves the old text or the new one; should it ever
 * be both (a reader without the lock may see that), the text's check tells.  And because the
 * page is there from record_open on, no later write can fail for lack of space.
 *
 * The file is never removed.  The lock belongs to the inode: whoever removed it while the guard
 * still holds it would let the next run lock another file of the same name.
 */
enum {
	PAGE = 4096,
	POLL_MS = 50,
	LOOKS = 20,	  /* at a text that is being written */
	LOOKER_MS = 1000, /* record_look has the lock only for a moment */
};

struct record {
	int fd;
	char *path;
	struct record_note note;
};

/* Made or not; NULL without a home. */
static char *default_folder(void)
{
	return own_folder("XDG_STATE_HOME", ".local/state", "domains");
}

/* --- the folder --- */

static char *find_folder(struct err *err)
{
	char *folder = default_folder();

	if (!folder)
		err_set(err, ERR_REFUSED,
			"there is no place to note what is done to a domain; set HOME or "
			"XDG_STATE_HOME");
	return folder;
}

/* Nobody else may put a file there, or look. */
static int close_to_others(int dirfd, const char *folder, struct err *err)
{
	struct stat st;

	if (fstat(dirfd, &st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot look at %s", folder);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_REFUSED, "%s belongs to another user (%u): remove it",
			       folder, st.st_uid);
	if ((st.st_mode & 077) && fchmod(dirfd, 0700) < 0)
		return err_errno(err, ERR_REFUSED, "cannot close %s to others", folder);
	return 0;
}

/* A descriptor of it. */
static int open_folder(const char *folder, struct err *err)
{
	autoclose int fd = -1;

	if (folder_make(folder, 0700, err) < 0)
		return -1;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, ERR_REFUSED, "cannot open the folder %s", folder);
	return close_to_others(fd, folder, err) < 0 ? -1 : steal_fd(&fd);
}

static bool is_domain(const char *text)
{
	struct uuid_text again;
	uint8_t uuid[16];

	if (!uuid_parse(text, uuid))
		return false;
	uuid_format(uuid, again.text);
	return str_equal(text, again.text);
}

/* --- the file --- */

static int check_file(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot look at %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) ||
	    st.st_nlink > 1 || io_is_protected(&st))
		return err_set(err, ERR_REFUSED,
			       "%s is no file that ccsnap has made for this user: remove it", path);
	return 0;
}

/* malloc: the text, NULs read as newlines (a crash of the host may leave some). */
static char *read_page(int fd, struct err *err)
{
	autofree char *text = malloc(PAGE + 2);
	ssize_t len = text ? io_pread(fd, text, PAGE + 1, 0, NULL) : 0;

	if (!text || len < 0) {
		text ? err_errno(err, ERR_FAILED, "it cannot be read") : err_nomem(err);
		return NULL;
	}
	if (len > PAGE) {
		err_set(err, ERR_FAILED, "it is longer than %d bytes", PAGE);
		return NULL;
	}
	text[len] = '\0';
	for (char *nul = text; (nul = memchr(nul, 0, (size_t)(text + len - nul)));)
		*nul = '\n';
	return steal(&text);
}

static int read_note(int fd, const char *path, struct record_note *out, struct err *err)
{
	autofree char *text = read_page(fd, err);

	if (text && record_text_read(text, out, err) == 0)
		return 0;
	err_context(err, "%s is damaged", path);
	return err_hint(err, "see whether the domain of that UUID is frozen (virsh domfsthaw), has "
			     "a job (virsh domjobinfo) or a disk named overlay (virsh domblklist), "
			     "then remove the file");
}

/* Before the first byte of work is done: is there room? */
static int reserve(struct record *r, int dirfd, struct err *err)
{
	char page[PAGE];
	struct stat st;

	if (fstat(r->fd, &st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot look at %s", r->path);
	if (st.st_size >= PAGE)
		return 0;
	memset(page, '\n', sizeof page);
	/* behind what may stand there: an old file is only made longer */
	if (io_pwrite(r->fd, page, (size_t)(PAGE - st.st_size), (uint64_t)st.st_size) < 0 ||
	    fsync(r->fd) < 0 || (fsync(dirfd) < 0 && errno != EINVAL))
		return err_errno(err, ERR_REFUSED, "cannot write %s", r->path);
	return 0;
}

/* --- the lock --- */

enum lock { LOCK_ERROR = -1, LOCK_HELD, LOCK_OURS, LOCK_REMOVED };

static enum lock lock_once(struct record *r, int dirfd, const char *uuid, struct err *err)
{
	autoclose int fd =
		openat(dirfd, uuid, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return err_errno(err, ERR_REFUSED, "cannot create %s", r->path);
	if (check_file(fd, r->path, err) < 0)
		return LOCK_ERROR;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK || errno == EINTR
			       ? LOCK_HELD
			       : (enum lock)err_errno(err, ERR_REFUSED, "cannot lock %s", r->path);
	/* somebody has removed it by hand */
	if (fstat(fd, &st) < 0 || st.st_nlink == 0)
		return LOCK_REMOVED;
	r->fd = steal_fd(&fd);
	return LOCK_OURS;
}

static int take_lock(struct record *r, int dirfd, const char *uuid, unsigned wait_seconds,
		     struct err *err)
{
	uint64_t start = clock_ns();
	double limit_ms = wait_seconds * 1000.0 + LOOKER_MS;
	enum lock lock;

	while ((lock = lock_once(r, dirfd, uuid, err)) != LOCK_OURS) {
		if (lock == LOCK_ERROR || interrupt_check(err) < 0)
			return -1;
		if (clock_seconds_since(start) * 1000 >= limit_ms)
			return err_set(err, ERR_BUSY,
				       "another run works with this domain, or is still putting it "
				       "right; wait for it with --lock-wait");
		clock_sleep_ms(POLL_MS);
	}
	return 0;
}

/* --- life --- */

static struct record *record_new(struct err *err)
{
	struct record *r = calloc(1, sizeof *r);

	if (!r) {
		err_nomem(err);
		return NULL;
	}
	r->fd = -1;
	r->note.run_id = -1;
	return r;
}

/* What happens to a domain has to be written down, or it does not happen. */
static int explain(struct err *err)
{
	if (err->kind == ERR_REFUSED)
		err_context(err, "what is done to a domain is noted first, so that it can be "
				 "undone");
	return -1;
}

static int open_record(struct record *r, const char *uuid, unsigned wait_seconds, struct err *err)
{
	autofree char *folder = find_folder(err);
	autoclose int dirfd = folder ? open_folder(folder, err) : -1;

	if (dirfd < 0)
		return -1;
	r->path = str_format("%s/%s", folder, uuid);
	if (!r->path)
		return err_nomem(err);
	if (take_lock(r, dirfd, uuid, wait_seconds, err) < 0)
		return -1;
	if (reserve(r, dirfd, err) < 0)
		return -1;
	if (read_note(r->fd, r->path, &r->note, err) == 0)
		return 0;
	err->kind = ERR_REFUSED;
	return -1;
}

struct record *record_open(const char *uuid, unsigned wait_seconds, struct err *err)
{
	autorecord struct record *r = record_new(err);

	if (!r)
		return NULL;
	if (!is_domain(uuid)) {
		err_set(err, ERR_FAILED, "this is no UUID of a domain: %s", uuid);
		return NULL;
	}
	if (open_record(r, uuid, wait_seconds, err) < 0) {
		explain(err);
		return NULL;
	}
	return steal(&r);
}

static char *path_of(int fd)
{
	autofree char *link = str_format("/proc/self/fd/%d", fd);
	char path[PATH_MAX];
	ssize_t n = link ? readlink(link, path, sizeof path - 1) : -1;

	path[n > 0 ? n : 0] = '\0';
	return strdup(n > 0 ? path : "the record");
}

/* The lock goes with the open file, which we share: to lock again changes nothing. */
static int adopt(struct record *r, struct err *err)
{
	r->path = path_of(r->fd);
	if (!r->path)
		return err_nomem(err);
	if (fcntl(r->fd, F_SETFD, FD_CLOEXEC) < 0 || flock(r->fd, LOCK_EX | LOCK_NB) < 0)
		return err_errno(err, ERR_FAILED, "this is no record that is held (%s)", r->path);
	return check_file(r->fd, r->path, err) < 0 ? -1 : record_reload(r, err);
}

struct record *record_adopt(int fd, struct err *err)
{
	autorecord struct record *r = record_new(err);

	if (!r)
		return NULL;
	r->fd = fd;
	return adopt(r, err) < 0 ? NULL : steal(&r);
}

int record_fd(const struct record *r)
{
	return r->fd;
}

const struct record_note *record_note(const struct record *r)
{
	return &r->note;
}

bool record_is_clear(const struct record *r)
{
	return record_note_is_clear(&r->note);
}

/* No LOCK_UN: that would end the lock for the guard, too, which has the same open file. */
void record_close(struct record *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	record_note_free(&r->note);
	free(r->path);
	free(r);
}

/* --- what stands in it --- */

int record_reload(struct record *r, struct err *err)
{
	struct record_note note;

	if (read_note(r->fd, r->path, &note, err) < 0)
		return -1;
	record_note_free(&r->note);
	r->note = note;
	return 0;
}

static int write_page(const struct record *r, const struct record_note *note, struct err *err)
{
	autofree char *text = record_text_make(note);
	size_t len = text ? strlen(text) : 0;
	char page[PAGE];

	if (!text)
		return err_nomem(err);
	if (len > PAGE)
		return err_set(err, ERR_REFUSED,
			       "the names and paths of this domain are too long to be noted in %s "
			       "(%zu bytes of %d); use a shorter --scratch-dir",
			       r->path, len, PAGE);
	memset(page, '\n', sizeof page);
	memcpy(page, text, len);
	if (io_pwrite(r->fd, page, PAGE, 0) < 0 || (fdatasync(r->fd) < 0 && errno != EINVAL))
		return err_errno(err, ERR_FAILED, "cannot write %s", r->path);
	return 0;
}

int record_write(struct record *r, const struct record_note *note, struct err *err)
{
	struct record_note copy;

	if (record_note_copy(&copy, note, err) < 0)
		return -1;
	if (write_page(r, &copy, err) < 0) {
		record_note_free(&copy);
		return -1;
	}
	record_note_free(&r->note);
	r->note = copy;
	return 0;
}

int record_clear(struct record *r, struct err *err)
{
	const struct record_note nothing = { .run_id = -1 };

	return record_write(r, &nothing, err);
}

/* --- looking --- */

static bool is_locked(int fd)
{
	bool locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (!locked)
		flock(fd, LOCK_UN);
	return locked;
}

/* Somebody may be writing it while we read. */
static int look(int fd, const char *path, struct record_note *out, struct err *err)
{
	int rc;

	for (int i = 0; (rc = read_note(fd, path, out, err)) < 0 && i < LOOKS && is_locked(fd); i++)
		clock_sleep_ms(POLL_MS);
	return rc;
}

static int look_at(int dirfd, const char *folder, const char *uuid, struct record_note *out,
		   bool *is_held, struct err *err)
{
	autofree char *path = str_format("%s/%s", folder, uuid);
	autoclose int fd = openat(dirfd, uuid, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (!path)
		return err_nomem(err);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_errno(err, ERR_FAILED, "cannot open %s", path);
	if (check_file(fd, path, err) < 0)
		return -1;
	*is_held = is_locked(fd);
	if (look(fd, path, out, err) < 0)
		return -1;
	if (!record_note_is_clear(out))
		return 1;
	record_note_free(out);
	return 0;
}

/* -1 with errno. */
static int open_to_look(const char *folder)
{
	return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int record_look(const char *uuid, struct record_note *out, bool *is_held, struct err *err)
{
	autofree char *folder = default_folder();
	autoclose int dirfd = folder ? open_to_look(folder) : -1;

	*out = (struct record_note){ .run_id = -1 };
	*is_held = false;
	if (!folder || (dirfd < 0 && errno == ENOENT))
		return 0;
	if (dirfd < 0)
		return err_errno(err, ERR_FAILED, "cannot open the folder %s", folder);
	if (!is_domain(uuid))
		return err_set(err, ERR_FAILED, "this is no UUID of a domain: %s", uuid);
	return look_at(dirfd, folder, uuid, out, is_held, err);
}

/* A damaged one says something, too: what, tells whoever opens it. */
static bool says_something(int dirfd, const char *folder, const char *uuid)
{
	struct record_note note;
	struct err ignored = { 0 };
	bool is_held;
	int rc = look_at(dirfd, folder, uuid, &note, &is_held, &ignored);

	if (rc == 1)
		record_note_free(&note);
	return rc != 0;
}

int record_each(int (*each)(void *ctx, const char *uuid, struct err *err), void *ctx,
		struct err *err)
{
	autofree char *folder = default_folder();
	autodir DIR *entries = folder ? opendir(folder) : NULL;
	const struct dirent *entry;

	if (!folder || (!entries && errno == ENOENT))
		return 0;
	if (!entries)
		return err_errno(err, ERR_FAILED, "cannot read the folder %s", folder);
	while ((entry = readdir(entries))) {
		if (is_domain(entry->d_name) &&
		    says_something(dirfd(entries), folder, entry->d_name) &&
		    each(ctx, entry->d_name, err) < 0)
			return -1;
	}
	return 0;
}
