/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_EXCLUDE_H
#define CCSNAP_WALK_EXCLUDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left out by name (docs/ccsnap.1, EXCLUDES).  A plain exclude is a
 * path, whatever bytes it has, and covers itself and what is below.  Patterns
 * are of their own kind: a leading slash means from the source's root, no slash
 * at any depth, a slash in the middle from the root as well, "**" any number of
 * directories, a trailing slash directories only, "!" takes back what an
 * earlier pattern left out; the last that matches counts.
 */
struct err;
struct excludes;

enum exclude_verdict {
	EXCLUDE_NO,
	EXCLUDE_ALL,	 /* it and all below */
	EXCLUDE_CONTENT, /* a directory is kept, empty */
};

/* One per exclude, in the order given. */
struct exclude_use {
	const char *text; /* as the user wrote it; borrowed from the excludes */
	bool is_default;
	uint64_t hits, bytes; /* paths that it left out itself; bytes below them, if measured */
};

struct excludes *excludes_new(struct err *err);
void excludes_free(struct excludes *x); /* NULL is fine */

/* A plain exclude.  text is either as the user sees it, resolved with all
 * symbolic links and inside of source, or relative to source's root ("/a" is
 * SOURCE/a then, too); source is an absolute path without links.  ERR_USAGE
 * when both exist and differ, when it is the source itself, or leaves it by "..".
 */
int excludes_add_path(struct excludes *x, const char *source, const char *text, struct err *err);

/* A pattern, or one line of a file of them; "" and "# ..." are nothing. */
int excludes_add_pattern(struct excludes *x, const char *text, struct err *err);
int excludes_add_file(struct excludes *x, const char *path, struct err *err);

/* The default excludes of a running system: only the content is left out. */
int excludes_add_defaults(struct excludes *x, struct err *err);

/* path: relative to the source, without a slash in front.  *which: the index
 * of the use, for excludes_count.  What is below a path with EXCLUDE_ALL or
 * EXCLUDE_CONTENT is not asked for.  Directories that every system needs (proc, sys, dev,
 * run, tmp, var/tmp) are kept, empty, when an exclude names them.  "!" takes back what
 * patterns left out, no plain exclude and no default.  From one thread.
 */
enum exclude_verdict excludes_match(const struct excludes *x, const char *path, bool directory,
				    size_t *which);
void excludes_count(struct excludes *x, size_t which, uint64_t hits, uint64_t bytes);

size_t excludes_uses(const struct excludes *x, const struct exclude_use **uses);

/* Is it one of the user's (no default, no re-include), and nothing has its name?  Of a
 * pattern, nothing that was asked for.
 */
bool excludes_is_idle(const struct excludes *x, size_t which);

/* ERR_REFUSED, naming it, when one is idle. */
int excludes_check_hits(const struct excludes *x, struct err *err);

#endif
