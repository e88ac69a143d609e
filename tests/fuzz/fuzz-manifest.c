// SPDX-License-Identifier: Apache-2.0

/* Any bytes as a manifest: refused, or read, written and read again the same. */
#include "base/err.h"
#include "dest/manifest.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_info info, again;
	struct err err;
	char *text;

	if (manifest_from_json((const char *)data, size, "fuzz", &info, &err) < 0)
		return 0;
	text = manifest_to_json(&info, &err);
	assert(text);
	assert(manifest_from_json(text, strlen(text), "again", &again, &err) == 0);
	assert(strcmp(info.name, again.name) == 0 && strcmp(info.file, again.file) == 0);
	assert(info.size == again.size);
	image_info_free(&info);
	image_info_free(&again);
	free(text);
	return 0;
}
