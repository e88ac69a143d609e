// SPDX-License-Identifier: Apache-2.0
#include "dest/glance_inner.h"

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* As hashlib names them; member -1: not among struct digests. */
static const struct algorithm {
	const char *name;
	ptrdiff_t member;
} algorithms[] = {
	{ "sha512", offsetof(struct digests, sha512) },
	{ "sha256", offsetof(struct digests, sha256) },
	{ "md5", -1 },
	{ "sha1", -1 },
	{ "sha224", -1 },
	{ "sha384", -1 },
	{ "sha512_224", -1 },
	{ "sha512_256", -1 },
	{ "sha3_224", -1 },
	{ "sha3_256", -1 },
	{ "sha3_384", -1 },
	{ "sha3_512", -1 },
	{ "blake2b", -1 },
	{ "blake2s", -1 },
};

static const struct algorithm *find_algorithm(const char *name)
{
	for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
		if (strcasecmp(algorithms[i].name, name) == 0)
			return &algorithms[i];
	return NULL;
}

/* 1: hex is the digest of what is here, 0: it cannot be had, -1. */
static int digest_here(const struct proof_of *here, const struct algorithm *a,
		       char hex[HASH_HEX_MAX + 1], struct err *err)
{
	const char *known = a->member >= 0 ? (const char *)here->digests + a->member : "";

	if (!*known)
		return hash_file_by_name(here->fd, here->name, here->size, a->name, hex, err);
	snprintf(hex, HASH_HEX_MAX + 1, "%s", known);
	return 1;
}

static enum proof_result compare_digest(const char *algorithm, const char *value,
					const struct proof_of *here, const char **by,
					struct err *err)
{
	const struct algorithm *a = algorithm ? find_algorithm(algorithm) : NULL;
	char hex[HASH_HEX_MAX + 1];
	int have = a && value && *value ? digest_here(here, a, hex, err) : 0;

	if (have <= 0)
		return have < 0 ? PROOF_ERROR : PROOF_SILENT;
	if (strcasecmp(hex, value) == 0) {
		*by = a->name;
		return PROOF_SAME;
	}
	err_set(err, ERR_FAILED, "the image service has other bytes: %s there %.128s, here %s",
		a->name, value, hex);
	return PROOF_DIFFERS;
}

static enum proof_result compare_format(const struct service_image *there,
					const struct proof_of *here, struct err *err)
{
	if (!here->format || !there->disk_format || str_equal(there->disk_format, here->format))
		return PROOF_SAME;
	err_set(err, ERR_FAILED,
		"the image service has made %s of the %s that was sent (it converts what it "
		"imports), so that its arrival cannot be proven; use --format=%s or "
		"--upload-method=direct",
		there->disk_format, here->format, there->disk_format);
	return PROOF_ERROR;
}

enum proof_result proof_compare(const struct service_image *there, const struct proof_of *here,
				const char **by, struct err *err)
{
	enum proof_result result = compare_format(there, here, err);

	*by = NULL;
	if (result == PROOF_ERROR)
		return result;
	if (there->has_size && there->size != here->size) {
		err_set(err, ERR_FAILED, "the image service has %llu bytes, here are %llu",
			(unsigned long long)there->size, (unsigned long long)here->size);
		return PROOF_DIFFERS;
	}
	result = compare_digest(there->hash_algo, there->hash_value, here, by, err);
	if (result == PROOF_SILENT)
		result = compare_digest("md5", there->checksum, here, by, err);
	return result;
}
