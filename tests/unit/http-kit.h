/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_HTTP_KIT_H
#define CCSNAP_TEST_HTTP_KIT_H

/* Small servers that do as a test says, one connection at a time, each in a thread of
 * its own: include it once a program.
 */
#include "dest/http.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define unused __attribute__((unused))

/* --- servers ---------------------------------------------------------------- */

struct server {
	void (*serve)(struct server *s); /* one connection, on s->conn */
	const char *answer;		 /* for serve */
	char url[64];
	unsigned port;
	int listener;
	pthread_t thread;

	atomic_int conn;
	atomic_uint connections, requests;
	char head[4096]; /* of the last request; look when it is over */
	char heads[16384];
	atomic_uint_fast64_t body_bytes; /* of the last request */
	uint64_t body_sum;		 /* of the positions and values of its bytes */
};

static inline void *server_main(void *arg)
{
	struct server *s = arg;

	for (;;) {
		int conn = accept(s->listener, NULL, NULL);

		if (conn < 0)
			return NULL;
		atomic_store(&s->conn, conn);
		atomic_fetch_add(&s->connections, 1);
		s->serve(s);
		atomic_store(&s->conn, -1);
		close(conn);
	}
}

static inline int listen_on_loopback(unsigned *port, int backlog)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static inline void server_start(struct server *s, void (*serve)(struct server *s),
				const char *answer)
{
	memset(s, 0, sizeof *s);
	s->serve = serve;
	s->answer = answer;
	s->conn = -1;
	s->listener = listen_on_loopback(&s->port, 16);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", s->port);
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

static inline void server_stop(struct server *s)
{
	int conn = atomic_load(&s->conn);

	shutdown(s->listener, SHUT_RDWR);
	if (conn >= 0)
		shutdown(conn, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
}

static inline void keep_head(struct server *s)
{
	size_t len = strlen(s->heads);

	snprintf(s->heads + len, sizeof s->heads - len, "%s", s->head);
}

/* The next request's head; false when there is none. */
static inline bool take_head(struct server *s)
{
	size_t len = 0;

	while (len < sizeof s->head - 1 && recv(s->conn, s->head + len, 1, 0) == 1) {
		s->head[++len] = '\0';
		if (str_ends(s->head, "\r\n\r\n")) {
			atomic_fetch_add(&s->requests, 1);
			keep_head(s);
			atomic_store(&s->body_bytes, 0);
			s->body_sum = 0;
			return true;
		}
	}
	return false;
}

static inline uint64_t content_length(const struct server *s)
{
	const char *at = strcasestr(s->head, "\r\nContent-Length:");

	return at ? strtoull(at + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

static inline bool asks_first(const struct server *s)
{
	return strcasestr(s->head, "\r\nExpect: 100-continue") != NULL;
}

static inline void say(struct server *s, const char *text)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t n = send(s->conn, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* So many bytes of the body; false when it ends before. */
static inline bool take_body(struct server *s, uint64_t len)
{
	unsigned char buf[65536];

	while (len > 0) {
		ssize_t n = recv(s->conn, buf, len < sizeof buf ? len : sizeof buf, 0);

		if (n <= 0)
			return false;
		for (ssize_t i = 0; i < n; i++)
			s->body_sum = s->body_sum * 31 + buf[i];
		atomic_fetch_add(&s->body_bytes, (uint64_t)n);
		len -= (uint64_t)n;
	}
	return true;
}

static inline void take_request_body(struct server *s)
{
	if (asks_first(s))
		say(s, "HTTP/1.1 100 Continue\r\n\r\n");
	take_body(s, content_length(s));
}

/* Close so that the client gets a reset. */
static inline void reset(struct server *s)
{
	struct linger none = { .l_onoff = 1 };

	setsockopt(s->conn, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

/* Every request is taken whole, and gets s->answer. */
static unused void serve_answer(struct server *s)
{
	while (take_head(s)) {
		take_request_body(s);
		say(s, s->answer);
	}
}

#define NO_CONTENT "HTTP/1.1 204 No Content\r\n\r\n"

/* --- one client and its requests --------------------------------------------- */

static unused struct err err;
static struct http *http;
static unused struct server server;
static struct http_response answer;

static inline int set_up(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	log_set_level(LOG_WARNING);
	setenv("no_proxy", "*", 1);
	http = http_open(&(struct http_config){ .stall_seconds = 20 }, &err);
	memset(&answer, 0, sizeof answer);
	memset(&err, 0, sizeof err);
	return http ? 0 : -1;
}

static inline int tear_down(void **state)
{
	(void)state;
	http_response_free(&answer);
	http_close(http);
	return 0;
}

static inline void reopen(const struct http_config *cfg)
{
	http_close(http);
	http = http_open(cfg, &err);
	assert_non_null(http);
}

static inline int send_request(const struct http_request *request)
{
	http_response_free(&answer);
	return http_send(http, request, &answer, &err);
}

/* To path at the server, in buffers that live until the next call. */
static inline const char *url_of(const struct server *s, const char *path)
{
	static char url[4][256];
	static unsigned next;
	char *at = url[next++ % 4];

	snprintf(at, sizeof *url, "%s%s", s->url, path);
	return at;
}

static inline int get(const struct server *s, const char *path)
{
	return send_request(&(struct http_request){ .method = "GET", .url = url_of(s, path) });
}

/* An upload whose byte at an offset is known. */
static inline unsigned char byte_at(uint64_t offset)
{
	return (unsigned char)(offset * 7 + offset / 251);
}

static inline int read_pattern(void *ctx, void *buf, size_t len, uint64_t offset, struct err *e)
{
	unsigned char *at = buf;

	(void)ctx, (void)e;
	for (size_t i = 0; i < len; i++)
		at[i] = byte_at(offset + i);
	return 0;
}

static inline uint64_t pattern_sum(uint64_t size)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < size; i++)
		sum = sum * 31 + byte_at(i);
	return sum;
}

static inline int put(const struct server *s, uint64_t size)
{
	const struct http_upload upload = { .size = size, .read = read_pattern };

	return send_request(&(struct http_request){
		.method = "PUT", .url = url_of(s, "/image"), .upload = &upload });
}

/* A failure without an answer, in these words, on one line. */
static inline void assert_no_answer(int rc, const char *words)
{
	assert_int_equal(rc, -1);
	assert_int_equal(answer.status, 0);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
	assert_null(strchr(err.text, '\n'));
}

static inline void assert_has(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, text);
}

static inline void assert_has_not(const char *text, const char *words)
{
	if (strstr(text, words))
		fail_msg("\"%s\" is in \"%s\"", words, text);
}

/* --- time -------------------------------------------------------------------- */

static unused uint64_t started;

static inline void start_clock(void)
{
	started = clock_ns();
}

static inline void assert_took(double least, double most)
{
	double seconds = clock_seconds_since(started);

	if (seconds < least || seconds > most)
		fail_msg("%.2f seconds are not %.2f to %.2f", seconds, least, most);
}

/* Says nothing until the client goes away. */
static inline void wait_for_end(struct server *s)
{
	char byte;

	while (recv(s->conn, &byte, 1, 0) > 0)
		;
}

static unused void serve_silence(struct server *s)
{
	take_head(s);
	wait_for_end(s);
}

static unused void serve_slowly(struct server *s)
{
	take_head(s);
	say(s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
	for (int i = 0; i < 5; i++) {
		usleep(300000);
		say(s, "x");
	}
	wait_for_end(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
