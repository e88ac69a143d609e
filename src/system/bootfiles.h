/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_BOOTFILES_H
#define CCSNAP_SYSTEM_BOOTFILES_H

#include "system/grubcfg.h"
#include "system/text.h"

#include <stdbool.h>

/* The files of a tree that say what is booted and how: one table, whether they
 * are looked at or changed.
 */
struct edit;
struct err;

enum bootfile_kind {
	BOOTFILE_GRUB_CFG,
	BOOTFILE_ENTRY, /* boot loader entries */
	BOOTFILE_GRUBENV,
	BOOTFILE_CMDLINE,      /* nothing but arguments */
	BOOTFILE_DEFAULT_GRUB, /* for the next grub.cfg */
};

/* What the file's text becomes; the changes are in cfg->cmdline. */
void bootfile_rewrite(enum bootfile_kind kind, struct slice text, struct grubcfg *cfg,
		      struct text *out);

struct bootfile {
	const char *path;
	enum bootfile_kind kind;
	struct slice text; /* at is NULL when it is left as it is */
	const char *why;   /* it is, in words */
	bool makes_menu;   /* an entry of the place where blscfg looks */
	const char
		*esp; /* one of bootfiles_esp, from which its paths count; NULL: it is not there */
};

/* The directories on which an ESP is mounted as a rule, besides /boot; ends with NULL. */
extern const char *const bootfiles_esp[];

/* Call fn for each that is there, whatever it is, in the order in which they count for what is
 * booted; it returns 0, -1 with err, or 1 to end the walk.
 */
int bootfiles_walk(const struct edit *e,
		   int (*fn)(void *ctx, const struct bootfile *file, struct err *err), void *ctx,
		   struct err *err);

#endif
