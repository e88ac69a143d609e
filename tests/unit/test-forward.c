// SPDX-License-Identifier: Apache-2.0
#include "quiesce/forward.h"

#include "state-kit.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "quiesce/forward_uri.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* --- an ssh that this program plays itself: what it does is in the host's name --- */

#define FAKE "qemu+ssh://%s/system?command=/proc/self/exe"

static int listen_on(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(fd, 8) < 0)
		return -1;
	return fd;
}

/* LOCAL:REMOTE; which is a file here in which the arguments are noted. */
static void note_arguments(const char *remote, int argc, char **argv)
{
	FILE *out = fopen(remote, "w");

	for (int i = 1; out && i < argc; i++)
		fprintf(out, "%s\n", argv[i]);
	for (char **e = environ; out && *e; e++)
		fprintf(out, "env %s\n", *e);
	if (out)
		fclose(out);
}

static int play_ssh(int argc, char **argv)
{
	const char *host = argv[argc - 1];
	char *route = NULL, *colon;
	int fd;

	for (int i = 1; i + 1 < argc; i++)
		if (str_equal(argv[i], "-L"))
			route = argv[i + 1];
	colon = route ? strchr(route, ':') : NULL;
	if (!colon)
		return 2;
	*colon = '\0';
	note_arguments(colon + 1, argc, argv);
	if (str_equal(host, "refuses")) {
		fprintf(stderr, "root@refuses: Permission denied (publickey).\n");
		return 255;
	}
	if (str_equal(host, "mute"))
		return pause();
	usleep(200 * 1000);
	fd = listen_on(route);
	close(STDOUT_FILENO); /* with -N it needs none */
	/* some are hung up on, as ssh does when nobody listens over there yet */
	for (int n = 0; fd >= 0; n++) {
		int guest = accept(fd, NULL, NULL);

		if (n > 2 && write(guest, "NBDMAGIC", 8) != 8)
			return 3;
		close(guest);
	}
	return 4;
}

/* --- tests --- */

static char remote[100];

static struct forward *start(const char *host)
{
	char uri[200];

	snprintf(remote, sizeof remote, "%s/noted", dir);
	snprintf(uri, sizeof uri, FAKE, host);
	return forward_start(uri, remote, &err);
}

static char *noted(void)
{
	char *text = io_read_file(AT_FDCWD, remote, 100000, NULL, &err);

	assert_non_null(text);
	return text;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void a_socket_that_answers_is_handed_out(void **state)
{
	struct forward *f = start("answers");
	char path[108], magic[8];
	struct stat st;
	int fd;

	(void)state;
	if (!f)
		fail_msg("%s", err.text);
	snprintf(path, sizeof path, "%s", forward_socket(f));
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	fd = connect_to(path);
	assert_int_equal(read(fd, magic, sizeof magic), sizeof magic);
	close(fd);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	forward_stop(f);
	assert_false(file_is_there(path));
}

static void ssh_asks_nobody_and_gets_what_lets_it_in(void **state)
{
	autofree char *text = NULL;

	(void)state;
	setenv("SSH_AUTH_SOCK", "/the/agent", 1);
	setenv("OS_PASSWORD", "hunter2", 1);
	forward_stop(start("answers"));
	text = noted();
	assert_non_null(strstr(text, "-N\n"));
	assert_non_null(strstr(text, "-o\nBatchMode=yes\n"));
	assert_non_null(strstr(text, "-o\nStreamLocalBindMask=0177\n"));
	assert_non_null(strstr(text, "--\nanswers\n"));
	assert_non_null(strstr(text, "env SSH_AUTH_SOCK=/the/agent\n"));
	assert_null(strstr(text, "hunter2"));
	assert_null(strstr(text, "StrictHostKeyChecking"));
	unsetenv("SSH_AUTH_SOCK");
}

static void what_the_uri_says_reaches_ssh(void **state)
{
	autofree char *text = NULL;

	(void)state;
	snprintf(remote, sizeof remote, "%s/noted", dir);
	forward_stop(forward_start("qemu+ssh://us%65r@[::1]:2222/system?no_verify=1&"
				   "command=/proc/self/exe&keyfile=/a%20key",
				   remote, &err));
	text = noted();
	assert_non_null(strstr(text, "-p\n2222\n"));
	assert_non_null(strstr(text, "-l\nuser\n"));
	assert_non_null(strstr(text, "-i\n/a key\n"));
	assert_non_null(strstr(text, "-o\nStrictHostKeyChecking=no\n"));
	assert_non_null(strstr(text, "--\n::1\n"));
}

static void a_refusal_is_told_in_sshs_words_and_at_once(void **state)
{
	uint64_t begun = clock_ns();

	(void)state;
	assert_null(start("refuses"));
	assert_int_equal(err.kind, ERR_FAILED);
	assert_says("Permission denied (publickey)");
	assert_true(clock_seconds_since(begun) < 20); /* not after the half minute */
}

static void a_missing_ssh_is_named(void **state)
{
	(void)state;
	assert_null(forward_start("qemu+ssh://h/system?command=no-such-ssh", "/x", &err));
	assert_says("no-such-ssh");
}

static void a_signal_ends_the_wait(void **state)
{
	int status;
	pid_t pid = fork(); /* since the flag is never cleared */

	(void)state;
	if (pid == 0) {
		interrupt_install();
		raise(SIGTERM);
		_exit(!start("mute") && err.kind == ERR_INTERRUPTED ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void what_a_killed_run_left_is_swept(void **state)
{
	char path[200];
	int status;
	pid_t pid;

	(void)state;
	setenv("XDG_RUNTIME_DIR", dir, 1);
	pid = fork();
	if (pid == 0) {
		struct forward *f = start("answers");

		put_file(remote, f ? forward_socket(f) : "", 0600);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(remote, sizeof remote, "%s/noted", dir);
	{
		autofree char *socket = noted();

		snprintf(path, sizeof path, "%s", socket);
	}
	assert_true(file_is_there(path));
	forward_stop(start("answers"));
	assert_false(file_is_there(path));
	unsetenv("XDG_RUNTIME_DIR");
}

static void assert_target(const char *uri, const char *user, const char *host, const char *port)
{
	struct ssh_target t;

	if (ssh_target_parse(uri, &t, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(t.host, host);
	assert_string_equal(t.user ? t.user : "", user);
	assert_string_equal(t.port ? t.port : "", port);
	ssh_target_free(&t);
}

static void uris_are_taken_apart(void **state)
{
	(void)state;
	assert_target("qemu+ssh://host/system", "", "host", "");
	assert_target("qemu+ssh://host", "", "host", "");
	assert_target("qemu+ssh://me@host:22/system", "me", "host", "22");
	assert_target("qemu+ssh://me@[fe80::1]/system", "me", "fe80::1", "");
	assert_target("qemu+ssh://[::1]:99?socket=/x", "", "::1", "99");
	assert_target("qemu+ssh:///system", "", "localhost", "");
	assert_target("qemu+ssh://me@/system", "me", "localhost", "");
	assert_target("qemu+ssh://d%6Fm%5Cme@host/system#x?y", "dom\\me", "host", "");
}

/* ssh takes what starts with - for an option, and some of those run programs. */
static void what_could_be_an_option_is_refused(void **state)
{
	static const char *const uris[] = {
		"qemu+ssh://-oProxyCommand=touch/system",
		"qemu+ssh://%2DoProxyCommand=touch/system",
		"qemu+ssh://-x@host/system",
		"qemu+ssh://%2dx@host/system",
		"qemu+ssh://[-oProxyCommand=x]/system",
		"qemu+ssh://host:-1/system",
		"qemu+ssh://host:22x/system",
		"qemu+ssh://host:999999/system",
		"qemu+ssh://host/system?keyfile=-x",
		"qemu+ssh://host/system?command=-x",
		"qemu+ssh://host/system?command=",
		"qemu+ssh://ho%0Ast/system",
		"qemu+ssh://ho%00st/system",
		"qemu+ssh://ho%st/system",
		"qemu+ssh://ho%4",
		"qemu+ssh://[::1/system",
		"qemu+ssh://[::1]x/system",
		"qemu+ssh://@host/system",
		"host",
		"",
	};
	struct ssh_target t;

	(void)state;
	for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
		if (ssh_target_parse(uris[i], &t, &err) == 0)
			fail_msg("accepted: %s", uris[i]);
		assert_int_equal(err.kind, ERR_REFUSED);
		assert_null(t.host);
	}
}

static void a_path_with_a_meaning_for_ssh_is_refused(void **state)
{
	static const char *const paths[] = { "/a:b", "/%h", "/${X}", "/a b", "/a\\b", "/\n" };

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_int_equal(forward_check("qemu+ssh://h/system", paths[i], &err), -1);
	assert_int_equal(forward_check("qemu+ssh://h/system", "/var/tmp/ccsnap-a.sock", &err), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STATE_TEST(a_socket_that_answers_is_handed_out),
		STATE_TEST(ssh_asks_nobody_and_gets_what_lets_it_in),
		STATE_TEST(what_the_uri_says_reaches_ssh),
		STATE_TEST(a_refusal_is_told_in_sshs_words_and_at_once),
		STATE_TEST(a_missing_ssh_is_named),
		STATE_TEST(a_signal_ends_the_wait),
		STATE_TEST(what_a_killed_run_left_is_swept),
		STATE_TEST(uris_are_taken_apart),
		STATE_TEST(what_could_be_an_option_is_refused),
		STATE_TEST(a_path_with_a_meaning_for_ssh_is_refused),
	};

	if (argc > 1)
		return play_ssh(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
