// SPDX-License-Identifier: Apache-2.0
/* What is done with the images that a folder has: list some, remove, fetch. */
#include "folder-kit.h"

#include "base/log.h"
#include "base/size.h"

/* Publish with one property, or none. */
static int make_with(const char *name, const char *content, char *property)
{
	struct image_info info = { .format = strdup("raw"), .compression = strdup("none") };
	char *properties[] = { property, NULL };
	struct dest *dest;
	int fd = begin(&dest, name, ".raw", KEEP), rc;

	assert_true(fd >= 0);
	info.created_at = strdup("2026-01-31T23:59:59Z");
	info.size = strlen(content);
	info.properties = properties;
	assert_int_equal(io_pwrite(fd, content, strlen(content), 0), 0);
	assert_int_equal(hash_file(fd, "image", info.size, &info.digests, NULL, NULL, &err), 0);
	rc = dest->ops->publish(dest, &info, &err);
	info.properties = NULL;
	image_info_free(&info);
	dest_close(dest);
	return rc;
}

static struct image_info find(struct dest *dest, const char *name)
{
	struct image_info info;

	assert_int_equal(dest_find(dest, name, &info, &err), 0);
	return info;
}

static size_t count_matching(struct image_filter filter)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_list list;
	size_t n;

	assert_int_equal(dest->ops->list(dest, &filter, &list, &err), 0);
	n = list.len;
	image_list_free(&list);
	dest_close(dest);
	return n;
}

/* --- list --- */

static void all_filters_must_match(void **state)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_info a;

	(void)state;
	assert_int_equal(make_with("a", "1", "ccsnap_series=s"), 0);
	assert_int_equal(make_with("b", "2", "ccsnap_series=s"), 0);
	assert_int_equal(make_with("c", "3", "ccsnap_series=S"), 0);
	assert_int_equal(make_with("d", "4", NULL), 0);
	a = find(dest, "a");
	assert_int_equal(count_matching((struct image_filter){ 0 }), 4);
	assert_int_equal(count_matching((struct image_filter){ .series = "s" }), 2);
	assert_int_equal(count_matching((struct image_filter){ .name = "a" }), 1);
	assert_int_equal(count_matching((struct image_filter){ .id = a.id }), 1);
	assert_int_equal(count_matching((struct image_filter){ .name = "a", .series = "s" }), 1);
	assert_int_equal(count_matching((struct image_filter){ .name = "c", .series = "s" }), 0);
	assert_int_equal(count_matching((struct image_filter){ .name = "b", .id = a.id }), 0);
	assert_int_equal(count_matching((struct image_filter){ .tag = "s" }), 0);
	image_info_free(&a);
	dest_close(dest);
}

static void an_image_is_found_by_its_id_too(void **state)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_info a, same, none;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	a = find(dest, "a");
	same = find(dest, a.id);
	assert_string_equal(same.name, "a");
	assert_refused(dest_find(dest, "nosuch", &none, &err), ERR_REFUSED, "no image nosuch");
	image_info_free(&a);
	image_info_free(&same);
	dest_close(dest);
}

/* --- remove --- */

static int remove_image(struct image_info *info)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	int rc = dest->ops->remove(dest, info, &err);

	dest_close(dest);
	return rc;
}

static struct image_info find_once(const char *name)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_info info = find(dest, name);

	dest_close(dest);
	return info;
}

static void an_image_goes_with_all_that_belongs_to_it(void **state)
{
	struct image_info a;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	assert_int_equal(make("ab", ".raw", "more", KEEP), 0);
	a = find_once("a");
	assert_int_equal(remove_image(&a), 0);
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
	assert_int_equal(remove_image(&a), 0); /* gone already */
	assert_int_equal(count_entries(), 3);
	image_info_free(&a);
}

static void an_image_that_took_its_name_meanwhile_stays(void **state)
{
	struct image_info a;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	a = find_once("a");
	assert_int_equal(make("a", ".qcow2", "newer", OVER), 0);
	assert_int_equal(remove_image(&a), 0);
	assert_content("a.qcow2", "newer");
	assert_int_equal(count_listed(), 1);
	image_info_free(&a);
}

static void what_is_no_report_of_ours_stays(void **state)
{
	struct image_info a;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	put("a.report.json", "a letter");
	a = find_once("a");
	assert_int_equal(remove_image(&a), 0);
	assert_content("a.report.json", "a letter");
	assert_int_equal(count_entries(), 1);
	image_info_free(&a);
}

static void an_image_that_is_being_replaced_is_not_removed(void **state)
{
	struct image_info a;
	struct dest *dest;

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	a = find_once("a");
	assert_true(begin(&dest, "a", ".raw", OVER) >= 0);
	assert_refused(remove_image(&a), ERR_BUSY, "another run");
	assert_content("a.raw", "text");
	dest_close(dest);
	image_info_free(&a);
}

/* Killed before any of its steps, there is an image with its manifest, or none. */
static void a_removal_that_is_killed_leaves_no_image_without_manifest(void **state)
{
	int code = 99;

	(void)state;
	for (int n = 0; code == 99; n++) {
		struct image_info a;
		pid_t pid;

		empty_directory();
		assert_int_equal(make("a", ".raw", "text", KEEP), 0);
		a = find_once("a");
		pid = fork();
		if (pid == 0) {
			calls_left = n;
			_exit(remove_image(&a) < 0);
		}
		code = wait_for(pid);
		assert_int_equal(count_listed(), is_there("a.raw"));
		assert_true(is_there("a.manifest.json") || !is_there("a.raw"));
		assert_int_equal(remove_image(&a), 0);
		assert_int_equal(count_listed(), 0);
		assert_int_equal(make("a", ".raw", "new", KEEP), 0);
		image_info_free(&a);
	}
	assert_int_equal(code, 0);
}

/* A run that replaced the image was killed before any of its steps: what it finished is
 * not ours to remove, what it did not, is.
 */
static void a_removal_finishes_what_a_killed_run_began(void **state)
{
	int done = 0;

	(void)state;
	for (int n = 0; !done; n++) {
		struct image_info a;
		int is_new;

		empty_directory();
		assert_int_equal(make("a", ".raw", "text", KEEP), 0);
		a = find_once("a");
		done = run_until_call(n, ".qcow2", "longer text", OVER);
		is_new = is_there("a.qcow2");
		assert_int_equal(remove_image(&a), 0);
		assert_int_equal(count_listed(), is_new);
		assert_int_equal(is_there("a.qcow2"), is_new);
		assert_false(is_there("a.raw"));
		image_info_free(&a);
	}
}

/* --- fetch --- */

static int aside(void)
{
	int fd = open(dir, O_TMPFILE | O_RDWR, 0600);

	assert_true(fd >= 0);
	return fd;
}

static int fetch_into(int fd, struct image_info *info)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	int rc;

	image_info_free(info);
	*info = find(dest, "a");
	rc = dest->ops->fetch(dest, info, fd, &err);
	if (rc == 0)
		assert_string_equal(dest->receipt.verified_by, "sha512");
	dest_close(dest);
	return rc;
}

static void what_is_fetched_is_what_was_stored(void **state)
{
	struct image_info info = { 0 };
	int fd = aside();
	char text[8] = "";

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	assert_int_equal(fetch_into(fd, &info), 0);
	assert_int_equal(io_pread(fd, text, sizeof text, 0, NULL), 4);
	assert_string_equal(text, "text");
	assert_string_equal(info.digests.sha256,
			    "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1");
	close(fd);
	image_info_free(&info);
}

static void damaged_images_are_not_handed_out(void **state)
{
	struct image_info info = { 0 };
	int fd = aside();

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	put("a.raw", "tent");
	assert_refused(fetch_into(fd, &info), ERR_FAILED,
		       "a.raw is not what its manifest says: it begins to differ at offset 0");
	close(fd);
	image_info_free(&info);
}

/* Between the list and the fetch. */
static void what_takes_the_image_s_place_is_not_handed_out(void **state)
{
	struct dest *dest = open_dest(NULL, NULL, KEEP);
	struct image_info info;
	int fd = aside();

	(void)state;
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	info = find(dest, "a");
	put("a.raw", "longer text");
	assert_refused(dest->ops->fetch(dest, &info, fd, &err), ERR_FAILED, "replaced meanwhile");
	assert_int_equal(unlink(path_of("a.raw")), 0);
	assert_int_equal(symlink("/etc/hostname", path_of("a.raw")), 0);
	assert_refused(dest->ops->fetch(dest, &info, fd, &err), ERR_FAILED, "cannot open");
	assert_int_equal(unlink(path_of("a.raw")), 0);
	assert_int_equal(mkfifo(path_of("a.raw"), 0600), 0);
	assert_refused(dest->ops->fetch(dest, &info, fd, &err), ERR_FAILED, "replaced meanwhile");
	image_info_free(&info);
	dest_close(dest);
	close(fd);
}

static uint64_t last_progress;

static void note_progress(void *ctx, uint64_t done)
{
	(void)ctx;
	assert_true(done >= last_progress);
	last_progress = done;
}

static void zeros_are_fetched_as_holes(void **state)
{
	const uint64_t size = 20 * MIB + 5;
	struct image_info info = { .format = strdup("raw"),
				   .compression = strdup("none"),
				   .created_at = strdup("2026-01-31T23:59:59Z"),
				   .size = size };
	struct dest *dest;
	int fd = begin(&dest, "a", ".raw", KEEP), copy = aside();
	struct digests found;
	struct stat st;

	(void)state;
	assert_int_equal(io_pwrite(fd, "x", 1, 3 * MIB + 77), 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(hash_file(fd, "image", size, &info.digests, NULL, NULL, &err), 0);
	assert_int_equal(dest->ops->publish(dest, &info, &err), 0);
	dest_close(dest);
	image_info_free(&info);

	dest = open_dest(NULL, NULL, KEEP);
	dest->progress = note_progress;
	last_progress = 0;
	info = find(dest, "a");
	assert_int_equal(dest->ops->fetch(dest, &info, copy, &err), 0);
	assert_int_equal(last_progress, size);
	assert_int_equal(fstat(copy, &st), 0);
	assert_int_equal(st.st_size, size);
	assert_true(st.st_blocks * 512 <= (blkcnt_t)(128 * KIB));
	assert_int_equal(hash_file(copy, "copy", size, &found, NULL, NULL, &err), 0);
	assert_true(digests_equal(&found, &info.digests));
	image_info_free(&info);
	dest_close(dest);
	close(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_filters_must_match),
		TEST(an_image_is_found_by_its_id_too),
		TEST(an_image_goes_with_all_that_belongs_to_it),
		TEST(an_image_that_took_its_name_meanwhile_stays),
		TEST(what_is_no_report_of_ours_stays),
		TEST(an_image_that_is_being_replaced_is_not_removed),
		TEST(a_removal_that_is_killed_leaves_no_image_without_manifest),
		TEST(a_removal_finishes_what_a_killed_run_began),
		TEST(what_is_fetched_is_what_was_stored),
		TEST(damaged_images_are_not_handed_out),
		TEST(what_takes_the_image_s_place_is_not_handed_out),
		TEST(zeros_are_fetched_as_holes),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
