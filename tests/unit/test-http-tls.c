// SPDX-License-Identifier: Apache-2.0
#include "http-kit.h"

#include <limits.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* With certificates of an authority of our own, and openssl as the server; what it
 * answers stands in the file of the path.
 */
static char dir[] = "/tmp/ccsnap test tls.XXXXXX";

static const char make_certificates[] =
	"set -e; exec 2>/dev/null\n"
	"key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'\n"
	"openssl req -x509 $key -keyout ca.key -out ca.pem -days 2 -subj '/CN=an authority'\n"
	"cert() {\n"
	"	openssl req -new $key -keyout $1.key -out $1.csr -subj /CN=$1\n"
	"	echo subjectAltName=$2 >$1.ext\n"
	"	openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -set_serial $3 -days $4 \\\n"
	"		-extfile $1.ext -out $1.pem\n"
	"}\n"
	"cert good DNS:localhost,IP:127.0.0.1 1 2\n"
	"cert other DNS:example.org 2 2\n"
	"cert old DNS:localhost,IP:127.0.0.1 3 -1\n"
	"mkdir cas; cp ca.pem cas/$(openssl x509 -in ca.pem -noout -hash).0\n"
	"printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi' >hi\n"
	"printf 'HTTP/1.1 302 No\\r\\nLocation: http://127.0.0.1:9/\\r\\n\\r\\n' >down\n";

static int make_all(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 ? system(make_certificates) : -1;
}

static int remove_all(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return chdir("/") || system(command);
}

static const char *file(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

/* --- the server --- */

static pid_t tls_pid;
static FILE *tls_says;
static unsigned tls_port;

enum { MAX_ARGS = 24 };

/* name's certificate, or name2's for those who ask for localhost by SNI. */
static void tls_child(const char *name, const char *name2, int out)
{
	char cert[32], key[32], cert2[32], key2[32];
	const char *args[MAX_ARGS] = { "openssl", "s_server", "-HTTP", "-accept", "127.0.0.1:0",
				       "-cert",	  cert,	      "-key",  key };

	snprintf(cert, sizeof cert, "%s.pem", name);
	snprintf(key, sizeof key, "%s.key", name);
	if (name2) {
		const char *more[] = { "-servername", "localhost", "-cert2", cert2, "-key2", key2 };

		snprintf(cert2, sizeof cert2, "%s.pem", name2);
		snprintf(key2, sizeof key2, "%s.key", name2);
		memcpy(args + 9, more, sizeof more);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, STDOUT_FILENO);
	close(STDERR_FILENO);
	execvp("openssl", (char **)args);
	_exit(127);
}

static void tls_start(const char *name, const char *name2)
{
	char line[256];
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	tls_pid = fork();
	if (tls_pid == 0)
		tls_child(name, name2, ends[1]);
	close(ends[1]);
	tls_says = fdopen(ends[0], "r");
	tls_port = 0;
	while (!tls_port && fgets(line, sizeof line, tls_says))
		sscanf(line, "ACCEPT 127.0.0.1:%u", &tls_port);
	assert_int_not_equal(tls_port, 0);
}

static void tls_stop(void)
{
	kill(tls_pid, SIGKILL);
	waitpid(tls_pid, NULL, 0);
	fclose(tls_says);
}

static int get_tls(const char *host, const char *path)
{
	char url[128];

	snprintf(url, sizeof url, "https://%s:%u/%s", host, tls_port, path);
	return send_request(&(struct http_request){ .method = "GET", .url = url, .tries = 3 });
}

/* A new client, for openssl only serves one connection at a time. */
static void trust(const char *cacert)
{
	reopen(&(struct http_config){ .cacert = file(cacert), .connect_seconds = 5 });
}

static void assert_answers(const char *host)
{
	if (get_tls(host, "hi") < 0)
		fail_msg("%s", err.text);
	assert_string_equal(answer.body, "hi");
}

static void assert_not_trusted(const char *host, const char *words)
{
	assert_no_answer(get_tls(host, "hi"), words);
	assert_has(err.text, host);
	assert_false(answer.may_retry);
	assert_true(answer.is_certain_unsent);
}

/* --- tests --- */

static void a_server_of_our_authority_is_trusted(void **state)
{
	(void)state;
	tls_start("good", NULL);
	trust("ca.pem");
	assert_answers("127.0.0.1");
	trust("ca.pem");
	assert_answers("localhost");
	trust("cas");
	assert_answers("127.0.0.1");
	tls_stop();
}

static void a_server_of_an_unknown_authority_is_not(void **state)
{
	(void)state;
	tls_start("good", NULL);
	assert_not_trusted("127.0.0.1", "its certificate does not hold: unable to get local issuer "
					"certificate; if it is the right server");
	trust("other.pem");
	assert_not_trusted("127.0.0.1", "OS_CACERT or cacert");
	tls_stop();
}

static void a_certificate_for_another_name_is_not_trusted(void **state)
{
	(void)state;
	tls_start("other", NULL);
	trust("ca.pem");
	assert_not_trusted("localhost", "'localhost'; use a name that it is for");
	assert_not_trusted("127.0.0.1", "use a name that it is for");
	tls_stop();
}

static void an_expired_certificate_is_not_trusted(void **state)
{
	(void)state;
	tls_start("old", NULL);
	trust("ca.pem");
	assert_not_trusted("localhost", "certificate has expired; the server needs a new one");
	tls_stop();
}

static void insecure_trusts_all_of_them(void **state)
{
	static const char *const names[] = { "good", "other", "old" };

	(void)state;
	reopen(&(struct http_config){ .insecure = true, .connect_seconds = 5 });
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		tls_start(names[i], NULL);
		assert_answers("localhost");
		tls_stop();
	}
}

static void the_server_is_told_its_name(void **state)
{
	(void)state;
	tls_start("other", "good");
	trust("ca.pem");
	assert_answers("localhost");
	tls_stop();
}

static void a_redirect_out_of_tls_is_not_followed(void **state)
{
	(void)state;
	tls_start("good", NULL);
	trust("ca.pem");
	assert_no_answer(get_tls("localhost", "down"), "which is not encrypted; not followed");
	assert_false(answer.may_retry);
	tls_stop();
}

static void serve_plain(struct server *s)
{
	char hello[16];

	recv(s->conn, hello, sizeof hello, 0);
	say(s, "HTTP/1.1 400 Bad\r\n\r\n");
}

static void a_server_without_tls_is_told(void **state)
{
	(void)state;
	server_start(&server, serve_plain, NULL);
	tls_port = server.port;
	assert_no_answer(get_tls("127.0.0.1", ""), "no TLS connection: ");
	assert_false(answer.may_retry);
	assert_true(answer.is_certain_unsent);
	server_stop(&server);
}

static void serve_nothing(struct server *s)
{
	(void)s;
}

static void a_handshake_that_is_cut_off_may_be_retried(void **state)
{
	char url[64];

	(void)state;
	server_start(&server, serve_nothing, NULL);
	snprintf(url, sizeof url, "https://127.0.0.1:%u/", server.port);
	assert_no_answer(send_request(&(struct http_request){ .method = "GET", .url = url }),
			 "127.0.0.1:");
	assert_true(answer.may_retry);
	server_stop(&server);
}

static void assert_not_opened(const struct http_config *cfg, const char *words)
{
	assert_null(http_open(cfg, &err));
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_has(err.text, words);
	assert_has(err.text, "not there.pem: No such file or directory");
}

static void a_file_that_is_not_there_is_refused(void **state)
{
	const char *path = "/tmp/not there.pem";

	(void)state;
	assert_not_opened(&(struct http_config){ .cacert = path }, "CA");
	assert_not_opened(&(struct http_config){ .cert = path }, "certificate");
	assert_not_opened(&(struct http_config){ .key = path }, "key");
}

static void a_file_without_certificates_is_told(void **state)
{
	(void)state;
	tls_start("good", NULL);
	trust("hi");
	assert_no_answer(get_tls("localhost", "hi"), "/hi");
	assert_false(answer.may_retry);
	tls_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_server_of_our_authority_is_trusted),
		TEST(a_server_of_an_unknown_authority_is_not),
		TEST(a_certificate_for_another_name_is_not_trusted),
		TEST(an_expired_certificate_is_not_trusted),
		TEST(insecure_trusts_all_of_them),
		TEST(the_server_is_told_its_name),
		TEST(a_redirect_out_of_tls_is_not_followed),
		TEST(a_server_without_tls_is_told),
		TEST(a_handshake_that_is_cut_off_may_be_retried),
		TEST(a_file_that_is_not_there_is_refused),
		TEST(a_file_without_certificates_is_told),
	};

	if (system("openssl version >/dev/null 2>&1") != 0) {
		fputs("skipped: there is no openssl here\n", stderr);
		return 77;
	}
	return cmocka_run_group_tests(tests, make_all, remove_all);
}
