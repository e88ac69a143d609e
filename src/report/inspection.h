/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_INSPECTION_H
#define CCSNAP_INSPECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What `inspect` found out about a domain, and what `create` would do with it.  Strings are
 * borrowed and may hold any bytes; NULL is not known, or nothing.
 */
struct err;

struct inspected_disk {
	const char *target, *bus, *device, *kind, *source, *format;
	bool is_sized;
	uint64_t size, allocation;
	const char *why_not; /* why it cannot be captured; NULL: it can */
	bool is_chosen;
};

struct inspected_filesystem {
	const char *mountpoint, *type;
};

struct inspection {
	const char *name, *uuid, *uri, *state;
	const char *architecture, *machine, *firmware;
	struct inspected_disk *disks;
	size_t disk_count;
	bool is_active;

	struct {
		bool has_channel, is_connected;
		bool was_asked; /* the rest counts */
		bool answers, can_freeze, can_trim, is_frozen;
		const char *version, *why_not;
		struct inspected_filesystem *filesystems;
		size_t filesystem_count;
	} agent;

	const char *left;    /* what a dead run left, for `recover` */
	const char *would;   /* what create would do, in words, or */
	const char *refusal; /* why it would refuse */
};

/* One object, indented (malloc, newline behind it). */
char *inspection_to_json(const struct inspection *found, struct err *err);

#endif
