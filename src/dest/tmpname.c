// SPDX-License-Identifier: Apache-2.0
#include "dest/tmpname.h"

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

static const char token_chars[] = "abcdefghijklmnopqrstuvwxyz234567";

/* The digest is FNV-1a. */
void tmpname_stem(char stem[STEM_MAX + 1], const char *key)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	if (strlen(key) <= STEM_MAX) {
		strcpy(stem, key);
		return;
	}
	for (const char *c = key; *c; c++)
		h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	snprintf(stem, STEM_MAX + 1, "%.*s~%016llx", STEM_MAX - 17, key, (unsigned long long)h);
}

static int make_token(char token[TOKEN_LEN + 1], struct err *err)
{
	unsigned char bytes[TOKEN_LEN];

	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return err_errno(err, ERR_FAILED, "cannot get random bytes");
	for (size_t i = 0; i < TOKEN_LEN; i++)
		token[i] = token_chars[bytes[i] % 32];
	token[TOKEN_LEN] = '\0';
	return 0;
}

int tmpname_make(const char *stem, char tmp[NAME_MAX + 1], char note[NAME_MAX + 1], struct err *err)
{
	char token[TOKEN_LEN + 1];

	if (make_token(token, err) < 0)
		return -1;
	snprintf(tmp, NAME_MAX + 1, ".%s.%s" TMP_TAIL, stem, token);
	tmpname_partner(note, tmp, TMP_TAIL, NOTE_TAIL);
	return 0;
}

/* Take a temporary name apart: the length of its stem (from name + 1 on), or
 * 0 when it is none.
 */
static size_t stem_length(const char *name, const char *tail)
{
	size_t len = strlen(name), rest = strlen(tail) + TOKEN_LEN;

	if (name[0] != '.' || len < rest + 3 || !str_ends(name, tail))
		return 0;
	if (name[len - rest - 1] != '.' || strspn(name + len - rest, token_chars) != TOKEN_LEN)
		return 0;
	return len - rest - 2;
}

bool tmpname_has_tail(const char *name, const char *tail)
{
	return stem_length(name, tail) > 0;
}

bool tmpname_has_stem(const char *name, const char *tail, const char *stem)
{
	size_t len = stem_length(name, tail);

	return len > 0 && len == strlen(stem) && memcmp(name + 1, stem, len) == 0;
}

void tmpname_partner(char partner[NAME_MAX + 1], const char *name, const char *tail,
		     const char *other)
{
	size_t len = strlen(name) - strlen(tail);

	snprintf(partner, NAME_MAX + 1, "%.*s%s", (int)len, name, other);
}
