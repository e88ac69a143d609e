// SPDX-License-Identifier: Apache-2.0
#include "quiesce/record.h"

#include "state-kit.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const struct record_note full_note = {
	.uri = (char *)"qemu+ssh://user@[::1]:22/system?keyfile=/k%20ey",
	.name = (char *)"a name; with = [all] \"sorts\"\n# of \x80\xff% things ",
	.run_id = 7,
	.frozen = true,
	.patience = true,
	.target = (char *)"vda",
	.scratch_dir = (char *)"/var/tmp/ccsnap-abcdef",
	.scratch = (char *)"/var/tmp/ccsnap-abcdef/scratch",
	.socket = (char *)"",
	.overlay = (char *)" ;#",
};

static const char *path_of(const char *uuid)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/lib/domains/%s", dir, uuid);
	return path;
}

static bool is_removed_before_the_lock;

int flock(int fd, int operation)
{
	if (is_removed_before_the_lock)
		unlink(path_of(UUID));
	is_removed_before_the_lock = false;
	return (int)syscall(SYS_flock, fd, operation);
}

static int torn_reads; /* so many still see a part of an older text */

ssize_t pread(int fd, void *buffer, size_t len, off_t offset)
{
	ssize_t n = (ssize_t)syscall(SYS_pread64, fd, buffer, len, offset);

	if (torn_reads > 0 && n > 100) {
		torn_reads--;
		memset(buffer, 'x', 100);
	}
	return n;
}

static struct record *open_or_fail(const char *uuid)
{
	struct record *r = record_open(uuid, 0, &err);

	if (!r)
		fail_msg("%s", err.text);
	return r;
}

static void write_or_fail(struct record *r, const struct record_note *note)
{
	if (record_write(r, note, &err) < 0)
		fail_msg("%s", err.text);
}

/* What a run leaves that was killed. */
static void leave(const char *uuid, const struct record_note *note)
{
	struct record *r = open_or_fail(uuid);

	write_or_fail(r, note);
	record_close(r);
}

static void assert_same(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void assert_note(const struct record_note *a, const struct record_note *b)
{
	assert_same(a->uri, b->uri);
	assert_same(a->name, b->name);
	assert_int_equal(a->run_id, b->run_id);
	assert_int_equal(a->frozen, b->frozen);
	assert_int_equal(a->patience, b->patience);
	assert_same(a->target, b->target);
	assert_same(a->scratch_dir, b->scratch_dir);
	assert_same(a->scratch, b->scratch);
	assert_same(a->socket, b->socket);
	assert_same(a->overlay, b->overlay);
}

static void what_is_written_is_read_back_byte_by_byte(void **state)
{
	struct record *r;

	(void)state;
	leave(UUID, &full_note);
	r = open_or_fail(UUID);
	assert_false(record_is_clear(r));
	assert_note(record_note(r), &full_note);
	record_close(r);
}

/* inih takes lines of 200 bytes. */
static void a_value_may_be_longer_than_a_line(void **state)
{
	struct record_note note = { .run_id = 1, .frozen = true };
	char uri[900];

	(void)state;
	for (size_t i = 0; i < sizeof uri - 1; i++)
		uri[i] = "a%/;"[i % 4];
	uri[sizeof uri - 1] = '\0';
	for (size_t len = 100; len < sizeof uri; len += 13) {
		struct record *r = open_or_fail(UUID);

		note.uri = uri + sizeof uri - 1 - len;
		write_or_fail(r, &note);
		record_close(r);
		r = open_or_fail(UUID);
		assert_note(record_note(r), &note);
		record_close(r);
	}
}

static void what_fits_into_no_page_is_refused_and_changes_nothing(void **state)
{
	struct record_note note = full_note;
	struct record *r = open_or_fail(UUID);
	char name[5000];

	(void)state;
	write_or_fail(r, &full_note);
	memset(name, 'n', sizeof name);
	name[sizeof name - 1] = '\0';
	note.name = name;
	assert_int_equal(record_write(r, &note, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_note(record_note(r), &full_note);
	record_close(r);
	r = open_or_fail(UUID);
	assert_note(record_note(r), &full_note);
	record_close(r);
}

static void a_note_may_be_made_from_the_one_that_is_there(void **state)
{
	struct record *r = open_or_fail(UUID);
	struct record_note note;

	(void)state;
	write_or_fail(r, &full_note);
	note = *record_note(r);
	note.frozen = false;
	note.target = (char *)"sda";
	write_or_fail(r, &note);
	assert_string_equal(record_note(r)->target, "sda");
	assert_string_equal(record_note(r)->scratch, full_note.scratch);
	record_close(r);
}

static void a_cleared_record_has_nothing_to_undo(void **state)
{
	struct record *r = open_or_fail(UUID);
	struct record_note note;
	bool is_held;

	(void)state;
	assert_true(record_is_clear(r));
	write_or_fail(r, &full_note);
	assert_int_equal(record_clear(r, &err), 0);
	assert_true(record_is_clear(r));
	record_close(r);
	assert_int_equal(record_look(UUID, &note, &is_held, &err), 0);
	r = open_or_fail(UUID);
	assert_true(record_is_clear(r));
	record_close(r);
}

static void names_alone_are_nothing_to_undo(void **state)
{
	const struct record_note note = { .uri = full_note.uri,
					  .name = full_note.name,
					  .target = full_note.target,
					  .run_id = 3 };
	struct record *r;

	(void)state;
	leave(UUID, &note);
	r = open_or_fail(UUID);
	assert_true(record_is_clear(r));
	record_close(r);
}

static void each_thing_is_something_to_undo(void **state)
{
	const struct record_note notes[] = {
		{ .frozen = true },
		{ .patience = true },
		{ .scratch_dir = full_note.scratch_dir },
		{ .scratch = full_note.scratch },
		{ .socket = full_note.scratch },
		{ .overlay = full_note.overlay },
	};

	(void)state;
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
		struct record *r = open_or_fail(UUID);

		write_or_fail(r, &notes[i]);
		assert_false(record_is_clear(r));
		record_close(r);
	}
}

static void folder_and_file_are_for_us_alone(void **state)
{
	struct stat st;
	char folder[100];

	(void)state;
	snprintf(folder, sizeof folder, "%s/lib/domains", dir);
	umask(0);
	leave(UUID, &full_note);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(path_of(UUID), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	chmod(folder, 0777);
	record_close(open_or_fail(OTHER_UUID));
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	umask(022);
}

static void only_one_run_has_the_lock(void **state)
{
	struct record *first = open_or_fail(UUID), *other = open_or_fail(OTHER_UUID);

	(void)state;
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_BUSY);
	assert_says("--lock-wait");
	record_close(first);
	record_close(open_or_fail(UUID));
	record_close(other);
}

static void the_lock_is_waited_for(void **state)
{
	struct record *first = open_or_fail(UUID);
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		record_close(first); /* the child's copy */
		_exit(record_open(UUID, 60, &err) ? 0 : 1);
	}
	usleep(300 * 1000);
	record_close(first);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* As the guard does: it goes on when we are gone. */
static void the_lock_stays_with_who_was_given_the_descriptor(void **state)
{
	struct record *r = open_or_fail(UUID);
	int copy = dup(record_fd(r));
	struct record *adopted;

	(void)state;
	write_or_fail(r, &full_note);
	record_close(r);
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_BUSY);
	adopted = record_adopt(copy, &err);
	assert_non_null(adopted);
	assert_note(record_note(adopted), &full_note);
	assert_int_equal(fcntl(copy, F_GETFD), FD_CLOEXEC);
	assert_int_equal(record_clear(adopted, &err), 0);
	record_close(adopted);
	r = open_or_fail(UUID);
	assert_true(record_is_clear(r));
	record_close(r);
}

static void what_is_held_by_another_is_not_adopted(void **state)
{
	struct record *r = open_or_fail(UUID);
	int fd = open(path_of(UUID), O_RDWR | O_CLOEXEC);

	(void)state;
	assert_null(record_adopt(fd, &err));
	assert_int_equal(err.kind, ERR_FAILED);
	record_close(r);
}

static void a_record_that_was_removed_by_hand_is_made_anew(void **state)
{
	struct record *old = open_or_fail(UUID), *r;

	(void)state;
	assert_int_equal(unlink(path_of(UUID)), 0);
	r = open_or_fail(UUID);
	assert_true(record_is_clear(r));
	record_close(r);
	record_close(old);
	assert_true(file_is_there(path_of(UUID)));
}

static void a_record_that_is_removed_before_it_is_locked_is_made_anew(void **state)
{
	struct record *r;

	(void)state;
	record_close(open_or_fail(UUID));
	is_removed_before_the_lock = true;
	r = open_or_fail(UUID);
	assert_true(file_is_there(path_of(UUID)));
	assert_null(record_open(UUID, 0, &err)); /* what we have locked is what the name means */
	record_close(r);
}

static void what_a_killed_run_wrote_is_there(void **state)
{
	struct record *r;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		r = record_open(UUID, 0, &err);
		if (!r || record_write(r, &full_note, &err) < 0)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	r = open_or_fail(UUID);
	assert_note(record_note(r), &full_note);
	record_close(r);
}

/* Killed at any moment, a writer leaves one of its notes whole. */
static void a_writer_that_is_killed_leaves_a_whole_note(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		struct record *r;
		pid_t pid;

		leave(UUID, &full_note);
		pid = fork();
		if (pid == 0) {
			r = open_or_fail(UUID);
			for (int n = 0;; n++) {
				if (n % 2)
					record_clear(r, &err);
				else
					record_write(r, &full_note, &err);
			}
			_exit(1);
		}
		usleep(1000 + (useconds_t)i * 300);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		r = open_or_fail(UUID);
		if (!record_is_clear(r))
			assert_note(record_note(r), &full_note);
		record_close(r);
	}
}

static void who_looks_needs_no_lock(void **state)
{
	struct record *r = open_or_fail(UUID);
	struct record_note note;
	bool is_held = false;

	(void)state;
	write_or_fail(r, &full_note);
	assert_int_equal(record_look(UUID, &note, &is_held, &err), 1);
	assert_true(is_held);
	assert_note(&note, &full_note);
	record_note_free(&note);
	record_close(r);
	assert_int_equal(record_look(UUID, &note, &is_held, &err), 1);
	assert_false(is_held);
	record_note_free(&note);
	assert_int_equal(record_look(OTHER_UUID, &note, &is_held, &err), 0);
	assert_null(note.name);
}

static void looking_makes_nothing(void **state)
{
	struct record_note note;
	char lib[80];
	bool is_held;

	(void)state;
	assert_int_equal(record_look(UUID, &note, &is_held, &err), 0);
	snprintf(lib, sizeof lib, "%s/lib", dir);
	assert_false(file_is_there(lib));
	is_homeless = true;
	assert_int_equal(record_look(UUID, &note, &is_held, &err), 0);
}

static void a_text_that_is_being_written_is_read_again(void **state)
{
	struct record *r = open_or_fail(UUID);
	struct record_note note;
	bool is_held;

	(void)state;
	write_or_fail(r, &full_note);
	torn_reads = 2;
	assert_int_equal(record_look(UUID, &note, &is_held, &err), 1);
	assert_note(&note, &full_note);
	record_note_free(&note);
	record_close(r);
}

static void who_looks_while_it_is_written_sees_one_note_or_the_other(void **state)
{
	struct record_note note;
	bool is_held;
	pid_t pid;

	(void)state;
	record_close(open_or_fail(UUID));
	pid = fork();
	if (pid == 0) {
		struct record *r = record_open(UUID, 5, &err);

		assert_non_null(r);
		for (int n = 0;; n++) {
			if (n % 2)
				record_clear(r, &err);
			else
				record_write(r, &full_note, &err);
		}
		_exit(1);
	}
	for (int i = 0; i < 3000; i++) {
		int rc = record_look(UUID, &note, &is_held, &err);

		if (rc < 0)
			fail_msg("%s", err.text);
		if (rc == 1)
			assert_note(&note, &full_note);
		if (rc == 1)
			record_note_free(&note);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void assert_damaged(const char *text)
{
	struct record_note note;
	bool is_held;

	put_file(path_of(UUID), text, 0600);
	assert_null(record_open(UUID, 0, &err));
	assert_says(path_of(UUID));
	assert_says("damaged");
	assert_says("remove the file");
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(record_look(UUID, &note, &is_held, &err), -1);
	assert_null(note.name);
}

static void damage_is_told_and_never_acted_on(void **state)
{
	static const char *const texts[] = {
		"x",
		"[ccsnap]\nfrozen = yes\n",
		"\177ELF",
		"[ccsnap]\nfrozen = yes\ncheck = \n",
		"[ccsnap]\ncheck = 00000000-0000-0000-0000-000000000000\n",
	};

	(void)state;
	record_close(open_or_fail(UUID));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_damaged(texts[i]);
}

static char *text_of(const char *uuid)
{
	char *text = io_read_file(AT_FDCWD, path_of(uuid), 10000, NULL, &err);

	assert_non_null(text);
	return text;
}

static void every_changed_byte_is_noticed(void **state)
{
	autofree char *text = NULL;
	size_t len;

	(void)state;
	leave(UUID, &full_note);
	text = text_of(UUID);
	len = (size_t)(strstr(text, "\n\n") - text);
	for (size_t i = 0; i < len; i += 7) {
		text[i] ^= 1;
		assert_damaged(text);
		text[i] ^= 1;
	}
}

static void a_note_that_was_cut_off_is_noticed(void **state)
{
	autofree char *text = NULL;

	(void)state;
	leave(UUID, &full_note);
	text = text_of(UUID);
	*strstr(text, "\n\n") = '\0';
	for (size_t len = strlen(text) - 1; len > 0; len -= len > 40 ? 40 : len) {
		text[len] = '\0';
		assert_damaged(text);
	}
}

/* A crash of the host may leave zeros in a file that was made but not written. */
static void a_file_of_zeros_or_blanks_is_clear(void **state)
{
	struct record *r;

	(void)state;
	record_close(open_or_fail(UUID));
	assert_int_equal(truncate(path_of(UUID), 0), 0);
	record_close(open_or_fail(UUID));
	assert_int_equal(truncate(path_of(UUID), 0), 0);
	assert_int_equal(truncate(path_of(UUID), 4096), 0);
	r = open_or_fail(UUID);
	assert_true(record_is_clear(r));
	record_close(r);
}

static void a_file_that_is_too_long_is_damaged(void **state)
{
	(void)state;
	record_close(open_or_fail(UUID));
	assert_int_equal(truncate(path_of(UUID), 1 << 20), 0);
	assert_null(record_open(UUID, 0, &err));
	assert_says("longer than");
}

static void links_pipes_and_the_files_of_others_are_refused(void **state)
{
	char other[100];
	struct stat st;

	(void)state;
	record_close(open_or_fail(OTHER_UUID));
	snprintf(other, sizeof other, "%s/other", dir);
	put_file(other, "precious", 0600);

	assert_int_equal(symlink(other, path_of(UUID)), 0);
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	unlink(path_of(UUID));

	assert_int_equal(link(other, path_of(UUID)), 0);
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_size, strlen("precious"));
	unlink(path_of(UUID));

	assert_int_equal(mkfifo(path_of(UUID), 0600), 0);
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	unlink(path_of(UUID));

	put_file(path_of(UUID), "", 0666);
	assert_null(record_open(UUID, 0, &err));
	assert_says("remove it");
	if (geteuid() == 0) {
		assert_int_equal(chmod(path_of(UUID), 0600), 0);
		assert_int_equal(chown(path_of(UUID), 12345, 12345), 0);
		assert_null(record_open(UUID, 0, &err));
		assert_says("remove it");
	}
}

static void a_folder_of_somebody_else_is_refused(void **state)
{
	char folder[100];

	(void)state;
	if (geteuid() != 0)
		skip(); /* who else could make one */
	snprintf(folder, sizeof folder, "%s/lib/domains", dir);
	record_close(open_or_fail(UUID));
	assert_int_equal(chown(folder, 12345, 12345), 0);
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_says("another user");
}

static void without_a_home_nothing_is_begun(void **state)
{
	(void)state;
	is_homeless = true;
	assert_null(record_open(UUID, 0, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_says("XDG_STATE_HOME");
}

static void what_is_no_uuid_names_no_file(void **state)
{
	static const char *const names[] = { "", "../../etc/passwd", "vm",
					     "6A0D3A6E-0D6C-4D8B-9D0C-0A0B0C0D0E0F" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_null(record_open(names[i], 0, &err));
}

/* The limit on a file's size stands for a full filesystem: each write of more fails. */
static void a_full_disk_is_noticed_before_anything_is_done(void **state)
{
	const struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &none);
		if (record_open(UUID, 0, &err))
			_exit(1);
		_exit(err.kind == ERR_REFUSED && strstr(err.text, "noted first") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void once_open_the_file_no_longer_grows(void **state)
{
	struct record *r = open_or_fail(UUID);
	struct stat before, after;

	(void)state;
	assert_int_equal(stat(path_of(UUID), &before), 0);
	assert_true(before.st_blocks > 0);
	write_or_fail(r, &full_note);
	record_clear(r, &err);
	record_close(r);
	assert_int_equal(stat(path_of(UUID), &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_blocks, after.st_blocks);
	assert_int_equal(before.st_ino, after.st_ino);
}

static int count_domain(void *ctx, const char *uuid, struct err *e)
{
	char *seen = ctx;

	(void)e;
	strcat(strcat(seen, uuid), ";");
	return 0;
}

static int fail_domain(void *ctx, const char *uuid, struct err *e)
{
	(void)ctx;
	(void)uuid;
	return err_set(e, ERR_FAILED, "enough");
}

static void each_is_called_for_what_is_written_and_nothing_else(void **state)
{
	char seen[400] = "";

	(void)state;
	assert_int_equal(record_each(count_domain, seen, &err), 0);
	leave(UUID, &full_note);
	record_close(open_or_fail(OTHER_UUID));
	put_file(path_of("notes.txt"), "x", 0600);
	put_file(path_of("6A0D3A6E-0D6C-4D8B-9D0C-0A0B0C0D0E0F"), "x", 0600);
	assert_int_equal(record_each(count_domain, seen, &err), 0);
	assert_string_equal(seen, UUID ";");
	put_file(path_of(OTHER_UUID), "damaged", 0600);
	seen[0] = '\0';
	assert_int_equal(record_each(count_domain, seen, &err), 0);
	assert_int_equal(strlen(seen), 2 * strlen(UUID ";"));
	assert_int_equal(record_each(fail_domain, NULL, &err), -1);
	assert_string_equal(err.text, "enough");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STATE_TEST(what_is_written_is_read_back_byte_by_byte),
		STATE_TEST(a_value_may_be_longer_than_a_line),
		STATE_TEST(what_fits_into_no_page_is_refused_and_changes_nothing),
		STATE_TEST(a_note_may_be_made_from_the_one_that_is_there),
		STATE_TEST(a_cleared_record_has_nothing_to_undo),
		STATE_TEST(names_alone_are_nothing_to_undo),
		STATE_TEST(each_thing_is_something_to_undo),
		STATE_TEST(folder_and_file_are_for_us_alone),
		STATE_TEST(only_one_run_has_the_lock),
		STATE_TEST(the_lock_is_waited_for),
		STATE_TEST(the_lock_stays_with_who_was_given_the_descriptor),
		STATE_TEST(what_is_held_by_another_is_not_adopted),
		STATE_TEST(a_record_that_was_removed_by_hand_is_made_anew),
		STATE_TEST(a_record_that_is_removed_before_it_is_locked_is_made_anew),
		STATE_TEST(what_a_killed_run_wrote_is_there),
		STATE_TEST(a_writer_that_is_killed_leaves_a_whole_note),
		STATE_TEST(who_looks_needs_no_lock),
		STATE_TEST(looking_makes_nothing),
		STATE_TEST(a_text_that_is_being_written_is_read_again),
		STATE_TEST(who_looks_while_it_is_written_sees_one_note_or_the_other),
		STATE_TEST(damage_is_told_and_never_acted_on),
		STATE_TEST(every_changed_byte_is_noticed),
		STATE_TEST(a_note_that_was_cut_off_is_noticed),
		STATE_TEST(a_file_of_zeros_or_blanks_is_clear),
		STATE_TEST(a_file_that_is_too_long_is_damaged),
		STATE_TEST(links_pipes_and_the_files_of_others_are_refused),
		STATE_TEST(a_folder_of_somebody_else_is_refused),
		STATE_TEST(without_a_home_nothing_is_begun),
		STATE_TEST(what_is_no_uuid_names_no_file),
		STATE_TEST(a_full_disk_is_noticed_before_anything_is_done),
		STATE_TEST(once_open_the_file_no_longer_grows),
		STATE_TEST(each_is_called_for_what_is_written_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
