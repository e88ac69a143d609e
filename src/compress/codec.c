// SPDX-License-Identifier: Apache-2.0
#include "compress/codec.h"

#include <string.h>

extern const struct codec codec_zstd, codec_zlib;

const struct codec *const codecs[] = { &codec_zstd, &codec_zlib, NULL };

const struct codec *codec_find(const char *name)
{
	for (size_t i = 0; codecs[i]; i++)
		if (strcmp(codecs[i]->name, name) == 0)
			return codecs[i];
	return NULL;
}
