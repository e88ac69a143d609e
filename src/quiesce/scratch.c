// SPDX-License-Identifier: Apache-2.0
#include "quiesce/scratch.h"

#include "base/err.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/size.h"
#include "base/str.h"
#include "quiesce/forward.h"
#include "quiesce/scratch_inner.h"
#include "virt/domain.h"
#include "virt/hardware.h"
#include "virt/virt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	TRIES = 100,
	HANG_SECONDS = 60, /* until a filesystem that does not answer is given up */
};

struct scratch {
	/* what was wanted: copies, since a thread that hangs keeps them for ever */
	char *wanted, *label;
	uint64_t bytes;

	char tag[sizeof SCRATCH_PREFIX + SCRATCH_TAG_LEN]; /* with the prefix */

	int dirfd; /* locked as long as we live; -1 over ssh */
	char *dir; /* NULL over ssh */
	char *socket, *file;
	char *uri;
	struct forward *forward;
};

static int new_tag(struct scratch *s, struct err *err)
{
	static const char letters[] = SCRATCH_LETTERS;
	unsigned char bytes[SCRATCH_TAG_LEN];
	size_t at = strlen(SCRATCH_PREFIX);

	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return err_errno(err, ERR_FAILED, "cannot get random bytes");
	strcpy(s->tag, SCRATCH_PREFIX);
	for (size_t i = 0; i < SCRATCH_TAG_LEN; i++)
		s->tag[at++] = letters[bytes[i] % 32];
	s->tag[at] = '\0';
	return 0;
}

/* --- here --- */

static int check_room(const struct scratch *s, const char *place, struct err *err)
{
	uint64_t room = scratch_room(place);

	if (room >= s->bytes)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "%s has %s free, and the scratch file may need %s; use a --scratch-dir with "
		       "more room",
		       place, size_format(room).text, size_format(s->bytes).text);
}

static int set_names(struct scratch *s, const char *place, struct err *err)
{
	if (new_tag(s, err) < 0)
		return -1;
	free(s->dir);
	free(s->socket);
	free(s->file);
	s->dir = str_format("%s/%s", place, s->tag);
	s->socket = s->dir ? str_format("%s/%s", s->dir, SCRATCH_SOCKET) : NULL;
	s->file = s->dir ? str_format("%s/%s", s->dir, SCRATCH_FILE) : NULL;
	if (!s->socket || !s->file)
		return err_nomem(err);
	return scratch_check_name(s->socket, err);
}

/* 0 when the name is taken, or what was made there is gone: another run swept it away before
 * it was locked.
 */
static int make_once(struct scratch *s, struct err *err)
{
	if (mkdir(s->dir, 0700) < 0)
		return errno == EEXIST ? 0
				       : err_errno(err, ERR_REFUSED, "cannot create %s", s->dir);
	s->dirfd = scratch_lock(s->dir);
	if (s->dirfd < 0 && errno != ENOENT)
		return err_errno(err, ERR_REFUSED, "cannot open %s", s->dir);
	return s->dirfd >= 0;
}

static int make_directory(struct scratch *s, const char *place, struct err *err)
{
	for (int tries = 0; tries < TRIES; tries++) {
		int rc = set_names(s, place, err) < 0 ? -1 : make_once(s, err);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
	}
	return err_set(err, ERR_REFUSED, "cannot create a directory in %s", place);
}

/* The group stays ours, by which scratch_is_ours knows it again. */
static int give_away(const struct scratch *s, const struct qemu_user *user, struct err *err)
{
	if (fchmod(s->dirfd, 0700) == 0 && fchown(s->dirfd, user->uid, getegid()) == 0)
		return 0;
	err_errno(err, ERR_REFUSED, "cannot give %s to the user that QEMU runs as (%u)", s->dir,
		  user->uid);
	return err_hint(err, "use another --scratch-dir");
}

static int find_user(const struct scratch *s, struct qemu_user *user, struct err *err)
{
	if (qemu_user_find(s->label, user, err) < 0)
		return -1;
	if (qemu_user_is_us(user) || geteuid() == 0)
		return 0;
	return err_set(err, ERR_REFUSED,
		       "the domain's QEMU runs as another user (%u), with whom only root can share "
		       "a directory; run ccsnap as root",
		       user->uid);
}

static int open_here(void *ctx, struct err *err)
{
	struct scratch *s = ctx;
	autofree char *place = NULL;
	static const char *const nothing[] = { NULL };
	struct qemu_user user;

	if (find_user(s, &user, err) < 0)
		return -1;
	place = scratch_place(s->wanted, &user, err);
	if (!place || check_room(s, place, err) < 0)
		return -1;
	scratch_sweep(place, SCRATCH_PREFIX, SCRATCH_LETTERS, nothing);
	if (make_directory(s, place, err) < 0 || give_away(s, &user, err) < 0)
		return -1;
	return qemu_user_try(&user, s->dir, err);
}

static int say_hung(const char *wanted, struct err *err)
{
	err_set(err, ERR_REFUSED, "the scratch directory%s%s: no answer for %d seconds",
		wanted ? " in " : "", wanted ? wanted : "", HANG_SECONDS);
	return err_hint(err, "look at the storage that it is on, or use another --scratch-dir");
}

/* Nothing that this reaches may hang the run. */
static int open_patiently(struct scratch **s, struct err *err)
{
	struct patience *patience = patience_begin(err);
	const char *wanted = (*s)->wanted;
	int rc;

	if (!patience)
		return -1;
	rc = patience_run(patience, open_here, *s, HANG_SECONDS, NULL, "the scratch directory",
			  err);
	if (patience_is_lost(patience)) {
		steal(s);
		if (err->kind != ERR_INTERRUPTED)
			say_hung(wanted, err);
	}
	patience_end(patience);
	return rc;
}

/* --- at the other end of ssh --- */

static int open_there(struct scratch *s, const char *uri, struct err *err)
{
	const char *slash;

	if (!s->wanted || s->wanted[0] != '/')
		return err_set(err, ERR_REFUSED,
			       "name a directory on the hypervisor that its QEMU can write: "
			       "--scratch-dir=/PATH");
	slash = str_ends(s->wanted, "/") ? "" : "/";
	if (new_tag(s, err) < 0)
		return -1;
	s->socket = str_format("%s%s%s.sock", s->wanted, slash, s->tag);
	s->file = str_format("%s%s%s.scratch", s->wanted, slash, s->tag);
	s->uri = strdup(uri);
	if (!s->socket || !s->file || !s->uri)
		return err_nomem(err);
	if (scratch_check_name(s->socket, err) < 0)
		return -1;
	return forward_check(s->uri, s->socket, err);
}

/* --- both --- */

static struct scratch *scratch_new(const struct scratch_config *cfg, struct err *err)
{
	const char *label = cfg->hardware ? cfg->hardware->qemu_label : NULL;
	autoscratch struct scratch *s = calloc(1, sizeof *s);

	if (s) {
		s->dirfd = -1;
		s->bytes = cfg->bytes;
		s->wanted = cfg->dir ? strdup(cfg->dir) : NULL;
		s->label = label ? strdup(label) : NULL;
	}
	if (!s || (cfg->dir && !s->wanted) || (label && !s->label)) {
		err_nomem(err);
		return NULL;
	}
	return steal(&s);
}

static int open_at(enum virt_place place, struct scratch **s, const char *uri, struct err *err)
{
	switch (place) {
	case VIRT_HERE:
		return open_patiently(s, err);
	case VIRT_OVER_SSH:
		return open_there(*s, uri, err);
	case VIRT_ELSEWHERE:
		break;
	}
	return err_set(err, ERR_REFUSED,
		       "the hypervisor's sockets are out of reach through %s; run ccsnap there, or "
		       "use a qemu+ssh:// URI",
		       uri);
}

struct scratch *scratch_open(const struct scratch_config *cfg, struct err *err)
{
	const struct virt *v = domain_connection(cfg->domain);
	autoscratch struct scratch *s = scratch_new(cfg, err);

	if (!s || open_at(virt_place(v), &s, virt_uri(v), err) < 0)
		return NULL;
	return steal(&s);
}

const char *scratch_dir(const struct scratch *s)
{
	return s->dir;
}

const char *scratch_tag(const struct scratch *s)
{
	return s->tag;
}

const char *scratch_socket(const struct scratch *s)
{
	return s->socket;
}

const char *scratch_file(const struct scratch *s)
{
	return s->file;
}

uint64_t scratch_free_bytes(const struct scratch *s)
{
	return s->dir ? scratch_room(s->dir) : UINT64_MAX;
}

const char *scratch_reach_socket(struct scratch *s, struct err *err)
{
	if (!s->uri)
		return s->socket;
	if (!s->forward)
		s->forward = forward_start(s->uri, s->socket, err);
	return s->forward ? forward_socket(s->forward) : NULL;
}

/* What is not ours, and an overlay, keeps the directory. */
static void remove_here(const struct scratch *s)
{
	for (const char *const *name = scratch_names; *name; name++)
		unlinkat(s->dirfd, *name, 0);
	if (rmdir(s->dir) < 0 && errno != ENOENT)
		log_warn("cannot remove %s: %s", s->dir, strerror(errno));
}

void scratch_close(struct scratch *s)
{
	if (!s)
		return;
	forward_stop(s->forward);
	if (s->dirfd >= 0) {
		remove_here(s);
		close(s->dirfd);
	}
	free(s->wanted);
	free(s->label);
	free(s->dir);
	free(s->socket);
	free(s->file);
	free(s->uri);
	free(s);
}
