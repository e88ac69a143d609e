// SPDX-License-Identifier: Apache-2.0
#include "folder-kit.h"

#include "base/log.h"
#include "base/str.h"

#include <sys/resource.h>
#include <sys/sysmacros.h>

static void image_manifest_and_report_are_private_whatever_the_umask(void **state)
{
	static const char *const files[] = { "a.raw", "a.manifest.json", "a.report.json" };
	mode_t before = umask(0);
	struct stat st;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	umask(before);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stat(path_of(files[i]), &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
	}
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
	assert_content("a.raw", "text");
}

static void closing_without_publishing_leaves_nothing(void **state)
{
	struct dest *dest;

	(void)state;
	assert_true(begin(&dest, "a", ".raw", KEEP) >= 0);
	assert_int_equal(count_entries(), 1);
	assert_int_equal(count_listed(), 0);
	dest_close(dest);
	assert_int_equal(count_entries(), 0);
}

static void existing_names_are_refused_without_overwrite(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);

	(void)state;
	assert_int_equal(dest->ops->check(dest, 100, &err), 0);
	assert_true(dest->free_bytes > 100);
	assert_int_equal(make("a", ".raw", "old", KEEP), 0);
	assert_refused(dest->ops->check(dest, 100, &err), ERR_REFUSED, "/a.raw exists; use --over");
	assert_refused(make("a", ".raw", "new", KEEP), ERR_REFUSED, "/a.raw exists; use --over");
	dest_close(dest);
	assert_content("a.raw", "old");
	assert_int_equal(make("a", ".raw", "newer", OVER), 0);
	assert_content("a.raw", "newer");
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
}

static void a_name_is_taken_in_every_format(void **state)
{
	struct dest *dest = open_dest("a", ".qcow2", KEEP);

	(void)state;
	assert_int_equal(make("a", ".raw", "old", KEEP), 0);
	assert_refused(dest->ops->check(dest, 0, &err), ERR_REFUSED, "/a.raw exists; use --over");
	dest_close(dest);
	assert_refused(make("a", ".qcow2", "new", KEEP), ERR_REFUSED, "/a.raw exists");
	assert_int_equal(make("a", ".qcow2", "new", OVER), 0);
	assert_false(is_there("a.raw"));
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
}

static void what_comes_into_being_meanwhile_is_not_replaced(void **state)
{
	struct dest *dest;
	int fd = begin(&dest, "a", ".raw", KEEP);

	(void)state;
	put("a.raw", "foreign");
	assert_refused(publish(dest, fd, "ours"), ERR_REFUSED, "a.raw");
	dest_close(dest);
	assert_content("a.raw", "foreign");
	assert_int_equal(count_entries(), 1);
}

static void what_is_no_regular_file_is_never_replaced(void **state)
{
	static const char *const files[] = { "a.raw", "a.manifest.json", "a.report.json" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int kind = 0; kind < 4; kind++) {
			const char *path = path_of(files[i]);

			if (kind == 0)
				assert_int_equal(symlink("/nosuch", path), 0);
			else if (kind == 1)
				assert_int_equal(mkfifo(path, 0600), 0);
			else if (kind == 2)
				assert_int_equal(mkdir(path, 0700), 0);
			else if (mknod(path, S_IFCHR | 0600, makedev(1, 3)) < 0)
				continue; /* not root */
			assert_refused(make("a", ".raw", "x", OVER), ERR_REFUSED,
				       "is not a regular file; it is never replaced");
			assert_int_equal(count_entries(), 1);
			assert_int_equal(remove(path_of(files[i])), 0);
		}
	}
}

static void a_manifest_without_its_image_is_debris(void **state)
{
	(void)state;
	assert_int_equal(make("a", ".raw", "old", KEEP), 0);
	assert_int_equal(unlink(path_of("a.raw")), 0);
	assert_int_equal(count_listed(), 0);
	assert_int_equal(make("a", ".qcow2", "new", KEEP), 0);
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
}

static void a_damaged_manifest_is_replaced_only_when_asked(void **state)
{
	(void)state;
	put("a.manifest.json", "{");
	put("b.manifest.json", "{}");
	assert_int_equal(count_listed(), 0);
	assert_refused(make("a", ".raw", "x", KEEP), ERR_REFUSED,
		       "remove a.manifest.json or use --overwrite");
	assert_int_equal(make("a", ".raw", "x", OVER), 0);
	assert_int_equal(count_listed(), 1);
}

static void images_of_another_size_are_not_listed(void **state)
{
	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	put("a.raw", "longer text");
	assert_int_equal(count_listed(), 0);
}

static int warnings; /* see count_warning */

static void count_warning(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
	warnings++;
}

/* Ends a run between every two steps, and lists. */
static void a_list_during_a_publish_does_not_warn(void **state)
{
	int n = 0, done;

	(void)state;
	log_set_sink(count_warning, NULL);
	warnings = 0;
	do {
		done = run_until_call(n++, ".raw", "text", KEEP);
		assert_int_equal(count_listed(), is_there("a.raw"));
		empty_directory();
	} while (!done);
	assert_int_equal(warnings, 0);
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	put("a.raw", "longer text");
	assert_int_equal(count_listed(), 0);
	assert_int_equal(warnings, 1);
	assert_int_equal(unlink(path_of("a.raw")), 0);
	assert_int_equal(symlink("a.report.json", path_of("a.raw")), 0);
	assert_int_equal(count_listed(), 0);
	assert_int_equal(warnings, 2);
	log_set_sink(NULL, NULL);
}

static void a_manifest_that_was_renamed_is_not_believed(void **state)
{
	autofree char *from = NULL;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	from = strdup(path_of("a.manifest.json"));
	assert_int_equal(rename(from, path_of("b.manifest.json")), 0);
	put("b.raw", "text");
	assert_int_equal(count_listed(), 0);
}

static void lists_are_sorted_by_time_then_name(void **state)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_list list;

	(void)state;
	assert_int_equal(make("b", ".raw", "1", KEEP), 0);
	assert_int_equal(make("c", ".raw", "2", KEEP), 0);
	assert_int_equal(make("a", ".raw", "3", KEEP), 0);
	assert_int_equal(dest->ops->list(dest, &everything, &list, &err), 0);
	assert_int_equal(list.len, 3);
	assert_string_equal(list.at[0].name, "a");
	assert_string_equal(list.at[2].name, "c");
	image_list_free(&list);
	dest_close(dest);
}

static void names_are_bytes(void **state)
{
	static char longest[NAME_MAX - 13];
	static const char *const good[] = {
		"...",	 "-a",	  "a b\n\x1b[31m",   "\xff\xfe",
		"\\xff", "a.raw", "x.manifest.json", ".a.abcdefgh.ccsnap-tmp",
		longest
	};

	(void)state;
	memset(longest, 0xe4, sizeof longest - 1);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(make(good[i], ".raw", good[i], KEEP), 0);
		assert_int_equal(count_listed(), (int)i + 1);
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(make(good[i], ".raw", good[i], OVER), 0);
	assert_int_equal(count_listed(), sizeof good / sizeof *good);
	assert_int_equal(count_entries(), 3 * sizeof good / sizeof *good);
}

static void names_that_cannot_be_files_are_refused(void **state)
{
	static char long_name[NAME_MAX - 12];
	static const char *const bad[] = { "", ".", "..", "a/b", "/abs", "../up", long_name };

	(void)state;
	memset(long_name, 'x', sizeof long_name - 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_null(open_dest(bad[i], ".raw", KEEP));
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "NAME '"));
		assert_non_null(strstr(err.text, "accepted are 1 to 241 bytes without /"));
	}
}

static void filesystems_that_cannot_rename_without_replacing_work(void **state)
{
	(void)state;
	no_renameat2 = 1;
	for (no_link = 0; no_link < 2; no_link++) {
		assert_int_equal(make("b", ".raw", "x", KEEP), 0);
		assert_int_equal(count_listed(), 1);
		empty_directory();
		what_comes_into_being_meanwhile_is_not_replaced(state);
		empty_directory();
	}
}

static void too_little_room_is_refused_with_figures(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);
	struct rlimit before, small;

	(void)state;
	assert_refused(dest->ops->check(dest, UINT64_MAX - 1, &err), ERR_REFUSED, "needed, ");
	assert_non_null(strstr(err.text, dir));
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_refused(dest->ops->check(dest, 4097, &err), ERR_REFUSED, "ulimit -f");
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(dest->ops->check(dest, 4097, &err), 0);
	dest_close(dest);
	assert_int_equal(count_entries(), 0);
}

static void the_room_is_known_also_when_the_name_is_refused(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);

	(void)state;
	assert_false(dest->free_known);
	assert_int_equal(dest->ops->check(dest, 0, &err), 0);
	assert_true(dest->free_known && dest->free_bytes > 0);
	dest->free_known = false;
	put("a.raw", "x");
	assert_int_equal(dest->ops->check(dest, 0, &err), -1);
	assert_true(dest->free_known);
	dest->free_known = false;
	assert_refused(dest->ops->check(dest, UINT64_MAX - 1, &err), ERR_REFUSED, "not enough");
	assert_true(dest->free_known);
	dest_close(dest);
	strcat(where, "/nosuch");
	dest = open_dest("a", ".raw", KEEP);
	assert_int_equal(dest->ops->check(dest, 0, &err), -1);
	assert_false(dest->free_known);
	dest_close(dest);
}

static void a_folder_that_is_missing_is_refused(void **state)
{
	struct dest *dest;
	struct image_list list;
	int fd;

	(void)state;
	strcat(where, "/nosuch");
	dest = open_dest("a", ".raw", KEEP);
	assert_refused(dest->ops->check(dest, 0, &err), ERR_REFUSED, "does not exist; create it");
	assert_refused(dest->ops->reserve(dest, &fd, &err), ERR_REFUSED,
		       "does not exist; create it");
	assert_refused(dest->ops->list(dest, &everything, &list, &err), ERR_REFUSED,
		       "does not exist; create it");
	dest_close(dest);
	assert_false(is_there("nosuch"));
}

static void the_store_of_an_ordinary_user_is_made_when_needed(void **state)
{
	autofree char *standard = NULL;
	struct dest *dest;
	struct stat st;
	int fd;

	(void)state;
	if (getuid() == 0) {
		assert_int_equal(chown(dir, 65534, (gid_t)-1), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	setenv("XDG_DATA_HOME", path_of("data"), 1);
	standard = dest_default();
	assert_true(str_ends(standard, "/data/ccsnap/images"));
	strcpy(where, standard);
	dest = open_dest("a", ".raw", KEEP);
	assert_int_equal(count_listed(), 0);
	assert_int_equal(dest->ops->check(dest, 4096, &err), 0);
	assert_false(is_there("data"));
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(publish(dest, fd, "text"), 0);
	assert_int_equal(stat(path_of("data/ccsnap/images"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	dest_close(dest);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void a_folder_without_permission_is_refused(void **state)
{
	struct dest *dest;
	int fd;

	(void)state;
	assert_int_equal(chmod(dir, 0555), 0);
	if (getuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	dest = open_dest("a", ".raw", KEEP);
	assert_refused(dest->ops->check(dest, 0, &err), ERR_REFUSED, "cannot write to");
	assert_refused(dest->ops->reserve(dest, &fd, &err), ERR_REFUSED,
		       "/a.raw under a temporary name");
	dest_close(dest);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void unknown_destinations_name_the_known_ones(void **state)
{
	static const char *const bad[] = { "", "store", "/store", "ftp://x/", "folders:x" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		strcpy(where, bad[i]);
		assert_null(open_dest("a", ".raw", KEEP));
		assert_int_equal(err.kind, ERR_USAGE);
		assert_non_null(strstr(err.text, "accepted are folder:PATH, file:PATH"));
	}
}

static void a_folder_without_a_path_is_refused(void **state)
{
	static const char *const bad[] = { "folder:", "folder", "file:", "file" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		strcpy(where, bad[i]);
		assert_null(open_dest("a", ".raw", KEEP));
		assert_int_equal(err.kind, ERR_USAGE);
	}
}

static void arrival_is_proven_by_the_file_itself(void **state)
{
	struct dest *dest;
	int fd = begin(&dest, "a", ".raw", KEEP);

	(void)state;
	assert_string_equal(dest->path, path_of("a.raw"));
	assert_int_equal(publish(dest, fd, "text"), 0);
	assert_true(dest->receipt.verified);
	assert_string_equal(dest->receipt.verified_by, "file");
	assert_int_equal(strlen(dest->receipt.image_id), 36);
	assert_int_equal(dest->receipt.sent_bytes, 4);
	dest_close(dest);
	dest = open_dest(NULL, NULL, KEEP);
	assert_null(dest->path);
	dest_close(dest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(image_manifest_and_report_are_private_whatever_the_umask),
		TEST(closing_without_publishing_leaves_nothing),
		TEST(existing_names_are_refused_without_overwrite),
		TEST(a_name_is_taken_in_every_format),
		TEST(what_comes_into_being_meanwhile_is_not_replaced),
		TEST(what_is_no_regular_file_is_never_replaced),
		TEST(a_manifest_without_its_image_is_debris),
		TEST(a_damaged_manifest_is_replaced_only_when_asked),
		TEST(images_of_another_size_are_not_listed),
		TEST(a_list_during_a_publish_does_not_warn),
		TEST(a_manifest_that_was_renamed_is_not_believed),
		TEST(lists_are_sorted_by_time_then_name),
		TEST(names_are_bytes),
		TEST(names_that_cannot_be_files_are_refused),
		TEST(filesystems_that_cannot_rename_without_replacing_work),
		TEST(too_little_room_is_refused_with_figures),
		TEST(the_room_is_known_also_when_the_name_is_refused),
		TEST(a_folder_that_is_missing_is_refused),
		TEST(the_store_of_an_ordinary_user_is_made_when_needed),
		TEST(a_folder_without_permission_is_refused),
		TEST(unknown_destinations_name_the_known_ones),
		TEST(a_folder_without_a_path_is_refused),
		TEST(arrival_is_proven_by_the_file_itself),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
