// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "compress/codec.h"
#include "image/image.h"
#include "pipeline/pipeline.h"
#include "source/extent.h"
#include "source/source.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A disk in memory whose kinds change every 300000 bytes: data, hole, noise;
 * it fails or hangs where it is told to.
 */
enum { DISK_SIZE = 40000000 / 512 * 512 + 512, STEP = 300000, NOWHERE = -1 };

struct memory_source {
	struct source base;
	const uint8_t *disk;
	int64_t fail_extents, fail_read, hang_read;
	uint64_t from, to; /* nobody may look elsewhere */
	atomic_bool aborted;
};

static bool inside(int64_t at, uint64_t offset, uint64_t length)
{
	return at >= 0 && (uint64_t)at >= offset && (uint64_t)at < offset + length;
}

static int memory_extents(struct source *src, uint64_t offset, uint64_t length,
			  struct extent_list *out, struct err *err)
{
	struct memory_source *m = (struct memory_source *)src;
	uint64_t end = offset + length;

	assert_true(offset >= m->from && end <= m->to);
	if (inside(m->fail_extents, offset, length))
		return err_set(err, ERR_FAILED, "extents");
	while (offset < end) {
		uint64_t next = MIN(offset / STEP * STEP + STEP, end);

		if (extent_list_add(out, offset, next - offset, offset / STEP % 3 == 1, err) < 0)
			return -1;
		offset = next;
	}
	return 0;
}

static int memory_read_at(struct source *src, void *buf, size_t len, uint64_t offset,
			  struct err *err)
{
	struct memory_source *m = (struct memory_source *)src;

	assert_true(offset >= m->from && offset + len <= m->to);
	if (inside(m->fail_read, offset, len))
		return err_set(err, ERR_FAILED, "read");
	while (inside(m->hang_read, offset, len)) {
		if (m->aborted)
			return err_set(err, ERR_FAILED, "aborted");
		usleep(1000);
	}
	memcpy(buf, m->disk + offset, len);
	return 0;
}

static void memory_abort(struct source *src)
{
	((struct memory_source *)src)->aborted = true;
}

static const struct source_ops memory_ops = {
	.name = "memory",
	.extents = memory_extents,
	.read_at = memory_read_at,
	.abort = memory_abort,
};

/* Unpacks into memory and keeps a digest of the chunks as they came. */
struct memory_image {
	struct image base;
	uint8_t *disk;
	uint64_t at;
	struct hash *hash;
	int64_t fail_put;
	bool interrupt;
};

static int memory_put(struct image *img, const struct chunk *chunk, struct err *err)
{
	struct memory_image *m = (struct memory_image *)img;
	size_t unit = img->cluster_size;

	assert_true(chunk->offset == m->at);
	assert_true(chunk->offset % unit == 0);
	m->at += chunk->length;
	assert_true(m->at <= img->size && (m->at % unit == 0 || m->at == img->size));
	if (m->interrupt)
		raise(SIGTERM);
	if (inside(m->fail_put, chunk->offset, chunk->length))
		return err_set(err, ERR_FAILED, "put");
	if (chunk->zero)
		return 0;
	assert_int_equal(chunk->cluster_count, round_up(chunk->length, unit) / unit);
	for (size_t i = 0; i < chunk->cluster_count; i++) {
		const struct cluster *c = &chunk->clusters[i];
		size_t len = (size_t)MIN(unit, chunk->length - i * unit);

		if (c->form == CLUSTER_PLAIN)
			memcpy(m->disk + chunk->offset + i * unit, chunk->data + c->at, len);
		if (c->form == CLUSTER_PACKED) {
			/* the codec of this test: first byte, all the same */
			assert_int_equal(c->size, 1);
			memset(m->disk + chunk->offset + i * unit, chunk->data[c->at], len);
		}
		if (c->form != CLUSTER_ZERO &&
		    hash_update(m->hash, chunk->data + c->at, c->size, err) < 0)
			return -1;
	}
	return 0;
}

static const struct image_ops memory_image_ops = { .put = memory_put };

static unsigned started; /* states of the codec below: one a worker */

/* Packs a cluster of equal bytes into one byte, refuses all others. */
static void *same_start(int level, size_t cluster_size, struct err *err)
{
	(void)level;
	(void)cluster_size;
	(void)err;
	started++;
	return malloc(1);
}

static long same_pack(void *state, void *dst, size_t cap, const void *src, size_t len,
		      struct err *err)
{
	(void)state;
	(void)cap;
	(void)err;
	if (memcmp(src, (const char *)src + 1, len - 1) != 0)
		return 0;
	memcpy(dst, src, 1);
	return 1;
}

static const struct codec same = {
	.name = "same", .start = same_start, .stop = free, .pack = same_pack
};

static uint8_t *disk;

static int make_disk(void **state)
{
	uint32_t x = 1;

	(void)state;
	disk = malloc(DISK_SIZE);
	for (size_t i = 0; i < DISK_SIZE; i++) {
		x = x * 1664525u + 1013904223u;
		disk[i] = i / STEP % 3 == 1 ? 0 : i / STEP % 3 == 2 ? (uint8_t)(x >> 24) : 7;
	}
	return 0;
}

static int free_disk(void **state)
{
	(void)state;
	free(disk);
	return 0;
}

struct trial {
	struct memory_source src;
	struct memory_image img;
	struct pipeline_config cfg;
	struct pipeline_stats stats;
	struct digests digests;
	struct err err;
};

static void trial_init(struct trial *t, unsigned workers, const struct codec *codec)
{
	*t = (struct trial){
		.src = { .base = { .ops = &memory_ops, .name = "memory", .size = DISK_SIZE },
			 .disk = disk,
			 .fail_extents = NOWHERE,
			 .fail_read = NOWHERE,
			 .hang_read = NOWHERE,
			 .to = DISK_SIZE },
		.img = { .base = { .ops = &memory_image_ops,
				   .size = DISK_SIZE,
				   .cluster_size = 65536 },
			 .fail_put = NOWHERE },
		.cfg = { .workers = workers, .codec = codec },
	};
}

static int trial_run(struct trial *t)
{
	int r;

	t->img.disk = calloc(1, DISK_SIZE);
	t->img.hash = hash_start(HASH_OURS, &t->err);
	r = pipeline_run(&t->cfg, &t->src.base, &t->img.base, &t->stats, &t->err);
	assert_int_equal(hash_finish(t->img.hash, &t->digests, &t->err), 0);
	hash_stop(t->img.hash);
	assert_false(t->src.base.stuck);
	if (r == 0)
		assert_memory_equal(t->img.disk + t->src.from, disk + t->src.from,
				    t->src.to - t->src.from);
	free(t->img.disk);
	return r;
}

static void every_byte_arrives_in_order_for_any_number_of_workers(void **state)
{
	const struct codec *const tried[] = { NULL, &same };
	struct digests first[2] = { 0 };
	struct trial t;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (unsigned workers = 1; workers <= 16; workers *= 2) {
			trial_init(&t, workers, tried[i]);
			assert_int_equal(trial_run(&t), 0);
			assert_true(t.img.at == DISK_SIZE);
			assert_true(t.stats.read_bytes + t.stats.skipped_bytes == DISK_SIZE);
			if (!first[i].sha256[0])
				first[i] = t.digests;
			assert_string_equal(t.digests.sha512, first[i].sha512);
		}
	}
}

/* The image asserts that it gets the clusters in order, the source that nobody
 * looks elsewhere.
 */
static void run_window(uint64_t offset, uint64_t length, unsigned workers,
		       const struct codec *codec)
{
	struct trial t;

	trial_init(&t, workers, codec);
	t.cfg.offset = offset;
	t.cfg.length = length;
	t.src.from = t.img.at = offset / 65536 * 65536;
	t.src.to = MIN(round_up(offset + length, 65536), DISK_SIZE);
	assert_int_equal(trial_run(&t), 0);
	assert_true(t.img.at == t.src.to);
	assert_true(t.stats.read_bytes + t.stats.skipped_bytes == t.src.to - t.src.from);
}

static void a_window_is_widened_to_whole_clusters_and_no_more(void **state)
{
	static const uint64_t windows[][2] = {
		{ 0, 1 },
		{ 65536 * 3 + 5, 10 },
		{ 65536 * 3, 65536 },
		{ STEP * 50, STEP * 7 },
		{ STEP + 65536, 65536 }, /* all of it zero */
		{ 2 * MIB - 1, 2 },
		{ 1, DISK_SIZE - 2 },
		{ DISK_SIZE - 1, 1 },
		{ DISK_SIZE - 1000, 5000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
		for (unsigned workers = 1; workers <= 8; workers *= 8) {
			run_window(windows[i][0], windows[i][1], workers, NULL);
			run_window(windows[i][0], windows[i][1], workers, &same);
		}
	}
}

static void there_are_no_more_workers_than_chunks(void **state)
{
	static const struct {
		uint64_t offset, length;
		unsigned workers;
	} windows[] = {
		{ 5 * MIB, 1, 1 },
		{ 2 * MIB - 1, 2, 2 },
		{ 2 * MIB, 4 * MIB, 2 },
		{ 0, DISK_SIZE, (DISK_SIZE + 2 * MIB - 1) / (2 * MIB) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
		started = 0;
		run_window(windows[i].offset, windows[i].length, 64, &same);
		assert_int_equal(started, windows[i].workers);
	}
}

static void a_stall_in_a_window_names_its_place(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, 4, &same);
	t.cfg.offset = t.src.from = t.img.at = 30 * MIB;
	t.cfg.length = MIB;
	t.src.hang_read = 30 * MIB;
	t.cfg.stall_seconds = 1;
	assert_int_equal(trial_run(&t), -1);
	assert_non_null(strstr(t.err.text, "no progress for 1 seconds at offset 31457280 of"));
}

static void the_first_failure_of_any_part_ends_the_run(void **state)
{
	static const int64_t places[] = { 3, STEP * 66 + 5, STEP * 133 - 1 };
	struct trial t;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (unsigned workers = 1; workers <= 8; workers *= 8) {
			trial_init(&t, workers, &same);
			t.src.fail_read = places[i];
			assert_int_equal(trial_run(&t), -1);
			assert_string_equal(t.err.text, "memory: read");

			trial_init(&t, workers, &same);
			t.src.fail_extents = places[i];
			assert_int_equal(trial_run(&t), -1);
			assert_string_equal(t.err.text, "memory: extents");

			trial_init(&t, workers, &same);
			t.img.fail_put = places[i];
			assert_int_equal(trial_run(&t), -1);
			assert_string_equal(t.err.text, "put");
		}
	}
}

static void a_source_that_stops_answering_is_a_stall(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, 4, &same);
	t.src.hang_read = STEP * 66 + 5;
	t.cfg.stall_seconds = 1;
	assert_int_equal(trial_run(&t), -1);
	assert_non_null(strstr(t.err.text, "no progress for 1 seconds at offset"));
}

static void a_signal_ends_the_run(void **state)
{
	struct trial t;

	(void)state;
	interrupt_install();
	trial_init(&t, 4, &same);
	t.img.interrupt = true;
	assert_int_equal(trial_run(&t), -1);
	assert_int_equal(t.err.kind, ERR_INTERRUPTED);
	assert_int_equal(err_exit_code(&t.err), 128 + SIGTERM);
}

static void a_sample_tells_the_size(void **state)
{
	struct trial t;
	struct estimate e;

	(void)state;
	trial_init(&t, 2, NULL);
	assert_int_equal(pipeline_measure(&t.cfg, &t.src.base, 65536, &e, &t.err), 0);
	/* stored plain, all that is mapped counts, in whole clusters */
	assert_in_range(e.most_bytes, DISK_SIZE / 3 * 2, DISK_SIZE / 3 * 2 + DISK_SIZE / 4);
	assert_true(e.sampled_bytes == 0);
	assert_int_equal(pipeline_sample(&t.cfg, &t.src.base, 65536, &e, &t.err), 0);
	assert_in_range(e.sampled_bytes, 1, DISK_SIZE / 4 + 65536);
	assert_in_range(e.likely_bytes, e.most_bytes * 9 / 10, e.most_bytes);
	assert_true(e.least_bytes <= e.likely_bytes);
}

/* A fragment of a page in every other cluster, and every fourth of these
 * clusters noise: neither fragments nor periods mislead.
 */
static int periodic_extents(struct source *src, uint64_t offset, uint64_t length,
			    struct extent_list *out, struct err *err)
{
	uint64_t end = offset + length, step = 65536;

	(void)src;
	for (; offset < end; offset += step) {
		bool mapped = offset / step % 2 == 0;

		if (extent_list_add(out, offset, 8192, true, err) < 0 ||
		    extent_list_add(out, offset + 8192, 4096, !mapped, err) < 0 ||
		    extent_list_add(out, offset + 12288, step - 12288, true, err) < 0)
			return -1;
	}
	return 0;
}

static int periodic_read_at(struct source *src, void *buf, size_t len, uint64_t offset,
			    struct err *err)
{
	(void)src;
	(void)err;
	for (size_t i = 0; i < len; i++) {
		uint64_t at = offset + i;

		((uint8_t *)buf)[i] = at / 65536 % 8 ? 7 : (uint8_t)(at * at >> 7);
	}
	return 0;
}

static void fragments_and_periods_do_not_mislead_a_sample(void **state)
{
	static const struct source_ops periodic_ops = { .name = "periodic",
							.extents = periodic_extents,
							.read_at = periodic_read_at };
	enum { CLUSTERS = 16384 };
	struct source src = { .ops = &periodic_ops,
			      .name = "periodic",
			      .size = (uint64_t)CLUSTERS * 65536 };
	struct pipeline_config cfg = { .workers = 2, .codec = &same };
	struct estimate e;
	struct err err;

	(void)state;
	assert_int_equal(pipeline_measure(&cfg, &src, 65536, &e, &err), 0);
	assert_true(e.most_bytes == (uint64_t)CLUSTERS / 2 * 65536);
	assert_int_equal(pipeline_sample(&cfg, &src, 65536, &e, &err), 0);
	assert_in_range(e.likely_bytes, e.most_bytes / 4 * 8 / 10, e.most_bytes / 4 * 12 / 10);
	assert_in_range(e.least_bytes, e.most_bytes / 8, e.most_bytes / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_arrives_in_order_for_any_number_of_workers),
		cmocka_unit_test(a_window_is_widened_to_whole_clusters_and_no_more),
		cmocka_unit_test(there_are_no_more_workers_than_chunks),
		cmocka_unit_test(a_stall_in_a_window_names_its_place),
		cmocka_unit_test(the_first_failure_of_any_part_ends_the_run),
		cmocka_unit_test(a_source_that_stops_answering_is_a_stall),
		cmocka_unit_test(a_sample_tells_the_size),
		cmocka_unit_test(fragments_and_periods_do_not_mislead_a_sample),
		cmocka_unit_test(a_signal_ends_the_run), /* last: the signal stays pending */
	};

	return cmocka_run_group_tests(tests, make_disk, free_disk);
}
