// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/interrupt.h"
#include "cloud-kit.h"
#include "dest/http.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A metadata service: for each path the first answer that is left. */
struct answer {
	const char *path, *status, *body;
	size_t padding; /* blanks behind the body */
	bool is_spent;
};
static struct answer *answers; /* ends with a NULL path */
static int listener;
static atomic_int requests;

static struct answer answer_for(const char *request)
{
	char path[256] = "";

	sscanf(request, "GET %255s ", path);
	for (struct answer *a = answers; a && a->path; a++) {
		if (str_equal(a->path, path) && (!a->is_spent || !a[1].path)) {
			a->is_spent = true;
			return *a;
		}
	}
	return (struct answer){ NULL, "404 Not Found", "", 0, false };
}

/* What answers points at may be gone before the last byte is. */
static void answer_one(int fd)
{
	static char blanks[128 << 10];
	char request[4096] = "", head[4096];
	ssize_t n = recv(fd, request, sizeof request - 1, 0);
	struct answer a = answer_for(n > 0 ? request : "");

	memset(blanks, ' ', sizeof blanks);
	requests++;
	snprintf(head, sizeof head,
		 "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", a.status,
		 strlen(a.body) + a.padding, a.body);
	send(fd, head, strlen(head), MSG_NOSIGNAL);
	send(fd, blanks, a.padding, MSG_NOSIGNAL);
}

static void *serve(void *ctx)
{
	int fd;

	(void)ctx;
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		answer_one(fd);
		shutdown(fd, SHUT_WR);
		close(fd);
	}
	return NULL;
}

static pthread_t server;

static int start_server(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	char url[64];

	if (kit_enter(state) < 0)
		return -1;
	answers = NULL;
	requests = 0;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 8) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		return -1;
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(at.sin_port));
	setenv("CCSNAP_METADATA_URL", url, 1);
	return pthread_create(&server, NULL, serve, NULL);
}

static int stop_server(void **state)
{
	shutdown(listener, SHUT_RDWR);
	pthread_join(server, NULL);
	close(listener);
	return kit_leave(state);
}

#define DATA2 "/openstack/latest/vendor_data2.json"
#define DATA1 "/openstack/latest/vendor_data.json"
#define SITE                                                                                       \
	"\"site\": \"uc\", \"region\": \"CHI@UC\", \"project_id\": \"p1\", "                       \
	"\"auth_url_v3\": \"https://chi.uc.example.org:5000/v3\""
#define SHOWN(token)                                                                               \
	"auth=token\nauth_url=https://chi.uc.example.org:5000/v3\nsecret=" token                   \
	"\nproject_id=p1\nregion=CHI@UC\ninterface=public\nmetadata=yes\n"

static void the_testbeds_data_make_a_cloud(void **state)
{
	struct answer first[] = { { DATA2, "200 OK",
				    "{\"x\": 1, \"chameleon\": {" SITE
				    ", \"service_token\": \"token-one\"}}",
				    0, false },
				  { .path = NULL } };

	(void)state;
	answers = first;
	assert_string_equal(loaded(NULL), SHOWN("token-one"));
	assert_int_equal(requests, 1);
	setenv("OS_REGION_NAME", "other", 1);
	setenv("OS_CACERT", "/ca", 1);
	assert_says(loaded(NULL), "region=other\ninterface=public\ncacert=/ca\n");
}

/* It would see the token, and ask the wrong machine's service. */
static void a_proxy_is_not_asked_for_them(void **state)
{
	static struct answer first[] = {
		{ DATA2, "200 OK", "{\"chameleon\": {" SITE ", \"service_token\": \"token-one\"}}",
		  0, false },
		{ .path = NULL }
	};

	(void)state;
	answers = first;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	assert_string_equal(loaded(NULL), SHOWN("token-one"));
	unsetenv("http_proxy");
}

static void the_older_file_is_the_second_choice(void **state)
{
	static const char *const without[] = { "{}", "{\"other\": {}}", "{\"chameleon\": {}}" };
	static struct answer both[] = {
		{ DATA1, "200 OK", "{" SITE ", \"service_token\": \"token-one\"}", 0, false },
		{ DATA2, "200 OK", "", 0, false },
		{ .path = NULL }
	};

	(void)state;
	answers = both;
	for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
		both[0].is_spent = both[1].is_spent = false;
		both[1].body = without[i];
		assert_string_equal(loaded(NULL), SHOWN("token-one"));
	}
}

static void data_that_do_not_do_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "{\"chameleon\": {" SITE "}}", "vendor_data2.json gives no service_token" },
		{ "{\"chameleon\": {\"site\": \"uc\", \"service_token\": \"hidden\"}}",
		  "gives no auth_url_v3" },
		{ "{\"chameleon\": {" SITE ", \"service_token\": 17}}", "\"service_token\" is no" },
		{ "{\"chameleon\": {" SITE ", \"service_token\": \"a\\r\\nX: hidden\"}}",
		  "\"service_token\" is no" },
		{ "{\"chameleon\": {\"region\": [\"uc\"]}}", "\"region\" is no text" },
		{ "<html>", "is no JSON object" },
		{ "[1]", "is no JSON object" },
	};
	static struct answer one[] = { { DATA2, "200 OK", "", 0, false }, { .path = NULL } };

	(void)state;
	answers = one;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		one[0] = (struct answer){ DATA2, "200 OK", bad[i][0], 0, false };
		assert_says(loaded(NULL), bad[i][1]);
		assert_true(str_starts(kit_text, "4: http://127.0.0.1:"));
		assert_null(strstr(kit_text, "hidden"));
	}
}

static void an_answer_without_end_is_refused(void **state)
{
	static struct answer one[] = { { DATA2, "200 OK", "{}", 65536, false }, { .path = NULL } };

	(void)state;
	answers = one;
	assert_says(loaded(NULL), "4: the metadata service answers with more than 65536 bytes");
}

static void what_gets_better_is_asked_again(void **state)
{
	struct answer two[] = { { DATA2, "503 Service Unavailable", "", 0, false },
				{ DATA2, "200 OK",
				  "{\"chameleon\": {" SITE ", \"service_token\": \"token-one\"}}",
				  0, false },
				{ .path = NULL } };

	(void)state;
	answers = two;
	assert_string_equal(loaded(NULL), SHOWN("token-one"));
	assert_int_equal(requests, 2);
}

static const struct http_request once = { .tries = 1 };

static void a_fresh_token_comes_from_where_the_old_one_came(void **state)
{
	static struct answer one[] = {
		{ DATA2, "200 OK", "{\"chameleon\": {" SITE ", \"service_token\": \"token-one\"}}",
		  0, false },
		{ DATA2, "200 OK", "{\"chameleon\": {" SITE ", \"service_token\": \"token-two\"}}",
		  0, false },
		{ .path = NULL }
	};
	struct cloud_config cfg;

	(void)state;
	answers = one;
	assert_int_equal(load(NULL, &cfg), 0);
	assert_string_equal(cfg.secret, "token-one");
	assert_int_equal(cloud_config_refresh(&cfg, &once, &err), 0);
	assert_string_equal(shown(&cfg), SHOWN("token-two"));
	answers = NULL;
	assert_int_equal(cloud_config_refresh(&cfg, &once, &err), -1);
	assert_says(err.text, "there is no other token: the metadata service: 404");
	assert_string_equal(cfg.secret, "token-two");
	cloud_config_free(&cfg);
}

/* In a process of its own, that has got a signal: 0, or the exit code. */
static int refresh_after_signal(struct cloud_config *cfg, const struct http_request *like)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		interrupt_install();
		raise(SIGTERM);
		_exit(cloud_config_refresh(cfg, like, &err) < 0 ? err_exit_code(&err) : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void after_a_signal_there_is_one_for_those_who_clean_up(void **state)
{
	static const struct http_request cleaning_up = { .tries = 1, .even_if_interrupted = true };
	static struct answer one[] = {
		{ DATA2, "200 OK", "{\"chameleon\": {" SITE ", \"service_token\": \"token-one\"}}",
		  0, false },
		{ .path = NULL }
	};
	struct cloud_config cfg;

	(void)state;
	answers = one;
	assert_int_equal(load(NULL, &cfg), 0);
	assert_int_equal(refresh_after_signal(&cfg, &once), 128 + SIGTERM);
	assert_int_equal(refresh_after_signal(&cfg, &cleaning_up), 0);
	cloud_config_free(&cfg);
}

static void without_anything_all_three_ways_are_told(void **state)
{
	uint64_t start = clock_ns();

	(void)state;
	assert_says(loaded(NULL), "2: no credentials for the image service: set OS_AUTH_URL");
	assert_says(kit_text, "--os-cloud or OS_CLOUD (no clouds.yaml has one in ., ");
	assert_says(kit_text, "metadata service gives a token (the metadata service: 404");
	assert_int_equal(requests, 2);
	put("clouds.yaml", "clouds: {a: {}, b: {}}");
	assert_says(loaded(NULL), "(./clouds.yaml has the clouds a, b)");
	setenv("CCSNAP_METADATA_URL", "http://127.0.0.1:1", 1);
	assert_says(loaded(NULL), "gives a token (127.0.0.1:1 ");
	assert_true(clock_seconds_since(start) < 4);
	setenv("CCSNAP_METADATA_URL", "file:///etc/passwd", 1);
	assert_says(loaded(NULL), "2: CCSNAP_METADATA_URL: ");
}

#define SERVED(name) cmocka_unit_test_setup_teardown(name, start_server, stop_server)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SERVED(the_testbeds_data_make_a_cloud),
		SERVED(a_proxy_is_not_asked_for_them),
		SERVED(the_older_file_is_the_second_choice),
		SERVED(data_that_do_not_do_are_refused),
		SERVED(an_answer_without_end_is_refused),
		SERVED(what_gets_better_is_asked_again),
		SERVED(a_fresh_token_comes_from_where_the_old_one_came),
		SERVED(after_a_signal_there_is_one_for_those_who_clean_up),
		SERVED(without_anything_all_three_ways_are_told),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
