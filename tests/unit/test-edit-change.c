// SPDX-License-Identifier: Apache-2.0
#include "tree-kit.h"

static const struct tree_file small[] = {
	TREE_FILE("etc/fstab", "UUID=1 / ext4\n"),
	TREE_FILE("etc/empty", ""),
	TREE_LINK("etc/link", "fstab"),
	TREE_LINK("etc/absolute", "/etc/fstab"),
	TREE_LINK("etc/out", "../../../../etc/fstab"),
	TREE_LINK("etc/dangling", "nowhere"),
	TREE_MODE("etc/fifo", NULL, S_IFIFO | 0600),
	TREE_SAME("etc/other-name", "etc/fstab"),
	TREE_FILE("etc/a.d/10-x.conf", "x"),
	TREE_FILE("etc/a.d/2-y.conf", "y"),
	TREE_FILE("etc/a.d/.hidden.conf", "h"),
	TREE_FILE("etc/a.d/readme", "r"),
	TREE_FILE("etc/b.d/10-x.conf/inner", "i"),
	TREE_LINK("etc/c.d", "a.d"),
	{ 0 },
};

/* Without the FIFO, which the kit does not make. */
static const struct tree_file real[] = {
	TREE_FILE("etc/fstab", "UUID=1 / ext4\n"),
	TREE_LINK("etc/link", "/etc/fstab"),
	TREE_SAME("etc/other-name", "etc/fstab"),
	TREE_MODE("etc/private", "secret", S_IFREG | 0600),
	{ 0 },
};

static const struct model_node *node_at(const struct tree *t, const char *path)
{
	uint32_t node = tree_find(t, path);

	assert_int_not_equal(node, MODEL_NONE);
	return &t->model.nodes[node];
}

static void a_written_file_is_read_back_and_the_source_stays(void **state)
{
	const struct model_node *n;
	struct stat before, after;
	autotree struct tree t;
	char full[128];

	(void)state;
	tree_start_real(&t, real);
	tree_join(&t, "etc/fstab", full, sizeof full);
	assert_int_equal(stat(full, &before), 0);
	assert_int_equal(edit_write(&t.edit, "etc/link", "new", 3, "because", &t.err), 0);
	assert_text(&t, "etc/fstab", "new");
	assert_text(&t, "etc/other-name", "new");
	assert_string_equal(tree_told(&t, ACCOUNT_EDITED, "etc/fstab"), "because");

	n = node_at(&t, "etc/fstab");
	assert_int_equal(n->size, 3);
	assert_int_equal(n->data, MODEL_DENSE);
	assert_int_equal(n->mtime_sec, TREE_TIME);
	assert_int_equal(n->mode, S_IFREG | 0644);
	assert_int_equal(stat(full, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim);
	assert_int_equal(before.st_size, after.st_size);
}

static void a_sparse_file_loses_its_segments_when_written(void **state)
{
	autotree struct tree t;
	uint32_t node;

	(void)state;
	tree_start(&t, small);
	node = tree_find(&t, "etc/fstab");
	t.model.nodes[node].data = MODEL_SPARSE;
	t.model.nodes[node].reader_flags = 1;
	assert_int_equal(model_add_segment(&t.model, node, 7, 1, &t.err), 0);
	assert_int_equal(edit_write(&t.edit, "etc/fstab", "", 0, "w", &t.err), 0);
	assert_int_equal(t.model.nodes[node].data, MODEL_HOLES);
	assert_int_equal(t.model.nodes[node].count, 0);
	assert_int_equal(t.model.nodes[node].reader_flags, 0);
	assert_non_null(t.model.nodes[node].content);
	assert_int_equal(model_data_blocks(&t.model, node), 0);
	assert_text(&t, "etc/fstab", "");
}

static void writing_what_is_not_there_is_an_error(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(edit_write(&t.edit, "etc/nosuch", "x", 1, "w", &t.err), -1);
	assert_non_null(strstr(t.err.text, "/etc/nosuch"));
	assert_int_equal(edit_write(&t.edit, "etc/a.d", "x", 1, "w", &t.err), -1);
	assert_int_equal(t.account.len, 0);
}

static bool has_attribute(const struct tree *t, const char *path, const char *name)
{
	const struct model_xattr_set *set = &t->model.sets[node_at(t, path)->xattrs];

	for (size_t i = 0; i < set->len; i++)
		if (str_equal(set->at[i].name, name))
			return true;
	return false;
}

static void attributes_bound_to_the_bytes_go_and_others_stay(void **state)
{
	static const struct model_xattr all[] = {
		{ "security.capability", "c", 1 },
		{ "security.evm", "e", 1 },
		{ "security.ima", "i", 1 },
		{ "security.selinux", "label", 6 },
		{ "system.posix_acl_access", "a", 1 },
		{ "user.k", "v", 1 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(model_xattrs(&t.model, all, sizeof all / sizeof *all,
				      &t.model.nodes[tree_find(&t, "etc/fstab")].xattrs, &t.err),
			 0);
	assert_int_equal(edit_write(&t.edit, "etc/fstab", "x", 1, "why", &t.err), 0);
	for (size_t i = 0; i < 3; i++)
		assert_false(has_attribute(&t, "etc/fstab", all[i].name));
	for (size_t i = 3; i < 6; i++)
		assert_true(has_attribute(&t, "etc/fstab", all[i].name));
	assert_non_null(strstr(tree_told(&t, ACCOUNT_EDITED, "etc/fstab"), "attributes"));
}

static void a_file_is_made_with_its_directories(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(
		edit_create(&t.edit, "/etc/new.d/deep//er/file", "text", 4, 0600, "why", &t.err),
		0);
	assert_text(&t, "etc/new.d/deep/er/file", "text");
	assert_int_equal(node_at(&t, "etc/new.d/deep/er/file")->mode, S_IFREG | 0600);
	assert_int_equal(node_at(&t, "etc/new.d/deep")->mode, S_IFDIR | 0755);
	assert_int_equal(node_at(&t, "etc/new.d")->mtime_sec, TREE_TIME);
	assert_string_equal(tree_told(&t, ACCOUNT_EDITED, "etc/new.d/deep/er/file"), "why");
	assert_int_equal(t.account.len, 1);
	assert_int_equal(edit_create(&t.edit, "top", "", 0, 0644, "why", &t.err), 0);
	assert_text(&t, "top", "");
	assert_int_equal(edit_create(&t.edit, "etc/c.d/through", "x", 1, 0644, "why", &t.err), 0);
	assert_text(&t, "etc/a.d/through", "x");
	assert_non_null(tree_told(&t, ACCOUNT_EDITED, "etc/a.d/through"));
}

static void nothing_is_made_over_what_is_there(void **state)
{
	static const char *const taken[] = {
		"etc/fstab",	   "etc/dangling",	 "etc/a.d",	  "etc", "",
		"etc/fstab/below", "etc/dangling/below", "etc/fifo/below"
	};
	autotree struct tree t;
	uint32_t before;

	(void)state;
	tree_start(&t, small);
	before = t.model.entry_count;
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		assert_int_equal(edit_create(&t.edit, taken[i], "x", 1, 0644, "w", &t.err), -1);
	assert_int_equal(t.model.entry_count, before);
	assert_int_equal(t.account.len, 0);
	assert_text(&t, "etc/fstab", "UUID=1 / ext4\n");
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	autotree struct tree t;
	char name[300];

	(void)state;
	tree_start(&t, small);
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(edit_create(&t.edit, name, "x", 1, 0644, "w", &t.err), -1);
	assert_int_equal(t.account.len, 0);
}

static void removing_takes_the_link_and_not_its_target(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(edit_remove(&t.edit, "etc/link", "why", &t.err), 0);
	assert_false(tree_has(&t, "etc/link"));
	assert_text(&t, "etc/fstab", "UUID=1 / ext4\n");
	assert_string_equal(tree_told(&t, ACCOUNT_RESET, "etc/link"), "why");
}

static void removing_one_of_two_names_leaves_the_other(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start_real(&t, real);
	assert_int_equal(edit_remove(&t.edit, "etc/fstab", "why", &t.err), 0);
	assert_false(tree_has(&t, "etc/fstab"));
	assert_text(&t, "etc/other-name", "UUID=1 / ext4\n");
}

static void a_directory_goes_with_all_below_and_is_told_once(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(edit_remove(&t.edit, "/etc/b.d/", "why", &t.err), 0);
	assert_false(tree_has(&t, "etc/b.d"));
	assert_int_equal(t.account.len, 1);
	assert_non_null(tree_told(&t, ACCOUNT_RESET, "etc/b.d"));
	assert_int_equal(edit_remove(&t.edit, "etc/c.d/2-y.conf", "why", &t.err), 0);
	assert_non_null(tree_told(&t, ACCOUNT_RESET, "etc/a.d/2-y.conf"));
	assert_false(tree_has(&t, "etc/a.d/2-y.conf"));
}

static void removing_what_is_not_there_is_told_nobody(void **state)
{
	static const char *const absent[] = { "etc/nosuch", "nosuch/x", "etc/fstab/x",
					      "",	    "/",	".",
					      "etc/.",	    "etc/..",	"etc/dangling/x" };
	autotree struct tree t;
	uint32_t before;

	(void)state;
	tree_start(&t, small);
	before = node_at(&t, "etc")->count;
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
		assert_int_equal(edit_remove(&t.edit, absent[i], "w", &t.err), 0);
	assert_int_equal(edit_remove_content(&t.edit, "nosuch", "w", &t.err), 0);
	assert_int_equal(edit_remove_content(&t.edit, "etc/fstab", "w", &t.err), 0);
	assert_int_equal(edit_empty(&t.edit, "etc/nosuch", "w", &t.err), 0);
	assert_int_equal(t.account.len, 0);
	assert_int_equal(node_at(&t, "etc")->count, before);
}

static void content_goes_and_its_directory_stays(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(edit_remove_content(&t.edit, "etc/a.d", "why", &t.err), 0);
	assert_int_equal(node_at(&t, "etc/a.d")->count, 0);
	assert_non_null(strstr(tree_told(&t, ACCOUNT_RESET, "etc/a.d"), "why"));
	assert_int_equal(edit_remove_content(&t.edit, "etc/a.d", "why", &t.err), 0);
	assert_int_equal(t.account.len, 1);
	assert_true(tree_has(&t, "etc/b.d/10-x.conf/inner"));
}

static void emptying_works_on_files_and_replaces_links(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_int_equal(edit_empty(&t.edit, "etc/link", "why", &t.err), 0);
	assert_int_equal(node_at(&t, "etc/link")->mode, S_IFREG | 0444);
	assert_text(&t, "etc/link", "");
	assert_text(&t, "etc/fstab", "UUID=1 / ext4\n");
	assert_string_equal(tree_told(&t, ACCOUNT_RESET, "etc/link"), "why");

	assert_int_equal(edit_empty(&t.edit, "etc/dangling", "why", &t.err), 0);
	assert_text(&t, "etc/dangling", "");
	assert_int_equal(edit_empty(&t.edit, "etc/fstab", "why", &t.err), 0);
	assert_text(&t, "etc/fstab", "");
	assert_int_equal(node_at(&t, "etc/fstab")->mode, S_IFREG | 0644);

	assert_int_equal(edit_empty(&t.edit, "etc/empty", "why", &t.err), 0);
	assert_int_equal(edit_empty(&t.edit, "etc/a.d", "why", &t.err), 0);
	assert_int_equal(t.account.len, 3);
	assert_true(tree_has(&t, "etc/a.d/readme"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_written_file_is_read_back_and_the_source_stays),
		cmocka_unit_test(a_sparse_file_loses_its_segments_when_written),
		cmocka_unit_test(writing_what_is_not_there_is_an_error),
		cmocka_unit_test(attributes_bound_to_the_bytes_go_and_others_stay),
		cmocka_unit_test(a_file_is_made_with_its_directories),
		cmocka_unit_test(nothing_is_made_over_what_is_there),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(removing_takes_the_link_and_not_its_target),
		cmocka_unit_test(removing_one_of_two_names_leaves_the_other),
		cmocka_unit_test(a_directory_goes_with_all_below_and_is_told_once),
		cmocka_unit_test(removing_what_is_not_there_is_told_nobody),
		cmocka_unit_test(content_goes_and_its_directory_stays),
		cmocka_unit_test(emptying_works_on_files_and_replaces_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
