/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_MNTOPTS_H
#define CCSNAP_SYSTEM_MNTOPTS_H

#include "system/text.h"

#include <stdbool.h>

/* Mount options ("rw,subvol=@,noatime") for a filesystem that is ext4 now.  Pure. */
enum mntopts_from {
	MNTOPTS_SAME,	   /* was an ext4: only what the image's cannot have is dropped */
	MNTOPTS_ROOTFLAGS, /* was we know not what: what ext4 does not know is dropped */
	MNTOPTS_OTHER,	   /* was another kind: only what every filesystem knows is kept */
};

/* Append what remains of options; true when that is not all. */
bool mntopts_filter(struct slice options, enum mntopts_from from, struct text *out);

bool mntopts_has(struct slice options, const char *name);

/* The value of the first option "NAME=..."; false when there is none. */
bool mntopts_value(struct slice options, const char *name, struct slice *value);

/* The path in "subvol=@", with a slash in front; false, and "", when there is none. */
bool mntopts_subvolume(struct slice options, char *dst, size_t cap);

/* "subvol=", "subvolid=": they were made for a btrfs, whatever the type says. */
bool mntopts_has_subvolume(struct slice options);

#endif
