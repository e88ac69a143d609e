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
};

/* In words (malloc); NULL without memory. */
char *boot_changes_text(unsigned changes);

struct cmdline {
	const struct names *names; /* NULL: only look */
	bool has_initrd;	   /* without one the kernel knows no UUIDs */

	/* Found on the way. */
	char root[256];	      /* the first root= that is no variable, as it was; "" for none */
	bool names_container; /* rd.luks.uuid=, cryptdevice= and so on */
	unsigned changes;     /* enum boot_change */
};

/* Append what the arguments become. */
void cmdline_rewrite(struct slice args, struct cmdline *cmdline, struct text *out);

#endif
