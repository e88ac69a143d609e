/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_MANIFEST_H
#define CCSNAP_MANIFEST_H

#include "dest/dest.h"

#define MANIFEST_MAX ((size_t)1 << 20) /* bytes of one manifest */

/* The small JSON file beside an image in a folder:
 * {"schema": "ccsnap.manifest/1", "id", "name", "file", "format",
 * "compression", "created_at", "size_bytes", "virtual_size_bytes", "sha256",
 * "sha512", "checkpoints": {"step_bytes", "sha256_prefixes": []},
 * "properties": {}}.  Every string of info must be there.
 */
char *manifest_to_json(const struct image_info *info, struct err *err);

/* The manifests of all as one array, without the checkpoints, and with null for what
 * is not known.  An image of a service has "status" and "protected", and where it has
 * them "tags", "hash_algo" and "hash_value", too.
 */
char *manifest_list_to_json(const struct image_list *list, struct err *err);

enum manifest_layout { MANIFEST_INDENTED, MANIFEST_ONE_LINE };

/* The same for one image, with the "path" that it was brought to and how that was
 * "verified_by".
 */
char *manifest_fetched_to_json(const struct image_info *info, const char *path,
			       const char *verified_by, enum manifest_layout layout,
			       struct err *err);

/* source names the text in messages.  Every member is checked: types, digest
 * lengths, ranges, no path in "file".  On failure out is empty.
 */
int manifest_from_json(const char *text, size_t len, const char *source, struct image_info *out,
		       struct err *err);

#endif
