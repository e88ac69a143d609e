/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_MANIFEST_H
#define CCSNAP_MANIFEST_H

#include "dest/dest.h"

/* The small JSON file beside an image in a folder:
 * {"schema": "ccsnap.manifest/1", "id", "name", "file", "format",
 * "compression", "created_at", "size_bytes", "virtual_size_bytes", "sha256",
 * "sha512", "properties": {}}.
 */
char *manifest_to_json(const struct image_info *info, struct err *err);

/* source names the text in messages.  Every member is checked: types, digest
 * lengths, ranges, no path in "file".
 */
int manifest_from_json(const char *text, size_t len, const char *source, struct image_info *out,
		       struct err *err);

#endif
