/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_UUID_H
#define CCSNAP_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct uuid_text {
	char text[37];
};

/* A random UUID (RFC 4122, version 4), lower case. */
int uuid_random(struct uuid_text *out, struct err *err);

/* RFC 9562 version 8: from SHA-256 of a word for its use, a NUL, and the name.
 * Takes no memory, so that it cannot fail.
 */
void uuid_derive(const void *name, size_t len, const char *use, uint8_t uuid[16]);

/* The same of this machine (machine-id(5), else the host's name) and detail.  Nobody can
 * tell the machine's id from it.
 */
int uuid_derive_here(const char *detail, const char *use, struct uuid_text *out, struct err *err);

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", not all zeros.  False when text is no such thing. */
bool uuid_parse(const char *text, uint8_t uuid[16]);

/* Lower case. */
void uuid_format(const uint8_t uuid[16], char text[37]);

#endif
