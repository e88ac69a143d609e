// SPDX-License-Identifier: Apache-2.0
/* Attributes in an image, and what happens when files change or go after it was
 * laid out.
 */
#include "ext4-build-kit.h"

/* --- attributes ------------------------------------------------------------------ */

static void attributes_are_stored_and_equal_blocks_shared(void **state)
{
	uint32_t first = MODEL_NONE, node;
	char big[2000], name[32];

	(void)state;
	memset(big, 'v', sizeof big);
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "f%u", i);
		node = add_file(MODEL_ROOT, name, 0);
		if (first == MODEL_NONE)
			set_xattrs(node, "user.big", big, sizeof big);
		first = first == MODEL_NONE ? node : first;
		model.nodes[node].xattrs = model.nodes[first].xattrs;
	}
	node = add_file(MODEL_ROOT, "small", 0);
	set_xattrs(node, "user.k", "value", 5);
	build_and_check();
	expect_text(debugfs("ea_list /small"), "user.k (5) = \"value\"");
	expect_text(debugfs("ea_list /f2999"), "user.big (2000)");
	assert_string_not_equal(debugfs("ex /f0"), "");
	expect_text(debugfs("stat /f5"), "Blockcount: 8");
	assert_true(ext4_free_bytes(fs) > 4 * MIB);
	assert_int_equal(account.count[ACCOUNT_ATTRIBUTE], 0);
}

/* Of two sets only one part differs, and that part is in the inode. */
static void blocks_are_shared_between_different_sets(void **state)
{
	char big[1000];
	uint32_t a = add_file(MODEL_ROOT, "a", 0), b = add_file(MODEL_ROOT, "b", 0);
	char *acl, first[32];

	(void)state;
	memset(big, 'v', sizeof big);
	for (unsigned i = 0; i < 2; i++) {
		const struct model_xattr attrs[] = { { "user.a", i ? "2" : "1", 1 },
						     { "user.big", big, sizeof big } };

		assert_int_equal(
			model_xattrs(&model, attrs, 2, &model.nodes[i ? b : a].xattrs, &err), 0);
	}
	build_and_check();
	acl = strstr(debugfs("stat /a"), "File ACL: ");
	assert_non_null(acl);
	snprintf(first, sizeof first, "%.*s", (int)strcspn(acl, "\n"), acl);
	expect_text(debugfs("stat /b"), first);
	assert_null(strstr(first, "ACL: 0"));
}

static void what_cannot_be_stored_is_in_the_account(void **state)
{
	uint32_t dir = add_dir(MODEL_ROOT, "dir"), big = add_file(dir, "big", 3),
		 late = add_file(dir, "late", 3), odd = add_file(dir, "odd", 3);
	char *value = calloc(1, 60000);

	(void)state;
	set_xattrs(big, "user.huge", value, 60000);
	set_xattrs(odd, "btrfs.compression", "zstd", 4);
	free(value);
	model.nodes[late].mtime_sec = INT64_MAX;
	build_and_check();
	assert_int_equal(account.count[ACCOUNT_ATTRIBUTE], 3);
	assert_int_equal(account.len, 3);
	assert_string_equal(account.at[0].path, "/dir/big");
	expect_text(account.at[0].detail, "user.huge: ");
	assert_string_equal(account.at[1].path, "/dir/late");
	assert_string_equal(account.at[2].path, "/dir/odd");
	assert_int_equal(ext4_replace(fs, late, &err), 0);
	assert_int_equal(account.count[ACCOUNT_ATTRIBUTE], 3);
}

/* An ACL for so many that no block holds it; the group has r-x of its rwx. */
static void set_large_acl(uint32_t node, const char *name)
{
	static const uint8_t begin[] = { 2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff },
			     rest[] = { 4,  0, 5, 0, 0xff, 0xff, 0xff, 0xff,
					16, 0, 7, 0, 0xff, 0xff, 0xff, 0xff,
					32, 0, 0, 0, 0xff, 0xff, 0xff, 0xff };
	uint8_t acl[12 + 8 * 600 + sizeof rest];
	size_t size = sizeof begin;

	memcpy(acl, begin, sizeof begin);
	for (uint16_t i = 0; i < 600; i++, size += 8)
		memcpy(acl + size, (uint8_t[]){ 2, 0, 7, 0, (uint8_t)i, (uint8_t)(i >> 8), 1, 0 },
		       8);
	memcpy(acl + size, rest, sizeof rest);
	set_xattrs(node, name, acl, size + sizeof rest);
}

static void a_lost_acl_gives_the_group_no_more_rights(void **state)
{
	uint32_t dir = add_dir(MODEL_ROOT, "dir"), file = add_file(dir, "file", 3),
		 broken = add_file(dir, "broken", 3), again = add_file(dir, "later", 3);

	(void)state;
	set_large_acl(dir, "system.posix_acl_default");
	set_large_acl(file, "system.posix_acl_access");
	set_xattrs(broken, "system.posix_acl_access", "nonsense", 8);
	model.nodes[file].mode = model.nodes[broken].mode = model.nodes[again].mode =
		S_IFREG | 0770;
	build_and_check();
	expect_text(debugfs("stat /dir"), "Mode:  0755");
	expect_text(debugfs("stat /dir/file"), "Mode:  0750");
	expect_text(debugfs("stat /dir/broken"), "Mode:  0700");
	expect_text(debugfs("stat /dir/later"), "Mode:  0770");
	assert_int_equal(account.len, 3);
	expect_text(account.at[0].detail, "more rights");
	expect_text(account.at[2].detail, "rights of the group and of others are cut");
	expect_text(account.at[1].detail, "rights of the group and of others are cut");

	model.nodes[again].xattrs = model.nodes[file].xattrs;
	assert_int_equal(ext4_replace(fs, again, &err), 0);
	write_image("image");
	expect_text(debugfs("stat /dir/later"), "Mode:  0750");
	assert_int_equal(account.len, 4);
	assert_int_equal(model.nodes[again].mode, S_IFREG | 0770);
}

/* --- changes -------------------------------------------------------------------------- */

static struct extent_list changed;

static void commit(void)
{
	extent_list_free(&changed);
	if (ext4_commit(fs, 0, &changed, &err) < 0)
		fail_msg("%s", err.text);
}

/* Bring the image up to date by what was reported, and no more. */
static void update_image(const uint32_t *nodes, size_t count)
{
	const int fd = open("image", O_RDWR | O_CLOEXEC);
	static const uint8_t zeros[4096];

	commit();
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ext4_locate(fs, nodes[i], 0, &changed, &err), 0);
	for (size_t i = 0; i < changed.len; i++) {
		const struct extent *e = &changed.at[i];

		for (uint64_t at = e->offset; at < e->offset + e->length; at += 4096)
			assert_int_equal(pwrite(fd, zeros, 4096, (off_t)at), 4096);
		write_range(fd, e->offset, e->length);
	}
	close(fd);
	extent_list_free(&changed);
}

/* Files that are read again and metadata that is reported make the same image
 * as all of it written anew; blocks that nobody has any more do not count.
 */
static void expect_updated(const uint32_t *nodes, size_t count)
{
	update_image(nodes, count);
	expect_clean("image");
	write_image("image2");
	expect_clean("image2");
}

static void nothing_changed_is_nothing_reported(void **state)
{
	(void)state;
	add_file(MODEL_ROOT, "f", 5000);
	build();
	commit();
	assert_int_equal(changed.len, 0);
}

static void a_file_that_grew_has_all_its_bytes(void **state)
{
	uint32_t d = add_dir(MODEL_ROOT, "d"), log = add_file(d, "log", 10000),
		 other = add_file(d, "other", 10000);

	(void)state;
	build_and_check();
	for (unsigned round = 0; round < 6; round++) {
		model.nodes[log].size = model.nodes[log].size * 3 + 17;
		assert_int_equal(ext4_replace(fs, log, &err), 0);
		expect_updated(&log, 1);
		expect_bytes("/d/log", log);
		expect_bytes("/d/other", other);
	}
}

static void a_file_that_kept_its_blocks_keeps_their_places(void **state)
{
	uint32_t f = add_file(MODEL_ROOT, "f", 10000);
	struct extent_list before = { 0 }, after = { 0 };

	(void)state;
	build_and_check();
	assert_int_equal(ext4_locate(fs, f, 0, &before, &err), 0);
	model.nodes[f].size = 9999;
	model.nodes[f].mtime_sec++;
	assert_int_equal(ext4_replace(fs, f, &err), 0);
	assert_int_equal(ext4_locate(fs, f, 0, &after, &err), 0);
	assert_int_equal(before.len, 1);
	assert_int_equal(after.len, 1);
	assert_int_equal(before.at[0].offset, after.at[0].offset);
	expect_updated(&f, 1);
	expect_bytes("/f", f);
	extent_list_free(&before);
	extent_list_free(&after);
}

static void files_become_empty_sparse_edited_and_large(void **state)
{
	uint32_t f = add_file(MODEL_ROOT, "f", 300000);
	struct model_node *n;

	(void)state;
	config.free_bytes = 64 * MIB;
	build_and_check();
	n = &model.nodes[f];
	n->size = 0;
	assert_int_equal(ext4_replace(fs, f, &err), 0);
	expect_updated(&f, 1);
	expect_bytes("/f", f);

	n->size = 8000 * 4096;
	n->data = MODEL_SPARSE;
	for (uint32_t i = 0; i < 4000; i++)
		assert_int_equal(model_add_segment(&model, f, 2 * i, 1, &err), 0);
	assert_int_equal(ext4_replace(fs, f, &err), 0);
	expect_updated(&f, 1);
	expect_text(debugfs("stat /f"), "(7998):");

	n->content = calloc(1, 9000);
	n->size = 9000;
	assert_int_equal(ext4_replace(fs, f, &err), 0);
	expect_updated(NULL, 0);
	expect_bytes("/f", f);

	free(n->content);
	n->content = strdup("now it is text");
	n->size = strlen(n->content);
	assert_int_equal(ext4_replace(fs, f, &err), 0);
	expect_updated(NULL, 0);
	expect_bytes("/f", f);

	free(n->content);
	n->content = NULL;
	n->data = MODEL_DENSE;
	n->size = 40 * MIB;
	assert_int_equal(ext4_replace(fs, f, &err), 0);
	expect_updated(&f, 1);
	expect_bytes("/f", f);
}

static void a_link_gets_another_target(void **state)
{
	uint32_t l = add_content(MODEL_ROOT, "l", S_IFLNK | 0777, "short");
	char target[200];

	(void)state;
	build_and_check();
	memset(target, 't', sizeof target);
	for (size_t len = 150; len >= 30; len -= 30) {
		free(model.nodes[l].content);
		target[len] = '\0';
		model.nodes[l].content = strdup(target);
		model.nodes[l].size = len;
		assert_int_equal(ext4_replace(fs, l, &err), 0);
		expect_updated(NULL, 0);
	}
	expect_text(debugfs("stat /l"), "Fast link dest: \"tttt");
}

static void attributes_change_without_harm_to_those_who_share(void **state)
{
	uint32_t f[3];
	char big[1500], other[1500];

	(void)state;
	memset(big, 'v', sizeof big);
	memset(other, 'w', sizeof other);
	for (unsigned i = 0; i < 3; i++) {
		f[i] = add_file(MODEL_ROOT, i == 0 ? "f0" : i == 1 ? "f1" : "f2", 10);
		set_xattrs(f[i], "user.big", big, sizeof big);
	}
	build_and_check();
	set_xattrs(f[0], "user.big", other, sizeof other);
	assert_int_equal(ext4_replace(fs, f[0], &err), 0);
	expect_updated(f, 1);
	model.nodes[f[1]].xattrs = 0;
	assert_int_equal(ext4_replace(fs, f[1], &err), 0);
	expect_updated(f, 2);
	assert_int_equal(ext4_remove(fs, f[2], &err), 0);
	expect_updated(f, 2);
	expect_text(debugfs("ea_get /f0 user.big"), "wwww");
	assert_null(strstr(debugfs("ea_list /f1"), "user"));
}

static void removed_files_are_gone_by_all_their_names(void **state)
{
	uint32_t d = add_dir(MODEL_ROOT, "d"), e = add_dir(MODEL_ROOT, "e"), node[3000], kept;
	char name[100];

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "file-with-a-name-%04u", i);
		node[i] = add_file(d, name, i);
	}
	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "again-%04u", i);
		link_node(e, name, node[i]);
	}
	kept = add_content(d, "kept", S_IFREG | 0644, "here");
	build_and_check();
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = round; i < 3000; i += 7)
			assert_int_equal(ext4_remove(fs, node[i], &err), 0);
		expect_updated(NULL, 0);
	}
	expect_text(debugfs("stat /d/file-with-a-name-0700"), "File not found");
	expect_text(debugfs("stat /e/again-0701"), "File not found");
	expect_bytes("/d/file-with-a-name-0003", node[3]);
	expect_bytes("/e/again-2999", node[2999]);
	expect_bytes("/d/kept", kept);
	assert_int_equal(ext4_remove(fs, node[0], &err), -1);
	assert_int_equal(ext4_replace(fs, node[0], &err), -1);
}

static void every_kind_of_file_can_go(void **state)
{
	uint32_t all[6];
	char target[101];

	(void)state;
	memset(target, 't', 100);
	target[100] = '\0';
	all[0] = add_node(S_IFIFO | 0600);
	link_node(MODEL_ROOT, "pipe", all[0]);
	all[1] = add_content(MODEL_ROOT, "long", S_IFLNK | 0777, target);
	all[2] = add_content(MODEL_ROOT, "short", S_IFLNK | 0777, "t");
	all[3] = add_content(MODEL_ROOT, "made", S_IFREG | 0644, target);
	all[4] = add_file(MODEL_ROOT, "empty", 0);
	all[5] = add_file(MODEL_ROOT, "file", 70000);
	build_and_check();
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(ext4_remove(fs, all[i], &err), 0);
		expect_updated(NULL, 0);
	}
	expect_text(debugfs("stat /"), "Links: 3 ");
}

static void freed_blocks_are_used_again(void **state)
{
	uint32_t f[2];
	uint64_t before;

	(void)state;
	f[0] = add_file(MODEL_ROOT, "a", 4 * MIB);
	f[1] = add_file(MODEL_ROOT, "b", 4 * MIB);
	build_and_check();
	before = ext4_free_bytes(fs);
	for (unsigned round = 0; round < 40; round++) {
		model.nodes[f[round % 2]].size = (round % 3 + 1) * MIB;
		assert_int_equal(ext4_replace(fs, f[round % 2], &err), 0);
	}
	model.nodes[f[0]].size = model.nodes[f[1]].size = 4 * MIB;
	assert_int_equal(ext4_replace(fs, f[0], &err), 0);
	assert_int_equal(ext4_replace(fs, f[1], &err), 0);
	assert_int_equal(ext4_free_bytes(fs), before);
	expect_updated(f, 2);
	expect_bytes("/a", f[0]);
	expect_bytes("/b", f[1]);
}

static void a_full_filesystem_says_so_and_stays_whole(void **state)
{
	uint32_t f = add_file(MODEL_ROOT, "f", 5000);

	(void)state;
	build_and_check();
	model.nodes[f].size = 20 * MIB;
	assert_int_equal(ext4_replace(fs, f, &err), -1);
	assert_int_equal(err.kind, ERR_FAILED);
	expect_text(err.text, "full");
	model.nodes[f].size = 5000;
	expect_updated(NULL, 0);
	expect_bytes("/f", f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_begin, kit_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(attributes_are_stored_and_equal_blocks_shared),
		TEST(blocks_are_shared_between_different_sets),
		TEST(what_cannot_be_stored_is_in_the_account),
		TEST(a_lost_acl_gives_the_group_no_more_rights),
		TEST(nothing_changed_is_nothing_reported),
		TEST(a_file_that_grew_has_all_its_bytes),
		TEST(a_file_that_kept_its_blocks_keeps_their_places),
		TEST(files_become_empty_sparse_edited_and_large),
		TEST(a_link_gets_another_target),
		TEST(attributes_change_without_harm_to_those_who_share),
		TEST(removed_files_are_gone_by_all_their_names),
		TEST(every_kind_of_file_can_go),
		TEST(freed_blocks_are_used_again),
		TEST(a_full_filesystem_says_so_and_stays_whole),
	};

	return cmocka_run_group_tests(tests, kit_enter, kit_leave);
}
