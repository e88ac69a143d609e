// SPDX-License-Identifier: Apache-2.0
#include "source/reader.h"

#include "base/err.h"
#include "base/interrupt.h"
#include "source/held.h"

#include <unistd.h>

static ssize_t read_file(const void *ctx, void *buf, size_t len, uint64_t offset)
{
	const int *fd = ctx;

	return held_pread(*fd, buf, len, offset, NULL);
}

int reader_open(struct reader *in, const int *fd, struct err *err)
{
	off_t size = lseek(*fd, 0, SEEK_END);

	if (size < 0)
		return err_errno(err, ERR_FAILED, "cannot tell its size");
	*in = (struct reader){ .ctx = fd, .size = (uint64_t)size, .read_at = read_file };
	return 0;
}

int reader_get(const struct reader *in, void *buf, size_t len, uint64_t offset, struct err *err)
{
	ssize_t n;

	if (offset > in->size || len > in->size - offset)
		return err_set(err, ERR_REFUSED,
			       "damaged or cut short: its headers lead to offset %llu, its size "
			       "is %llu",
			       (unsigned long long)offset, (unsigned long long)in->size);
	n = in->read_at(in->ctx, buf, len, offset);
	if (n < 0 && interrupt_check(err) < 0)
		return -1;
	if (n < 0)
		return err_errno(err, ERR_FAILED, "cannot read at offset %llu",
				 (unsigned long long)offset);
	if ((size_t)n < len)
		return err_set(err, ERR_FAILED, "ended at offset %llu while it was read",
			       (unsigned long long)(offset + (uint64_t)n));
	return 0;
}

int reader_damaged(const char *what, struct err *err)
{
	return err_set(err, ERR_REFUSED, "damaged: %s", what);
}
