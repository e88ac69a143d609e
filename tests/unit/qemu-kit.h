/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_QEMU_KIT_H
#define CCSNAP_TEST_QEMU_KIT_H

/* Real images by qemu-img, read through a real qemu-nbd: include it once a
 * program.
 */
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "source/extent.h"
#include "source/source.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { DISK = 3 * 1024 * 1024 + 512 };

static uint8_t expected[DISK], got[DISK];
static struct err err;
static char dir[64];

/* A shell command in the test's directory. */
static inline void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline void run(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

/* base.raw: noise, a hole, text, a hole; a fresh directory for each test. */
static inline int make_dir(void **state)
{
	uint32_t x = 7;
	int fd;

	(void)state;
	if (system("qemu-nbd --version >/dev/null 2>&1 && qemu-img --version >/dev/null") != 0)
		return 0;
	strcpy(dir, "/tmp/test-qemu-XXXXXX");
	if (!mkdtemp(dir) || chdir(dir) < 0 || mkdir("tmp", 0700) < 0)
		return -1;
	setenv("TMPDIR", "tmp", 1);
	log_set_level(LOG_ERROR);
	for (size_t i = 0; i < 512 * KIB; i++)
		expected[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
	memset(expected + 2 * MIB, 'a', 300 * KIB);
	fd = open("base.raw", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, DISK) < 0 || pwrite(fd, expected, 512 * KIB, 0) < 0 ||
	    pwrite(fd, expected + 2 * MIB, 300 * KIB, 2 * MIB) < 0)
		return -1;
	return close(fd);
}

static inline int remove_dir(void **state)
{
	(void)state;
	if (*dir)
		run("cd / && rm -rf %s", dir);
	return 0;
}

static inline void require_qemu(void)
{
	if (!*dir) {
		print_message("skipped: qemu-utils is missing\n");
		skip();
	}
}

static inline struct source *try_open(const char *format, const char *path, const char *allow)
{
	const struct source_config cfg = {
		.path = path,
		.format = format,
		.intent = SOURCE_CAPTURE,
		.allow_backing = allow != NULL,
		.connections = 2,
	};

	err = (struct err){ 0 };
	return source_open(&cfg, &err);
}

static inline struct source *open_image(const char *format, const char *path, const char *allow)
{
	struct source *src = try_open(format, path, allow);

	if (!src)
		fail_msg("%s", err.text);
	return src;
}

static inline void assert_refused(const char *format, const char *path, const char *allow,
				  const char *why)
{
	struct source *src = try_open(format, path, allow);

	assert_null(src);
	if (err.kind != ERR_REFUSED || !strstr(err.text, why))
		fail_msg("%s", err.text);
}

static inline void assert_reads_as_expected(struct source *src)
{
	struct extent_list list = { 0 };
	uint64_t at = 0;

	assert_int_equal(src->size, DISK);
	assert_int_equal(source_extents(src, 0, src->size, &list, &err), 0);
	memset(got, 0, sizeof got);
	for (size_t i = 0; i < list.len; i++) {
		const struct extent *e = &list.at[i];

		assert_int_equal(e->offset, at);
		at += e->length;
		if (!e->zero &&
		    source_read_at(src, got + e->offset, e->length, e->offset, &err) < 0)
			fail_msg("%s", err.text);
	}
	assert_int_equal(at, DISK);
	assert_memory_equal(got, expected, DISK);
	assert_int_equal(source_check(src, &err), 0);
	extent_list_free(&list);
}

static inline void assert_same(const char *format, const char *path, const char *allow)
{
	struct source *src = open_image(format, path, allow);

	assert_reads_as_expected(src);
	source_close(src);
}

#endif
