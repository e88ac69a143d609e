// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "image/image.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

/* Where the independent decoder of the tests is; `make check` sets it. */
static const char *decoder;

/* Any cluster's bytes follow from its number and the seed alone. */
static void cluster_bytes(uint8_t *buf, size_t size, uint64_t g, enum cluster_form form)
{
	uint32_t x = (uint32_t)g * 2654435761u + 1;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525u + 1013904223u;
		buf[i] = form == CLUSTER_ZERO ? 0 : (uint8_t)(x >> 24);
	}
	if (form == CLUSTER_PACKED) /* the first eighth stays noise */
		memset(buf + size / 8, (int)(g % 251), size - size / 8);
}

/* A mixture in which all forms follow each other in all ways. */
static enum cluster_form mixed(uint64_t g)
{
	uint32_t x = (uint32_t)g * 747796405u + 2891336453u;

	x = (x >> 22 ^ x) * 277803737u;
	return (enum cluster_form)((x >> 20) % 3);
}

static enum cluster_form all_packed(uint64_t g)
{
	(void)g;
	return CLUSTER_PACKED;
}

static enum cluster_form all_plain(uint64_t g)
{
	(void)g;
	return CLUSTER_PLAIN;
}

static uint32_t pack(uint8_t *dst, const uint8_t *src, size_t size)
{
	z_stream s = { .next_in = (uint8_t *)src, .avail_in = (uInt)size };

	s.next_out = dst;
	s.avail_out = (uInt)size;
	assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, -12, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
	deflateEnd(&s);
	return (uint32_t)s.total_out;
}

/* One chunk a cluster is as good as many. */
static void put_cluster(struct image *img, uint64_t g, enum cluster_form form, uint8_t *buf,
			uint8_t *packed)
{
	size_t size = img->cluster_size;
	struct cluster c = { .form = form, .at = 0, .size = (uint32_t)size };
	struct chunk chunk = {
		.offset = g * size,
		.length = MIN(size, img->size - g * size),
		.clusters = &c,
		.cluster_count = 1,
		.data = buf,
	};
	struct err err;

	cluster_bytes(buf, size, g, form);
	memset(buf + chunk.length, 0, size - chunk.length);
	if (form == CLUSTER_PACKED) {
		c.size = pack(packed, buf, size);
		chunk.data = packed;
	}
	assert_int_equal(image_put(img, &chunk, &err), 0);
}

static void decode(const char *image, const char *raw)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl(decoder, decoder, image, raw, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void check_raw(const char *raw, uint64_t size, size_t cluster,
		      enum cluster_form (*form)(uint64_t g))
{
	int fd = open(raw, O_RDONLY);
	uint8_t *got = malloc(cluster), *want = malloc(cluster);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_true((uint64_t)st.st_size == size);
	for (uint64_t at = 0; at < size; at += cluster) {
		size_t len = (size_t)MIN(cluster, size - at);

		cluster_bytes(want, cluster, at / cluster, form(at / cluster));
		assert_int_equal(io_pread(fd, got, len, at, NULL), len);
		assert_memory_equal(got, want, len);
	}
	free(got);
	free(want);
	close(fd);
}

static void round_trip(uint64_t size, size_t cluster, enum cluster_form (*form)(uint64_t g))
{
	char dir[] = "/tmp/ccsnap-test-XXXXXX", image[64], raw[64];
	uint8_t *buf = malloc(cluster), *packed = malloc(cluster);
	struct image_config cfg = { .size = size, .cluster_size = cluster, .compression = "zlib" };
	struct image *img;
	struct err err;

	assert_non_null(mkdtemp(dir));
	snprintf(image, sizeof image, "%s/i", dir);
	snprintf(raw, sizeof raw, "%s/r", dir);
	cfg.fd = open(image, O_RDWR | O_CREAT, 0600);
	img = image_format_find("qcow2")->create(&cfg, &err);
	assert_non_null(img);
	for (uint64_t g = 0; g * cluster < size; g++)
		put_cluster(img, g, form(g), buf, packed);
	assert_int_equal(image_finish(img, &err), 0);
	image_close(img);
	close(cfg.fd);
	free(buf);
	free(packed);
	decode(image, raw);
	check_raw(raw, size, cluster, form);
	unlink(image);
	unlink(raw);
	assert_int_equal(rmdir(dir), 0);
}

/* With clusters of 4 KiB a refcount block ends every 8 MiB of the file and an
 * L2 table every 2 MiB of the disk, so that a small disk crosses many.
 */
static void plain_packed_and_zero_clusters_in_any_order_decode(void **state)
{
	(void)state;
	round_trip(0, 4096, mixed);
	round_trip(512, 4096, mixed);
	round_trip(4096 * 3 + 512, 4096, mixed);
	round_trip(64 * MIB + 512, 4096, mixed);
	round_trip(32 * MIB, 4096, all_packed);
	round_trip(32 * MIB, 4096, all_plain);
	round_trip(16 * MIB, 65536, mixed);
	round_trip(32 * MIB + 1536, 2 * MIB, mixed);
}

/* Every length of file around the end of a refcount block, where the tail's
 * own clusters may need one block more.
 */
static void the_tail_counts_itself(void **state)
{
	(void)state;
	for (uint64_t n = 2030; n <= 2052; n++)
		round_trip(n * 4096, 4096, all_plain);
}

static void limits_follow_from_the_cluster_size(void **state)
{
	const struct image_format *qcow2 = image_format_find("qcow2");

	(void)state;
	assert_true(qcow2->size_max(4096) == 8 * TIB);
	assert_true(qcow2->size_max(65536) >= 64 * TIB);
	assert_true(qcow2->size_max(2 * MIB) >= 64 * TIB);
	assert_null(image_format_find("vmdk"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_packed_and_zero_clusters_in_any_order_decode),
		cmocka_unit_test(the_tail_counts_itself),
		cmocka_unit_test(limits_follow_from_the_cluster_size),
	};

	decoder = getenv("QCOW2_DECODE");
	if (!decoder) {
		fprintf(stderr, "QCOW2_DECODE is not set: run this by make check\n");
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
