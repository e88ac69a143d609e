/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_EDIT_H
#define CCSNAP_SYSTEM_EDIT_H

#include "base/cleanup.h"
#include "ext4/model.h"

#include <stdbool.h>
#include <stddef.h>

/* A walked tree as what edits it for the image sees it: paths from the source's
 * root ("etc/fstab", a slash in front makes no difference), symbolic links
 * followed inside of the tree.  The source is only read; edits change the model,
 * and each is entered in the account.
 *
 * A file whose bytes were changed has its content in the node, mtime time, and
 * none of the attributes that hold for bytes only (security.capability, .ima,
 * .evm); all others stay.  What is made here has no attributes: where the tree
 * is labelled for SELinux, whoever edits sees to it that it is labelled again.
 */
struct account;
struct err;
struct reach;

struct edit {
	struct model *model;
	struct reach *reach;
	struct account *account;
	uint32_t time; /* mtime of what is made or changed here */
};

/* The bytes as a string (malloc, NUL behind), as edited so far.  NULL with
 * *missing set when there is no such regular file; NULL with err otherwise
 * (unreadable, or more than 4 MiB).
 */
char *edit_read(const struct edit *e, const char *path, size_t *len, bool *missing,
		struct err *err);

/* Did edit_read fail because we may not read it, or because it is too large? */
bool edit_is_denied(const struct err *err);

bool edit_exists(const struct edit *e, const char *path);

/* Is there something that is no regular file, and no link that leads nowhere? */
bool edit_is_odd(const struct edit *e, const char *path);

/* Every path that matches: components with * ? [ ] as fnmatch has them, a leading
 * dot included; sorted; malloc'd list that ends with NULL, each string malloc'd.
 * A link is followed where the pattern names it, not where it only matches.
 * edit_glob_fat: letters match in either case, as on a FAT.
 */
char **edit_glob(const struct edit *e, const char *pattern, struct err *err);
char **edit_glob_fat(const struct edit *e, const char *pattern, struct err *err);
void edit_glob_free(char **paths);

static inline void edit_glob_cleanup(char ***paths)
{
	edit_glob_free(*paths);
}
#define autoglob CLEANUP(edit_glob_cleanup)

/* Replace the content of an existing regular file; owner, mode, attributes stay.
 * A file with other names is changed under all of them.  ACCOUNT_EDITED with why.
 */
int edit_write(struct edit *e, const char *path, const char *text, size_t len, const char *why,
	       struct err *err);

/* Make a file that is not there, owned by root, directories with it (0755).
 * An error when there is something of that name.  ACCOUNT_EDITED with why.
 */
int edit_create(struct edit *e, const char *path, const char *text, size_t len, uint32_t mode,
		const char *why, struct err *err);

/* ACCOUNT_RESET with why.  Not there is fine; the last link is not followed.  A
 * directory goes with all below it, and is entered once.  What a filesystem is
 * mounted on stays: edit_remove calls it an error.
 */
int edit_remove(struct edit *e, const char *path, const char *why, struct err *err);
int edit_remove_content(struct edit *e, const char *dir, const char *why, struct err *err);

/* Make a regular file empty (ACCOUNT_RESET); a link in its place, wherever it leads,
 * becomes an empty file with mode 0444.  Nothing when there is neither, or it is empty.
 */
int edit_empty(struct edit *e, const char *path, const char *why, struct err *err);

#endif
