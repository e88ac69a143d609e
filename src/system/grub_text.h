/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_GRUB_TEXT_H
#define CCSNAP_SYSTEM_GRUB_TEXT_H

#include "system/cmdline.h"
#include "system/text.h"

#include <stdbool.h>

/* What GRUB reads besides grub.cfg (grubcfg.h): its script language as far as
 * commands can be told apart, its environment block, etc/default/grub, and a
 * menu for a tree that has none.  Pure.
 */

/* --- the script language --- */

/* Take the next command off *rest: up to an unquoted line end, ";", "{", "}" or a
 * comment; what is between it and the one before is taken with it.  False at the end.
 */
bool grubscript_command(struct slice *rest, struct slice *between, struct slice *command);

/* Take the first word off *rest (a command) that is its name, not "then". */
bool grubscript_name(struct slice *rest, struct slice *name);

/* Append s in quotes: one word, whatever bytes it has. */
void grubscript_quote(const char *s, struct text *out);

/* --- the environment block --- */

/* Lines NAME=VALUE, filled up with "#" to 1024 bytes; GRUB writes it in place. */

/* The value of a variable, in text. */
bool grubenv_get(struct slice text, const char *name, struct slice *value);

/* kernelopts as cmdline wants it; the length stays.  False, and nothing appended, when
 * it does not fit or text is no such block.
 */
bool grubenv_rewrite(struct slice text, struct cmdline *cmdline, struct text *out);

/* --- etc/default/grub, for the next grub.cfg --- */

/* GRUB_CMDLINE_LINUX... and GRUB_FORCE_PARTUUID. */
void default_grub_rewrite(struct slice text, struct cmdline *cmdline, struct text *out);

/* --- a grub.cfg made here --- */

struct menu_kernel {
	const char *kernel, *initrd; /* paths on their volume, "/" in front; initrd may be NULL */
	const char *title;	     /* also the entry's id */
	const char *volume_uuid;     /* of the volume that they are on */
};

struct menu_config {
	const char *volume_uuid;	  /* of the volume that paths are on */
	const char *root_uuid, *partuuid; /* root=UUID=..., without an initrd PARTUUID */
	const char *serial_console;	  /* "ttyS0,115200" */
};

/* Append what comes before the entries. */
void menu_begin(const struct menu_config *cfg, struct text *out);

/* Append an entry.  Names are data, never script. */
void menu_entry(const struct menu_config *cfg, const struct menu_kernel *kernel, struct text *out);

#endif
