// SPDX-License-Identifier: Apache-2.0
#include "folder-kit.h"

#include "base/log.h"

#include <signal.h>

static void another_run_for_the_name_is_busy(void **state)
{
	struct dest *first, *second;

	(void)state;
	assert_true(begin(&first, "a", ".raw", KEEP) >= 0);
	assert_refused(make("a", ".qcow2", "x", KEEP), ERR_BUSY, "another run is making");
	assert_int_equal(make("b", ".raw", "x", KEEP), 0);
	assert_true(begin(&second, "c", ".raw", KEEP) >= 0);
	dest_close(first);
	dest_close(second);
	assert_int_equal(make("a", ".qcow2", "x", KEEP), 0);
}

static void a_waiting_run_gets_the_name_when_it_is_free(void **state)
{
	struct dest_config cfg = {
		.where = where, .image_name = "a", .suffix = ".raw", .lock_wait_seconds = 20
	};
	struct dest *dest;
	pid_t pid = fork();
	int fd;

	(void)state;
	if (pid == 0) {
		fd = begin(&dest, "a", ".raw", KEEP);
		usleep(600000);
		_exit(fd < 0);
	}
	for (int i = 0; i < 200 && count_entries() == 0; i++)
		usleep(5000);
	dest = dest_open(&cfg, &err);
	assert_int_equal(dest->ops->reserve(dest, &fd, &err), 0);
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(count_entries(), 1);
	dest_close(dest);
}

static void of_twenty_runs_at_once_one_gets_the_name(void **state)
{
	int won = 0, busy = 0, go[2];
	pid_t pids[20];
	char byte;

	(void)state;
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < 20; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(go[1]);
			if (read(go[0], &byte, 1) != 0)
				_exit(1);
			if (make("a", i % 2 ? ".raw" : ".qcow2", "text", KEEP) == 0)
				_exit(0);
			_exit(err_exit_code(&err));
		}
	}
	close(go[1]);
	for (int i = 0; i < 20; i++) {
		int code = wait_for(pids[i]);

		assert_true(code == 0 || code == 75 || code == 4);
		won += code == 0;
		busy += code == 75;
	}
	close(go[0]);
	assert_int_equal(won, 1);
	assert_int_equal(count_entries(), 3);
	assert_int_equal(count_listed(), 1);
	print_message("busy: %d of 20\n", busy);
}

static void leftovers_of_the_dead_go_and_all_else_stays(void **state)
{
	static const char *const foreign[] = {
		".ccsnap-tmp",
		".abcdefgh.ccsnap-tmp",
		"a.abcdefgh.ccsnap-tmp",
		".a.ABCDEFGH.ccsnap-tmp",
		".a.abcdefg.ccsnap-tmp",
		".a.abcdefgh.ccsnap-tmp~",
		".a.abcdefg1.ccsnap-tmp",
	};
	size_t count = sizeof foreign / sizeof *foreign;

	(void)state;
	put(".a.abcdefgh.ccsnap-tmp", "left");
	put(".other.name.abcdefgh.ccsnap-tmp", "left");
	put(".other.name.abcdefgh.ccsnap-note", "left");
	for (size_t i = 0; i < count; i++)
		put(foreign[i], "not ours");
	assert_int_equal(mkdir(path_of(".d.abcdefgh.ccsnap-tmp"), 0700), 0);
	assert_int_equal(symlink("/etc/passwd", path_of(".l.abcdefgh.ccsnap-tmp")), 0);
	assert_int_equal(mkfifo(path_of(".f.abcdefgh.ccsnap-tmp"), 0600), 0);
	assert_int_equal(make("a", ".raw", "text", KEEP), 0);
	for (size_t i = 0; i < count; i++)
		assert_content(foreign[i], "not ours");
	assert_int_equal(count_entries(), 3 + (int)count + 3);
}

static void assert_one_whole_image(void)
{
	assert_int_equal(count_listed(), 1);
	assert_true(is_there("a.raw") != is_there("a.qcow2"));
	assert_int_equal(count_entries(), is_there("a.report.json") ? 3 : 2);
}

static void killed_anywhere_a_new_name_is_whole_or_free(void **state)
{
	int n = 0, done;

	(void)state;
	do {
		int visible, code;

		done = run_until_call(n++, ".raw", "text", KEEP);
		visible = is_there("a.raw");
		assert_int_equal(count_listed(), visible);
		code = make("a", ".raw", "text", KEEP);
		assert_int_equal(code, visible ? -1 : 0);
		if (code < 0)
			assert_int_equal(err.kind, ERR_REFUSED);
		assert_one_whole_image();
		empty_directory();
	} while (!done);
	print_message("%d places\n", n);
	assert_true(n > 8);
}

static void killed_anywhere_the_old_image_or_the_new_one_is_there(void **state)
{
	static const char *const suffixes[] = { ".raw", ".qcow2" };
	int n = 0, done;

	(void)state;
	for (int s = 0; s < 2; s++) {
		for (n = 0, done = 0; !done; n++) {
			assert_int_equal(make("a", ".raw", "old one", OVER), 0);
			assert_content("a.raw", "old one");
			/* as long as the old one: the list must not be fooled afterwards */
			done = run_until_call(n, suffixes[s], "new one", OVER);
			assert_true(is_there("a.raw") || is_there("a.qcow2"));

			/* without leave to overwrite: heals what was begun, then refuses */
			assert_refused(make("a", ".raw", "third", KEEP), ERR_REFUSED, "exists");
			assert_int_equal(count_listed(), 1);
			assert_int_equal(make("a", suffixes[n % 2], "fourth", OVER), 0);
			assert_content(n % 2 ? "a.qcow2" : "a.raw", "fourth");
			assert_one_whole_image();
		}
		print_message("%d places\n", n);
		assert_true(n > 8);
	}
}

static void a_refused_run_finishes_and_sweeps_what_a_killed_run_left(void **state)
{
	int n, done;

	(void)state;
	for (n = 0, done = 0; !done; n++) {
		done = run_until_call(n, ".raw", "text", KEEP);
		assert_int_equal(tidy_and_check(".raw"), is_there("a.raw") ? -1 : 0);
		assert_int_equal(count_entries(),
				 (is_there("a.raw") ? 2 : 0) + is_there("a.report.json") +
					 (!is_there("a.raw") && is_there("a.manifest.json")));
		empty_directory();
	}
	for (n = 0, done = 0; !done; n++) {
		assert_int_equal(make("a", ".raw", "old one", OVER), 0);
		done = run_until_call(n, ".qcow2", "new one", OVER);
		assert_refused(tidy_and_check(".raw"), ERR_REFUSED, "exists; use --overwrite");
		assert_one_whole_image();
	}
}

static void a_check_sweeps_nothing(void **state)
{
	struct dest *dest = open_dest("a", ".raw", KEEP);

	(void)state;
	put(".a.abcdefgh.ccsnap-tmp", "left");
	put(".b.abcdefgh.ccsnap-tmp", "left");
	put(".b.abcdefgh.ccsnap-note", "left");
	put(".a.bbbbbbbb.ccsnap-note", "left");
	assert_int_equal(dest->ops->check(dest, 0, &err), 0);
	assert_int_equal(count_entries(), 4);
	dest->ops->tidy(dest);
	assert_int_equal(count_entries(), 0);
	dest_close(dest);
}

static void tidying_up_makes_no_folder_and_leaves_the_living_alone(void **state)
{
	struct dest *dest;

	(void)state;
	assert_true(begin(&dest, "a", ".raw", KEEP) >= 0);
	assert_int_equal(tidy_and_check(".raw"), 0);
	assert_int_equal(count_entries(), 1);
	dest_close(dest);
	strcat(where, "/nosuch");
	assert_refused(tidy_and_check(".raw"), ERR_REFUSED, "does not exist");
	assert_int_equal(count_entries(), 0);
	snprintf(where, sizeof where, "file:%s/out", dir);
	put(".out.abcdefgh.ccsnap-tmp", "left");
	put("out", "there");
	assert_refused(tidy_and_check(NULL), ERR_REFUSED, "out exists");
	assert_int_equal(count_entries(), 1);
}

static void killed_at_random_the_next_run_works_and_leaves_no_debris(void **state)
{
	int killed = 0;

	(void)state;
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (int j = 0;; j++)
				if (make("a", ".raw", j % 2 ? "one" : "two", OVER) < 0)
					_exit(1);
		}
		usleep((useconds_t)(1000 + i * 997 % 20000));
		kill(pid, SIGKILL);
		killed += wait_for(pid) == -SIGKILL;
		assert_int_equal(make("a", ".raw", "next", OVER), 0);
		assert_content("a.raw", "next");
		assert_one_whole_image();
	}
	assert_int_equal(killed, 40);
}

static void filesystems_without_locks_work(void **state)
{
	struct dest *first, *second;
	int fd1, fd2;

	(void)state;
	no_flock = 1;
	put(".z.abcdefgh.ccsnap-tmp", "alive or not");
	fd1 = begin(&first, "a", ".raw", KEEP);
	fd2 = begin(&second, "a", ".raw", KEEP);
	assert_true(fd1 >= 0 && fd2 >= 0);
	assert_int_equal(publish(first, fd1, "first"), 0);
	assert_refused(publish(second, fd2, "second"), ERR_REFUSED, "a.raw");
	dest_close(first);
	dest_close(second);
	assert_content("a.raw", "first");
	assert_content(".z.abcdefgh.ccsnap-tmp", "alive or not");
	assert_int_equal(count_entries(), 4);
}

static void a_directory_locked_by_a_stranger_is_waited_for(void **state)
{
	pid_t pid;
	int fd;

	(void)state;
	pid = fork();
	if (pid == 0) {
		fd = open(dir, O_RDONLY);
		flock(fd, LOCK_EX);
		put("ready", "");
		usleep(400000);
		_exit(0);
	}
	for (int i = 0; i < 200 && !is_there("ready"); i++)
		usleep(5000);
	assert_int_equal(make("a", ".raw", "x", KEEP), 0);
	assert_int_equal(wait_for(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_run_for_the_name_is_busy),
		TEST(a_waiting_run_gets_the_name_when_it_is_free),
		TEST(of_twenty_runs_at_once_one_gets_the_name),
		TEST(leftovers_of_the_dead_go_and_all_else_stays),
		TEST(killed_anywhere_a_new_name_is_whole_or_free),
		TEST(killed_anywhere_the_old_image_or_the_new_one_is_there),
		TEST(a_refused_run_finishes_and_sweeps_what_a_killed_run_left),
		TEST(a_check_sweeps_nothing),
		TEST(tidying_up_makes_no_folder_and_leaves_the_living_alone),
		TEST(killed_at_random_the_next_run_works_and_leaves_no_debris),
		TEST(filesystems_without_locks_work),
		TEST(a_directory_locked_by_a_stranger_is_waited_for),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
