/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_CMDLINE_H
#define CCSNAP_SYSTEM_CMDLINE_H

#include "system/text.h"

#include <stdbool.h>

/* Kernel arguments, wherever they stand.  Each is taken whole; those that name
 * nothing which is not in the image stay byte for byte, and so do those with a
 * "$" in them.  Pure.
 */
struct names;

/* What was done to boot configuration; bits. */
enum boot_change {
	CHANGE_ROOT = 1 << 0,
	CHANGE_ROOTFLAGS = 1 << 1,
	CHANGE_CONTAINER = 1 << 2,
	CHANGE_VOLUMES = 1 << 3,
	CHANGE_RESUME = 1 << 4,
	CHANGE_SEARCH = 1 << 5,
	CHANGE_PATHS = 1 << 6,
	CHANGE_OTHER_SYSTEMS = 1 << 7,
	CHANGE_COMMANDS = 1 << 8,
	CHANGE_ENTRIES = 1 << 9,
	CHANGE_NETWORK_ROOT = 1 << 10,
	CHANGE_NORESUME = 1 << 11,
	CHANGE_UNWANTED = 1 << 12,
};

/* In words (malloc); NULL without memory. */
char *boot_changes_text(unsigned changes);

struct cmdline {
	const struct names *names; /* NULL: only look */
	bool has_initrd;	   /* without one the kernel knows no UUIDs */
	bool wants_noresume;	   /* the initrd has a device of its own to resume from */
	const char
		*old_root; /* for arguments without a root=: what it was, NULL or "": not known */

	/* Arguments that go besides, also without names; one that ends with "=" stands for
	 * all that begin so.  Ends with NULL; may be NULL.
	 */
	const char *const *unwanted;

	/* Found on the way. */
	char root[256];	      /* the first root= that is no variable, as it was; "" for none */
	char subvolume[256];  /* of the first rootflags=subvol=, "/@"; "" for none */
	bool names_container; /* rd.luks.uuid=, cryptdevice= and so on */
	unsigned changes;     /* enum boot_change */
};

/* Append what the arguments become. */
void cmdline_rewrite(struct slice args, struct cmdline *cmdline, struct text *out);

#endif
