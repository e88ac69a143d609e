/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_ACCOUNT_H
#define CCSNAP_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nothing is lost in silence: whatever of a tree is left out, differs from the
 * source, or was changed on purpose is entered here with its path, and the report
 * shows it.  From any thread.
 */
struct err;

enum account_kind {
	ACCOUNT_EXCLUDED,      /* left out by an exclude, as a default, or as our own */
	ACCOUNT_SKIPPED_MOUNT, /* a mount that is no part of the image */
	ACCOUNT_FOLDED_MOUNT,  /* a mount whose content is part of the root filesystem */
	ACCOUNT_GREW,	       /* only grew while captured: the image has its beginning */
	ACCOUNT_CHANGED,       /* changed while captured, and did not come to rest */
	ACCOUNT_VANISHED,      /* gone before it could be read: not in the image */
	ACCOUNT_UNREADABLE,    /* --keep-going: not in the image */
	ACCOUNT_ATTRIBUTE,     /* in the image, but without one of its attributes */
	ACCOUNT_RESET,	       /* removed or emptied by --reset */
	ACCOUNT_KEPT,	       /* would have been, but for the reason told */
	ACCOUNT_EDITED,	       /* a configuration file that differs from the source's */
	ACCOUNT_KINDS,
};

struct account_entry {
	enum account_kind kind;
	char *path;   /* relative to the source, "/" in front; any bytes */
	char *detail; /* why or how, in words; never NULL */
};

/* Of each kind only so many are kept with their names; the rest are counted. */
#define ACCOUNT_MAX 10000

struct account {
	struct account_entry *at;
	size_t len, cap;
	uint64_t count[ACCOUNT_KINDS];
	bool out_of_memory; /* names are missing, counts are not */
};

/* detail as printf. */
void account_add(struct account *account, enum account_kind kind, const char *path,
		 const char *detail, ...) __attribute__((format(printf, 4, 5)));

/* "skipped_mounts" and so on: the list in the report that it stands in, which
 * several kinds may share; then account_how tells them apart, else NULL.
 */
const char *account_word(enum account_kind kind);
const char *account_how(enum account_kind kind);

/* Does anything in it end a run with exit code 3? */
bool account_has_warnings(const struct account *account);

void account_free(struct account *account);

#endif
