/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_FSTAB_H
#define CCSNAP_SYSTEM_FSTAB_H

#include <stdbool.h>

/* etc/fstab and etc/crypttab for the image: an entry that cannot exist there is
 * commented out with the reason, the root's and /boot's are brought in line where they
 * name something else, all other lines stay byte for byte.
 */
struct edit;
struct err;
struct names;

/* Edits the tree; nothing when there is no such file or nothing to change. */
int fstab_fix(struct edit *e, const struct names *names, struct err *err);
int crypttab_fix(struct edit *e, const struct names *names, struct err *err);

/* What the tree's fstab says of a mount point, fields unescaped (malloc), all
 * NULL when it says nothing.
 */
struct fstab_entry {
	char *device, *type, *options;
};
int fstab_find(const struct edit *e, const char *point, struct fstab_entry *out, struct err *err);
/* The first swap partition that it names (malloc), NULL with *missing when there is none. */
char *fstab_swap_partition(const struct edit *e, bool *missing, struct err *err);
void fstab_entry_free(struct fstab_entry *entry);

/* Does etc/crypttab name a container that device ("/dev/mapper/...") is, or may be, in? */
bool crypttab_opens(const struct edit *e, const char *device);

#endif
