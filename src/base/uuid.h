/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_UUID_H
#define CCSNAP_UUID_H

struct err;

struct uuid_text {
	char text[37];
};

/* A random UUID (RFC 4122, version 4), lower case. */
int uuid_random(struct uuid_text *out, struct err *err);

#endif
