// SPDX-License-Identifier: Apache-2.0
#include "dest/uploads_inner.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "dest/dest.h"
#include "dest/kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define SCHEMA	    "ccsnap.upload/1"
#define NOTE_SUFFIX ".json"
#define NOTE_MAX    ((size_t)64 << 10) /* bytes of one note */

/* No request is under way for longer. */
#define YOUNG_SECONDS 3600

static void json_cleanup(json_t **json)
{
	json_decref(*json);
}
#define autojson CLEANUP(json_cleanup)

/* --- the folder --- */

static char *find_folder(struct err *err)
{
	char *folder = uploads_default_folder();

	if (!folder)
		err_set(err, ERR_REFUSED,
			"there is no place to note which images are being uploaded; "
			"set HOME or XDG_STATE_HOME");
	return folder;
}

int uploads_check(struct err *err)
{
	autofree char *folder = find_folder(err);
	autoclose int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct dest scratch = { 0 };
	int rc;

	if (!folder)
		return -1;
	if (fd >= 0)
		rc = dest_check_room(&scratch, fd, folder, NOTE_MAX, err);
	else if (errno == ENOENT)
		rc = dest_check_room_above(&scratch, folder, NOTE_MAX, err);
	else
		rc = err_errno(err, ERR_REFUSED, "cannot open %s", folder);
	return rc < 0 ? err_context(err, "an upload has to be noted on this host, for the case "
					 "that it is killed")
		      : 0;
}

struct uploads *uploads_open(struct err *err)
{
	struct uploads *u = calloc(1, sizeof *u);
	autouploads struct uploads *opened = u;

	if (!u) {
		err_nomem(err);
		return NULL;
	}
	u->dirfd = -1;
	u->folder = find_folder(err);
	if (!u->folder || folder_make(u->folder, 0700, err) < 0)
		return NULL;
	u->dirfd = open(u->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->dirfd < 0) {
		err_errno(err, ERR_REFUSED, "cannot open the folder %s", u->folder);
		return NULL;
	}
	/* several hosts may share a home directory, and a lock of one need not be seen by
	 * another
	 */
	return uuid_derive_here("", "ccsnap upload", &u->host, err) < 0 ? NULL : steal(&opened);
}

void uploads_close(struct uploads *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->count; i++)
		close(u->notes[i].fd);
	free(u->notes);
	if (u->dirfd >= 0)
		close(u->dirfd);
	free(u->folder);
	free(u);
}

/* --- notes --- */

struct note_name {
	char text[sizeof(struct uuid_text) + sizeof NOTE_SUFFIX];
};

static struct note_name note_name(const char *id)
{
	struct note_name name;

	snprintf(name.text, sizeof name.text, "%s%s", id, NOTE_SUFFIX);
	return name;
}

static bool is_id(const char *text)
{
	struct uuid_text again;
	uint8_t uuid[16];

	if (!uuid_parse(text, uuid))
		return false;
	uuid_format(uuid, again.text);
	return str_equal(text, again.text);
}

static char *note_to_json(const struct uploads *u, const struct upload_note *note)
{
	autofree char *name = str_to_utf8(note->name);
	autojson json_t *json = json_object();
	int rc = 0;

	/* one failure (all for lack of memory) is enough to know */
	rc |= json_object_set_new(json, "schema", json_string(SCHEMA));
	rc |= json_object_set_new(json, "image_id", json_string(note->image_id));
	rc |= json_object_set_new(json, "endpoint", json_string(note->endpoint));
	rc |= json_object_set_new(json, "project_id", json_string(note->project_id));
	rc |= json_object_set_new(json, "name", name ? json_string(name) : NULL);
	rc |= json_object_set_new(json, "host", json_string(u->host.text));
	rc |= json_object_set_new(json, "started_at", json_string(clock_now().text));
	return rc < 0 ? NULL : json_dumps(json, JSON_INDENT(2));
}

/* Some filesystems cannot sync a directory; there is nothing more to do, then. */
static int sync_folder(const struct uploads *u)
{
	return fsync(u->dirfd) < 0 && errno != EINVAL ? -1 : 0;
}

/* Between its creation and its lock a sweep may take the (empty) note away; then it is
 * made again.  Where there are no locks, no sweep ever removes anything.
 */
static int create_locked(const struct uploads *u, const char *name)
{
	for (int tries = 0; tries < 10; tries++) {
		autoclose int fd = openat(u->dirfd, name,
					  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat st;

		if (fd < 0)
			return -1;
		while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
			;
		if (fstat(fd, &st) < 0 || st.st_nlink > 0)
			return steal_fd(&fd);
	}
	errno = EAGAIN;
	return -1;
}

static int write_note(const struct uploads *u, int fd, const char *json)
{
	return io_pwrite(fd, json, strlen(json), 0) < 0 || fsync(fd) < 0 ? -1 : sync_folder(u);
}

int uploads_begin(struct uploads *u, const struct upload_note *note, struct err *err)
{
	autofree char *json = note_to_json(u, note);
	struct note_name name = note_name(note->image_id);
	autoclose int fd = -1;

	if (!json || !array_room(u->notes, u->cap, u->count + 1))
		return err_nomem(err);
	fd = create_locked(u, name.text);
	if (fd < 0)
		return err_errno(err, ERR_FAILED, "cannot create %s/%s", u->folder, name.text);
	if (write_note(u, fd, json) < 0) {
		err_errno(err, ERR_FAILED, "cannot write %s/%s", u->folder, name.text);
		unlinkat(u->dirfd, name.text, 0);
		return -1;
	}
	snprintf(u->notes[u->count].id.text, sizeof u->notes->id.text, "%s", note->image_id);
	u->notes[u->count++].fd = steal_fd(&fd);
	return 0;
}

/* To stable storage, too: a note that came back after a crash would have the next run
 * delete a good image.
 */
static void remove_note(const struct uploads *u, const char *name)
{
	if ((unlinkat(u->dirfd, name, 0) < 0 && errno != ENOENT) || sync_folder(u) < 0)
		log_warn("cannot remove %s/%s: %s; remove it by hand, since a later run would "
			 "delete the image that it names",
			 u->folder, name, strerror(errno));
}

void uploads_end(struct uploads *u, const char *image_id)
{
	for (size_t i = 0; i < u->count; i++) {
		if (!str_equal(u->notes[i].id.text, image_id))
			continue;
		remove_note(u, note_name(image_id).text);
		close(u->notes[i].fd);
		u->notes[i] = u->notes[--u->count];
		return;
	}
}

/* --- sweeping --- */

/* "ID.json", and the id. */
static bool parse_name(const char *name, struct uuid_text *id)
{
	size_t len = sizeof id->text - 1;

	if (strlen(name) != len + strlen(NOTE_SUFFIX) || !str_ends(name, NOTE_SUFFIX))
		return false;
	snprintf(id->text, sizeof id->text, "%.*s", (int)len, name);
	return is_id(id->text);
}

static bool is_own_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !io_is_protected(st);
}

/* A note of this user whose run is dead, locked until the descriptor is closed; -1 for
 * all else.  Looked at first, because opening a device can already do something; for
 * writing, because NFS gives its lock only then.
 */
static int open_dead(const struct uploads *u, const char *name)
{
	autoclose int fd = -1;
	struct stat st;

	if (fstatat(u->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_own_file(&st))
		return -1;
	fd = openat(u->dirfd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	/* again: its run may have removed it before we had the lock */
	if (fstat(fd, &st) < 0 || !is_own_file(&st) || st.st_nlink == 0)
		return -1;
	return steal_fd(&fd);
}

static json_t *read_note(const struct uploads *u, const char *name, int fd)
{
	autofree char *text = malloc(NOTE_MAX + 1);
	json_error_t why = { .text = "it is too long, or cannot be read" };
	ssize_t len = text ? io_pread(fd, text, NOTE_MAX + 1, 0, NULL) : -1;
	json_t *json = NULL;

	if (len >= 0 && (size_t)len <= NOTE_MAX)
		json = json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, &why);
	if (!json)
		log_warn("%s/%s is no note of an upload (%s) and is left alone", u->folder, name,
			 why.text);
	return json;
}

static bool member_is(const json_t *json, const char *key, const char *value)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text && str_equal(text, value);
}

struct sweep {
	const struct uploads *u;
	const char *endpoint, *project_id;
	int (*forget)(void *ctx, const struct upload_note *note);
	void *ctx;
};

static bool is_ours(const struct sweep *s, const json_t *json, const char *id)
{
	return member_is(json, "schema", SCHEMA) && member_is(json, "image_id", id) &&
	       member_is(json, "host", s->u->host.text) &&
	       member_is(json, "endpoint", s->endpoint) &&
	       member_is(json, "project_id", s->project_id);
}

/* By the clock on the wall, which may have been set back. */
static bool is_young(const struct stat *st)
{
	return time(NULL) - st->st_mtime < YOUNG_SECONDS;
}

/* Is it to be removed? */
static bool is_forgotten(const struct sweep *s, const char *name, const char *id, int fd)
{
	struct upload_note note = { .image_id = id,
				    .endpoint = s->endpoint,
				    .project_id = s->project_id };
	autojson json_t *json = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	/* killed before it was written, and so before the service heard of the image */
	if (st.st_size == 0)
		return true;
	json = read_note(s->u, name, fd);
	if (!json || !is_ours(s, json, id))
		return false;
	note.name = json_string_value(json_object_get(json, "name"));
	if (!note.name)
		note.name = "";
	note.is_young = is_young(&st);
	return s->forget(s->ctx, &note) == 0;
}

static void sweep_one(const struct sweep *s, const char *name)
{
	struct uuid_text id;
	autoclose int fd = parse_name(name, &id) ? open_dead(s->u, name) : -1;

	if (fd >= 0 && is_forgotten(s, name, id.text, fd))
		remove_note(s->u, name);
}

static DIR *open_entries(const struct uploads *u, struct err *err)
{
	int fd = openat(u->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);

	if (!entries) {
		err_errno(err, ERR_FAILED, "cannot read %s", u->folder);
		if (fd >= 0)
			close(fd);
	}
	return entries;
}

int uploads_sweep(struct uploads *u, const char *endpoint, const char *project_id,
		  int (*forget)(void *ctx, const struct upload_note *note), void *ctx,
		  struct err *err)
{
	const struct sweep s = { u, endpoint, project_id, forget, ctx };
	autodir DIR *entries = open_entries(u, err);
	struct dirent *entry;

	if (!entries)
		return -1;
	while ((entry = readdir(entries))) {
		if (interrupt_check(err) < 0)
			return -1;
		sweep_one(&s, entry->d_name);
	}
	return 0;
}
