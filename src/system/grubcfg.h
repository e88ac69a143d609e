/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUBCFG_H
#define CCSNAP_SYSTEM_GRUBCFG_H

#include "system/boot_paths.h"
#include "system/cmdline.h"
#include "system/text.h"

#include <stdbool.h>

/* grub.cfg as text.  It is taken apart into commands as GRUB does it, and no
 * further: what is not in the table of commands stays byte for byte.  Pure.
 */
struct volume_names;

struct grubcfg {
	struct cmdline cmdline;		   /* its names NULL: only look */
	const struct volume_names *holder; /* of the volume with the kernels */
	struct boot_paths paths;

	/* What takes the place of the blscfg command; NULL: it stays. */
	const char *entries;

	/* The rest is grubcfg_rewrite's own. */
	struct slice ahead; /* what comes behind the command */
	bool has_function;  /* the entries are in a function */
};

void grubcfg_rewrite(struct slice text, struct grubcfg *cfg, struct text *out);

bool grubcfg_uses_blscfg(struct slice text);

/* Does it do anything that could lead to a kernel? */
bool grubcfg_has_menu(struct slice text);

#endif
