// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

static struct err err;

static void assert_masked(const char *text, const char *expected)
{
	char copy[1024];

	snprintf(copy, sizeof copy, "%s", text);
	secret_mask(copy);
	assert_string_equal(copy, expected);
}

static void a_known_secret_becomes_asterisks(void **state)
{
	char *secret = secret_new("hunter2");

	(void)state;
	assert_masked("no secret", "no secret");
	assert_masked("hunter2", "****");
	assert_masked("at hunter2, hunter2", "at ****, ****");
	assert_masked("hunter2hunter2", "****");
	assert_masked("hunter", "hunter");
	secret_free(secret);
	assert_masked("hunter2", "hunter2");
}

static void what_overlaps_is_covered_as_a_whole(void **state)
{
	static const char *const secrets[] = { "abcd", "abcdefgh", "ghij", "xxxx" };
	char *known[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		known[i] = secret_new(secrets[i]);
	assert_masked("<abcdefghij>", "<****>");
	assert_masked("<abcdxghij>", "<****x****>");
	assert_masked("<xxxxxxx>", "<****>");
	for (size_t i = 0; i < 4; i++)
		secret_free(known[i]);
}

static void short_ones_are_left(void **state)
{
	char *a = secret_new("the"), *b = secret_new(""), *c = secret_new("four");

	(void)state;
	assert_masked("the four", "the ****");
	secret_free(a);
	secret_free(b);
	secret_free(c);
	assert_null(secret_new(NULL));
	secret_free(NULL);
}

static void written_otherwise_it_is_masked_too(void **state)
{
	char *secret = secret_new("p\"w/\xc3\xa4 +\n$x?");

	(void)state;
	assert_masked("{\"a\":\"p\\\"w/\\u00e4 +\\n$x?\"}", "{\"a\":\"****\"}");
	assert_masked("{\"a\":\"p\\\"w/\xc3\xa4 +\\n$x?\"}", "{\"a\":\"****\"}");
	assert_masked("{\"a\":\"p\\\"w\\/\xc3\xa4 +\\n$x?\"}", "{\"a\":\"****\"}");
	assert_masked("?p=p%22w%2F%C3%A4%20%2B%0A%24x%3F&", "?p=****&");
	assert_masked("?p=p%22w%2f%c3%a4%20%2b%0a%24x%3f&", "?p=****&");
	secret_free(secret);
}

/* As python3 -c 'base64.b64encode(b"user:...")' has them. */
static void inside_base64_it_is_masked_too(void **state)
{
	static const char *const texts[][2] = {
		{ "c2Vuc2l0aXZlPj8/", "****" }, /* sensitive>?? */
		{ "c2Vuc2l0aXZlPj8_", "****" },
		{ "eHNlbnNpdGl2ZT4/Pw==", "eH****w==" },	 /* x... */
		{ "eHlzZW5zaXRpdmU+Pz8=", "eHl****8=" },	 /* xy... */
		{ "dXNlcjpzZW5zaXRpdmU+Pz8=", "dXNlcjp****8=" }, /* user:... */
	};
	char *secret = secret_new("sensitive>??");

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_masked(texts[i][0], texts[i][1]);
	secret_free(secret);
}

/* With so many bytes in front, which is how a secret meets its three shifts. */
static void assert_only_edges_left(const char *secret, size_t front)
{
	unsigned char plain[64] = "xyz";
	char text[96], end[4] = "";
	size_t n = strlen(secret), before = front * 8 / 6 + (front % 3 != 0);
	size_t inside = (front + n) * 8 / 6 - before;

	memcpy(plain + front, secret, n);
	EVP_EncodeBlock((unsigned char *)text, plain, (int)(front + n));
	snprintf(end, sizeof end, "%s", text + before + inside);
	secret_mask(text);
	assert_memory_equal(text + before, "****", 4);
	assert_string_equal(text + before + 4, end);
}

static void in_base64_no_length_and_place_escapes(void **state)
{
	static const char all[] = "correct horse";

	(void)state;
	for (size_t n = 9; n < sizeof all; n++) {
		char *secret = strndup(all, n), *known = secret_new(secret);

		for (size_t front = 0; front < 4; front++)
			assert_only_edges_left(secret, front);
		secret_free(known);
		free(secret);
	}
}

/* --- messages --------------------------------------------------------------------- */

static void errors_do_not_tell_secrets(void **state)
{
	char *secret = secret_new("hunter2");

	(void)state;
	err_set(&err, ERR_FAILED, "bad password %s", "hunter2");
	assert_string_equal(err.text, "bad password ****");
	err_context(&err, "user %s", "hunter2");
	assert_string_equal(err.text, "user ****: bad password ****");
	err_errno(&err, ERR_FAILED, "file hunter2");
	assert_true(str_starts(err.text, "file ****: "));
	secret_free(secret);
}

static void a_secret_is_masked_before_it_is_cut(void **state)
{
	char *secret = secret_new("hunter2-hunter2"), front[2048];

	(void)state;
	for (size_t n = sizeof err.text - 20; n < sizeof err.text; n++) {
		memset(front, '.', n);
		front[n] = '\0';
		err_set(&err, ERR_FAILED, "%shunter2-hunter2", front);
		assert_null(strstr(err.text, "hun"));
	}
	secret_free(secret);
}

static char warned[1024], printed[4096];

static void remember(void *ctx, const char *warning)
{
	(void)ctx;
	snprintf(warned, sizeof warned, "%s", warning);
}

static void read_back(FILE *from)
{
	rewind(from);
	printed[fread(printed, 1, sizeof printed - 1, from)] = '\0';
	fclose(from);
}

static void the_log_and_its_sink_do_not_tell_secrets(void **state)
{
	char *secret = secret_new("hunter2");
	FILE *out = tmpfile();
	int saved = dup(2);

	(void)state;
	fflush(stderr);
	dup2(fileno(out), 2);
	log_set_level(LOG_DEBUG);
	log_set_sink(remember, NULL);
	log_error("a hunter2");
	log_warn("b hunter2");
	log_note("c hunter2");
	log_debug("d hunter2");
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	log_set_sink(NULL, NULL);
	log_set_level(LOG_ERROR);
	read_back(out);
	assert_string_equal(warned, "b ****");
	assert_null(strstr(printed, "hunter"));
	assert_non_null(strstr(printed, "d ****"));
	secret_free(secret);
}

/* --- the process ------------------------------------------------------------------ */

static void the_process_leaves_no_core_and_lets_nobody_look(void **state)
{
	struct rlimit core;
	char *secret;

	(void)state;
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	secret = secret_new("x");
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
	assert_int_equal(core.rlim_cur, 0);
	secret_free(secret);
}

static void a_variable_that_is_not_there_is_none(void **state)
{
	(void)state;
	unsetenv("TEST_SECRET");
	assert_null(secret_take_env("TEST_SECRET"));
	setenv("TEST_SECRET", "", 1);
	assert_null(secret_take_env("TEST_SECRET"));
}

#define VALUE "taken-from-the-environment"

static bool is_in(int fd, const char *text)
{
	char bytes[65536];
	ssize_t n = pread(fd, bytes, sizeof bytes, 0);

	return n > 0 && memmem(bytes, (size_t)n, text, strlen(text));
}

/* In a process whose environment is the kernel's first copy. */
static int take_in_child(void)
{
	/* afterwards only root could open it */
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	char *secret;

	if (!is_in(fd, VALUE))
		return 2;
	secret = secret_take_env("TEST_SECRET");
	if (!secret || !str_equal(secret, VALUE) || getenv("TEST_SECRET"))
		return 3;
	if (is_in(fd, VALUE) || !is_in(fd, "TEST_OTHER=stays"))
		return 4;
	close(fd);
	secret_free(secret);
	return 0;
}

static void a_variable_that_is_taken_is_nowhere_in_proc(void **state)
{
	char *argv[] = { "test-secret", "child", NULL };
	char *env[] = { "TEST_SECRET=" VALUE, "TEST_OTHER=stays", NULL };
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		execve("/proc/self/exe", argv, env);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- threads ---------------------------------------------------------------------- */

static void *come_and_go(void *ctx)
{
	char text[64];

	for (int i = 0; i < 2000; i++) {
		char *secret;

		snprintf(text, sizeof text, "secret-%p-%d", ctx, i);
		secret = secret_new(text);
		secret_mask(text);
		if (!str_equal(text, "****"))
			return ctx;
		secret_free(secret);
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	pthread_t threads[4];
	char ids[4];
	void *failed;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &ids[i]), 0);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_secret_becomes_asterisks),
		cmocka_unit_test(what_overlaps_is_covered_as_a_whole),
		cmocka_unit_test(short_ones_are_left),
		cmocka_unit_test(written_otherwise_it_is_masked_too),
		cmocka_unit_test(inside_base64_it_is_masked_too),
		cmocka_unit_test(in_base64_no_length_and_place_escapes),
		cmocka_unit_test(errors_do_not_tell_secrets),
		cmocka_unit_test(a_secret_is_masked_before_it_is_cut),
		cmocka_unit_test(the_log_and_its_sink_do_not_tell_secrets),
		cmocka_unit_test(the_process_leaves_no_core_and_lets_nobody_look),
		cmocka_unit_test(a_variable_that_is_not_there_is_none),
		cmocka_unit_test(a_variable_that_is_taken_is_nowhere_in_proc),
		cmocka_unit_test(threads_do_not_disturb_each_other),
	};

	(void)argv;
	if (argc == 2)
		return take_in_child();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
