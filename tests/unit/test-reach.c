// SPDX-License-Identifier: Apache-2.0
#include "walk-kit.h"

#include "walk/beneath.h"
#include "walk/reach.h"

#include <pthread.h>
#include <sys/inotify.h>
#include <sys/resource.h>

CLEANUP_TYPE(struct reach, reach, reach_free)
#define autoreach CLEANUP(reach_cleanup)

static struct reach *walk_and_reach(struct walked *w)
{
	struct reach *r;

	assert_int_equal(walked_do(w), 0);
	r = reach_new(&w->model, w->fd, &w->err);
	assert_non_null(r);
	return r;
}

static void make_small(struct walked *w)
{
	walked_start(w);
	make_dir(w, "d");
	make_dir(w, "d/e");
	make_file(w, "d/f", "in d");
	make_file(w, "d/e/g", "in e");
	make_file(w, "top", "at the top");
	assert_int_equal(symlinkat("f", w->fd, "d/link"), 0);
}

static void assert_reads(struct reach *r, uint32_t node, const char *text)
{
	struct stat now;
	autoclose int fd = reach_file(r, node, &now);
	char got[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(now.st_size, strlen(text));
	assert_int_equal(read(fd, got, sizeof got - 1), strlen(text));
	assert_string_equal(got, text);
}

static void assert_refused(struct reach *r, uint32_t node, int error, struct stat *now)
{
	struct stat ignored;

	assert_int_equal(reach_file(r, node, now ? now : &ignored), -1);
	assert_int_equal(errno, error);
}

static void files_are_opened_as_they_were_walked(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	assert_reads(r, node_at(&w, "d/f"), "in d");
	assert_reads(r, node_at(&w, "d/e/g"), "in e");
	assert_reads(r, node_at(&w, "top"), "at the top");
}

static void what_stands_at_a_name_now_is_told(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	struct stat now;

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	assert_int_equal(reach_stat_name(r, node_at(&w, "d"), "link", &now), 0);
	assert_true(S_ISLNK(now.st_mode));
	assert_int_equal(reach_stat_name(r, MODEL_ROOT, "d", &now), 0);
	assert_int_equal(now.st_ino, node_of(&w, "d")->found_ino);
	make_file(&w, "d/new", "new");
	assert_int_equal(renameat(w.fd, "d/new", w.fd, "d/f"), 0);
	assert_int_equal(reach_stat_name(r, node_at(&w, "d"), "f", &now), 0);
	assert_int_not_equal(now.st_ino, node_of(&w, "d/f")->found_ino);
	assert_int_equal(reach_stat_name(r, node_at(&w, "d"), "nosuch", &now), -1);
	assert_int_equal(errno, ENOENT);
}

static void no_name_is_told_of_another_directory_in_the_place(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	struct stat now;

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	assert_int_equal(renameat(w.fd, "d", w.fd, "old"), 0);
	make_dir(&w, "d");
	make_file(&w, "d/f", "another");
	assert_int_equal(reach_stat_name(r, node_at(&w, "d"), "f", &now), -1);
	assert_int_equal(errno, ENOENT);
}

static void a_directory_is_given_as_a_descriptor_of_its_own(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	struct stat st;
	int first, second;

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	first = reach_directory(r, node_at(&w, "d/e"));
	assert_true(first >= 0);
	assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
	close(first);
	second = reach_directory(r, node_at(&w, "d/e"));
	assert_int_equal(fstat(second, &st), 0);
	assert_int_equal(st.st_ino, node_of(&w, "d/e")->found_ino);
	close(second);
}

static void access_times_stay_where_they_are(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	struct stat st;

	(void)state;
	make_small(&w);
	assert_int_equal(utimensat(w.fd, "d/f", old, 0), 0);
	assert_int_equal(utimensat(w.fd, "d", old, 0), 0);
	r = walk_and_reach(&w);
	assert_reads(r, node_at(&w, "d/f"), "in d");
	assert_int_equal(fstatat(w.fd, "d/f", &st, 0), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	assert_int_equal(fstatat(w.fd, "d", &st, 0), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
}

/* --- what is put in the place ----------------------------------------------------- */

/* outside/d and outside/f look like the tree's, and are not in it. */
static void swap_for_links(const struct walked *w, const char *outside)
{
	assert_int_equal(renameat(w->fd, "d", w->fd, "d-before"), 0);
	assert_int_equal(symlinkat(outside, w->fd, "d"), 0);
}

static void a_link_in_place_of_a_directory_leads_nowhere(void **state)
{
	autowalked struct walked w, outside;
	autoreach struct reach *r = NULL, *used = NULL;
	uint32_t file, dir, deep;

	(void)state;
	make_small(&w);
	walked_start(&outside);
	make_file(&outside, "f", "secret");
	make_dir(&outside, "e");
	make_file(&outside, "e/g", "secret");
	r = walk_and_reach(&w);
	used = reach_new(&w.model, w.fd, &w.err);
	file = node_at(&w, "d/f");
	deep = node_at(&w, "d/e/g");
	dir = node_at(&w, "d");
	assert_reads(used, file, "in d");
	swap_for_links(&w, outside.dir);
	assert_refused(r, file, ENOENT, NULL);
	assert_refused(r, deep, ENOENT, NULL);
	assert_int_equal(reach_directory(r, dir), -1);
	assert_int_equal(errno, ESTALE);
	assert_int_equal(reach_directory(r, node_at(&w, "d/e")), -1);
	assert_int_equal(errno, ESTALE);
	/* Still open, it is the same directory, wherever it went. */
	assert_reads(used, file, "in d");
}

static void another_directory_in_the_place_is_not_the_one(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	assert_int_equal(renameat(w.fd, "d", w.fd, "d-before"), 0);
	make_dir(&w, "d");
	make_file(&w, "d/f", "another");
	assert_refused(r, node_at(&w, "d/f"), ENOENT, NULL);
	assert_int_equal(reach_directory(r, node_at(&w, "d")), -1);
	assert_int_equal(errno, ESTALE);
}

static void a_fifo_or_link_in_place_of_a_file_is_not_opened(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	autoclose int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event event;
	struct stat now;
	char fifo[128];

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	assert_int_equal(renameat(w.fd, "d/f", w.fd, "d/before"), 0);
	assert_int_equal(mkfifoat(w.fd, "d/f", 0600), 0);
	snprintf(fifo, sizeof fifo, "%s/d/f", w.dir);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	assert_refused(r, node_at(&w, "d/f"), ESTALE, &now);
	assert_true(S_ISFIFO(now.st_mode));
	assert_int_equal(read(watch, &event, sizeof event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(unlinkat(w.fd, "d/f", 0), 0);
	assert_int_equal(symlinkat("before", w.fd, "d/f"), 0);
	assert_refused(r, node_at(&w, "d/f"), ESTALE, &now);
	assert_true(S_ISLNK(now.st_mode));
}

static void a_file_that_was_replaced_is_described(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	struct stat now, there;

	(void)state;
	make_small(&w);
	r = walk_and_reach(&w);
	make_file(&w, "new", "longer than before");
	assert_int_equal(renameat(w.fd, "new", w.fd, "d/f"), 0);
	assert_refused(r, node_at(&w, "d/f"), ESTALE, &now);
	assert_int_equal(fstatat(w.fd, "d/f", &there, 0), 0);
	assert_int_equal(now.st_ino, there.st_ino);
	assert_int_equal(now.st_size, 18);
	assert_int_equal(unlinkat(w.fd, "d/f", 0), 0);
	assert_refused(r, node_at(&w, "d/f"), ENOENT, NULL);
}

static void another_name_leads_to_a_file_whose_first_is_gone(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	struct stat now;

	(void)state;
	make_small(&w);
	assert_int_equal(linkat(w.fd, "d/f", w.fd, "d/e/other", 0), 0);
	assert_int_equal(linkat(w.fd, "d/f", w.fd, "d/e/zlast", 0), 0);
	r = walk_and_reach(&w);
	assert_int_equal(unlinkat(w.fd, "d/f", 0), 0);
	assert_reads(r, node_at(&w, "d/f"), "in d");
	assert_int_equal(unlinkat(w.fd, "d/e/zlast", 0), 0);
	make_file(&w, "d/e/zlast", "another");
	assert_reads(r, node_at(&w, "d/f"), "in d");
	/* In this order, or the new file gets the old one's inode. */
	make_file(&w, "d/f", "also another");
	assert_int_equal(unlinkat(w.fd, "d/e/other", 0), 0);
	assert_refused(r, node_at(&w, "d/f"), ESTALE, &now);
	assert_int_equal(now.st_size, strlen("also another"));
}

/* A name that only the index has. */
static void with_an_index_no_other_names_are_looked_at(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	uint32_t count, f;

	(void)state;
	make_small(&w);
	assert_int_equal(linkat(w.fd, "d/f", w.fd, "d/e/other", 0), 0);
	r = walk_and_reach(&w);
	f = node_at(&w, "d/f");
	assert_int_equal(model_index_names(&w.model, &w.err), 0);
	assert_non_null(model_names(&w.model, f, &count));
	assert_int_equal(count, 2);
	assert_int_equal(unlinkat(w.fd, "d/f", 0), 0);
	assert_reads(r, f, "in d");
	assert_int_equal(linkat(w.fd, "d/e/other", w.fd, "d/e/g2", 0), 0);
	assert_int_equal(unlinkat(w.fd, "d/e/other", 0), 0);
	assert_refused(r, f, ENOENT, NULL);
	assert_int_equal(renameat(w.fd, "d/e/g2", w.fd, "d/e/g"), 0);
	for (uint32_t i = 0; i < w.model.names_len; i++)
		w.model.names[i].dir = node_at(&w, "d/e"),
		w.model.names[i].name = node_of(&w, "d/e/g")->name;
	assert_reads(r, f, "in d");
}

static void what_was_made_in_the_model_is_nowhere(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	const struct model_node made = { .mode = S_IFREG | 0644, .mounted = MODEL_NONE };
	const struct model_node dir = { .mode = S_IFDIR | 0755, .mounted = MODEL_NONE };
	struct stat now;
	uint32_t d, f;

	(void)state;
	make_small(&w);
	assert_int_equal(walked_do(&w), 0);
	d = model_add(&w.model, &dir, &w.err);
	f = model_add(&w.model, &made, &w.err);
	assert_int_equal(model_link(&w.model, MODEL_ROOT, "made", 4, d, &w.err), 0);
	assert_int_equal(model_link(&w.model, d, "f", 1, f, &w.err), 0);
	make_dir(&w, "made");
	make_file(&w, "made/f", "not this");
	r = reach_new(&w.model, w.fd, &w.err);
	assert_refused(r, f, ENOENT, NULL);
	assert_int_equal(reach_directory(r, d), -1);
	assert_int_equal(reach_stat_name(r, d, "f", &now), -1);
	assert_int_equal(errno, ENOENT);
}

/* --- depth and width --------------------------------------------------------------- */

/* Returns the descriptor of the last one. */
static int make_chain(const struct walked *w, int levels, const char *name)
{
	int fd = openat(w->fd, ".", O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	return fd;
}

static uint32_t deepest(const struct walked *w)
{
	uint32_t node = MODEL_ROOT;

	while (S_ISDIR(w->model.nodes[node].mode) && w->model.nodes[node].count)
		node = w->model.entries[w->model.nodes[node].first].node;
	return node;
}

static void reach_the_end_of(int levels, const char *name)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	autoclose int last = -1, f = -1;

	walked_start(&w);
	last = make_chain(&w, levels, name);
	f = openat(last, "f", O_CREAT | O_WRONLY, 0644);
	assert_int_equal(write(f, "deep", 4), 4);
	r = walk_and_reach(&w);
	assert_reads(r, deepest(&w), "deep");
	assert_reads(r, deepest(&w), "deep");
}

static void paths_longer_than_the_kernel_takes_are_reached(void **state)
{
	char name[256];

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	reach_the_end_of(60, name);
	name[200] = '\0';
	reach_the_end_of(60, name);
	reach_the_end_of(3000, "d");
}

/* What older kernels are left with gives the same. */
static void without_openat2_links_lead_nowhere_either(void **state)
{
	autowalked struct walked w;
	const struct beneath modern = beneath_probe(AT_FDCWD), old = { .has_openat2 = false };
	const struct beneath *const ways[] = { &modern, &old };

	(void)state;
	make_small(&w);
	assert_int_equal(symlinkat("e", w.fd, "d/to-e"), 0);
	for (size_t i = 0; i < 2; i++) {
		char there[] = "d/e/", through[] = "d/to-e/", last[] = "d/link/", gone[] = "d/x/",
		     passed[] = "d/to-e/x/", none[] = "";
		int fd = beneath_open(ways[i], w.fd, there);

		assert_true(fd >= 0);
		close(fd);
		fd = beneath_open(ways[i], w.fd, none);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(beneath_open(ways[i], w.fd, through), -1);
		assert_int_equal(errno, ESTALE);
		assert_int_equal(beneath_open(ways[i], w.fd, passed), -1);
		assert_int_equal(errno, ESTALE);
		assert_int_equal(beneath_open(ways[i], w.fd, last), -1);
		assert_int_equal(errno, ESTALE);
		assert_int_equal(beneath_open(ways[i], w.fd, gone), -1);
		assert_int_equal(errno, ENOENT);
	}
}

#define WIDE	150
#define THREADS 6

struct crowd {
	const struct walked *w;
	struct reach *r;
	unsigned seed;
	int failures;
};

/* Without assertions: they are for the test's own thread. */
static void *read_at_random(void *ctx)
{
	struct crowd *c = ctx;

	for (int i = 0; i < 4000; i++) {
		char path[32], got[32] = "";
		int n = rand_r(&c->seed) % WIDE, fd;
		struct stat now;

		snprintf(path, sizeof path, "d%d/f", n);
		fd = reach_file(c->r, node_at(c->w, path), &now);
		if (fd < 0 || read(fd, got, sizeof got - 1) < 0 || atoi(got) != n)
			c->failures++;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static void many_threads_get_their_own_files_with_few_descriptors(void **state)
{
	autowalked struct walked w;
	autoreach struct reach *r = NULL;
	pthread_t threads[THREADS];
	struct crowd crowd[THREADS];
	struct rlimit before, few = { 90, 90 };

	(void)state;
	walked_start(&w);
	for (int i = 0; i < WIDE; i++) {
		char path[32], text[32];

		snprintf(path, sizeof path, "d%d", i);
		make_dir(&w, path);
		strcat(path, "/f");
		snprintf(text, sizeof text, "%d", i);
		make_file(&w, path, text);
	}
	r = walk_and_reach(&w);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < THREADS; i++) {
		crowd[i] = (struct crowd){ &w, r, (unsigned)i, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, read_at_random, &crowd[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(crowd[i].failures, 0);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_opened_as_they_were_walked),
		cmocka_unit_test(what_stands_at_a_name_now_is_told),
		cmocka_unit_test(no_name_is_told_of_another_directory_in_the_place),
		cmocka_unit_test(a_directory_is_given_as_a_descriptor_of_its_own),
		cmocka_unit_test(access_times_stay_where_they_are),
		cmocka_unit_test(a_link_in_place_of_a_directory_leads_nowhere),
		cmocka_unit_test(another_directory_in_the_place_is_not_the_one),
		cmocka_unit_test(a_fifo_or_link_in_place_of_a_file_is_not_opened),
		cmocka_unit_test(a_file_that_was_replaced_is_described),
		cmocka_unit_test(another_name_leads_to_a_file_whose_first_is_gone),
		cmocka_unit_test(with_an_index_no_other_names_are_looked_at),
		cmocka_unit_test(what_was_made_in_the_model_is_nowhere),
		cmocka_unit_test(paths_longer_than_the_kernel_takes_are_reached),
		cmocka_unit_test(without_openat2_links_lead_nowhere_either),
		cmocka_unit_test(many_threads_get_their_own_files_with_few_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
