/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_REFERENCES_KIT_H
#define CCSNAP_TEST_REFERENCES_KIT_H

/* A file in memory, made by the test byte by byte, and what the parsers say of
 * it: include it once a program.
 */
#include "base/err.h"
#include "base/size.h"
#include "source/reader.h"
#include "source/references.h"
#include "source/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CLUSTER = 65536, FILE_SIZE = 8 * CLUSTER };

static uint8_t file[FILE_SIZE];
static struct references refs;
static struct err err;

static inline ssize_t read_file(const void *ctx, void *buf, size_t len, uint64_t offset)
{
	(void)ctx;
	memcpy(buf, file + offset, len);
	return (ssize_t)len;
}

static inline int parse_sized(const char *format, size_t size)
{
	const struct reader in = { NULL, size, read_file };

	references_free(&refs);
	err = (struct err){ 0 };
	return references_parse(&in, format, &refs, &err);
}

static inline int parse(const char *format)
{
	return parse_sized(format, FILE_SIZE);
}

/* Of a file whose header is read whole, but which ends at size. */
static inline int check_tables(const char *format, size_t size)
{
	const struct reader in = { NULL, size, read_file };

	assert_int_equal(parse(format), 0);
	return tables_check(&in, &refs.layout, size, &err);
}

static inline void assert_refused(const char *why)
{
	assert_int_equal(err.kind, ERR_REFUSED);
	if (!strstr(err.text, why))
		print_error("%s\n", err.text);
	assert_non_null(strstr(err.text, why));
}

static inline void file_be32(size_t at, uint32_t n)
{
	n = htobe32(n);
	memcpy(file + at, &n, sizeof n);
}

static inline void file_be64(size_t at, uint64_t n)
{
	n = htobe64(n);
	memcpy(file + at, &n, sizeof n);
}

static inline void file_le32(size_t at, uint32_t n)
{
	n = htole32(n);
	memcpy(file + at, &n, sizeof n);
}

static inline void file_le64(size_t at, uint64_t n)
{
	n = htole64(n);
	memcpy(file + at, &n, sizeof n);
}

static inline int free_refs(void **state)
{
	(void)state;
	references_free(&refs);
	return 0;
}

#endif
