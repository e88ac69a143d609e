/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_REFERENCES_H
#define CCSNAP_REFERENCES_H

#include "base/cleanup.h"
#include "source/tables.h"

#include <stddef.h>
#include <stdint.h>

/* What a disk image names besides itself: whoever can write an image can name
 * any file of the host in it, so every name is found by parsers of our own
 * before another program may open the image.
 */
struct err;
struct reader;

enum reference_kind {
	REFERENCE_BACKING,
	REFERENCE_DATA_FILE,
	REFERENCE_EXTENT,
	REFERENCE_PARENT,
};

struct reference {
	enum reference_kind kind;
	char *name;   /* as the image spells it; "" when it names by number only */
	char *format; /* as recorded in the image; NULL for none */

	/* of an extent: as in the vmdk descriptor, in sectors of 512 bytes */
	char type[16], access[16];
	uint64_t sectors, offset;
};

struct references {
	struct reference *at;
	size_t len;

	unsigned sector_size; /* as recorded; 0 where the format does not say */
	struct layout layout;

	/* of a vmdk: its createType, "" for other formats */
	char type[32];
	uint32_t cid, parent_cid;
};

/* A file of another format, a damaged one, or one with features that nobody
 * knows is refused (ERR_REFUSED).  Time and memory are bounded whatever it
 * holds.  Format "raw" names nothing.
 */
int references_parse(const struct reader *in, const char *format, struct references *out,
		     struct err *err);

/* name is copied; format may be NULL.  Returns the new one, still to be filled
 * in, or NULL.
 */
struct reference *references_add(struct references *refs, enum reference_kind kind,
				 const char *name, const char *format, struct err *err);

/* Say that the file is no image of that format.  -1. */
int references_wrong_format(const char *format, struct err *err);

/* "backing file", "data file", ... */
const char *reference_kind_name(enum reference_kind kind);

void references_free(struct references *refs);

#define autoreferences CLEANUP(references_free)

#endif
