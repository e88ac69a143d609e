/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_FSTAB_INNER_H
#define CCSNAP_SYSTEM_FSTAB_INNER_H

#include "base/str.h"
#include "system/fstab_text.h"
#include "system/mntopts.h"

/* Between fstab_text.c, which reads and writes lines, and fstab_missing.c, which
 * knows what cannot be in an image.
 */
#define FSTAB_NO_DEVICE "its device is not in the image"

enum { FSTAB_FIELD_MAX = 4096 };

struct fstab_entry_text {
	struct slice line;
	struct fstab_fields raw;
	char device[FSTAB_FIELD_MAX], point[FSTAB_FIELD_MAX], type[256]; /* decoded */
};

/* False for what is no entry, or too long to be one. */
bool fstab_parse(struct slice line, struct fstab_entry_text *out);

static inline bool fstab_is_swap(const struct fstab_entry_text *entry)
{
	return str_equal(entry->type, "swap");
}

static inline bool fstab_may_fail(const struct fstab_entry_text *entry)
{
	return mntopts_has(entry->raw.options, "noauto") ||
	       mntopts_has(entry->raw.options, "nofail");
}

/* The whole file, and what has to be known of it for each line. */
struct fstab_table {
	const struct fstab_facts *facts;
	struct slice text;
	char root[FSTAB_FIELD_MAX]; /* the device of "/", "" when it has none */
};

void fstab_table_init(struct fstab_table *table, struct slice text,
		      const struct fstab_facts *facts);

/* Why an entry of none of the image's own filesystems cannot be in the image; NULL
 * when it can, or may fail.
 */
const char *fstab_why_not(const struct fstab_table *table, const struct fstab_entry_text *entry);

#endif
