/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_IMAGE_KIT_H
#define CCSNAP_TEST_IMAGE_KIT_H

/* An image is made from clusters of any kind, beside a file that holds the disk
 * as it has to read in the end: include it once a program.
 */
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "compress/codec.h"
#include "image/image.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { RUN_MAX = 8 };

/* Where the independent decoder of the tests is; `make check` sets it. */
static const char *decoder;
static bool have_qemu_img;

/* For cmocka_run_group_tests. */
static inline int find_tools(void **state)
{
	(void)state;
	decoder = getenv("QCOW2_DECODE");
	if (!decoder) {
		fprintf(stderr, "QCOW2_DECODE is not set: run this by make check\n");
		return -1;
	}
	have_qemu_img = system("qemu-img --version >/dev/null 2>&1") == 0;
	if (!have_qemu_img)
		fprintf(stderr, "qemu-img is missing: only the decoder looks at the images\n");
	return 0;
}

/* An image under way, and beside it the disk that it has to hold. */
struct trial {
	char dir[32];
	const char *format, *compression;
	size_t cluster, run_max;
	uint64_t size, clusters;
	struct image *img;
	int fd, mirror;
	const struct codec *codec;
	void *codec_state;
	uint64_t random;
	uint8_t *plain, *data;
	struct err err;
};

static inline void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline void run(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static inline int create_file(const struct trial *t, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%s/%s", t->dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static inline void trial_begin(struct trial *t, uint64_t size)
{
	struct image_config cfg = { .name = "image",
				    .size = size,
				    .cluster_size = t->cluster,
				    .compression = t->compression };

	strcpy(t->dir, "/tmp/ccsnap-test-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	t->size = size;
	t->clusters = round_up(size, t->cluster) / t->cluster;
	t->run_max = MAX(MIN(RUN_MAX, 512 * KIB / t->cluster), 1);
	t->fd = cfg.fd = create_file(t, "image");
	t->mirror = create_file(t, "mirror");
	assert_int_equal(ftruncate(t->mirror, (off_t)size), 0);
	t->codec = codec_find(t->compression);
	t->codec_state = t->codec ? t->codec->start(1, t->cluster, &t->err) : NULL;
	t->plain = malloc(t->cluster);
	t->data = malloc(RUN_MAX * t->cluster);
	t->img = image_format_find(t->format)->create(&cfg, &t->err);
	assert_non_null(t->img);
	assert_true(t->plain && t->data && (!t->codec || t->codec_state));
}

static inline void trial_end(struct trial *t)
{
	image_close(t->img);
	if (t->codec)
		t->codec->stop(t->codec_state);
	free(t->plain);
	free(t->data);
	close(t->fd);
	close(t->mirror);
	run("rm -r %s", t->dir);
}

/* --- what is put --- */

static inline uint64_t draw(struct trial *t, uint64_t below)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random % below;
}

/* From 1 to most, but no more than there are. */
static inline uint64_t draw_count(struct trial *t, uint64_t most, uint64_t there)
{
	return 1 + draw(t, MIN(most, there));
}

/* Noise in all of a plain cluster, in some of a packed one. */
static inline void fill(struct trial *t, enum cluster_form form, size_t length)
{
	size_t noise = form == CLUSTER_PLAIN ? t->cluster : t->cluster / (2 + draw(t, 60));

	memset(t->plain, form == CLUSTER_ZERO ? 0 : (int)draw(t, 256), t->cluster);
	for (size_t i = 0; form != CLUSTER_ZERO && i + 8 <= noise; i += 8) {
		draw(t, 1);
		memcpy(t->plain + i, &t->random, 8);
	}
	memset(t->plain + length, 0, t->cluster - length);
}

/* What it becomes is appended to t->data. */
static inline struct cluster pack(struct trial *t, enum cluster_form form, size_t *used)
{
	struct cluster c = { .form = form, .at = (uint32_t)*used };
	long n = 0;

	if (form == CLUSTER_ZERO)
		return c;
	if (form == CLUSTER_PACKED && t->codec)
		n = t->codec->pack(t->codec_state, t->data + *used, t->cluster - 1, t->plain,
				   t->cluster, &t->err);
	assert_true(n >= 0);
	if (n == 0)
		memcpy(t->data + *used, t->plain, t->cluster);
	c.form = n ? CLUSTER_PACKED : CLUSTER_PLAIN;
	c.size = n ? (uint32_t)n : (uint32_t)t->cluster;
	*used += c.size;
	return c;
}

enum { ANY = -1 };

static inline int try_put(struct trial *t, uint64_t g, size_t count, int form)
{
	struct cluster clusters[RUN_MAX];
	struct chunk chunk = { .offset = g * t->cluster,
			       .length = MIN(count * t->cluster, t->size - g * t->cluster),
			       .clusters = clusters,
			       .cluster_count = count,
			       .data = t->data };
	size_t used = 0;

	assert_true(count <= RUN_MAX);
	for (size_t i = 0; i < count; i++) {
		enum cluster_form f = (enum cluster_form)(form == ANY ? (int)draw(t, 3) : form);
		size_t length = (size_t)MIN(t->cluster, chunk.length - i * t->cluster);

		fill(t, f, length);
		clusters[i] = pack(t, f, &used);
		assert_int_equal(io_pwrite(t->mirror, t->plain, length, (g + i) * t->cluster), 0);
	}
	return image_put(t->img, &chunk, &t->err);
}

static inline void put(struct trial *t, uint64_t g, size_t count, int form)
{
	assert_int_equal(try_put(t, g, count, form), 0);
}

static inline void put_zero_chunk(struct trial *t, uint64_t g, uint64_t count)
{
	struct chunk chunk = { .offset = g * t->cluster,
			       .length = MIN(count * t->cluster, t->size - g * t->cluster),
			       .zero = true };

	assert_int_equal(fallocate(t->mirror, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)chunk.offset, (off_t)chunk.length),
			 0);
	assert_int_equal(image_put(t->img, &chunk, &t->err), 0);
}

static inline void put_all(struct trial *t, int form)
{
	for (uint64_t g = 0, count; g < t->clusters; g += count) {
		count = MIN(RUN_MAX, t->clusters - g);
		put(t, g, (size_t)count, form);
	}
}

/* --- what has come of it --- */

/* Bytes that are data in either file; all else are zeros in both. */
static inline void assert_same_content(int a, int b, size_t unit, uint64_t size)
{
	uint8_t *buf_a = malloc(unit), *buf_b = malloc(unit);
	struct stat st;

	assert_int_equal(fstat(a, &st), 0);
	assert_true((uint64_t)st.st_size == size);
	for (uint64_t at = 0; at < size; at += unit) {
		off_t next_a = lseek(a, (off_t)at, SEEK_DATA);
		off_t next_b = lseek(b, (off_t)at, SEEK_DATA);
		uint64_t next = MIN((uint64_t)next_a, (uint64_t)next_b); /* -1: none */
		ssize_t n;

		if (next_a < 0 && next_b < 0)
			break;
		at = round_down(next, unit);
		n = io_pread(a, buf_a, unit, at, NULL);
		assert_true(n > 0 && io_pread(b, buf_b, unit, at, NULL) == n);
		assert_memory_equal(buf_a, buf_b, (size_t)n);
	}
	free(buf_a);
	free(buf_b);
}

static inline void check_qcow2(struct trial *t)
{
	char path[64];
	int out;

	if (have_qemu_img) {
		run("qemu-img check -q -f qcow2 %s/image", t->dir);
		run("qemu-img compare -q -f qcow2 -F raw %s/image %s/mirror", t->dir, t->dir);
	}
	run("'%s' %s/image %s/out >/dev/null", decoder, t->dir, t->dir);
	snprintf(path, sizeof path, "%s/out", t->dir);
	out = open(path, O_RDONLY | O_CLOEXEC);
	assert_same_content(out, t->mirror, t->cluster, t->size);
	close(out);
}

static inline void finish_and_check(struct trial *t)
{
	if (image_finish(t->img, &t->err) < 0)
		fail_msg("%s", t->err.text);
	if (strcmp(t->format, "raw") == 0)
		assert_same_content(t->fd, t->mirror, t->cluster, t->size);
	else
		check_qcow2(t);
}

#endif
