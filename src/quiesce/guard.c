// SPDX-License-Identifier: Apache-2.0
#include "quiesce/guard.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "base/str.h"
#include "quiesce/guard_inner.h"
#include "quiesce/record.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
	START_SECONDS = 40,
	LOOK_MS = 100, /* how soon a signal is noticed */
};

/* Our side of it. */
struct guard {
	struct child *child;
	int socket;
	unsigned freeze_seconds;
	uint64_t armed_ns;
	unsigned owed; /* answers to what we have asked, and not waited for */
	bool is_armed; /* then it is never stopped, but left to its work */
	bool is_lost;  /* it has ended, or hangs: what it may still answer counts no more */
};

/* --- words -------------------------------------------------------------------------- */

static int look_for_nothing(struct err *err)
{
	(void)err;
	return 0;
}

/* 1 when something is to be read, or the other end is closed; 0 after that time. */
static int await(int socket, double seconds, int (*look)(struct err *err), struct err *err)
{
	struct pollfd pfd = { .fd = socket, .events = POLLIN };
	uint64_t start = clock_ns();
	int n;

	do {
		if (look(err) < 0)
			return -1;
		n = poll(&pfd, 1, LOOK_MS);
		if (n < 0 && errno != EINTR)
			return err_errno(err, ERR_FAILED, "cannot listen to the guard");
	} while (n <= 0 && clock_seconds_since(start) < seconds);
	return n > 0;
}

static int say_how_it_ended(struct guard *g, struct err *err)
{
	int status;

	if (!child_has_ended(g->child))
		return err_set(err, ERR_FAILED, "the guard has ended");
	status = child_wait(g->child);
	if (WIFSIGNALED(status))
		return err_set(err, ERR_FAILED, "the guard was killed by signal %d",
			       WTERMSIG(status));
	return err_set(err, ERR_FAILED, "the guard has ended with status %d", WEXITSTATUS(status));
}

/* One byte, 0 after that time, -1. */
static int read_word(struct guard *g, double seconds, int (*look)(struct err *err), struct err *err)
{
	unsigned char word;
	int rc = await(g->socket, seconds, look, err);

	if (rc <= 0)
		return rc;
	return recv(g->socket, &word, 1, 0) == 1 ? word : say_how_it_ended(g, err);
}

/* As read_word, behind what is still owed. */
static int read_answer(struct guard *g, double seconds, struct err *err)
{
	uint64_t start = clock_ns();
	int word;

	for (;; g->owed--) {
		word = read_word(g, seconds - clock_seconds_since(start), look_for_nothing, err);
		if (word <= 0 || g->owed == 0)
			return word;
	}
}

static int say(struct guard *g, enum guard_word word, struct err *err)
{
	const char byte = (char)word;

	if (g->is_lost)
		return err_set(err, ERR_FAILED, "the guard is lost");
	if (send(g->socket, &byte, 1, MSG_NOSIGNAL) == 1)
		return 0;
	g->is_lost = true;
	return say_how_it_ended(g, err);
}

/* 1 yes, 0 no, -1.  No signal ends it early: who asks has something to undo. */
static int ask(struct guard *g, enum guard_word word, struct err *err)
{
	unsigned seconds = 3 * g->freeze_seconds + GUARD_ANSWER_SECONDS;
	int answer = say(g, word, err) < 0 ? -1 : read_answer(g, seconds, err);

	if (answer == 0)
		err_set(err, ERR_FAILED, "the guard has not answered for %u seconds", seconds);
	g->is_lost = answer <= 0;
	return answer <= 0 ? -1 : answer == GUARD_YES;
}

/* --- life --------------------------------------------------------------------------- */

static int read_refusal(struct guard *g, struct err *err)
{
	char text[sizeof err->text];
	size_t len = 0;
	ssize_t n;

	while (len < sizeof text - 1 && await(g->socket, START_SECONDS, interrupt_check, err) > 0 &&
	       (n = recv(g->socket, text + len, sizeof text - 1 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return err_set(err, ERR_FAILED, "the guard cannot start: %s", text);
}

static int await_ready(struct guard *g, struct err *err)
{
	int word = read_word(g, START_SECONDS, interrupt_check, err);

	if (word == GUARD_READY)
		return 0;
	if (word == GUARD_REFUSES)
		return read_refusal(g, err);
	return word < 0 ? -1
			: err_set(err, ERR_FAILED,
				  "the guard is not ready after %d seconds; does libvirt answer?",
				  START_SECONDS);
}

static int launch(struct guard *g, struct domain *d, const struct record *record, int socket,
		  struct err *err)
{
	autofree char *seconds = str_format("%u", g->freeze_seconds);
	const int fds[] = { socket, record_fd(record) };
	const char *const argv[] = {
		GUARD_NAME,
		[GUARD_ARG_URI] = virt_uri(domain_connection(d)),
		[GUARD_ARG_UUID] = domain_uuid(d),
		[GUARD_ARG_SECONDS] = seconds,
		[GUARD_ARGS] = NULL,
	};
	const struct child_config cfg = {
		.argv = argv,
		.program = "/proc/self/exe",
		.bond = CHILD_HEIR,
		.fds = fds,
		.fd_count = 2,
	};

	if (!seconds)
		return err_nomem(err);
	g->child = child_start(&cfg, err);
	return g->child ? 0 : -1;
}

static int start(struct guard *g, struct domain *d, const struct record *record, struct err *err)
{
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_errno(err, ERR_FAILED, "cannot start the guard");
	g->socket = ends[0];
	rc = launch(g, d, record, ends[1], err);
	close(ends[1]);
	return rc < 0 ? -1 : await_ready(g, err);
}

struct guard *guard_start(struct domain *d, const struct record *record, unsigned freeze_seconds,
			  struct err *err)
{
	autoguard struct guard *g = calloc(1, sizeof *g);

	if (!g) {
		err_nomem(err);
		return NULL;
	}
	g->socket = -1;
	g->freeze_seconds = freeze_seconds;
	return start(g, d, record, err) < 0 ? NULL : steal(&g);
}

int guard_arm(struct guard *g, struct err *err)
{
	g->is_armed = true; /* from the moment when it may have heard it */
	g->armed_ns = clock_ns();
	return ask(g, GUARD_ARM, err) < 0 ? -1 : 0;
}

/* The domain is frozen as long as we wait here.  So nobody waits behind the deadline: a guard
 * that is silent then has begun to thaw, or hangs, and thawing is ours.
 */
int guard_is_calm(struct guard *g, struct err *err)
{
	double seconds = g->freeze_seconds + 1 - clock_seconds_since(g->armed_ns);
	int answer = say(g, GUARD_ASK, err) < 0 ? -1 : read_answer(g, MAX(seconds, 1), err);

	if (answer < 0)
		g->is_lost = true;
	if (answer == 0)
		g->owed++;
	return answer < 0 ? -1 : answer == GUARD_YES;
}

int guard_disarm(struct guard *g, struct err *err)
{
	int calm = ask(g, GUARD_DISARM, err);

	if (calm >= 0)
		g->is_armed = false;
	return calm;
}

int guard_thaw(struct guard *g, struct err *err)
{
	int done = ask(g, GUARD_THAW, err);

	if (done > 0)
		return 0;
	return done < 0 ? -1 : err_set(err, ERR_FAILED, "the guard cannot thaw it either");
}

static void guard_free(struct guard *g)
{
	if (g->socket >= 0)
		close(g->socket);
	free(g);
}

/* It takes the closed socket for our death, and goes on until all is well. */
void guard_leave(struct guard *g)
{
	if (!g)
		return;
	if (g->child && !child_has_ended(g->child))
		child_leave(g->child);
	else
		child_stop(g->child);
	guard_free(g);
}

static void send_away(struct guard *g)
{
	const char quit = GUARD_QUIT;

	if (g->socket >= 0)
		send(g->socket, &quit, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	child_stop(g->child);
	guard_free(g);
}

void guard_stop(struct guard *g)
{
	if (g && g->is_armed)
		guard_leave(g);
	else if (g)
		send_away(g);
}
