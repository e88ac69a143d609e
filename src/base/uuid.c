// SPDX-License-Identifier: Apache-2.0
#include "base/uuid.h"

#include "base/err.h"

#include <stdio.h>
#include <sys/random.h>

int uuid_random(struct uuid_text *out, struct err *err)
{
	unsigned char b[16];
	char *at = out->text;

	if (getrandom(b, sizeof b, 0) != sizeof b)
		return err_errno(err, ERR_FAILED, "cannot get random bytes");
	b[6] = (b[6] & 0x0f) | 0x40; /* version */
	b[8] = (b[8] & 0x3f) | 0x80; /* variant */
	for (size_t i = 0; i < sizeof b; i++)
		at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
	return 0;
}
