// SPDX-License-Identifier: Apache-2.0
#include "walk/listing.h"

#include "base/array.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As large as one call may usefully be; a stack has room for it. */
#define BATCH 32768

static int add_name(struct listing *l, const char *name)
{
	size_t size = strlen(name) + 1;

	if (!array_room(l->text, l->text_cap, l->text_len + size))
		return -1;
	memcpy(l->text + l->text_len, name, size);
	l->text_len += size;
	l->count++;
	return 0;
}

static int add_batch(struct listing *l, const char *batch, size_t len)
{
	for (size_t at = 0; at < len;) {
		const struct dirent64 *d = (const void *)(batch + at);

		if (!str_equal(d->d_name, ".") && !str_equal(d->d_name, "..") &&
		    add_name(l, d->d_name) < 0)
			return -1;
		at += d->d_reclen;
	}
	return 0;
}

static int read_all(struct listing *l, int fd)
{
	alignas(struct dirent64) char batch[BATCH];
	ssize_t n;

	while ((n = getdents64(fd, batch, sizeof batch)) > 0)
		if (add_batch(l, batch, (size_t)n) < 0)
			return -1;
	return n < 0 ? -1 : 0;
}

/* The text moves while it grows, so names are pointed to only now. */
static int point(struct listing *l)
{
	char *name = l->text;

	if (l->count && !array_room(l->names, l->names_cap, l->count))
		return -1;
	for (size_t i = 0; i < l->count; i++, name += strlen(name) + 1)
		l->names[i] = name;
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int listing_read(struct listing *l, int fd)
{
	l->count = l->text_len = 0;
	if (read_all(l, fd) < 0 || point(l) < 0) {
		l->count = 0;
		return -1;
	}
	if (l->count > 1)
		qsort(l->names, l->count, sizeof *l->names, by_bytes);
	return 0;
}

void listing_free(struct listing *l)
{
	free(l->names);
	free(l->text);
	*l = (struct listing){ 0 };
}
