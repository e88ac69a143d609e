/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IO_H
#define CCSNAP_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* Reads at offset until len bytes are there or the file ends; EINTR is
 * retried.  Returns the bytes read, or -1 with errno set and *done (when not
 * NULL) telling how many came before the error.
 */
ssize_t io_pread(int fd, void *buf, size_t len, uint64_t offset, size_t *done);

/* The same, but EINTR ends it when stop says so; NULL: never. */
ssize_t io_pread_until(int fd, void *buf, size_t len, uint64_t offset, size_t *done,
		       int (*stop)(void));

/* All of buf at offset, or -1 with errno set. */
int io_pwrite(int fd, const void *buf, size_t len, uint64_t offset);

/* A whole small file as a string (malloc, NUL behind it); more than max bytes
 * is an error.  length may be NULL.
 */
char *io_read_file(int dirfd, const char *path, size_t max, size_t *length, struct err *err);

/* A file that must never be replaced by one of ours: a source. */
struct stat;
void io_protect(const struct stat *st);
bool io_is_protected(const struct stat *st);

/* The directory part of a path (malloc; "." for none, NULL without memory);
 * *last points at the rest, inside path.
 */
char *io_directory(const char *path, const char **last);

/* Do both name one place: the same last component in the same directory?
 * What is there, if anything, does not matter.
 */
bool io_is_same_place(const char *a, const char *b);

/* Make sure that 0, 1 and 2 are open, so that no file of ours gets a number
 * that somebody prints to.
 */
int io_open_standard_streams(void);

#endif
