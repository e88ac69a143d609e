// SPDX-License-Identifier: Apache-2.0
#include "report/progress.h"

#include "base/log.h"

#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

/* One of our standard streams, replaced and read back. */
struct capture {
	int fd, saved, reader;
	char text[65536];
};

static void capture_begin(struct capture *c, int fd, int reader, int writer)
{
	c->fd = fd;
	c->reader = reader;
	c->saved = dup(fd);
	dup2(writer, fd);
	close(writer);
}

static void capture_pipe(struct capture *c, int fd)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	capture_begin(c, fd, ends[0], ends[1]);
}

/* fd becomes a terminal so wide; returns a descriptor to resize it by. */
static int capture_terminal(struct capture *c, int fd, unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	int ours, theirs;

	assert_int_equal(openpty(&ours, &theirs, NULL, NULL, &size), 0);
	capture_begin(c, fd, ours, theirs);
	return ours;
}

/* What came since the last call; a terminal hands it on with some delay. */
static const char *capture_read(struct capture *c)
{
	struct pollfd ready = { .fd = c->reader, .events = POLLIN };
	size_t len = 0;

	while (len < sizeof c->text - 1 && poll(&ready, 1, 20) == 1) {
		ssize_t n = read(c->reader, c->text + len, sizeof c->text - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	c->text[len] = '\0';
	return c->text;
}

static void capture_end(struct capture *c)
{
	dup2(c->saved, c->fd);
	close(c->saved);
	close(c->reader);
}

static void sleep_ms(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void json_style_prints_one_object_a_line(void **state)
{
	struct progress *p;
	struct capture c;
	size_t lines = 0;

	(void)state;
	capture_pipe(&c, STDOUT_FILENO);
	p = progress_start(PROGRESS_JSON);
	progress_phase(p, "capture", 1000000);
	for (uint64_t i = 1; i <= 1000; i++)
		progress_update(p, i * 1000);
	progress_phase(p, "hash", 0);
	progress_stop(p);
	capture_read(&c);
	capture_end(&c);
	for (char *line = strtok(c.text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
		json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		assert_non_null(o);
		assert_int_equal(json_object_size(o), 5);
		assert_true(json_is_string(json_object_get(o, "phase")));
		assert_true(json_is_integer(json_object_get(o, "done_bytes")));
		assert_true(json_is_integer(json_object_get(o, "total_bytes")));
		assert_true(json_is_integer(json_object_get(o, "bytes_per_second")));
		json_decref(o);
	}
	assert_int_equal(lines, 3); /* first and last of capture, the only one of hash */
}

static void json_style_prints_at_most_two_lines_a_second(void **state)
{
	struct progress *p;
	struct capture c;

	(void)state;
	capture_pipe(&c, STDOUT_FILENO);
	p = progress_start(PROGRESS_JSON);
	progress_phase(p, "capture", 1200);
	for (uint64_t i = 1; i <= 120; i++) {
		progress_update(p, i * 10);
		sleep_ms(10);
	}
	progress_stop(p);
	capture_read(&c);
	capture_end(&c);
	assert_in_range(count(c.text, "\n"), 3, 6);
	assert_non_null(strstr(c.text, "\"done_bytes\":0,\"total_bytes\":1200,"
				       "\"bytes_per_second\":0,\"eta_seconds\":null}"));
	assert_non_null(strstr(c.text, "\"done_bytes\":1200,\"total_bytes\":1200"));
	assert_non_null(strstr(c.text, "\"eta_seconds\":0}"));
}

static void more_than_the_total_is_the_total(void **state)
{
	struct progress *p;
	struct capture c;

	(void)state;
	capture_pipe(&c, STDOUT_FILENO);
	p = progress_start(PROGRESS_JSON);
	progress_phase(p, "capture", 100);
	progress_update(p, 5000);
	progress_stop(p);
	assert_non_null(strstr(capture_read(&c), "\"done_bytes\":100,"));
	capture_end(&c);
}

static void a_reader_that_went_away_does_no_harm(void **state)
{
	struct progress *p;
	struct capture c;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	capture_pipe(&c, STDOUT_FILENO);
	close(c.reader);
	c.reader = -1;
	p = progress_start(PROGRESS_JSON);
	progress_phase(p, "capture", 100);
	progress_phase(p, "hash", 100);
	progress_stop(p);
	capture_end(&c);
}

static void the_bar_shows_phase_percent_and_amounts(void **state)
{
	struct progress *p;
	struct capture c;
	const char *text;

	(void)state;
	capture_terminal(&c, STDERR_FILENO, 100);
	p = progress_start(PROGRESS_BAR);
	progress_phase(p, "capture", UINT64_C(4) << 30);
	sleep_ms(250);
	progress_update(p, UINT64_C(1) << 30);
	text = capture_read(&c);
	assert_non_null(strstr(text, "capture  25%"));
	assert_non_null(strstr(text, "[#"));
	assert_non_null(strstr(text, "1 GiB / 4 GiB"));
	assert_non_null(strstr(text, "/s"));
	assert_non_null(strstr(text, "ETA 0:0"));
	progress_stop(p);
	assert_string_equal(capture_read(&c), "\r\033[K");
	capture_end(&c);
}

/* Length of the longest line drawn: between "\r" and "\033[K". */
static size_t longest_line(const char *text)
{
	size_t longest = 0;

	while ((text = strchr(text, '\r'))) {
		size_t len = strcspn(++text, "\033\r\n");

		longest = len > longest ? len : longest;
	}
	return longest;
}

static void the_bar_fits_every_width_also_after_a_resize(void **state)
{
	struct progress *p;
	struct capture c;
	int terminal;

	(void)state;
	terminal = capture_terminal(&c, STDERR_FILENO, 80);
	p = progress_start(PROGRESS_BAR);
	for (unsigned short columns = 1; columns <= 340; columns += 1 + columns / 60) {
		struct winsize size = { .ws_row = 1, .ws_col = columns };

		ioctl(terminal, TIOCSWINSZ, &size);
		progress_phase(p, "capture", UINT64_MAX);
		progress_update(p, UINT64_MAX - columns);
		progress_phase(p, "publish", UINT64_C(1023) << 40);
		assert_true(longest_line(capture_read(&c)) < columns || columns == 1);
	}
	progress_stop(p);
	capture_end(&c);
}

static void the_bar_is_redrawn_a_few_times_a_second(void **state)
{
	struct progress *p;
	struct capture c;

	(void)state;
	capture_terminal(&c, STDERR_FILENO, 80);
	p = progress_start(PROGRESS_BAR);
	progress_phase(p, "capture", 1000);
	for (uint64_t i = 0; i < 50; i++) {
		progress_update(p, i);
		sleep_ms(10);
	}
	assert_in_range(count(capture_read(&c), "capture"), 2, 5);
	progress_stop(p);
	capture_end(&c);
}

static void the_bar_steps_aside_for_a_log_line(void **state)
{
	struct progress *p;
	struct capture c;
	const char *wiped, *line, *again;

	(void)state;
	capture_terminal(&c, STDERR_FILENO, 80);
	p = progress_start(PROGRESS_BAR);
	progress_phase(p, "capture", 1000);
	capture_read(&c);
	log_warn("look");
	wiped = strstr(capture_read(&c), "\r\033[K");
	line = strstr(c.text, "ccsnap: warning: look");
	again = strstr(c.text, "capture ");
	assert_true(wiped && line && again && wiped < line && line < again);
	progress_stop(p);
	capture_read(&c);
	log_warn("later");
	assert_null(strchr(capture_read(&c), '\033'));
	capture_end(&c);
}

static void *log_a_little(void *unused)
{
	for (int i = 0; i < 10; i++)
		log_warn("look");
	return unused;
}

static void log_lines_of_another_thread_stand_alone(void **state)
{
	struct progress *p;
	struct capture c;
	pthread_t thread;
	const char *at;

	(void)state;
	capture_terminal(&c, STDERR_FILENO, 40);
	p = progress_start(PROGRESS_BAR);
	assert_int_equal(pthread_create(&thread, NULL, log_a_little, NULL), 0);
	for (int i = 0; i < 20; i++)
		progress_phase(p, "capture", 1000);
	pthread_join(thread, NULL);
	progress_stop(p);
	at = capture_read(&c);
	assert_int_equal(count(at, "ccsnap: warning: look\r\n"), 10);
	while ((at = strstr(at, "ccsnap:"))) {
		assert_true(at == c.text || at[-1] == 'K' || at[-1] == '\n');
		at++;
	}
	capture_end(&c);
}

static void auto_is_a_bar_only_on_a_terminal_that_can(void **state)
{
	enum progress_style style;
	struct capture c;

	(void)state;
	setenv("TERM", "xterm", 1);
	capture_terminal(&c, STDERR_FILENO, 80);
	assert_int_equal(progress_style_parse("auto", &style), 0);
	assert_int_equal(style, PROGRESS_BAR);
	setenv("TERM", "dumb", 1);
	progress_style_parse("auto", &style);
	assert_int_equal(style, PROGRESS_NONE);
	unsetenv("TERM");
	progress_style_parse("auto", &style);
	assert_int_equal(style, PROGRESS_NONE);
	capture_end(&c);
	setenv("TERM", "xterm", 1);
	capture_pipe(&c, STDERR_FILENO);
	progress_style_parse("auto", &style);
	assert_int_equal(style, PROGRESS_NONE);
	capture_end(&c);
	assert_int_equal(progress_style_parse("bars", &style), -1);
}

static void without_progress_every_call_is_fine(void **state)
{
	(void)state;
	assert_null(progress_start(PROGRESS_NONE));
	progress_phase(NULL, "capture", 1);
	progress_update(NULL, 1);
	progress_stop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_style_prints_one_object_a_line),
		cmocka_unit_test(json_style_prints_at_most_two_lines_a_second),
		cmocka_unit_test(more_than_the_total_is_the_total),
		cmocka_unit_test(a_reader_that_went_away_does_no_harm),
		cmocka_unit_test(the_bar_shows_phase_percent_and_amounts),
		cmocka_unit_test(the_bar_fits_every_width_also_after_a_resize),
		cmocka_unit_test(the_bar_is_redrawn_a_few_times_a_second),
		cmocka_unit_test(the_bar_steps_aside_for_a_log_line),
		cmocka_unit_test(log_lines_of_another_thread_stand_alone),
		cmocka_unit_test(auto_is_a_bar_only_on_a_terminal_that_can),
		cmocka_unit_test(without_progress_every_call_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
