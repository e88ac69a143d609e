// SPDX-License-Identifier: Apache-2.0
#include "ext4-build-kit.h"
#include "ext4-kit.h"

#include <malloc.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define WITH_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define WITH_ADDRESS_SANITIZER 0
#endif

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		fail_msg("no \"%s\" in: %s", name, text);
	return strtoull(at + strlen(name), NULL, 10);
}

/* What statfs gives an ordinary user: the kernel keeps a little back, too. */
static uint64_t free_for_users(void)
{
	const char *text = ask("dumpe2fs -h image 2>&1");
	const uint64_t blocks = field(text, "\nBlock count: "),
		       kept = MIN(blocks / 50, UINT64_C(4096));

	return (field(text, "\nFree blocks: ") - field(text, "\nReserved block count: ") - kept) *
	       4096;
}

static void check_size(void)
{
	const uint64_t step = config.step ? config.step : 4096;

	build_and_check();
	assert_true(ext4_size(fs) >= config.min_size);
	assert_int_equal(ext4_size(fs) % step, 0);
	assert_true(free_for_users() >= config.free_bytes);
	assert_int_equal(free_for_users(), ext4_free_bytes(fs));
}

static void the_smallest_holds_what_it_has_to(void **state)
{
	(void)state;
	config.min_size = 0;
	add_file(MODEL_ROOT, "f", 100000);
	check_size();
	assert_true(ext4_size(fs) < 5 * MIB);
	assert_true(ext4_free_bytes(fs) < 256 * KIB);
}

static void free_space_is_kept_and_hardly_more(void **state)
{
	static const uint64_t wanted[] = { 1,	       MIB,	 100 * MIB, 500 * MIB,
					   1500 * MIB, 10 * GIB, 100 * GIB, TIB };

	(void)state;
	add_file(MODEL_ROOT, "f", 3 * MIB);
	config.min_size = 0;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		config.free_bytes = wanted[i];
		check_size();
		assert_true(ext4_free_bytes(fs) - wanted[i] <= MAX(2 * MIB, wanted[i] / 50));
	}
}

/* The library leaves off a last group that is too small for its own tables. */
static void sizes_around_a_trimmed_group_keep_their_promise(void **state)
{
	const uint64_t group = 128 * MIB;

	(void)state;
	for (uint64_t size = 3 * group - 64 * 4096; size < 3 * group + 700 * 4096;
	     size += 37 * 4096) {
		config.min_size = size;
		check_size();
		assert_int_equal(ext4_size(fs), size);
	}
	config.min_size = 0;
	for (uint64_t wanted = 340 * MIB; wanted < 380 * MIB; wanted += 1300 * KIB) {
		config.free_bytes = wanted;
		check_size();
	}
}

static void a_file_fills_the_filesystem_across_groups(void **state)
{
	(void)state;
	config.min_size = 0;
	add_file(MODEL_ROOT, "a", 150 * MIB);
	add_file(MODEL_ROOT, "b", 4097);
	for (unsigned i = 0; i < 4; i++) {
		model.nodes[1].size += 1234567;
		check_size();
	}
}

static void sizes_are_multiples_of_the_step(void **state)
{
	(void)state;
	config.step = MIB;
	config.min_size = 33 * MIB + 1;
	check_size();
	assert_int_equal(ext4_size(fs), 34 * MIB);
	config.step = GIB;
	check_size();
	assert_int_equal(ext4_size(fs), GIB);
}

static void inodes_are_twice_those_used_or_one_per_16_kib(void **state)
{
	char name[32];

	(void)state;
	config.min_size = GIB;
	build_and_check();
	assert_true(field(ask("dumpe2fs -h image 2>&1"), "\nInode count: ") >= 65536);
	config.min_size = 0;
	for (unsigned i = 0; i < 40000; i++) {
		snprintf(name, sizeof name, "%u", i);
		if (i % 2)
			add_dir(MODEL_ROOT, name);
		else
			add_file(MODEL_ROOT, name, 1);
	}
	build_and_check();
	assert_true(field(ask("dumpe2fs -h image 2>&1"), "\nInode count: ") >= 80000);
	assert_int_equal(field(ask("dumpe2fs -h image 2>&1"), "\nBlocks per group: "), 32768);
}

static void a_tib_of_hole_costs_nothing(void **state)
{
	uint32_t node = add_node(S_IFREG | 0644);

	(void)state;
	model.nodes[node].size = TIB;
	model.nodes[node].data = MODEL_SPARSE;
	assert_int_equal(model_add_segment(&model, node, TIB / 4096 - 1, 1, &err), 0);
	link_node(MODEL_ROOT, "sparse", node);
	config.min_size = 0;
	check_size();
	assert_true(ext4_size(fs) < 6 * MIB);
	expect_text(debugfs("stat /sparse"), "(268435455):");
}

static void a_filesystem_of_a_tib_is_small_in_memory(void **state)
{
	uint64_t meta = 0;

	(void)state;
	config.min_size = TIB;
	add_file(MODEL_ROOT, "f", 12345);
	check_size();
	for (uint64_t at = 0; at < ext4_size(fs);) {
		const struct ext4_piece piece = ext4_piece(fs, at, ext4_size(fs) - at);

		meta += piece.kind == EXT4_META ? piece.length : 0;
		at += piece.length;
	}
	assert_true(meta < 16 * MIB);
}

static void values_of_attributes_are_in_memory_once(void **state)
{
	const unsigned files = 4000;
	char value[3800], name[16];
	uint32_t random = 3;
	size_t before;

	(void)state;
	for (unsigned i = 0; i < files; i++) {
		for (size_t k = 0; k < sizeof value; k++)
			value[k] = (char)next_random(&random);
		snprintf(name, sizeof name, "f%u", i);
		set_xattrs(add_file(MODEL_ROOT, name, 0), "user.own", value, sizeof value);
	}
	before = mallinfo2().uordblks;
	build();
	assert_true(mallinfo2().uordblks - before < files * 1024);
	write_image("image");
	expect_clean("image");
	debugfs("ea_get -f out /f3999 user.own");
	assert_int_equal(shell("[ $(stat -c %%s out) = 3800 ]"), 0);
}

/* The library's own words for it, or none, are of no help to a user. */
static void build_with_little_memory(size_t bytes)
{
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	if (!statm || fscanf(statm, "%lu", &pages) != 1)
		_exit(3);
	fclose(statm);
	limit.rlim_cur = limit.rlim_max = pages * (size_t)sysconf(_SC_PAGESIZE) + bytes;
	if (setrlimit(RLIMIT_AS, &limit) < 0)
		_exit(3);
	if (ext4_build(&config, &err))
		_exit(0);
	_exit(strstr(err.text, "out of memory") ? 1 : 2);
}

static void without_memory_that_is_what_it_says(void **state)
{
	unsigned failed = 0;
	int status = 1;

	(void)state;
	if (WITH_ADDRESS_SANITIZER)
		skip(); /* takes all addresses there are */
	config.min_size = 256 * GIB;
	for (size_t bytes = 0; status != 0 && bytes < 256 * MIB; bytes += 128 * KIB, failed++) {
		const pid_t child = fork();

		if (child == 0)
			build_with_little_memory(bytes);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	}
	assert_int_equal(status, 0);
	assert_true(failed > 10);
}

static void sizes_that_ext4_cannot_have_are_refused(void **state)
{
	(void)state;
	config.free_bytes = 16 * TIB;
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	config.free_bytes = UINT64_MAX;
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	config.free_bytes = 0;
	config.min_size = UINT64_MAX;
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
}

static void a_short_piece_is_the_beginning_of_a_long_one(void **state)
{
	uint8_t whole[8192], part[8192];

	(void)state;
	add_file(MODEL_ROOT, "f", 300000);
	build();
	for (uint64_t at = 512; at < 2 * MIB; at += 4096 + 512) {
		const struct ext4_piece a = ext4_piece(fs, at, GIB), b = ext4_piece(fs, at, 700);

		assert_int_equal(a.kind, b.kind);
		assert_int_equal(b.length, MIN(a.length, 700));
		assert_int_equal(a.offset, b.offset);
		if (a.kind != EXT4_META)
			continue;
		ext4_copy_meta(fs, whole, sizeof whole, round_down(at, 4096));
		ext4_copy_meta(fs, part, b.length, at);
		assert_memory_equal(whole + at % 4096, part, b.length);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_begin, kit_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_memory_that_is_what_it_says), /* first: what others freed is memory */
		TEST(the_smallest_holds_what_it_has_to),
		TEST(free_space_is_kept_and_hardly_more),
		TEST(sizes_around_a_trimmed_group_keep_their_promise),
		TEST(a_file_fills_the_filesystem_across_groups),
		TEST(sizes_are_multiples_of_the_step),
		TEST(inodes_are_twice_those_used_or_one_per_16_kib),
		TEST(a_tib_of_hole_costs_nothing),
		TEST(a_filesystem_of_a_tib_is_small_in_memory),
		TEST(values_of_attributes_are_in_memory_once),
		TEST(sizes_that_ext4_cannot_have_are_refused),
		TEST(a_short_piece_is_the_beginning_of_a_long_one),
	};

	return cmocka_run_group_tests(tests, kit_enter, kit_leave);
}
