// SPDX-License-Identifier: Apache-2.0
#include "ext4-build-kit.h"

#define TREE_BLOCK_EXTENTS 340

static void an_empty_filesystem_is_clean_and_has_a_lost_found(void **state)
{
	(void)state;
	build_and_check();
	assert_int_equal(ext4_size(fs), KIT_MIN);
	expect_text(debugfs("stat /lost+found"), "Inode: 11 ");
	expect_text(debugfs("stat /lost+found"), "Mode:  0700");
	expect_text(debugfs("stat /lost+found"), "Size: 16384");
	expect_text(debugfs("stat /"), "Links: 3 ");
}

static void features_are_the_pinned_ones_whatever_the_host_says(void **state)
{
	const char *text;

	(void)state;
	shell("printf '[defaults]\\nbase_features = metadata_csum_seed,orphan_file\\n' >image2");
	setenv("MKE2FS_CONFIG", "image2", 1);
	build();
	unsetenv("MKE2FS_CONFIG");
	write_image("image");
	text = ask("dumpe2fs -h image 2>&1");
	expect_text(text, "has_journal ext_attr resize_inode dir_index filetype extent 64bit "
			  "flex_bg sparse_super large_file huge_file dir_nlink extra_isize "
			  "metadata_csum\n");
	expect_text(text, "Filesystem volume name:   cloudimg\n");
	expect_text(text, "10213243-5465-4687-98a9-bacbdcedfe0f");
	expect_text(text, "signed_directory_hash");
	expect_text(text, "Inode size:	          256");
	expect_text(text, "Default directory hash:   half_md4");
	expect_text(text, "Filesystem state:         clean");
}

static void no_byte_depends_on_clock_or_environment(void **state)
{
	(void)state;
	add_file(add_dir(MODEL_ROOT, "d"), "f", 100000);
	build();
	write_image("image");
	setenv("E2FSPROGS_FAKE_TIME", "1234567890", 1);
	setenv("SOURCE_DATE_EPOCH", "1234567", 1);
	sleep(1);
	build();
	unsetenv("E2FSPROGS_FAKE_TIME");
	unsetenv("SOURCE_DATE_EPOCH");
	write_image("image2");
	assert_true(same_files("image", "image2"));
}

static void another_uuid_makes_another_hash_seed(void **state)
{
	char first[64], *seed;

	(void)state;
	build_and_check();
	seed = strstr(ask("dumpe2fs -h image 2>&1"), "Directory Hash Seed:");
	assert_non_null(seed);
	memcpy(first, seed, 63);
	first[63] = '\0';
	config.uuid[15] ^= 1;
	build_and_check();
	assert_null(strstr(ask("dumpe2fs -h image 2>&1"), first));
}

static void files_hold_their_bytes(void **state)
{
	uint32_t d, small, exact, empty, made;

	(void)state;
	d = add_dir(MODEL_ROOT, "d");
	small = add_file(d, "small", 5);
	exact = add_file(MODEL_ROOT, "exact", 3 * 4096);
	empty = add_file(d, "empty", 0);
	made = add_content(d, "made", S_IFREG | 0600, "text that was edited\n");
	build_and_check();
	expect_bytes("/d/small", small);
	expect_bytes("/exact", exact);
	expect_bytes("/d/empty", empty);
	expect_bytes("/d/made", made);
	assert_int_equal(model.nodes[MODEL_ROOT].ino, 2);
	assert_int_equal(model.nodes[d].ino, 12);
	assert_int_equal(model.nodes[exact].ino, 13);
	assert_int_equal(model.nodes[empty].ino, 14);
}

static void large_content_of_our_own_lies_in_metadata_only(void **state)
{
	uint32_t node;
	char *text = calloc(1, 300001);

	(void)state;
	memset(text, 'x', 300000);
	node = add_content(MODEL_ROOT, "big", S_IFREG | 0600, text);
	free(text);
	build_and_check();
	expect_bytes("/big", node);
	for (uint64_t at = 0; at < ext4_size(fs);) {
		const struct ext4_piece piece = ext4_piece(fs, at, ext4_size(fs) - at);

		assert_int_not_equal(piece.kind, EXT4_DATA);
		at += piece.length;
	}
}

static void holes_stay_holes_and_what_lies_behind_the_end_is_cut(void **state)
{
	uint32_t node = add_node(S_IFREG | 0644);

	(void)state;
	model.nodes[node].size = 100 * 4096 + 1;
	model.nodes[node].data = MODEL_SPARSE;
	assert_int_equal(model_add_segment(&model, node, 3, 2, &err), 0);
	assert_int_equal(model_add_segment(&model, node, 99, 5, &err), 0);
	assert_int_equal(model_add_segment(&model, node, 200, 5, &err), 0);
	link_node(MODEL_ROOT, "sparse", node);
	build_and_check();
	expect_text(debugfs("stat /sparse"), "(3-4):");
	expect_text(debugfs("stat /sparse"), "(99-100):");
	expect_text(debugfs("stat /sparse"), "Blockcount: 32");
}

static uint32_t add_comb(const char *name, uint32_t teeth)
{
	const uint32_t node = add_node(S_IFREG | 0644);

	model.nodes[node].size = (uint64_t)teeth * 2 * 4096;
	model.nodes[node].data = MODEL_SPARSE;
	for (uint32_t i = 0; i < teeth; i++)
		assert_int_equal(model_add_segment(&model, node, 2 * i, 1, &err), 0);
	link_node(MODEL_ROOT, name, node);
	return node;
}

static void extent_trees_of_every_height_are_clean(void **state)
{
	(void)state;
	add_comb("four", 4);
	add_comb("five", 5);
	add_comb("one-level", 4 * TREE_BLOCK_EXTENTS);
	add_comb("two-levels", 4 * TREE_BLOCK_EXTENTS + 1);
	add_comb("many", 3000);
	config.min_size = 64 * MIB;
	build_and_check();
	expect_text(debugfs("stat /many"), "(5998):");
	expect_text(debugfs("ex /one-level"), "1/ 1 340/340");
	expect_text(debugfs("ex /two-levels"), "2/ 2");
}

static void a_directory_of_100000_names_is_found_by_hash(void **state)
{
	uint32_t d = add_dir(MODEL_ROOT, "d");
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(name, sizeof name, "a-longish-name-%06u", i);
		add_file(d, name, i % 1000 == 0 ? 10 : 0);
	}
	build_and_check();
	expect_text(debugfs("stat /d/a-longish-name-077777"), "Type: regular");
	expect_text(debugfs("htree_dump /d"), "Indirect levels: 1");
}

static void more_than_65000_subdirectories_are_one_link(void **state)
{
	uint32_t d = add_dir(MODEL_ROOT, "d");
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 66000; i++) {
		snprintf(name, sizeof name, "%u", i);
		add_dir(d, name);
	}
	build_and_check();
	expect_text(debugfs("stat /d"), "Links: 1 ");
	expect_text(debugfs("stat /d/65999"), "Links: 2 ");
}

static void names_of_one_inode_share_it(void **state)
{
	uint32_t a = add_dir(MODEL_ROOT, "a"), b = add_dir(MODEL_ROOT, "b");
	uint32_t node = add_file(a, "first", 5000);
	char name[32];

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof name, "name%u", i);
		link_node(b, name, node);
	}
	build_and_check();
	expect_text(debugfs("stat /b/name1999"), "Links: 2001 ");
	expect_bytes("/b/name7", node);
}

static void too_many_names_are_refused_by_path(void **state)
{
	uint32_t node = add_file(add_dir(MODEL_ROOT, "a"), "first", 1);
	char name[32];

	(void)state;
	for (unsigned i = 1; i < 65000; i++) {
		snprintf(name, sizeof name, "%u", i);
		link_node(MODEL_ROOT, name, node);
	}
	build_and_check();
	link_node(MODEL_ROOT, "one-more", node);
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	expect_text(err.text, "/a/first");
}

static void special_files_and_links_are_as_they_were(void **state)
{
	uint32_t null = add_node(S_IFCHR | 0666), far = add_node(S_IFBLK | 0600);
	char target[4001];

	(void)state;
	model.nodes[null].rdev_major = 1;
	model.nodes[null].rdev_minor = 3;
	model.nodes[far].rdev_major = 259;
	model.nodes[far].rdev_minor = 70000;
	link_node(MODEL_ROOT, "null", null);
	link_node(MODEL_ROOT, "far", far);
	link_node(MODEL_ROOT, "pipe", add_node(S_IFIFO | 0600));
	link_node(MODEL_ROOT, "socket", add_node(S_IFSOCK | 0755));
	memset(target, 't', sizeof target);
	for (size_t len = 4000; len > 0; len = len == 4000 ? 60 : len == 60 ? 59 : 0) {
		char name[16];

		target[len] = '\0';
		snprintf(name, sizeof name, "l%zu", len);
		add_content(MODEL_ROOT, name, S_IFLNK | 0777, target);
	}
	build_and_check();
	expect_text(debugfs("stat /null"), "Device major/minor number: 01:03");
	expect_text(debugfs("stat /far"), "(New-style) Device major/minor number: 259:70000");
	expect_text(debugfs("stat /pipe"), "Type: FIFO");
	expect_text(debugfs("stat /socket"), "Type: socket");
	expect_text(debugfs("stat /l59"), "Fast link dest: \"ttt");
	expect_text(debugfs("stat /l60"), "Size: 60");
	expect_text(debugfs("stat /l60"), "Blockcount: 8");
	expect_text(debugfs("stat /l4000"), "Size: 4000");
}

static void what_ext4_cannot_hold_is_refused_by_path(void **state)
{
	uint32_t node = add_file(MODEL_ROOT, "odd", 0);

	(void)state;
	model.nodes[node].data = MODEL_HOLES;
	model.nodes[node].size = 16 * TIB - 4096;
	build_and_check();
	model.nodes[node].size++;
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	expect_text(err.text, "/odd");
	model.nodes[node].size = 0;
	model.nodes[node].mode = S_IFLNK | 0777;
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	model.nodes[node].mode = 0xf000;
	assert_null(ext4_build(&config, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
}

static void a_lost_found_of_the_model_is_used(void **state)
{
	uint32_t d = add_dir(MODEL_ROOT, "lost+found");
	uint32_t node = add_file(d, "#1234", 17);

	(void)state;
	model.nodes[d].mode = S_IFDIR | 0711;
	build_and_check();
	assert_int_equal(model.nodes[d].ino, 11);
	expect_text(debugfs("stat /lost+found"), "Mode:  0711");
	expect_text(debugfs("stat /lost+found"), "Size: 16384");
	expect_bytes("/lost+found/#1234", node);
}

static void a_file_may_be_called_lost_found(void **state)
{
	uint32_t node = add_file(MODEL_ROOT, "lost+found", 17);

	(void)state;
	build_and_check();
	expect_bytes("/lost+found", node);
	expect_text(debugfs("stat /"), "Links: 2 ");
}

static void what_is_mounted_or_without_a_path_is_left_out(void **state)
{
	uint32_t boot = add_dir(MODEL_ROOT, "boot"), root = add_node(S_IFDIR | 0700);

	(void)state;
	add_file(root, "vmlinuz", 8000);
	model.nodes[boot].mounted = root;
	model.nodes[root].parent = boot;
	add_file(add_node(S_IFDIR | 0755), "stray", 9);
	build_and_check();
	expect_text(debugfs("stat /boot"), "Links: 2 ");
	expect_text(debugfs("stat /boot/vmlinuz"), "File not found");
	config.root = root;
	build_and_check();
	expect_text(debugfs("stat /vmlinuz"), "Size: 8000");
	expect_text(debugfs("stat /"), "Mode:  0700");
}

static void a_name_that_was_listed_twice_is_there_once(void **state)
{
	(void)state;
	add_file(MODEL_ROOT, "twice", 5);
	add_dir(MODEL_ROOT, "twice");
	build_and_check();
}

static uint64_t place_of(uint32_t node)
{
	struct extent_list list = { 0 };
	uint64_t place;

	assert_int_equal(ext4_locate(fs, node, 0, &list, &err), 0);
	assert_int_equal(list.len, 1);
	place = list.at[0].offset;
	extent_list_free(&list);
	return place;
}

static void disk_order_is_the_order_of_the_walk(void **state)
{
	const uint32_t b = add_dir(MODEL_ROOT, "b"), a = add_dir(MODEL_ROOT, "a");
	const uint32_t last = add_file(b, "f", 5000), second = add_file(a, "z", 5000),
		       first = add_file(a, "c", 5000), top = add_file(MODEL_ROOT, "z", 5000);
	const uint32_t walk[] = { MODEL_ROOT, a, b, top, first, second, last };

	(void)state;
	build_and_check();
	for (size_t i = 1; i < sizeof walk / sizeof *walk; i++)
		assert_true(place_of(walk[i - 1]) < place_of(walk[i]));
	assert_true(model.nodes[a].ino < model.nodes[b].ino);
	assert_true(model.nodes[top].ino < model.nodes[first].ino);
	assert_true(model.nodes[second].ino < model.nodes[last].ino);
}

static void depth_needs_no_stack(void **state)
{
	uint32_t d = MODEL_ROOT;

	(void)state;
	for (unsigned i = 0; i < 30000; i++)
		d = add_dir(d, "d");
	build_and_check();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_begin, kit_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_filesystem_is_clean_and_has_a_lost_found),
		TEST(features_are_the_pinned_ones_whatever_the_host_says),
		TEST(no_byte_depends_on_clock_or_environment),
		TEST(another_uuid_makes_another_hash_seed),
		TEST(files_hold_their_bytes),
		TEST(large_content_of_our_own_lies_in_metadata_only),
		TEST(holes_stay_holes_and_what_lies_behind_the_end_is_cut),
		TEST(extent_trees_of_every_height_are_clean),
		TEST(a_directory_of_100000_names_is_found_by_hash),
		TEST(more_than_65000_subdirectories_are_one_link),
		TEST(names_of_one_inode_share_it),
		TEST(too_many_names_are_refused_by_path),
		TEST(special_files_and_links_are_as_they_were),
		TEST(what_ext4_cannot_hold_is_refused_by_path),
		TEST(a_lost_found_of_the_model_is_used),
		TEST(a_file_may_be_called_lost_found),
		TEST(what_is_mounted_or_without_a_path_is_left_out),
		TEST(a_name_that_was_listed_twice_is_there_once),
		TEST(disk_order_is_the_order_of_the_walk),
		TEST(depth_needs_no_stack),
	};

	return cmocka_run_group_tests(tests, kit_enter, kit_leave);
}
