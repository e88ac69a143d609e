/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_DEVICE_H
#define CCSNAP_SYSTEM_DEVICE_H

#include "system/names.h"

#include <stdbool.h>
#include <stdint.h>

/* What fstab, crypttab and kernel arguments call a filesystem: "UUID=...",
 * "/dev/disk/by-label/...", a path.  Pure.
 */
enum device_kind {
	DEVICE_ELSEWHERE, /* no local device: "host:/x", "tmpfs", a path outside of /dev */
	DEVICE_UUID,
	DEVICE_LABEL,
	DEVICE_PARTUUID,
	DEVICE_OTHER, /* a local one by another name */
};

struct device {
	enum device_kind kind;
	char value[256]; /* of the first three, without quotes and escapes */
};

/* text: a field without its fstab escapes, or what stands behind "root=". */
struct device device_parse(const char *text);

/* Would it find this volume in the image? */
bool device_is(const struct device *device, const struct volume_names *volume);

/* The serial of a FAT: "ABCD-1234", any case. */
bool fat_serial_parse(const char *text, uint8_t serial[4]);

#endif
