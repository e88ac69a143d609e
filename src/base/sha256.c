// SPDX-License-Identifier: Apache-2.0
#include "base/hash_inner.h"

#include "base/err.h"

#include <openssl/evp.h>

static EVP_MD_CTX *ctx_of(struct sha256 *s)
{
	return (EVP_MD_CTX *)s;
}

struct sha256 *sha256_start(struct err *err)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	if (ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1)
		return (struct sha256 *)ctx;
	EVP_MD_CTX_free(ctx);
	err_nomem(err);
	return NULL;
}

int sha256_update(struct sha256 *s, const void *buf, size_t len, struct err *err)
{
	return EVP_DigestUpdate(ctx_of(s), buf, len) == 1 ? 0 : err_nomem(err);
}

int sha256_finish(struct sha256 *s, char hex[65], struct err *err)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(ctx_of(s), bytes, NULL) != 1)
		return err_nomem(err);
	hash_hex(hex, bytes, 32);
	return 0;
}

void sha256_stop(struct sha256 *s)
{
	EVP_MD_CTX_free(ctx_of(s));
}
