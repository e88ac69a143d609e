/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_BLS_H
#define CCSNAP_SYSTEM_BLS_H

#include "system/boot_paths.h"
#include "system/cmdline.h"
#include "system/text.h"

/* Boot loader entries (uapi-group.org, Boot Loader Specification, type 1).  Pure. */

/* One file: kernel arguments and paths as cmdline and paths want them. */
void bls_rewrite(struct slice text, struct cmdline *cmdline, const struct boot_paths *paths,
		 struct text *out);

struct bls_entry {
	const char *id; /* its file's name without ".conf" */
	struct slice text;

	/* For one that is not where GRUB's root is; NULL: it is. */
	const char *volume_uuid;
	const char *root_uuid; /* when it leaves it to the partition table what the root is */
};

/* The value of the first line with that key; false, and "", when there is none that fits. */
bool bls_value(struct slice text, const char *key, char *dst, size_t cap);

/* Newest first, by version and then by id. */
void bls_sort(struct bls_entry *entries, size_t count);

/* Append it as a menuentry of GRUB's; nothing when it has no kernel.  $variables
 * are looked up in grubenv, and left to GRUB when they are not there.  Nothing else in the
 * file is script.
 */
void bls_menuentry(const struct bls_entry *entry, struct slice grubenv, struct text *out);

#endif
