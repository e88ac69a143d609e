// SPDX-License-Identifier: Apache-2.0
#include "quiesce/scratch.h"

#include "virt-kit.h"

#include "base/size.h"
#include "quiesce/scratch_inner.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <sys/file.h>

#define OTHER_USER 12345 /* no account has it */

static struct hardware hardware;

static struct scratch *open_at(const char *place, uint64_t bytes)
{
	const struct scratch_config cfg = {
		.hardware = &hardware, .domain = &given, .dir = place, .bytes = bytes
	};

	return scratch_open(&cfg, &err);
}

static struct scratch *open_or_fail(const char *place)
{
	struct scratch *s = open_at(place, 0);

	if (!s)
		fail_msg("%s", err.text);
	return s;
}

static void assert_refused(const char *place, const char *words)
{
	err = (struct err){ 0 };
	assert_null(open_at(place, 0));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_says(words);
}

static int begin(void **state)
{
	hardware = (struct hardware){ 0 };
	return make_world(state);
}

#define TEST(claim) cmocka_unit_test_setup_teardown(claim, begin, remove_state)

static size_t entries_of(const char *path)
{
	DIR *entries = opendir(path);
	size_t count = 0;

	assert_non_null(entries);
	while (readdir(entries))
		count++;
	closedir(entries);
	return count - 2;
}

static const char *in_dir(const char *name)
{
	static char paths[4][200];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", dir, name);
	return path;
}

/* --- here --- */

static void a_directory_of_its_own_comes_and_goes(void **state)
{
	struct scratch *s = open_or_fail(dir);
	struct stat st;

	(void)state;
	assert_true(str_starts(scratch_dir(s), dir));
	assert_true(str_starts(scratch_tag(s), SCRATCH_PREFIX));
	assert_true(str_ends(scratch_dir(s), scratch_tag(s)));
	assert_true(str_starts(scratch_socket(s), scratch_dir(s)));
	assert_true(str_starts(scratch_file(s), scratch_dir(s)));
	assert_int_equal(stat(scratch_dir(s), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(entries_of(scratch_dir(s)), 0);
	put_file(scratch_socket(s), "", 0600);
	put_file(scratch_file(s), "", 0600);
	scratch_close(s);
	assert_int_equal(entries_of(dir), 0);
}

static void no_two_have_one_name(void **state)
{
	struct scratch *a = open_or_fail(dir), *b = open_or_fail(dir);

	(void)state;
	assert_string_not_equal(scratch_dir(a), scratch_dir(b));
	scratch_close(a);
	scratch_close(b);
	assert_int_equal(entries_of(dir), 0);
}

static void an_overlay_is_never_removed(void **state)
{
	struct scratch *s = open_or_fail(dir);
	autofree char *copy = strdup(scratch_dir(s));
	autofree char *overlay = str_format("%s/overlay", copy);

	(void)state;
	put_file(overlay, "precious", 0600);
	scratch_close(s);
	assert_true(file_is_there(overlay));
	assert_int_equal(scratch_clear(copy, &err), -1);
	assert_says("by hand");
	assert_true(file_is_there(overlay));
}

static void the_default_place_is_made(void **state)
{
	struct scratch *s = open_or_fail(NULL);
	autofree char *expected = str_format("%s/lib/scratch/", dir);
	struct stat st;

	(void)state;
	assert_true(str_starts(scratch_dir(s), expected));
	assert_int_equal(stat(expected, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	scratch_close(s);
}

static void without_a_home_the_runtime_directory_serves(void **state)
{
	struct scratch *s;

	(void)state;
	is_homeless = true;
	unsetenv("XDG_RUNTIME_DIR");
	assert_refused(NULL, "--scratch-dir");
	setenv("XDG_RUNTIME_DIR", dir, 1);
	s = open_or_fail(NULL);
	assert_non_null(strstr(scratch_dir(s), "/ccsnap/scratch/"));
	scratch_close(s);
	unsetenv("XDG_RUNTIME_DIR");
}

static void a_place_that_is_none_is_refused(void **state)
{
	(void)state;
	put_file(in_dir("file"), "", 0600);
	assert_refused(in_dir("missing"), "missing");
	assert_refused(in_dir("file"), "no directory");
	if (geteuid() != 0) {
		chmod(dir, 0500);
		assert_refused(dir, "cannot create");
		chmod(dir, 0755);
	}
}

/* As QEMU, which runs elsewhere, will see them. */
static void paths_are_absolute_and_without_links(void **state)
{
	autofree char *here = getcwd(NULL, 0);
	autofree char *real = realpath(dir, NULL);
	struct scratch *s;

	(void)state;
	assert_int_equal(mkdir(in_dir("real"), 0755), 0);
	assert_int_equal(symlink("real", in_dir("link")), 0);
	assert_int_equal(chdir(dir), 0);
	s = open_or_fail("link");
	assert_int_equal(chdir(here), 0);
	assert_true(str_starts(scratch_dir(s), real));
	assert_non_null(strstr(scratch_dir(s), "/real/"));
	scratch_close(s);
}

static void too_little_space_is_refused(void **state)
{
	struct scratch *s;

	(void)state;
	assert_null(open_at(dir, UINT64_MAX / 2));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_says(dir);
	assert_says("--scratch-dir with more room");
	assert_int_equal(entries_of(dir), 0);
	s = open_at(dir, 4096);
	assert_non_null(s);
	assert_true(scratch_free_bytes(s) >= 4096);
	scratch_close(s);
}

static void a_path_too_long_for_a_socket_is_refused(void **state)
{
	char longest[200];
	size_t room = 107 - strlen("/ccsnap-123456/socket");
	struct scratch *s;

	(void)state;
	snprintf(longest, sizeof longest, "%s/", dir);
	while (strlen(longest) < room)
		strcat(longest, "x");
	assert_int_equal(mkdir(longest, 0755), 0);
	s = open_or_fail(longest);
	assert_int_equal(strlen(scratch_socket(s)), 107);
	scratch_close(s);
	strcat(longest, "x");
	assert_int_equal(mkdir(longest, 0755), 0);
	assert_refused(longest, "shorter path");
	assert_int_equal(entries_of(longest), 0);
}

static void a_path_that_no_xml_can_hold_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(in_dir("a\nb"), 0755), 0);
	assert_refused(in_dir("a\nb"), "XML");
	assert_int_equal(mkdir(in_dir("a\xff"), 0755), 0);
	assert_refused(in_dir("a\xff"), "XML");
	assert_int_equal(mkdir(in_dir("\xc3\xa4 & <b>'\""), 0755), 0);
	scratch_close(open_or_fail(in_dir("\xc3\xa4 & <b>'\"")));
}

/* --- QEMU's user --- */

static void needs_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("not root: rights of another user are not tried\n");
	skip();
}

static void qemus_user_gets_the_directory(void **state)
{
	struct scratch *s;
	struct stat st;

	(void)state;
	needs_root();
	hardware.qemu_label = (char *)"+12345:+54321";
	s = open_or_fail(dir);
	assert_int_equal(stat(scratch_dir(s), &st), 0);
	assert_int_equal(st.st_uid, OTHER_USER);
	assert_int_equal(st.st_gid, getegid());
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(entries_of(scratch_dir(s)), 0);
	put_file(scratch_file(s), "", 0600);
	scratch_close(s);
	assert_int_equal(entries_of(dir), 0);
}

static void what_qemus_user_cannot_pass_is_named(void **state)
{
	autofree char *real = NULL;

	(void)state;
	needs_root();
	hardware.qemu_label = (char *)"+12345:+54321";
	assert_int_equal(mkdir(in_dir("closed"), 0700), 0);
	assert_int_equal(mkdir(in_dir("closed/in"), 0777), 0);
	real = realpath(in_dir("closed"), NULL);
	assert_refused(in_dir("closed/in"),
		       "closed cannot be entered by the user that QEMU runs as "
		       "(12345)");
	assert_says(real);
	assert_null(strstr(err.text, "closed/in"));
	assert_says("--scratch-dir");
	assert_int_equal(entries_of(in_dir("closed/in")), 0);
	hardware.qemu_label = NULL;
	scratch_close(open_or_fail(in_dir("closed/in")));
}

/* Root's own groups must not help. */
static void a_directory_of_roots_group_does_not_let_qemu_pass(void **state)
{
	static const gid_t groups[] = { 0, 4242 };

	(void)state;
	needs_root();
	assert_int_equal(setgroups(2, groups), 0);
	hardware.qemu_label = (char *)"+12345:+54321";
	assert_int_equal(mkdir(in_dir("group"), 0750), 0);
	assert_refused(in_dir("group"), "cannot be entered");
	assert_int_equal(chown(in_dir("group"), 0, 4242), 0);
	assert_refused(in_dir("group"), "cannot be entered");
	assert_int_equal(chown(in_dir("group"), 0, 54321), 0);
	scratch_close(open_or_fail(in_dir("group")));
}

static void labels_are_read_as_libvirt_reads_them(void **state)
{
	struct qemu_user user;

	(void)state;
	assert_int_equal(qemu_user_find("+64055:+107", &user, &err), 0);
	assert_int_equal(user.uid, 64055);
	assert_int_equal(user.gid, 107);
	assert_int_equal(qemu_user_find("root:root", &user, &err), 0);
	assert_int_equal(user.uid, 0);
	assert_int_equal(user.gid, 0);
	assert_int_equal(qemu_user_find("12345:54321", &user, &err), 0);
	assert_int_equal(user.uid, 12345);
	assert_int_equal(user.gid, 54321);
	assert_int_equal(user.groups[0], 54321);
	assert_int_equal(qemu_user_find("+12345", &user, &err), 0);
	assert_int_equal(user.uid, 12345);
	assert_int_equal(qemu_user_find(NULL, &user, &err), 0);
	assert_true(qemu_user_is_us(&user));
}

static void labels_without_sense_are_refused(void **state)
{
	static const char *const labels[] = {
		"",
		":",
		"+",
		"+:+",
		"no-such-user:root",
		"root:+x",
		"+4294967295",
		"+0:+4294967295",
		"-1:-1",
		"+99999999999999999999:+1",
		"root:",
	};
	struct qemu_user user;

	(void)state;
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
		if (qemu_user_find(labels[i], &user, &err) == 0)
			fail_msg("accepted: %s", labels[i]);
		assert_int_equal(err.kind, ERR_REFUSED);
	}
}

static void only_root_shares_with_another_user(void **state)
{
	(void)state;
	if (geteuid() == 0)
		skip();
	hardware.qemu_label = (char *)"+64055:+107";
	assert_refused(dir, "as root");
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void the_default_place_is_opened_for_qemu_to_pass(void **state)
{
	(void)state;
	needs_root();
	log_set_level(LOG_ERROR);
	assert_int_equal(mkdir(in_dir("lib"), 0700), 0);
	assert_int_equal(mkdir(in_dir("lib/images"), 0700), 0);
	hardware.qemu_label = (char *)"+12345:+54321";
	scratch_close(open_or_fail(NULL));
	assert_int_equal(mode_of(in_dir("lib")), 0711);
	assert_int_equal(mode_of(in_dir("lib/scratch")), 0711);
	assert_int_equal(mode_of(in_dir("lib/images")), 0700);
}

static void what_relies_on_a_closed_folder_stays_closed(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(mkdir(in_dir("lib"), 0700), 0);
	assert_int_equal(mkdir(in_dir("lib/images"), 0755), 0);
	hardware.qemu_label = (char *)"+12345:+54321";
	assert_refused(NULL, "lib cannot be entered");
	assert_int_equal(mode_of(in_dir("lib")), 0700);
}

/* --- what a dead run left --- */

static char *make_leftover(const char *name)
{
	autofree char *path = str_format("%s/%s", dir, name);
	autofree char *socket = str_format("%s/socket", path);
	autofree char *file = str_format("%s/scratch", path);

	assert_int_equal(mkdir(path, 0700), 0);
	put_file(socket, "", 0600);
	put_file(file, "", 0600);
	return steal(&path);
}

static void the_leftovers_of_a_dead_run_are_cleared(void **state)
{
	autofree char *path = make_leftover("ccsnap-abcdef");

	(void)state;
	assert_int_equal(scratch_clear(path, &err), 0);
	assert_false(file_is_there(path));
	assert_int_equal(scratch_clear(path, &err), 0); /* and twice */
}

static void a_directory_of_another_name_is_left_alone(void **state)
{
	static const char *const names[] = { "other", "xccsnap-abcdef", "ccsnap" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		autofree char *path = make_leftover(names[i]);

		assert_int_equal(scratch_clear(path, &err), -1);
		assert_int_equal(entries_of(path), 2);
	}
	assert_int_equal(scratch_clear("", &err), -1);
	assert_int_equal(scratch_clear("ccsnap-x", &err), -1);
}

static void a_link_in_its_place_is_not_followed(void **state)
{
	autofree char *target = make_leftover("precious");

	(void)state;
	assert_int_equal(symlink(target, in_dir("ccsnap-abcdef")), 0);
	assert_int_equal(scratch_clear(in_dir("ccsnap-abcdef"), &err), -1);
	assert_says("left alone");
	assert_int_equal(entries_of(target), 2);
}

static void links_in_it_go_and_what_they_name_stays(void **state)
{
	autofree char *path = make_leftover("ccsnap-abcdef");

	(void)state;
	put_file(in_dir("precious"), "x", 0600);
	assert_int_equal(unlink(in_dir("ccsnap-abcdef/scratch")), 0);
	assert_int_equal(symlink("../precious", in_dir("ccsnap-abcdef/scratch")), 0);
	assert_int_equal(scratch_clear(path, &err), 0);
	assert_true(file_is_there(in_dir("precious")));
}

static void what_is_not_ours_in_it_stays(void **state)
{
	autofree char *path = make_leftover("ccsnap-abcdef");

	(void)state;
	put_file(in_dir("ccsnap-abcdef/other"), "x", 0600);
	assert_int_equal(scratch_clear(path, &err), -1);
	assert_true(file_is_there(in_dir("ccsnap-abcdef/other")));
	assert_int_equal(mkdir(in_dir("ccsnap-abcdef/socket"), 0700), 0);
	assert_int_equal(scratch_clear(path, &err), -1);
	assert_true(file_is_there(in_dir("ccsnap-abcdef/socket")));
}

/* Ours is open to nobody. */
static void a_directory_that_is_open_is_left_alone(void **state)
{
	autofree char *path = make_leftover("ccsnap-abcdef");

	(void)state;
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(scratch_clear(path, &err), -1);
	assert_int_equal(entries_of(path), 2);
}

static void a_directory_of_somebody_else_is_left_alone(void **state)
{
	autofree char *path = NULL;

	(void)state;
	needs_root();
	path = make_leftover("ccsnap-abcdef");
	assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
	assert_int_equal(scratch_clear(path, &err), -1);
	assert_int_equal(entries_of(path), 2);
	assert_int_equal(chown(path, OTHER_USER, getegid()), 0); /* as we give it to QEMU */
	assert_int_equal(scratch_clear(path, &err), 0);
}

/* Killed between making the directory and noting it. */
static void empty_directories_of_dead_runs_are_swept(void **state)
{
	autofree char *full = make_leftover("ccsnap-fullab");
	struct scratch *living, *s;

	(void)state;
	living = open_or_fail(dir);
	assert_int_equal(mkdir(in_dir("ccsnap-abcdef"), 0700), 0);
	assert_int_equal(mkdir(in_dir("other"), 0700), 0);
	assert_int_equal(mkdir(in_dir("ccsnap-abcdefg"), 0700), 0); /* somebody's mkdtemp */
	assert_int_equal(mkdir(in_dir("ccsnap-aBc1eF"), 0700), 0);
	assert_int_equal(mkdir(in_dir("ccsnap-abcdef.d"), 0700), 0);
	s = open_or_fail(dir);
	assert_false(file_is_there(in_dir("ccsnap-abcdef")));
	assert_true(file_is_there(in_dir("other")));
	assert_true(file_is_there(in_dir("ccsnap-abcdefg")));
	assert_true(file_is_there(in_dir("ccsnap-aBc1eF")));
	assert_true(file_is_there(in_dir("ccsnap-abcdef.d")));
	assert_int_equal(entries_of(full), 2);
	assert_true(file_is_there(scratch_dir(living)));
	scratch_close(living);
	scratch_close(s);
}

/* --- elsewhere --- */

static void over_ssh_names_begin_with_the_tag(void **state)
{
	struct scratch *s;
	autofree char *expected = NULL;

	(void)state;
	world.place = VIRT_OVER_SSH;
	world.uri = "qemu+ssh://root@host/system";
	s = open_or_fail("/no/such/place");
	assert_null(scratch_dir(s));
	expected = str_format("/no/such/place/%s.sock", scratch_tag(s));
	assert_string_equal(scratch_socket(s), expected);
	assert_true(str_starts(scratch_file(s), "/no/such/place/ccsnap-"));
	assert_int_equal(scratch_free_bytes(s), UINT64_MAX);
	scratch_close(s);
}

static void over_ssh_the_user_has_to_name_the_directory(void **state)
{
	(void)state;
	world.place = VIRT_OVER_SSH;
	world.uri = "qemu+ssh://root@host/system";
	assert_refused(NULL, "--scratch-dir");
	assert_refused("tmp", "--scratch-dir");
	assert_refused("/tmp/a:b", "--scratch-dir");
	assert_refused("/tmp/%h", "--scratch-dir");
	assert_refused("/tmp/${HOME}", "--scratch-dir");
	world.uri = "qemu+ssh://-oProxyCommand=x/system";
	assert_refused("/tmp", "to whom");
}

static void out_of_reach_is_refused(void **state)
{
	(void)state;
	world.place = VIRT_ELSEWHERE;
	world.uri = "qemu+tls://host/system";
	assert_refused(dir, "qemu+ssh");
	assert_int_equal(entries_of(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_of_its_own_comes_and_goes),
		TEST(no_two_have_one_name),
		TEST(an_overlay_is_never_removed),
		TEST(the_default_place_is_made),
		TEST(without_a_home_the_runtime_directory_serves),
		TEST(a_place_that_is_none_is_refused),
		TEST(paths_are_absolute_and_without_links),
		TEST(too_little_space_is_refused),
		TEST(a_path_too_long_for_a_socket_is_refused),
		TEST(a_path_that_no_xml_can_hold_is_refused),
		TEST(qemus_user_gets_the_directory),
		TEST(what_qemus_user_cannot_pass_is_named),
		TEST(a_directory_of_roots_group_does_not_let_qemu_pass),
		TEST(labels_are_read_as_libvirt_reads_them),
		TEST(labels_without_sense_are_refused),
		TEST(only_root_shares_with_another_user),
		TEST(the_default_place_is_opened_for_qemu_to_pass),
		TEST(what_relies_on_a_closed_folder_stays_closed),
		TEST(the_leftovers_of_a_dead_run_are_cleared),
		TEST(a_directory_of_another_name_is_left_alone),
		TEST(a_link_in_its_place_is_not_followed),
		TEST(links_in_it_go_and_what_they_name_stays),
		TEST(what_is_not_ours_in_it_stays),
		TEST(a_directory_that_is_open_is_left_alone),
		TEST(a_directory_of_somebody_else_is_left_alone),
		TEST(empty_directories_of_dead_runs_are_swept),
		TEST(over_ssh_names_begin_with_the_tag),
		TEST(over_ssh_the_user_has_to_name_the_directory),
		TEST(out_of_reach_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
