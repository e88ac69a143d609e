/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_WALK_INNER_H
#define CCSNAP_WALK_WALK_INNER_H

#include "base/account.h"
#include "ext4/model.h"
#include "walk/attributes.h"
#include "walk/links.h"
#include "walk/listing.h"
#include "walk/walk.h"

#include <sys/stat.h>
#include <time.h>

/* What the parts of the walk share.  walk.c goes through directories, walk_entry.c
 * enters what is found there, walk_omit.c says what is left out, walk_border.c what
 * becomes of mounts, walk_notes.c tells the account.
 */

/* A directory whose entries are to be looked at. */
struct place {
	uint32_t node;
	uint32_t volume; /* the root node of its filesystem in the image */
	uint64_t mount_id;
};

struct walker {
	const struct walk_config *cfg;
	struct model *model;
	struct walk_totals *totals;
	struct reach *reach;
	struct links links;
	struct attributes attributes;
	struct listing listing;
	struct walk_own *own;	  /* cfg's, sorted */
	const struct mount **met; /* included mounts that were come across */
	size_t met_count, met_cap;

	/* Still to be listed, the next one last. */
	struct place *places;
	size_t place_count, place_cap;

	/* The one being listed. */
	struct place at;
	int fd;

	/* The path of an entry: that of its directory, which is made when it
	 * is first needed (dir_len 0 before), and the name.
	 */
	char *path;
	size_t dir_len, path_cap;
	const char *looking_at; /* whose attributes are read; NULL: the directory's own */

	uint64_t entries;

	/* Without keep_going the walk goes on, to say how many there are. */
	uint64_t unreadable;
	char *first_unreadable;
	int first_errno;
};

/* A name in the directory at hand. */
struct entry {
	const char *name;
	struct statx st;
};

static inline bool entry_is_dir(const struct entry *e)
{
	return S_ISDIR(e->st.stx_mode);
}

/* --- walk_notes.c --- */

/* "/a/b" of the entry, good until the next call; "?" without memory. */
const char *walker_path(struct walker *w, const char *name);

/* It cannot be read: entered as such, or counted for the error in the end.  Our
 * own lack of descriptors or memory is an error at once.
 */
int walker_unreadable(struct walker *w, const char *path, int error, struct err *err);

/* For struct attributes. */
void walker_lost(void *ctx, const char *which, const char *why);

/* ERR_FAILED when there was something that could not be read. */
int walker_verdict(const struct walker *w, struct err *err);

/* --- walk_omit.c --- */

enum omit { OMIT_NOT, OMIT_ALL, OMIT_CONTENT };

/* Once, before anything is asked. */
int omit_start(struct walker *w, struct err *err);

/* What is left out is in the account then. */
int omit_ask(struct walker *w, const struct entry *e, enum omit *out, struct err *err);

/* --- walk_border.c --- */

/* The root of a btrfs subvolume: another device, but no mount. */
bool entry_is_subvolume(const struct walker *w, const struct entry *e);

bool border_is_here(const struct walker *w, const struct entry *e);

/* A mount and what the table says about it. */
int border_enter(struct walker *w, const struct entry *e, struct err *err);

/* An empty directory, or a file, as it is beneath the mount, as far as that can be had:
 * of a file a few bytes at most.  Its node, MODEL_NONE on error.
 */
uint32_t border_add_underneath(struct walker *w, const struct entry *e, struct err *err);

/* In the end: ERR_USAGE for an included mount that was not come across. */
int border_check(const struct walker *w, struct err *err);

/* --- walk_entry.c --- */

/* May the file be written to at that time without a trace in its times?  See WALK_RACY. */
bool entry_is_racy(const struct statx *st, const struct timespec *now);

/* All that a stat says. */
struct model_node entry_node(const struct statx *st);

/* Add the entry by its kind, a directory with its content still to be listed.
 * 1 when something else has come to stand there: to be looked at again.
 */
int entry_add(struct walker *w, const struct entry *e, struct err *err);

/* Without content, whatever it has: st and the attributes are those of name in
 * dirfd; -1 for no attributes.  Its node, MODEL_NONE on error.
 */
uint32_t entry_add_empty(struct walker *w, const char *name, int dirfd, const struct statx *st,
			 struct err *err);

/* --- walk.c --- */

int walker_push(struct walker *w, const struct place *place, struct err *err);

#endif
