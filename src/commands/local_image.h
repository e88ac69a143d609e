/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_LOCAL_IMAGE_H
#define CCSNAP_LOCAL_IMAGE_H

#include "dest/dest.h"

#include <stdbool.h>

/* An image in a file, with what the manifest beside it (or a named one) says: its name,
 * properties and digests, which stay claims until they are checked.
 */
struct err;

struct local_image {
	bool has_manifest;
	struct image_info info; /* all empty without a manifest */
	const char *format;	/* what was asked for, the manifest's, or what the name tells */
};

/* The manifest that NAME.qcow2 has beside it, NAME.manifest.json (malloc). */
char *local_image_manifest_path(const char *image);

/* Reads only the manifest.  manifest and format: NULL when not given. */
int local_image_load(struct local_image *out, const char *path, const char *manifest,
		     const char *format, struct err *err);
void local_image_free(struct local_image *image);

#endif
