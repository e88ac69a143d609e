// SPDX-License-Identifier: Apache-2.0
#include "dest/uploads.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ID	 "6a0d3a6e-0d6c-4d8b-9d0c-0a0b0c0d0e0f"
#define OTHER_ID "7b1e4b7f-1e7d-4e9c-8e1d-1b1c1d1e1f10"

static struct err err;
static char *dir, *folder;
static char forgotten[256]; /* "ID NAME" of what a sweep told */
static int forget_says;
static int files_synced, folders_synced;

char *uploads_default_folder(void)
{
	return folder ? strdup(folder) : NULL;
}

int fsync(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		folders_synced++;
	else
		files_synced++;
	return (int)syscall(SYS_fsync, fd);
}

static int set_up(void **state)
{
	char template[] = "/tmp/ccsnap-test-uploads.XXXXXX";

	(void)state;
	dir = strdup(mkdtemp(template));
	folder = str_format("%s/state/uploads", dir);
	forgotten[0] = '\0';
	forget_says = files_synced = folders_synced = 0;
	log_set_level(LOG_ERROR);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	free(dir);
	free(folder);
	return system(command);
}

static int forget(void *ctx, const struct upload_note *note)
{
	(void)ctx;
	snprintf(forgotten + strlen(forgotten), sizeof forgotten - strlen(forgotten), "%s %s;",
		 note->image_id, note->name);
	return forget_says;
}

static int begin(struct uploads *u, const char *id)
{
	const struct upload_note note = { .image_id = id,
					  .endpoint = "http://glance",
					  .project_id = "project",
					  .name = "a \"name\"\xff" };

	return uploads_begin(u, &note, &err);
}

static void sweep_as(const char *endpoint, const char *project)
{
	autouploads struct uploads *u = uploads_open(&err);

	assert_non_null(u);
	assert_int_equal(uploads_sweep(u, endpoint, project, forget, NULL, &err), 0);
}

static void sweep(void)
{
	sweep_as("http://glance", "project");
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static int is_there(const char *name)
{
	struct stat st;

	return lstat(path_of(name), &st) == 0;
}

static void put(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_pwrite(fd, text, strlen(text), 0), 0);
	close(fd);
}

/* A run that is killed while it uploads. */
static void leave_note(const char *id)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(begin(uploads_open(&err), id) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void replace_in_note(const char *old, const char *new)
{
	autofree char *text = io_read_file(AT_FDCWD, path_of(ID ".json"), 4096, NULL, &err);
	char *at = text ? strstr(text, old) : NULL;

	assert_non_null(at);
	assert_int_equal(strlen(old), strlen(new));
	memcpy(at, new, strlen(new));
	put(ID ".json", text);
}

/* --- the tests --- */

static void a_note_is_synced_with_its_folder_before_begin_returns(void **state)
{
	autouploads struct uploads *u = uploads_open(&err);
	struct stat st;

	(void)state;
	assert_int_equal(begin(u, ID), 0);
	assert_int_equal(files_synced, 1);
	assert_int_equal(folders_synced, 1);
	assert_int_equal(stat(path_of(ID ".json"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
}

static void the_end_of_a_note_is_synced_too(void **state)
{
	autouploads struct uploads *u = uploads_open(&err);

	(void)state;
	assert_int_equal(begin(u, ID), 0);
	assert_int_equal(begin(u, OTHER_ID), 0);
	folders_synced = 0;
	uploads_end(u, ID);
	assert_int_equal(folders_synced, 1);
	assert_false(is_there(ID ".json"));
	assert_true(is_there(OTHER_ID ".json"));
	uploads_end(u, ID); /* once more does nothing */
	uploads_end(u, OTHER_ID);
	assert_false(is_there(OTHER_ID ".json"));
}

static void a_sweep_tells_of_dead_runs_and_forgets_what_is_done(void **state)
{
	(void)state;
	leave_note(ID);
	sweep();
	assert_string_equal(forgotten, ID " a \"name\"\\xff;");
	assert_false(is_there(ID ".json"));
}

static void a_note_stays_until_its_image_is_gone(void **state)
{
	(void)state;
	leave_note(ID);
	forget_says = -1;
	sweep();
	assert_true(is_there(ID ".json"));
	sweep();
	assert_string_equal(forgotten, ID " a \"name\"\\xff;" ID " a \"name\"\\xff;");
}

static void a_live_run_is_left_alone(void **state)
{
	autouploads struct uploads *u = uploads_open(&err);

	(void)state;
	assert_int_equal(begin(u, ID), 0);
	sweep();
	assert_int_equal(uploads_sweep(u, "http://glance", "project", forget, NULL, &err), 0);
	assert_string_equal(forgotten, "");
	assert_true(is_there(ID ".json"));
}

static void other_clouds_and_projects_are_left_alone(void **state)
{
	(void)state;
	leave_note(ID);
	sweep_as("http://other", "project");
	sweep_as("http://glance", "projec");
	assert_string_equal(forgotten, "");
	assert_true(is_there(ID ".json"));
}

static void the_notes_of_another_host_are_left_alone(void **state)
{
	autofree char *text = NULL;
	char old[64], *host;

	(void)state;
	leave_note(ID);
	text = io_read_file(AT_FDCWD, path_of(ID ".json"), 4096, NULL, &err);
	host = strstr(text, "\"host\": \"");
	assert_non_null(host);
	snprintf(old, sizeof old, "%.45s", host);
	host[9] = host[9] == '0' ? '1' : '0';
	host[45] = '\0';
	replace_in_note(old, host);
	sweep();
	assert_string_equal(forgotten, "");
	assert_true(is_there(ID ".json"));
}

static void another_users_notes_are_left_alone(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	leave_note(ID);
	assert_int_equal(chown(path_of(ID ".json"), 1, 1), 0);
	sweep();
	assert_string_equal(forgotten, "");
	assert_true(is_there(ID ".json"));
}

static void a_note_that_speaks_of_another_image_is_left_alone(void **state)
{
	(void)state;
	leave_note(ID);
	replace_in_note(ID, OTHER_ID);
	sweep();
	assert_string_equal(forgotten, "");
	assert_true(is_there(ID ".json"));
}

static void what_is_no_note_is_left_alone(void **state)
{
	static const char *const names[] = {
		"x.json",
		ID,
		ID ".json.bak",
		"6A0D3A6E-0d6c-4d8b-9d0c-0a0b0c0d0e0f.json",
		"00000000-0000-0000-0000-000000000000.json",
	};

	(void)state;
	leave_note(ID);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		put(names[i], "");
	assert_int_equal(unlink(path_of(ID ".json")), 0);
	assert_int_equal(mkfifo(path_of(ID ".json"), 0600), 0);
	assert_int_equal(symlink(names[0], path_of(OTHER_ID ".json")), 0);
	sweep();
	assert_string_equal(forgotten, "");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_true(is_there(names[i]));
	assert_true(is_there(ID ".json"));
	assert_true(is_there(OTHER_ID ".json"));
}

static void damaged_notes_are_left_with_a_warning(void **state)
{
	static const char *const texts[] = { "{", "[]", "{\"a\":1,\"a\":1}", "nonsense", " " };
	autofree char *large = calloc(1, 70000);

	(void)state;
	leave_note(ID);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		put(ID ".json", texts[i]);
		sweep();
		assert_true(is_there(ID ".json"));
	}
	memset(large, ' ', 69999);
	put(ID ".json", large);
	sweep();
	assert_true(is_there(ID ".json"));
	assert_string_equal(forgotten, "");
}

static void an_empty_note_is_of_no_image_and_goes(void **state)
{
	(void)state;
	leave_note(ID);
	put(ID ".json", "");
	sweep();
	assert_string_equal(forgotten, "");
	assert_false(is_there(ID ".json"));
}

static void a_check_makes_nothing(void **state)
{
	(void)state;
	assert_int_equal(uploads_check(&err), 0);
	assert_int_equal(access(folder, F_OK), -1);
	sweep(); /* which makes it */
	assert_int_equal(uploads_check(&err), 0);
}

static void without_a_home_the_check_says_what_to_set(void **state)
{
	(void)state;
	free(folder);
	folder = NULL;
	assert_int_equal(uploads_check(&err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_non_null(strstr(err.text, "set HOME"));
}

static void a_file_in_the_folders_place_is_refused(void **state)
{
	autofree char *parent = str_format("%s/state", dir);

	(void)state;
	assert_int_equal(mkdir(parent, 0700), 0);
	close(open(folder, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(uploads_check(&err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_null(uploads_open(&err));
}

static void a_note_twice_is_an_error(void **state)
{
	autouploads struct uploads *u = uploads_open(&err);

	(void)state;
	assert_int_equal(begin(u, ID), 0);
	assert_int_equal(begin(u, ID), -1);
	assert_true(is_there(ID ".json"));
}

static void one_run_at_a_time_holds_a_name(void **state)
{
	autouploads struct uploads *u = uploads_open(&err), *v = uploads_open(&err);
	int first = -1, second = -1, other = -1;

	(void)state;
	assert_int_equal(uploads_lock_name(u, "key", 0, &first, &err), 0);
	assert_int_equal(uploads_lock_name(v, "key", 0, &second, &err), -1);
	assert_int_equal(err.kind, ERR_BUSY);
	assert_int_equal(uploads_lock_name(v, "other", 0, &other, &err), 0);
	sweep();
	assert_int_equal(uploads_lock_name(v, "key", 0, &second, &err), -1);
	uploads_unlock_name(u, "key", &first);
	assert_int_equal(uploads_lock_name(v, "key", 0, &second, &err), 0);
	uploads_unlock_name(v, "key", &second);
	uploads_unlock_name(v, "other", &other);
	assert_int_equal(rmdir(folder), 0); /* nothing is left */
}

static void a_name_that_a_killed_run_held_is_free(void **state)
{
	autouploads struct uploads *u = uploads_open(&err);
	int fd = -1;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(uploads_lock_name(u, "key", 0, &fd, &err) < 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sweep();
	assert_int_equal(uploads_lock_name(u, "key", 0, &fd, &err), 0);
	uploads_unlock_name(u, "key", &fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_note_is_synced_with_its_folder_before_begin_returns),
		TEST(the_end_of_a_note_is_synced_too),
		TEST(a_sweep_tells_of_dead_runs_and_forgets_what_is_done),
		TEST(a_note_stays_until_its_image_is_gone),
		TEST(a_live_run_is_left_alone),
		TEST(other_clouds_and_projects_are_left_alone),
		TEST(the_notes_of_another_host_are_left_alone),
		TEST(another_users_notes_are_left_alone),
		TEST(a_note_that_speaks_of_another_image_is_left_alone),
		TEST(what_is_no_note_is_left_alone),
		TEST(damaged_notes_are_left_with_a_warning),
		TEST(an_empty_note_is_of_no_image_and_goes),
		TEST(a_check_makes_nothing),
		TEST(without_a_home_the_check_says_what_to_set),
		TEST(a_file_in_the_folders_place_is_refused),
		TEST(a_note_twice_is_an_error),
		TEST(one_run_at_a_time_holds_a_name),
		TEST(a_name_that_a_killed_run_held_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
