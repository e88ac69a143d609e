/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_MENU_H
#define CCSNAP_SYSTEM_MENU_H

#include "system/text.h"

/* A grub.cfg for a tree that has none.  Pure. */

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
