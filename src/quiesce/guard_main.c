// SPDX-License-Identifier: Apache-2.0
#include "quiesce/guard.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "quiesce/by_hand.h"
#include "quiesce/contact.h"
#include "quiesce/freeze.h"
#include "quiesce/guard_inner.h"
#include "quiesce/record.h"
#include "quiesce/record_inner.h"
#include "quiesce/recover.h"
#include "virt/agent.h"
#include "virt/domain.h"
#include "virt/virt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The guard's own process.  Nothing is logged while the domain may be frozen: whoever reads
 * our stderr may wait for the domain.
 */
enum {
	ORPHAN_MS = 1000,    /* how soon it is noticed that we have another parent */
	ATTEMPT_SECONDS = 5, /* of thawing, between looks at the socket */
	PAUSE_MS = 200,
	PAUSE_MAX_MS = 2000,
	SETTLE_MS = 2000, /* for a freeze that was under way when who asked for it died */
	SETTLE_STEP_MS = 500,
	GIVE_UP_SECONDS = 600, /* when nobody is left who would ask */
};

struct watch {
	pid_t parent;
	int signals; /* SIGTERM comes here */
	struct virt *virt;
	struct domain *domain;
	struct contact contact; /* of the domain */
	struct record *record;
	unsigned freeze_seconds;

	bool is_armed;
	bool has_stepped_in; /* since it was armed */
	bool has_thawed;     /* so has this come to its end */
	bool is_told_to_end; /* by SIGTERM */
	uint64_t due_ns;     /* while armed: when to thaw */
	unsigned pause_ms;   /* before the next try, when one failed */
};

/* --- thawing ------------------------------------------------------------------------- */

static bool is_another_run(const struct watch *w, struct domain *d)
{
	int then = w->contact.run_id, now = domain_run_id(d);

	return then >= 0 && now >= 0 && now != then;
}

/* One try.  A daemon that was restarted may no longer know how long to wait for the agent; a
 * domain that was started anew is not frozen.
 */
static int thaw_once(struct watch *w, struct err *err)
{
	struct err ignored = { 0 };
	struct domain *d;
	int rc = contact_reach(&w->contact, &d, err);

	if (rc <= 0)
		return rc;
	if (is_another_run(w, d))
		return 0;
	if (d != w->domain)
		agent_set_patience(d, w->freeze_seconds, &ignored);
	return freeze_end(d, ATTEMPT_SECONDS, NULL, err);
}

static int thaw_within(struct watch *w, unsigned seconds, struct err *err)
{
	uint64_t start = clock_ns();
	unsigned pause_ms = PAUSE_MS;

	while (thaw_once(w, err) < 0) {
		if (clock_seconds_since(start) >= seconds)
			return -1;
		clock_sleep_longer_ms(&pause_ms, PAUSE_MAX_MS);
	}
	return 0;
}

static bool is_frozen(struct watch *w)
{
	struct err ignored = { 0 };
	struct domain *d;

	return contact_reach(&w->contact, &d, &ignored) > 0 && agent_is_frozen(d, &ignored) > 0;
}

/* The daemon does not take back what a client asked for that is gone, and may get to it only
 * after our thaw.
 */
static int thaw_what_is_under_way(struct watch *w, unsigned seconds, struct err *err)
{
	for (int ms = 0; ms < SETTLE_MS; ms += SETTLE_STEP_MS) {
		clock_sleep_ms(SETTLE_STEP_MS);
		if (is_frozen(w) && thaw_within(w, seconds, err) < 0)
			return -1;
	}
	return 0;
}

/* --- when nobody is left ----------------------------------------------------------------- */

static void tell(void *ctx, const char *done)
{
	log_note("domain %s: put right after the end of ccsnap: %s", domain_name(ctx), done);
}

static int say_failed(const struct watch *w, struct err *err)
{
	err_context(err, "domain %s: ccsnap has ended, and not all is undone",
		    domain_name(w->domain));
	log_error("%s", err->text);
	return 1;
}

/* Whatever stands in the way of a living daemon stays there. */
static int clear(struct watch *w, struct err *err)
{
	uint64_t start = clock_ns();
	struct domain *d;
	int rc;

	do {
		rc = contact_reach(&w->contact, &d, err);
		if (rc < 0)
			continue;
		rc = recover_run(d, w->record, tell, w->domain, err);
		if (rc == 0 || !d || virt_is_alive(domain_connection(d)))
			break;
	} while (clock_seconds_since(start) < GIVE_UP_SECONDS);
	return rc;
}

/* The exit status. */
static int inherit(struct watch *w)
{
	struct err err = { 0 };

	if (w->is_armed && (thaw_within(w, GIVE_UP_SECONDS, &err) < 0 ||
			    thaw_what_is_under_way(w, GIVE_UP_SECONDS, &err) < 0)) {
		by_hand_thaw(w->domain, &err);
		return say_failed(w, &err);
	}
	if (record_reload(w->record, &err) < 0)
		return say_failed(w, &err);
	if (record_is_clear(w->record))
		return 0;
	return clear(w, &err) < 0 ? say_failed(w, &err) : 0;
}

/* --- what happens ----------------------------------------------------------------------- */

enum { GO_ON = -1 }; /* else: the exit status */

static uint64_t ns_from_now(uint64_t ms)
{
	return clock_ns() + ms * 1000000;
}

static void answer(bool yes)
{
	const char word = yes ? GUARD_YES : GUARD_NO;

	send(GUARD_SOCKET, &word, 1, MSG_NOSIGNAL); /* if there is nobody, we will be told */
}

static int on_arm(struct watch *w)
{
	w->due_ns = ns_from_now(w->freeze_seconds * UINT64_C(1000));
	w->pause_ms = PAUSE_MS;
	w->has_stepped_in = w->has_thawed = false;
	w->is_armed = true;
	answer(true);
	return GO_ON;
}

static int on_question(struct watch *w)
{
	answer(!w->has_stepped_in);
	return GO_ON;
}

static int disarm(struct watch *w)
{
	w->is_armed = false;
	return w->is_told_to_end ? 0 : GO_ON;
}

static int on_disarm(struct watch *w)
{
	answer(!w->has_stepped_in);
	return disarm(w);
}

/* Who asks has lost the daemon, and maybe a freeze in it. */
static int on_thaw(struct watch *w)
{
	struct err ignored = { 0 };

	w->has_stepped_in = true;
	answer(thaw_within(w, w->freeze_seconds + GUARD_THAW_SECONDS, &ignored) == 0 &&
	       thaw_what_is_under_way(w, GUARD_THAW_SECONDS, &ignored) == 0);
	return GO_ON;
}

/* Nobody who has left something frozen may send it away. */
static int on_quit(struct watch *w)
{
	return w->is_armed ? inherit(w) : 0;
}

static const struct {
	enum guard_word word;
	int (*hear)(struct watch *w);
} words[] = {
	{ GUARD_ARM, on_arm },	 { GUARD_ASK, on_question }, { GUARD_DISARM, on_disarm },
	{ GUARD_THAW, on_thaw }, { GUARD_QUIT, on_quit },
};

static int on_word(struct watch *w)
{
	unsigned char word;
	ssize_t n = recv(GUARD_SOCKET, &word, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return GO_ON;
	for (size_t i = 0; n > 0 && i < sizeof words / sizeof *words; i++)
		if (words[i].word == word)
			return words[i].hear(w);
	return inherit(w);
}

/* Whoever armed us may have thawed all, and could not tell us. */
static bool is_over(struct watch *w)
{
	struct err ignored = { 0 };

	return record_reload(w->record, &ignored) == 0 && !record_note(w->record)->frozen;
}

/* As long as nobody disarms us, a freeze may come late (who was about to ask for it was
 * stopped, say); so we come back.
 */
static int on_deadline(struct watch *w)
{
	struct err ignored = { 0 };

	if (w->has_thawed && is_over(w))
		return disarm(w);
	w->has_stepped_in = true;
	if (thaw_once(w, &ignored) < 0) {
		w->due_ns = ns_from_now(w->pause_ms);
		w->pause_ms = MIN(2 * w->pause_ms, PAUSE_MAX_MS);
		return GO_ON;
	}
	if (w->is_told_to_end && w->has_thawed)
		return 0;
	w->has_thawed = true;
	w->due_ns = ns_from_now(w->freeze_seconds * UINT64_C(1000));
	w->pause_ms = PAUSE_MS;
	return GO_ON;
}

/* Thaw, and once more after the time that a late freeze may take. */
static int on_terminate(struct watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->signals, &info, sizeof info) != sizeof info)
		return GO_ON;
	w->is_told_to_end = true;
	w->due_ns = clock_ns();
	return w->is_armed ? GO_ON : 0;
}

/* For poll: rounded up, so that it is over when it returns. */
static int ms_until_due(const struct watch *w)
{
	uint64_t now = clock_ns();

	if (!w->is_armed)
		return -1;
	return now >= w->due_ns ? 0 : (int)MIN((w->due_ns - now) / 1000000 + 1, ORPHAN_MS);
}

static int watch_once(struct watch *w)
{
	struct pollfd fds[] = {
		{ .fd = w->signals, .events = POLLIN },
		{ .fd = GUARD_SOCKET, .events = POLLIN },
	};

	poll(fds, sizeof fds / sizeof *fds, ms_until_due(w));
	if (fds[0].revents)
		return on_terminate(w);
	if (fds[1].revents)
		return on_word(w);
	if (getppid() != w->parent)
		return inherit(w);
	return w->is_armed && clock_ns() >= w->due_ns ? on_deadline(w) : GO_ON;
}

static int watch(struct watch *w)
{
	int status;

	do {
		status = watch_once(w);
	} while (status == GO_ON);
	return status;
}

/* --- getting ready ---------------------------------------------------------------------- */

/* Before libvirt starts threads, which inherit what is blocked. */
static int take_signals(struct err *err)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ };
	sigset_t taken;
	int fd;

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&taken);
	sigaddset(&taken, SIGTERM);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_errno(err, ERR_FAILED, "cannot take signals") : fd;
}

/* Behind a limit that cannot be lifted, memory that is asked for later would be refused. */
static void lock_memory(void)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (mlockall(MCL_CURRENT) < 0)
		log_debug("the guard's memory is not locked: %s", strerror(errno));
	else if (setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0)
		mlockall(MCL_FUTURE | MCL_ONFAULT);
}

static int read_seconds(const char *text, unsigned *out, struct err *err)
{
	char *end;
	unsigned long seconds = strtoul(text, &end, 10);

	if (*end || seconds == 0 || seconds > INT_MAX / 1000)
		return err_set(err, ERR_USAGE, "these are no seconds: %s", text);
	*out = (unsigned)seconds;
	return 0;
}

static int find_domain(struct watch *w, char **argv, struct err *err)
{
	w->virt = virt_open(argv[GUARD_ARG_URI], VIRT_MANAGE, err);
	if (!w->virt)
		return -1;
	w->domain = domain_find_uuid(w->virt, argv[GUARD_ARG_UUID], err);
	if (!w->domain)
		return -1;
	agent_expect_patience(w->domain, w->freeze_seconds);
	contact_begin(&w->contact, w->domain);
	return 0;
}

/* Not for those that libvirt starts: whoever had the record would keep its lock. */
static int keep_descriptors(struct watch *w, struct err *err)
{
	if (fcntl(GUARD_SOCKET, F_SETFD, FD_CLOEXEC) < 0)
		return err_errno(err, ERR_FAILED, "only ccsnap itself can start it");
	w->record = record_adopt(GUARD_RECORD, err);
	return w->record ? 0 : -1;
}

static int get_ready(struct watch *w, int argc, char **argv, struct err *err)
{
	prctl(PR_SET_NAME, GUARD_NAME);
	umask(077);
	if (argc != GUARD_ARGS)
		return err_set(err, ERR_USAGE, "only ccsnap itself can start it");
	if (keep_descriptors(w, err) < 0 ||
	    read_seconds(argv[GUARD_ARG_SECONDS], &w->freeze_seconds, err) < 0)
		return -1;
	w->signals = take_signals(err);
	if (w->signals < 0 || find_domain(w, argv, err) < 0)
		return -1;
	lock_memory();
	return 0;
}

static int refuse(const struct err *err)
{
	const char word = GUARD_REFUSES;

	if (send(GUARD_SOCKET, &word, 1, MSG_NOSIGNAL) != 1 ||
	    send(GUARD_SOCKET, err->text, strlen(err->text), MSG_NOSIGNAL) < 0)
		log_error("%s: %s", GUARD_NAME, err->text);
	return 1;
}

static void watch_close(struct watch *w)
{
	contact_end(&w->contact);
	domain_close(w->domain);
	virt_close(w->virt);
	record_close(w->record);
	if (w->signals >= 0)
		close(w->signals);
}

int guard_main(int argc, char **argv)
{
	struct watch w = { .parent = getppid(), .signals = -1 };
	const char ready = GUARD_READY;
	struct err err = { 0 };
	int status;

	if (get_ready(&w, argc, argv, &err) < 0) {
		status = refuse(&err);
	} else {
		send(GUARD_SOCKET, &ready, 1, MSG_NOSIGNAL);
		status = watch(&w);
	}
	watch_close(&w);
	return status;
}
