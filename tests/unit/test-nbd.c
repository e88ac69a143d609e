// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "source/extent.h"
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A real server, which answers each request in a thread of its own.  A read is sent in
 * pieces of 256 KiB.
 */
enum { DISK = 4 * 1024 * 1024, PIECE = 256 * 1024, SOON_SECONDS = 20 };

static uint8_t expected[DISK], got[DISK];
static struct err err;
static char dir[64];
static pid_t server;

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static int make_dir(void **state)
{
	uint32_t x = 7;
	int fd;

	(void)state;
	if (system("nbdkit --version >/dev/null 2>&1") != 0)
		return 0;
	strcpy(dir, "/tmp/test-nbd-XXXXXX");
	if (!mkdtemp(dir) || chdir(dir) < 0)
		return -1;
	log_set_level(LOG_ERROR);
	for (size_t i = 0; i < DISK; i++)
		expected[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
	fd = open("disk", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, expected, DISK) != DISK)
		return -1;
	return close(fd);
}

static int remove_dir(void **state)
{
	char command[100];

	(void)state;
	if (!*dir)
		return 0;
	snprintf(command, sizeof command, "cd / && rm -rf %s", dir);
	return system(command);
}

/* nbdkit with those words, on the socket s. */
static void serve(const char *words)
{
	char command[2048];

	if (!*dir) {
		print_message("skipped: nbdkit is missing\n");
		skip();
	}
	unlink("pid");
	unlink("s");
	snprintf(command, sizeof command, "exec nbdkit -f -r -U s -P pid %s 2>log", words);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	while (access("pid", F_OK) < 0) {
		assert_int_equal(waitpid(server, NULL, WNOHANG), 0);
		sleep_ms(10);
	}
}

/* The disk, by a shell script that gets the length and the offset of a read as $3 and $4.  What
 * it waits for ends with the file "wait".
 */
static void serve_by(const char *before)
{
	char words[1500];

	assert_int_equal(close(creat("wait", 0600)), 0);
	snprintf(words, sizeof words,
		 "eval thread_model='echo parallel' get_size='echo %d' can_extents='exit 3' "
		 "pread='%s\n dd if=disk iflag=skip_bytes,count_bytes skip=$4 count=$3 bs=64K "
		 "status=none'",
		 DISK, before);
	serve(words);
}

/* A shell's "wait for good". */
#define HANG "while [ -e wait ]; do sleep 0.1; done"

static int stop_server(void **state)
{
	(void)state;
	unlink("wait");
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	server = 0;
	return 0;
}

static struct source *try_open(struct source_export cfg)
{
	cfg.name = "vm/vda";
	cfg.socket = cfg.socket ? cfg.socket : "s";
	cfg.export_name = cfg.export_name ? cfg.export_name : "";
	cfg.connections = cfg.connections ? cfg.connections : 2;
	err = (struct err){ 0 };
	return source_open_export(&cfg, &err);
}

static struct source *open_export(void)
{
	struct source *src = try_open((struct source_export){ .stall_seconds = 60 });

	if (!src)
		fail_msg("%s", err.text);
	return src;
}

static void read_all(struct source *src)
{
	memset(got, 0, DISK);
	if (source_read_at(src, got, DISK, 0, &err) < 0)
		fail_msg("%s", err.text);
	assert_memory_equal(got, expected, DISK);
}

static void assert_error(const char *part)
{
	if (!strstr(err.text, part))
		fail_msg("%s", err.text);
}

/* --- what is read ---------------------------------------------------------------- */

static void a_read_of_many_pieces_is_whole(void **state)
{
	struct source *src;

	(void)state;
	serve("file disk");
	src = open_export();
	assert_int_equal(src->size, DISK);
	assert_int_equal(src->sector_size, 512);
	read_all(src);
	source_close(src);
}

static void reads_may_begin_and_end_anywhere(void **state)
{
	static const struct {
		size_t offset, len;
	} reads[] = {
		{ 0, 1 },
		{ 1, 1 },
		{ 511, 2 },
		{ 4095, 4098 },
		{ PIECE - 1, 2 },
		{ 1, 3 * PIECE },
		{ DISK - 1, 1 },
		{ PIECE + 7, DISK / 2 },
		{ DISK - PIECE - 3, PIECE + 3 },
		{ 12345, 67890 },
		{ 8 * PIECE, 2 * PIECE },
		{ 4096, 17 * PIECE / 2 },
	};
	static const char *const servers[] = {
		"file disk",
		"--filter=blocksize-policy file disk blocksize-error-policy=error "
		"blocksize-minimum=4096 blocksize-preferred=4096 blocksize-maximum=64K",
		"--filter=blocksize-policy file disk blocksize-error-policy=error "
		"blocksize-minimum=64K blocksize-preferred=64K blocksize-maximum=192K",
	};

	(void)state;
	for (size_t s = 0; s < sizeof servers / sizeof *servers; s++) {
		struct source *src;

		serve(servers[s]);
		src = open_export();
		for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
			memset(got, 0, DISK);
			if (source_read_at(src, got, reads[i].len, reads[i].offset, &err) < 0)
				fail_msg("%s", err.text);
			assert_memory_equal(got, expected + reads[i].offset, reads[i].len);
			assert_int_equal(got[reads[i].len], 0);
		}
		source_close(src);
		stop_server(NULL);
	}
}

static void an_odd_end_is_padded_with_zeros(void **state)
{
	static const uint8_t zeros[512];
	struct source *src;

	(void)state;
	serve("--filter=truncate file disk truncate=1000001");
	src = open_export();
	assert_int_equal(src->size, 1000448);
	assert_int_equal(src->padding, 447);
	assert_int_equal(source_read_at(src, got, 1000448, 0, &err), 0);
	assert_memory_equal(got, expected, 1000001);
	assert_memory_equal(got + 1000001, zeros, 447);
	source_close(src);
}

/* The first piece is answered after the seventh was asked for. */
static void answers_may_come_in_any_order(void **state)
{
	struct source *src;

	(void)state;
	serve_by("case $4 in 1572864) : >seventh;; "
		 "0) [ $3 = 8192 ] || while [ ! -e seventh ]; do sleep 0.1; done;; esac");
	src = open_export();
	read_all(src);
	source_close(src);
}

static void holes_are_believed(void **state)
{
	struct extent_list list = { 0 };
	struct source *src;

	(void)state;
	serve("data '@1048576 1 @3145728'");
	src = open_export();
	assert_int_equal(source_extents(src, 0, src->size, &list, &err), 0);
	assert_int_equal(list.len, 3);
	assert_true(list.at[0].zero && !list.at[1].zero && list.at[2].zero);
	assert_int_equal(list.at[1].offset, 1048576);
	extent_list_free(&list);
	source_close(src);
}

static void *read_part(void *src)
{
	static uint8_t buf[8][DISK / 2];
	static _Atomic unsigned next;
	uint8_t *mine = buf[next++ % 8];
	struct err own;

	for (uint64_t at = 0; at <= DISK / 2; at += DISK / 4)
		if (source_read_at(src, mine, DISK / 2, at, &own) < 0 ||
		    memcmp(mine, expected + at, DISK / 2) != 0)
			return src;
	return NULL;
}

static void more_threads_than_connections_take_turns(void **state)
{
	struct source *src;
	pthread_t threads[8];
	void *bad = NULL;

	(void)state;
	serve("--filter=delay file disk rdelay=1ms");
	src = open_export();
	for (size_t i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, read_part, src);
	for (size_t i = 0; i < 8; i++) {
		void *result;

		pthread_join(threads[i], &result);
		bad = result ? result : bad;
	}
	assert_null(bad);
	source_close(src);
}

/* --- what cannot be read ----------------------------------------------------------- */

/* Sectors at those offsets are bad; the first of them is named whatever is read. */
static void the_first_bad_offset_is_named_exactly(void **state)
{
	static const char bad[] = "for b in 1310720 2621440 2637312; do "
				  "if [ $4 -lt $((b + 512)) ] && [ $(($4 + $3)) -gt $b ]; then "
				  "echo EIO bad >&2; exit 1; fi; done;";
	static const struct {
		size_t offset, len;
		const char *named;
	} reads[] = {
		{ 0, DISK, "vm/vda: cannot read at offset 1310720: " },
		{ 1310720, 512, "cannot read at offset 1310720: " },
		{ 1310720 + 512, DISK - 1310720 - 512, "cannot read at offset 2621440: " },
		{ 2621440 + 512, PIECE, "cannot read at offset 2637312: " },
	};
	struct source *src;

	(void)state;
	serve_by(bad);
	src = open_export();
	for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
		assert_int_equal(source_read_at(src, got, reads[i].len, reads[i].offset, &err), -1);
		assert_error(reads[i].named);
		assert_error(strerror(EIO));
	}
	/* what is good can be read over the same connections */
	assert_int_equal(source_read_at(src, got, 1310720, 0, &err), 0);
	assert_memory_equal(got, expected, 1310720);
	source_close(src);
}

/* A later piece is known to be bad before the first bad one is. */
static void the_first_bad_offset_is_named_when_a_later_one_fails_sooner(void **state)
{
	struct source *src;

	(void)state;
	serve_by(
		"fail() { echo EIO bad >&2; exit 1; }; case $4 in "
		"1048576) : >later; fail;; 524288) while [ ! -e later ]; do sleep 0.1; done; fail;; "
		"esac");
	src = open_export();
	assert_int_equal(source_read_at(src, got, DISK, 0, &err), -1);
	assert_error("cannot read at offset 524288: ");
	source_close(src);
}

/* Nobody is to write there: reads of something else see to what comes over their
 * connections.
 */
static void assert_left_alone(struct source *src, const uint8_t *buf)
{
	uint8_t other[4096];

	for (int i = 0; i < 4; i++)
		assert_int_equal(source_read_at(src, other, sizeof other, 0, &err), 0);
	for (size_t i = 0; i < DISK; i++)
		assert_int_equal(buf[i], 0xee);
}

/* They answer long after the bad one, whose read must have waited for them. */
static void pieces_behind_a_bad_one_leave_the_buffer_alone(void **state)
{
	struct source *src;

	(void)state;
	serve_by("case $4 in 262144) echo EIO bad >&2; exit 1;; 1048576) sleep 1;; esac");
	src = open_export();
	assert_int_equal(source_read_at(src, got, DISK, 0, &err), -1);
	memset(got, 0xee, DISK);
	sleep_ms(1500);
	assert_left_alone(src, got);
	source_close(src);
}

/* It dies while a later piece is under way; all the earlier ones came. */
static void a_server_that_dies_ends_the_read(void **state)
{
	struct source *src;
	uint8_t *buf = malloc(DISK);

	(void)state;
	serve_by("[ $4 != 2097152 ] || { sleep 0.5; kill -9 $PPID; }");
	src = open_export();
	assert_int_equal(source_read_at(src, buf, DISK, 0, &err), -1);
	free(buf);
	assert_int_equal(err.kind, ERR_FAILED);
	assert_error("cannot read at offset ");
	assert_error("the NBD server is gone");
	assert_int_equal(source_read_at(src, got, 512, 0, &err), -1);
	source_close(src);
}

/* ... and the bad one is named all the same, as far as it is known. */
static void a_server_that_dies_behind_a_bad_piece_does_not_hide_it(void **state)
{
	struct source *src;

	(void)state;
	serve_by("case $4 in 262144) echo EIO bad >&2; exit 1;; "
		 "1048576) sleep 1; kill -9 $PPID;; esac");
	src = open_export();
	assert_int_equal(source_read_at(src, got, DISK, 0, &err), -1);
	assert_error("cannot read at offset 262144: the NBD server is gone");
	source_close(src);
}

static void *abort_soon(void *src)
{
	sleep_ms(300);
	source_abort(src);
	return NULL;
}

/* Answers that come later do not write to the buffer. */
static void an_abort_ends_a_read_for_good(void **state)
{
	uint64_t start = clock_ns();
	struct source *src;
	pthread_t thread;

	(void)state;
	serve_by("[ $4 -lt 1048576 ] || " HANG);
	src = open_export();
	pthread_create(&thread, NULL, abort_soon, src);
	assert_int_equal(source_read_at(src, got, DISK, 0, &err), -1);
	pthread_join(thread, NULL);
	assert_error("reading was given up");
	assert_true(clock_seconds_since(start) < SOON_SECONDS);
	memset(got, 0xee, DISK);
	unlink("wait");
	sleep_ms(500);
	for (int i = 0; i < 4; i++) {
		uint8_t other[4096];

		assert_int_equal(source_read_at(src, other, sizeof other, 0, &err), -1);
	}
	for (size_t i = 0; i < DISK; i++)
		assert_int_equal(got[i], 0xee);
	source_close(src);
}

static void no_answer_for_long_is_an_error(void **state)
{
	struct source *src;

	(void)state;
	serve_by("[ $4 -lt 1048576 ] || " HANG);
	src = try_open((struct source_export){ .stall_seconds = 2 });
	assert_non_null(src);
	assert_int_equal(source_read_at(src, got, DISK, 0, &err), -1);
	assert_error("cannot read at offset 1048576: no answer");
	assert_error("--stall-timeout");
	/* the others are still good, and the one that waits is not used */
	memset(got, 0xee, DISK);
	unlink("wait");
	sleep_ms(500);
	assert_left_alone(src, got);
	source_close(src);
	stop_server(NULL);
	serve_by(HANG);
	assert_null(try_open((struct source_export){ .stall_seconds = 1 }));
	assert_error("vm/vda: cannot read at offset 0: no answer");
}

/* In a child, since a signal is remembered for good.  0: it ended as it should. */
static int interrupted_read(int listening_only)
{
	struct source *src;

	interrupt_install();
	if (fork() == 0) {
		sleep_ms(500);
		kill(getppid(), SIGTERM);
		_exit(0);
	}
	src = try_open((struct source_export){ .connections = 1 });
	if (listening_only)
		return src || err.kind != ERR_INTERRUPTED;
	return !src || source_read_at(src, got, DISK, 0, &err) == 0 || err.kind != ERR_INTERRUPTED;
}

static void assert_interrupted(int listening_only)
{
	uint64_t start = clock_ns();
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(interrupted_read(listening_only));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(clock_seconds_since(start) < SOON_SECONDS);
}

static void a_signal_ends_a_read(void **state)
{
	(void)state;
	serve_by("[ $4 -lt 1048576 ] || " HANG);
	assert_interrupted(0);
}

/* --- the limit -------------------------------------------------------------------- */

static void a_limit_is_never_exceeded(void **state)
{
	const uint64_t rate = 2 * MIB;
	uint64_t start = clock_ns();
	struct source *src;

	(void)state;
	serve("file disk");
	src = try_open((struct source_export){ .bytes_per_second = rate });
	assert_non_null(src);
	for (uint64_t at = 0; at < DISK; at += DISK / 4) {
		assert_int_equal(source_read_at(src, got, DISK / 4, at, &err), 0);
		assert_true((double)(at + DISK / 4) <=
			    1.2 * (double)rate * clock_seconds_since(start));
	}
	source_close(src);
}

/* $3 is the length. */
static void no_request_is_a_burst(void **state)
{
	struct source *src;

	(void)state;
	serve_by("[ $3 -le 131072 ] || { echo EIO large >&2; exit 1; };");
	src = try_open((struct source_export){ .bytes_per_second = 512 * KIB });
	assert_non_null(src);
	if (source_read_at(src, got, 2 * PIECE, 0, &err) < 0)
		fail_msg("%s", err.text);
	source_close(src);
}

static void a_slow_read_can_be_given_up(void **state)
{
	uint64_t start = clock_ns();
	struct source *src;
	pthread_t thread;

	(void)state;
	serve("file disk");
	src = try_open((struct source_export){ .bytes_per_second = 8 * KIB });
	assert_non_null(src);
	pthread_create(&thread, NULL, abort_soon, src);
	assert_int_equal(source_read_at(src, got, DISK, 0, &err), -1);
	pthread_join(thread, NULL);
	assert_error("reading was given up");
	assert_true(clock_seconds_since(start) < SOON_SECONDS);
	source_close(src);
}

/* --- opening ---------------------------------------------------------------------- */

static int listen_on(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(listen(fd, 0), 0);
	return fd;
}

static void what_is_no_server_is_told(void **state)
{
	struct source_export cfg = { .socket = "disk" };

	(void)state;
	serve("--filter=exportname file disk exportname=vda exportname-strict=true");
	assert_null(try_open(cfg));
	assert_error("vm/vda: disk is no socket");
	assert_int_equal(symlink("s", "link"), 0);
	cfg.socket = "link";
	assert_null(try_open(cfg));
	assert_error("link is no socket");
	cfg.socket = "missing";
	assert_null(try_open(cfg));
	assert_error("cannot find the NBD server's socket missing: No such file");
	cfg.socket = "s";
	cfg.export_name = "vdb";
	assert_null(try_open(cfg));
	assert_error("vm/vda: ");
	stop_server(NULL);
	assert_null(try_open(cfg));
	assert_error("cannot connect to the NBD server at s: Connection refused");
}

static void a_path_may_be_longer_than_the_name_of_a_socket(void **state)
{
	char path[300] = "";
	struct source *src;

	(void)state;
	serve("file disk");
	memset(path, 'x', 200);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/s");
	assert_int_equal(rename("s", path), 0);
	src = try_open((struct source_export){ .socket = path });
	if (!src)
		fail_msg("%s", err.text);
	source_close(src);
}

/* Its queue is full after the first connection. */
static void a_server_that_takes_nobody_can_be_given_up(void **state)
{
	int fd;

	(void)state;
	serve("file disk");
	stop_server(NULL);
	unlink("s");
	fd = listen_on("s");
	assert_interrupted(1);
	close(fd);
}

static void the_place_of_the_partition_table_tells_the_sectors(void **state)
{
	struct source *src;

	(void)state;
	serve("data '@4096 \"EFI PART\" @1048576'");
	src = open_export();
	assert_int_equal(src->sector_size, 4096);
	source_close(src);
	src = try_open((struct source_export){ .sector_size = 512 });
	assert_non_null(src);
	assert_int_equal(src->sector_size, 512);
	source_close(src);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_read_of_many_pieces_is_whole, stop_server),
		cmocka_unit_test_teardown(reads_may_begin_and_end_anywhere, stop_server),
		cmocka_unit_test_teardown(an_odd_end_is_padded_with_zeros, stop_server),
		cmocka_unit_test_teardown(answers_may_come_in_any_order, stop_server),
		cmocka_unit_test_teardown(holes_are_believed, stop_server),
		cmocka_unit_test_teardown(more_threads_than_connections_take_turns, stop_server),
		cmocka_unit_test_teardown(the_first_bad_offset_is_named_exactly, stop_server),
		cmocka_unit_test_teardown(
			the_first_bad_offset_is_named_when_a_later_one_fails_sooner, stop_server),
		cmocka_unit_test_teardown(pieces_behind_a_bad_one_leave_the_buffer_alone,
					  stop_server),
		cmocka_unit_test_teardown(a_server_that_dies_ends_the_read, stop_server),
		cmocka_unit_test_teardown(a_server_that_dies_behind_a_bad_piece_does_not_hide_it,
					  stop_server),
		cmocka_unit_test_teardown(an_abort_ends_a_read_for_good, stop_server),
		cmocka_unit_test_teardown(no_answer_for_long_is_an_error, stop_server),
		cmocka_unit_test_teardown(a_signal_ends_a_read, stop_server),
		cmocka_unit_test_teardown(a_limit_is_never_exceeded, stop_server),
		cmocka_unit_test_teardown(no_request_is_a_burst, stop_server),
		cmocka_unit_test_teardown(a_slow_read_can_be_given_up, stop_server),
		cmocka_unit_test_teardown(what_is_no_server_is_told, stop_server),
		cmocka_unit_test_teardown(a_path_may_be_longer_than_the_name_of_a_socket,
					  stop_server),
		cmocka_unit_test_teardown(a_server_that_takes_nobody_can_be_given_up, stop_server),
		cmocka_unit_test_teardown(the_place_of_the_partition_table_tells_the_sectors,
					  stop_server),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
