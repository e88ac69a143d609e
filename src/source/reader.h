/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_READER_H
#define CCSNAP_READER_H

#include "base/bytes.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Where the parsers of disk formats get their bytes: a file, or memory in
 * tests.  Whatever they read is hostile.
 */
struct err;

struct reader {
	const void *ctx;
	uint64_t size;

	/* Fewer bytes than asked for only at the end; -1 with errno. */
	ssize_t (*read_at)(const void *ctx, void *buf, size_t len, uint64_t offset);
};

/* fd must stay where it is as long as the reader is used. */
int reader_open(struct reader *in, const int *fd, struct err *err);

/* Exactly len bytes; what is not there is a damaged file (ERR_REFUSED). */
int reader_get(const struct reader *in, void *buf, size_t len, uint64_t offset, struct err *err);

/* Refused (ERR_REFUSED) for what is wrong with it.  -1. */
int reader_damaged(const char *what, struct err *err);

#endif
