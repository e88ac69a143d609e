/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_OUTFILE_H
#define CCSNAP_OUTFILE_H

#include "base/cleanup.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>

/* A file that is built under a temporary name in the directory where it
 * belongs and becomes visible, whole and synced, by a rename.  While it is
 * being built, its lock (flock) tells other runs that it is alive; what a
 * killed run left behind has no lock and is removed by the next run.
 *
 * Beside it there may be a note: a small text that is to be seen from the
 * moment on when the file is.  Two names cannot change in one step, so the note
 * is first written aside under the file's own random token.  The file's
 * temporary name goes away in the very step that publishes the file; a note
 * without such a partner therefore means "published, but not yet noted", and
 * the next run for the same key finishes what was begun.
 *
 * Temporary names: .STEM.TOKEN.ccsnap-tmp and .STEM.TOKEN.ccsnap-note.
 */
struct err;
struct outfile;

enum outfile_existing { OUTFILE_KEEP, OUTFILE_REPLACE };

struct outfile_place {
	int dirfd;	   /* stays open as long as the outfile does */
	const char *dir;   /* its name, for messages */
	const char *final; /* the file's name in it */

	/* Runs for the same key in the same directory exclude each other; it
	 * stands in the temporary names.
	 */
	const char *key;
};

/* Nothing at name, or a regular file and leave to replace it; whatever else
 * is there is refused, and so is a source.  Changes nothing.
 */
int outfile_check_name(int dirfd, const char *dir, const char *name, enum outfile_existing existing,
		       struct err *err);

/* What outfile_check_name would let us replace goes; nothing there is fine. */
int outfile_remove(int dirfd, const char *dir, const char *name, struct err *err);

/* The directory's entries, from the first on. */
DIR *outfile_open_dir(int dirfd, const char *dir, struct err *err);

/* A name that looks like one of our temporary ones would be swept away. */
int outfile_name_is_temporary(const char *name);

/* Can a file of ours have this name, the last one in path?  ERR_USAGE. */
int outfile_check_final(const char *path, const char *final, struct err *err);

/* Sweep the directory.  What comes back has no file, only the directory's lock:
 * for outfile_find_note and outfile_close.  NULL with ERR_BUSY when a run has
 * the key.
 */
struct outfile *outfile_tidy(const struct outfile_place *place, struct err *err);

/* Sweep the directory, wait for another run with this key to end (ERR_BUSY
 * after wait_seconds), and create the file, 0600.
 */
struct outfile *outfile_reserve(const struct outfile_place *place, unsigned wait_seconds,
				struct err *err);

/* The same, but it waits for nobody, only for the directory's lock, also after a
 * signal, and keeps that; it sweeps only what this key left.
 */
struct outfile *outfile_reserve_at_once(const struct outfile_place *place, struct err *err);

int outfile_fd(const struct outfile *out); /* closed by outfile_close */

int outfile_write_note(struct outfile *out, const char *text, struct err *err);

/* Sync the file and give it its name, unless the directory is no longer where
 * it was (ERR_FAILED).
 */
int outfile_publish(struct outfile *out, enum outfile_existing existing, struct err *err);

/* Give the note its name, in place of what regular file is there. */
int outfile_publish_note(struct outfile *out, const char *name, struct err *err);

int outfile_is_published(const struct outfile *out);

/* The (temporary) name of a note that waits to be published and whose run is
 * dead: 1 when there is one, 0, or -1.  Call it while holding the key.
 */
int outfile_find_note(const struct outfile *out, char name[NAME_MAX + 1], struct err *err);

/* Undoes what was not published.  NULL is fine. */
void outfile_close(struct outfile *out);

CLEANUP_TYPE(struct outfile, outfile, outfile_close)
#define autooutfile CLEANUP(outfile_cleanup)

#endif
