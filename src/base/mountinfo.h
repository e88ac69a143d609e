/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_MOUNTINFO_H
#define CCSNAP_MOUNTINFO_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

/* The kernel's table of mounts as it stands (proc_pid_mountinfo(5)), without a
 * thought on what it means.
 */
struct err;

/* Escapes are decoded; strings belong to the table. */
struct mountinfo_line {
	uint64_t id, parent;
	uint32_t major, minor;
	char *root, *point, *fstype, *device, *options; /* options of the superblock */
};

struct mountinfo {
	char *text;
	struct mountinfo_line *lines;
	size_t count;
};

/* ERR_FAILED, naming the line, when it is no such table. */
int mountinfo_read(const char *path, struct mountinfo *out, struct err *err);
void mountinfo_free(struct mountinfo *info);
#define automountinfo CLEANUP(mountinfo_free)

/* Decode \ooo as the kernel writes it, in place; other backslashes stay.  -1 for
 * an escaped NUL.
 */
int mountinfo_unescape(char *s);

#endif
