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

static bool is_missing(struct tree *t, const char *path)
{
	bool missing = false;
	size_t len;

	assert_null(edit_read(&t->edit, path, &len, &missing, &t->err));
	return missing;
}

static void assert_globs(struct tree *t, const char *pattern, const char *const *expected)
{
	char **paths = edit_glob(&t->edit, pattern, &t->err);
	size_t i = 0;

	assert_non_null(paths);
	for (; expected[i]; i++) {
		assert_non_null(paths[i]);
		assert_string_equal(paths[i], expected[i]);
	}
	assert_null(paths[i]);
	edit_glob_free(paths);
}

#define GLOBS(t, pattern, ...)	  assert_globs(t, pattern, (const char *const[]){ __VA_ARGS__, NULL })
#define GLOBS_NOTHING(t, pattern) assert_globs(t, pattern, (const char *const[]){ NULL })

/* --- reading --------------------------------------------------------------- */

static void reads_files_from_the_source(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start_real(&t, real);
	assert_text(&t, "etc/fstab", "UUID=1 / ext4\n");
	assert_text(&t, "/etc/fstab", "UUID=1 / ext4\n");
	assert_text(&t, "etc/link", "UUID=1 / ext4\n");
	assert_int_equal(t.account.len, 0);
}

static void what_is_no_regular_file_is_missing_and_no_error(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_true(is_missing(&t, "etc/nosuch"));
	assert_true(is_missing(&t, "nosuch/dir/file"));
	assert_true(is_missing(&t, "etc"));
	assert_true(is_missing(&t, "etc/fifo"));
	assert_true(is_missing(&t, "etc/dangling"));
	assert_true(is_missing(&t, "etc/fstab/below"));
	assert_true(is_missing(&t, ""));
	assert_false(edit_exists(&t.edit, "etc/nosuch"));
	assert_true(edit_exists(&t.edit, "etc"));
	assert_false(edit_exists(&t.edit, "etc/dangling"));
}

static void links_never_lead_out_of_the_tree(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	assert_text(&t, "etc/out", "UUID=1 / ext4\n");
	assert_text(&t, "etc/absolute", "UUID=1 / ext4\n");
}

static void bytes_with_nul_come_whole(void **state)
{
	static const char bytes[] = "a\0b\0";
	autotree struct tree t;
	bool missing;
	size_t len;

	(void)state;
	tree_start_real(&t, real);
	assert_int_equal(edit_write(&t.edit, "etc/fstab", bytes, sizeof bytes, "w", &t.err), 0);

	autofree char *text = edit_read(&t.edit, "etc/fstab", &len, &missing, &t.err);

	assert_non_null(text);
	assert_int_equal(len, sizeof bytes);
	assert_memory_equal(text, bytes, sizeof bytes);
	assert_int_equal(text[len], '\0');
}

static void a_file_that_is_too_large_is_refused_by_name(void **state)
{
	autotree struct tree t;
	char full[128];
	bool missing;
	size_t len;

	(void)state;
	tree_start_real(&t, real);
	tree_join(&t, "etc/fstab", full, sizeof full);
	assert_int_equal(truncate(full, 4 << 20), 0);
	autofree char *most = edit_read(&t.edit, "etc/fstab", &len, &missing, &t.err);
	assert_non_null(most);
	assert_int_equal(len, 4 << 20);

	assert_int_equal(truncate(full, INT64_C(1) << 40), 0);
	assert_null(edit_read(&t.edit, "etc/fstab", &len, &missing, &t.err));
	assert_false(missing);
	assert_non_null(strstr(t.err.text, "/etc/fstab"));
}

static void a_file_that_went_is_missing_a_replaced_one_is_an_error(void **state)
{
	autotree struct tree t;
	char gone[128], replaced[128], kept[128];
	bool missing;
	size_t len;

	(void)state;
	tree_start_real(&t, real);
	tree_join(&t, "etc/private", gone, sizeof gone);
	assert_int_equal(unlink(gone), 0);
	assert_true(is_missing(&t, "etc/private"));

	tree_join(&t, "etc/fstab", replaced, sizeof replaced);
	tree_join(&t, "etc/other-name", kept, sizeof kept);
	assert_int_equal(unlink(kept), 0);
	assert_int_equal(rename(replaced, kept), 0); /* so that its inode is not used again */
	assert_int_equal(unlink(kept), 0);
	assert_int_equal(symlink("/etc/hostname", replaced), 0);
	assert_null(edit_read(&t.edit, "etc/fstab", &len, &missing, &t.err));
	assert_false(missing);
	assert_non_null(strstr(t.err.text, "/etc/fstab"));
}

/* --- matching -------------------------------------------------------------- */

static void glob_matches_each_component(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	GLOBS(&t, "etc/a.d/*.conf", "etc/a.d/.hidden.conf", "etc/a.d/10-x.conf",
	      "etc/a.d/2-y.conf");
	GLOBS(&t, "/etc/?.d/10-*", "etc/a.d/10-x.conf", "etc/b.d/10-x.conf");
	GLOBS(&t, "etc/[ab].d", "etc/a.d", "etc/b.d");
	GLOBS(&t, "etc/fstab", "etc/fstab");
	GLOBS(&t, "etc/*/*/*", "etc/b.d/10-x.conf/inner");
	GLOBS_NOTHING(&t, "etc/fstab/*");
	GLOBS_NOTHING(&t, "nosuch/*");
	GLOBS_NOTHING(&t, "*.conf");
	GLOBS_NOTHING(&t, "");
}

static void globs_are_sorted_as_whole_paths(void **state)
{
	static const struct tree_file files[] = {
		TREE_FILE("d/x", ""),
		TREE_FILE("d-1/x", ""),
		TREE_FILE("z", ""),
		{ 0 },
	};
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	assert_int_equal(edit_create(&t.edit, "c/x", "", 0, 0644, "w", &t.err), 0);
	GLOBS(&t, "*/x", "c/x", "d-1/x", "d/x");
}

static void glob_follows_a_link_that_the_pattern_names(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	GLOBS(&t, "etc/c.d/*.conf", "etc/c.d/.hidden.conf", "etc/c.d/10-x.conf",
	      "etc/c.d/2-y.conf");
	GLOBS_NOTHING(&t, "etc/[c].d/*");
	GLOBS_NOTHING(&t, "etc/dangling/*");
	GLOBS(&t, "etc/c*", "etc/c.d");
	GLOBS(&t, "etc/dang*", "etc/dangling");
}

static void a_pattern_without_end_is_refused(void **state)
{
	char pattern[256] = "";
	autotree struct tree t;

	(void)state;
	tree_start(&t, small);
	for (int i = 0; i < 40; i++)
		strcat(pattern, "*/");
	assert_null(edit_glob(&t.edit, pattern, &t.err));
}

/* /boot is another filesystem: its root is a node of its own. */
static void mount_boot(struct tree *t)
{
	struct model_node root = { .mode = S_IFDIR | 0755, .mounted = MODEL_NONE };
	uint32_t point = tree_find(t, "boot"), node = model_add(&t->model, &root, &t->err), file;
	struct model_node cfg = { .mode = S_IFREG | 0644, .size = 1, .data = MODEL_DENSE };

	assert_int_not_equal(point, MODEL_NONE);
	t->model.nodes[node].parent = point;
	t->model.nodes[point].mounted = node;
	cfg.content = strdup("c");
	file = model_add(&t->model, &cfg, &t->err);
	assert_int_equal(model_link(&t->model, node, "grub.cfg", 8, file, &t->err), 0);
}

static const struct tree_file with_boot[] = {
	TREE_DIR("boot"),
	TREE_FILE("etc/x", "x"),
	{ 0 },
};

static void mounts_are_crossed(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, with_boot);
	mount_boot(&t);
	assert_text(&t, "boot/grub.cfg", "c");
	GLOBS(&t, "boot/*.cfg", "boot/grub.cfg");
	GLOBS(&t, "*/grub.cfg", "boot/grub.cfg");
	assert_int_equal(edit_create(&t.edit, "boot/grub/new", "n", 1, 0644, "w", &t.err), 0);
	assert_text(&t, "boot/grub/new", "n");
	assert_non_null(tree_told(&t, ACCOUNT_EDITED, "boot/grub/new"));
	assert_int_equal(edit_remove(&t.edit, "boot/grub.cfg", "w", &t.err), 0);
	assert_false(tree_has(&t, "boot/grub.cfg"));
	assert_non_null(tree_told(&t, ACCOUNT_RESET, "boot/grub.cfg"));
}

static void a_mount_point_is_not_removed(void **state)
{
	autotree struct tree t;

	(void)state;
	tree_start(&t, with_boot);
	mount_boot(&t);
	assert_int_equal(edit_remove(&t.edit, "boot", "w", &t.err), -1);
	assert_non_null(strstr(t.err.text, "/boot"));
	assert_int_equal(edit_remove_content(&t.edit, "/", "w", &t.err), 0);
	assert_true(tree_has(&t, "boot/grub.cfg"));
	assert_false(tree_has(&t, "etc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_files_from_the_source),
		cmocka_unit_test(what_is_no_regular_file_is_missing_and_no_error),
		cmocka_unit_test(links_never_lead_out_of_the_tree),
		cmocka_unit_test(bytes_with_nul_come_whole),
		cmocka_unit_test(a_file_that_is_too_large_is_refused_by_name),
		cmocka_unit_test(a_file_that_went_is_missing_a_replaced_one_is_an_error),
		cmocka_unit_test(glob_matches_each_component),
		cmocka_unit_test(globs_are_sorted_as_whole_paths),
		cmocka_unit_test(glob_follows_a_link_that_the_pattern_names),
		cmocka_unit_test(a_pattern_without_end_is_refused),
		cmocka_unit_test(mounts_are_crossed),
		cmocka_unit_test(a_mount_point_is_not_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
