// SPDX-License-Identifier: Apache-2.0
#include "base/uuid.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"

/* What came after SHA256_Init and its like takes memory, and may fail for want of it. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <fcntl.h>
#include <limits.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void set_version(uint8_t uuid[16], unsigned version)
{
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | version << 4);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80); /* variant */
}

int uuid_random(struct uuid_text *out, struct err *err)
{
	uint8_t uuid[16];

	if (getrandom(uuid, sizeof uuid, 0) != sizeof uuid)
		return err_errno(err, ERR_FAILED, "cannot get random bytes");
	set_version(uuid, 4);
	uuid_format(uuid, out->text);
	return 0;
}

void uuid_derive(const void *name, size_t len, const char *use, uint8_t uuid[16])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA256_CTX ctx;

	SHA256_Init(&ctx);
	SHA256_Update(&ctx, use, strlen(use) + 1);
	SHA256_Update(&ctx, name, len);
	SHA256_Final(digest, &ctx);
	memcpy(uuid, digest, 16);
	set_version(uuid, 8);
}

static bool is_behind_dash(size_t byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

bool uuid_parse(const char *text, uint8_t uuid[16])
{
	static const uint8_t nil[16];
	uint8_t bytes[16];

	if (strlen(text) != 36)
		return false;
	for (size_t i = 0; i < sizeof bytes; i++, text += 2) {
		int byte;

		if (is_behind_dash(i) && *text++ != '-')
			return false;
		byte = str_hex_byte(text);
		if (byte < 0)
			return false;
		bytes[i] = (uint8_t)byte;
	}
	if (memcmp(bytes, nil, sizeof nil) == 0)
		return false;
	memcpy(uuid, bytes, sizeof bytes);
	return true;
}

void uuid_format(const uint8_t uuid[16], char text[37])
{
	for (size_t i = 0; i < 16; i++)
		text += sprintf(text, is_behind_dash(i) ? "-%02x" : "%02x", uuid[i]);
}

/* 32 digits, but in a system that was never booted. */
static char *machine_id(void)
{
	struct err ignored;
	autofree char *id = io_read_file(AT_FDCWD, "/etc/machine-id", 4096, NULL, &ignored);

	if (!id || strspn(id, "0123456789abcdef") != 32)
		return NULL;
	id[32] = '\0';
	return steal(&id);
}

int uuid_derive_here(const char *detail, const char *use, struct uuid_text *out, struct err *err)
{
	autofree char *id = machine_id();
	char host[HOST_NAME_MAX + 1] = "";
	autofree char *both = NULL;
	uint8_t uuid[16];

	gethostname(host, sizeof host - 1);
	both = str_format("%s%s", id ? id : host, detail);
	if (!both)
		return err_nomem(err);
	uuid_derive(both, strlen(both), use, uuid);
	uuid_format(uuid, out->text);
	return 0;
}
