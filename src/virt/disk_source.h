/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_DISK_SOURCE_H
#define CCSNAP_DISK_SOURCE_H

#include "base/cleanup.h"

#include <libxml/tree.h>

#include <stdbool.h>

/* What a <disk>, a <backingStore> or a <mirror> lies on: all of them have a type and a <source>
 * of the same form.
 */
struct err;

struct disk_source {
	char *kind;	     /* of the type attribute; "file" when there is none */
	char *text;	     /* for people, and the path where it has one; NULL: empty */
	char *pool, *volume; /* of kind volume */
};

int disk_source_read(const xmlNode *holder, struct disk_source *out, struct err *err);
void disk_source_free(struct disk_source *s);

/* May a disk of that kind be captured?  NULL: yes, else why not. */
const char *disk_source_why_not(const char *kind);

#define autodisksource CLEANUP(disk_source_free)

#endif
