/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_FSNAME_H
#define CCSNAP_SYSTEM_FSNAME_H

#include <stdbool.h>
#include <stddef.h>

/* What names_of_filesystem gathers; "" for what is not known (yet). */
struct fsname {
	char uuid[37], label[17], partuuid[37];
};

/* From a block device's entry in udev's database (/run/udev/data/bMAJ:MIN).  Pure. */
void fsname_from_udev(const char *text, struct fsname *out);

/* The value of KEY= in the lines of a uevent file, "" when it does not fit.  False
 * when there is no such line.  Pure.
 */
bool fsname_uevent_value(const char *text, const char *key, char *dst, size_t cap);

#endif
