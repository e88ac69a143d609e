// SPDX-License-Identifier: Apache-2.0
#include "image-kit.h"

#include "base/hash.h"

/* --- histories --- */

/* Runs of data with gaps between them, about 16 MiB in all, and where they are. */
static size_t put_first(struct trial *t, uint64_t *places, size_t max)
{
	uint64_t sparse = MAX(t->size / (16 * MIB), 1), g = 0;
	size_t found = 0;

	while (g < t->clusters) {
		uint64_t gap = draw(t, 2 * t->run_max * sparse), count;

		if (gap)
			put_zero_chunk(t, g, MIN(gap, t->clusters - g));
		g += gap;
		if (g >= t->clusters)
			break;
		count = draw_count(t, t->run_max, t->clusters - g);
		put(t, g, (size_t)count, ANY);
		if (found < max || draw(t, 4) == 0)
			places[found < max ? found++ : draw(t, max)] = g;
		g += count;
	}
	return found;
}

/* Mostly where something is. */
static void put_somewhere(struct trial *t, const uint64_t *places, size_t found)
{
	uint64_t g = places[draw(t, found)] + draw(t, 3), count;

	if (draw(t, 5) == 0)
		g = draw(t, t->clusters);
	g = MIN(g, t->clusters - 1);
	count = draw_count(t, t->run_max, t->clusters - g);
	if (draw(t, 20) == 0)
		put_zero_chunk(t, g, draw_count(t, MAX(t->clusters / 8, 1), t->clusters - g));
	else if (draw(t, 5) == 0)
		put_zero_chunk(t, g, count);
	else
		put(t, g, (size_t)count, ANY);
}

static void live_through(const char *format, const char *compression, size_t cluster, uint64_t size,
			 uint64_t seed)
{
	struct trial t = {
		.format = format, .compression = compression, .cluster = cluster, .random = seed
	};
	uint64_t places[64] = { 0 };
	size_t found;

	trial_begin(&t, size);
	found = MAX(put_first(&t, places, 64), 1);
	for (int i = 0; i < 60; i++)
		put_somewhere(&t, places, found);
	finish_and_check(&t);
	if (strcmp(format, "raw") == 0)
		assert_null(t.img->digests);
	trial_end(&t);
}

/* With clusters of 4 KiB a refcount block ends every 8 MiB of the file and an L2
 * table every 2 MiB of the disk: many are crossed.  The larger ones have three
 * tables each.
 */
static void any_history_of_a_qcow2_reads_as_the_newest(void **state)
{
	static const char *const compressions[] = { "zstd", "zlib", "none" };
	uint64_t seed = 1;

	(void)state;
	for (size_t cluster = 4096; cluster <= 2 * MIB; cluster *= 2) {
		uint64_t covered = cluster / 8 * cluster;
		uint64_t size = MAX(covered * 5 / 2, 48 * MIB) + 1536;

		for (size_t i = 0; i < 3; i++)
			for (int n = 0; n < (cluster < 65536 ? 2 : 1); n++)
				live_through("qcow2", compressions[i], cluster, size, seed++);
	}
	live_through("qcow2", "zstd", 4096, 512, seed);
}

static void any_history_of_a_raw_image_reads_as_the_newest(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		live_through("raw", "none", 4096, 48 * MIB + 1536, seed);
	live_through("raw", "none", 4096, 512, 7);
}

/* --- one step at a time --- */

static void each_form_takes_the_place_of_each_other(void **state)
{
	(void)state;
	for (size_t cluster = 4096; cluster <= 65536; cluster *= 16) {
		for (int i = 0; i < 9; i++) {
			struct trial t = { .format = "qcow2",
					   .compression = "zstd",
					   .cluster = cluster,
					   .random = 99 };

			trial_begin(&t, 600 * 4096 + 512);
			put_all(&t, i / 3);
			for (uint64_t g = 0; g < t.clusters; g += 3)
				put(&t, g, 1, i % 3);
			finish_and_check(&t);
			trial_end(&t);
		}
	}
}

static void all_can_go_and_come_back(void **state)
{
	struct trial t = { .format = "qcow2", .compression = "zstd", .cluster = 4096, .random = 5 };

	(void)state;
	trial_begin(&t, 20 * MIB);
	put_zero_chunk(&t, 0, t.clusters);
	put_all(&t, ANY);
	put_zero_chunk(&t, 0, t.clusters);
	for (uint64_t g = t.clusters; g >= 512; g -= 512)
		put(&t, g - 1, 1, ANY);
	put_all(&t, ANY);
	put_zero_chunk(&t, 1, t.clusters - 2);
	finish_and_check(&t);
	trial_end(&t);
}

/* So often that the table of refcounts itself has to know of many blocks. */
static void one_cluster_can_be_put_again_and_again(void **state)
{
	struct trial t = { .format = "qcow2", .compression = "zstd", .cluster = 4096, .random = 5 };

	(void)state;
	trial_begin(&t, 8 * MIB);
	put_all(&t, CLUSTER_PACKED);
	for (int i = 0; i < 5000; i++)
		put(&t, (uint64_t)i % 2 * 1000, 1, i % 3 ? CLUSTER_PACKED : CLUSTER_PLAIN);
	finish_and_check(&t);
	trial_end(&t);
}

static uint8_t *read_all(const struct trial *t, size_t *size)
{
	struct stat st;
	uint8_t *buf;

	assert_int_equal(fstat(t->fd, &st), 0);
	buf = malloc((size_t)st.st_size);
	*size = (size_t)io_pread(t->fd, buf, (size_t)st.st_size, 0, NULL);
	return buf;
}

/* How many host clusters that were there are other ones after two puts, far
 * from each other and from what is in memory.
 */
static size_t clusters_changed_by(int before, int after)
{
	struct trial t = { .format = "qcow2", .compression = "zstd", .cluster = 4096, .random = 5 };
	uint8_t *old, *new;
	size_t len, changed = 0;

	trial_begin(&t, 48 * MIB);
	put_all(&t, before);
	old = read_all(&t, &len);
	put(&t, 0, 1, after);
	put(&t, 6000, 1, after);
	finish_and_check(&t);
	new = read_all(&t, &(size_t){ 0 });
	for (size_t at = 4096; at + 4096 <= len; at += 4096) /* behind the header */
		changed += memcmp(old + at, new + at, 4096) != 0;
	free(old);
	free(new);
	trial_end(&t);
	return changed;
}

static void what_is_not_touched_stays_as_it_was(void **state)
{
	(void)state;
	assert_int_equal(clusters_changed_by(CLUSTER_PLAIN, CLUSTER_PLAIN), 2); /* in place */
	/* two tables, two blocks */
	assert_int_equal(clusters_changed_by(CLUSTER_PLAIN, CLUSTER_ZERO), 4);
	assert_int_equal(clusters_changed_by(CLUSTER_PLAIN, CLUSTER_PACKED), 4);
}

/* --- what cannot be --- */

static void tables_that_something_else_changed_are_refused(void **state)
{
	static const uint8_t bytes[] = { 0x3f, 0x7f, 0xff };

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++) {
		struct trial t = {
			.format = "qcow2", .compression = "zstd", .cluster = 4096, .random = 5
		};
		size_t len;
		uint8_t *all;
		int r = 0;

		trial_begin(&t, 48 * MIB);
		put_all(&t, CLUSTER_PLAIN);
		all = read_all(&t, &len);
		memset(all, bytes[i], len);
		assert_int_equal(io_pwrite(t.fd, all, len, 0), 0);
		free(all);
		for (uint64_t g = 0; r == 0 && g < t.clusters; g++)
			r = try_put(&t, g, 1, CLUSTER_ZERO);
		assert_int_equal(r, -1);
		assert_non_null(strstr(t.err.text, "changed by something else"));
		trial_end(&t);
	}
}

static void a_raw_image_put_once_is_hashed_in_passing(void **state)
{
	struct trial t = { .format = "raw", .compression = "none", .cluster = 4096, .random = 3 };
	struct digests d;

	(void)state;
	trial_begin(&t, 3 * MIB + 512);
	put_all(&t, ANY);
	finish_and_check(&t);
	assert_non_null(t.img->digests);
	assert_int_equal(hash_file(t.mirror, "mirror", t.size, &d, NULL, NULL, &t.err), 0);
	assert_true(digests_equal(&d, t.img->digests));
	trial_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_history_of_a_qcow2_reads_as_the_newest),
		cmocka_unit_test(any_history_of_a_raw_image_reads_as_the_newest),
		cmocka_unit_test(each_form_takes_the_place_of_each_other),
		cmocka_unit_test(all_can_go_and_come_back),
		cmocka_unit_test(one_cluster_can_be_put_again_and_again),
		cmocka_unit_test(what_is_not_touched_stays_as_it_was),
		cmocka_unit_test(tables_that_something_else_changed_are_refused),
		cmocka_unit_test(a_raw_image_put_once_is_hashed_in_passing),
	};

	return cmocka_run_group_tests(tests, find_tools, NULL);
}
