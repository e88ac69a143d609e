// SPDX-License-Identifier: Apache-2.0
#include "compress/codec.h"

#include "base/err.h"

#include <zstd.h>
#include <zstd_errors.h>

extern const struct codec codec_zstd;

static void *zstd_start(int level, size_t cluster_size, struct err *err)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();

	(void)cluster_size;
	if (!ctx) {
		err_nomem(err);
		return NULL;
	}
	/* The cluster's size is known to every reader: a frame need not say it. */
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0);
	return ctx;
}

static void zstd_stop(void *state)
{
	ZSTD_freeCCtx(state);
}

static long zstd_pack(void *state, void *dst, size_t cap, const void *src, size_t len,
		      struct err *err)
{
	size_t n = ZSTD_compress2(state, dst, cap, src, len);

	if (!ZSTD_isError(n))
		return (long)n;
	if (ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall)
		return 0;
	return err_set(err, ERR_FAILED, "zstd: %s", ZSTD_getErrorName(n));
}

static struct codec_library zstd_library(int level)
{
	(void)level;
	return (struct codec_library){ "zstd", ZSTD_versionString() };
}

const struct codec codec_zstd = {
	.name = "zstd",
	.level_min = 1,
	.level_max = 19,
	.level_default = 2,
	.start = zstd_start,
	.stop = zstd_stop,
	.pack = zstd_pack,
	.library = zstd_library,
};
