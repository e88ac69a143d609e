// SPDX-License-Identifier: Apache-2.0
#include "quiesce/forward.h"

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/str.h"
#include "quiesce/forward_uri.h"
#include "quiesce/scratch.h"
#include "quiesce/scratch_inner.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define DEADLINE_SECONDS 30
#define POLL_MS		 100
#define PREFIX		 SCRATCH_PREFIX "ssh-"
#define SOCKET		 "nbd"

/* Those of mkdtemp. */
#define TAG_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* In an argument of ssh, a colon, a percent sign or a dollar sign in a path has a meaning, and
 * not the same one in every version.
 */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/+,=@"

struct forward {
	struct child *ssh;
	int end;    /* of a pipe that ssh has */
	int dir_fd; /* of dir, locked */
	char *dir, *socket;
};

static void forward_cleanup(struct forward **f)
{
	forward_stop(*f);
}
#define autoforward CLEANUP(forward_cleanup)
#define autotarget  CLEANUP(ssh_target_free)

static bool is_plain(const char *path)
{
	return strspn(path, PLAIN) == strlen(path);
}

int forward_check(const char *uri, const char *remote_socket, struct err *err)
{
	autotarget struct ssh_target target = { 0 };

	if (!is_plain(remote_socket))
		return err_set(err, ERR_REFUSED,
			       "ssh cannot forward a socket of the name %s; use a --scratch-dir of "
			       "letters, digits and /-._+,=@",
			       remote_socket);
	return ssh_target_parse(uri, &target, err);
}

/* --- the ssh --- */

enum { ARGS_MAX = 40 };

struct args {
	const char *at[ARGS_MAX];
	size_t count;
};

/* A name and, unless it is NULL, its value. */
static void add(struct args *args, const char *name, const char *value)
{
	args->at[args->count++] = name;
	if (value)
		args->at[args->count++] = value;
}

static void add_option(struct args *args, const char *name, const char *value)
{
	if (value)
		add(args, name, value);
}

/* Of its own connection, which ends with it, and for nothing but the one socket. */
static void list_arguments(struct args *args, const struct ssh_target *target, const char *route)
{
	static const char *const settings[] = {
		"BatchMode=yes",
		"ControlMaster=no",
		"ControlPath=none",
		"ForwardAgent=no",
		"ForwardX11=no",
		"PermitLocalCommand=no",
		"RequestTTY=no",
		"StreamLocalBindMask=0177",
		"ConnectTimeout=20",
		"ServerAliveInterval=15",
		"ServerAliveCountMax=3",
		/* what the user's own ssh_config forwards besides may be taken already */
		"ExitOnForwardFailure=no",
	};

	add(args, target->command ? target->command : "ssh", "-N");
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		add(args, "-o", settings[i]);
	if (target->skips_host_key_check)
		add(args, "-o", "StrictHostKeyChecking=no");
	add_option(args, "-p", target->port);
	add_option(args, "-l", target->user);
	add_option(args, "-i", target->keyfile);
	add(args, "-L", route);
	add(args, "--", target->host);
}

/* NAME=VALUE of ours (malloc), NULL when it is not set. */
static char *own_variable(const char *name)
{
	const char *value = getenv(name);

	return value ? str_format("%s=%s", name, value) : NULL;
}

static int start_ssh(struct forward *f, const struct ssh_target *target, const char *remote_socket,
		     struct err *err)
{
	autofree char *route = str_format("%s:%s", f->socket, remote_socket);
	autofree char *agent = own_variable("SSH_AUTH_SOCK");
	autofree char *tickets = own_variable("KRB5CCNAME");
	const char *const env[] = { agent ? agent : tickets, agent ? tickets : NULL, NULL };
	struct args args = { 0 };
	const struct child_config cfg = { .argv = args.at, .env = env, .stdout_fd = &f->end };

	if (!route)
		return err_nomem(err);
	list_arguments(&args, target, route);
	f->ssh = child_start(&cfg, err);
	return f->ssh ? 0 : -1;
}

/* --- does it answer? --- */

static int connect_to(const char *path)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0 || strlen(path) >= sizeof address.sun_path)
		return -1;
	strcpy(address.sun_path, path);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		return -1;
	return steal_fd(&fd);
}

/* Reads as ended when ssh has, but also when it is so far that it no longer needs it: then it
 * listens for us already.
 */
static bool has_let_go(int end)
{
	struct pollfd ready = { .fd = end };

	return poll(&ready, 1, 0) > 0 && ready.revents;
}

enum answer { ANSWER_NONE, ANSWER_HEARD, ANSWER_HUNG_UP };

static enum answer listen_to(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&ready, 1, POLL_MS) <= 0)
		return ANSWER_NONE;
	return recv(fd, &byte, 1, 0) == 1 ? ANSWER_HEARD : ANSWER_HUNG_UP;
}

static int say_failure(struct forward *f, struct err *err)
{
	const char *words = child_last_words(f->ssh);

	err_set(err, ERR_FAILED, "ssh does not lead to the hypervisor's socket%s%s",
		*words ? ": " : "", words);
	return err_hint(err,
			"it has to let this user in without questions, and that user has to be "
			"allowed to use QEMU's socket there");
}

/* One connection: 1 answered, 0 not now, -1.  ssh listens here before it has asked over there, so
 * that a connection says nothing: the server has to speak, or ssh hangs up.
 */
static int try_once(int fd, uint64_t start, struct err *err)
{
	enum answer answer;

	while ((answer = listen_to(fd)) == ANSWER_NONE &&
	       clock_seconds_since(start) < DEADLINE_SECONDS)
		if (interrupt_check(err) < 0)
			return -1;
	return answer == ANSWER_HEARD;
}

static int await_answer(struct forward *f, struct err *err)
{
	uint64_t start = clock_ns();

	while (clock_seconds_since(start) < DEADLINE_SECONDS) {
		bool has_ended = has_let_go(f->end);
		autoclose int fd = connect_to(f->socket);
		int rc = fd < 0 ? interrupt_check(err) : try_once(fd, start, err);

		if (rc != 0)
			return rc < 0 ? -1 : 0;
		if (fd < 0 && has_ended)
			break;
		clock_sleep_ms(POLL_MS);
	}
	return say_failure(f, err);
}

/* --- life --- */

/* Its path goes to ssh, so it has to be plain and short. */
static const char *place_of_directory(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool is_good = runtime && runtime[0] == '/' && is_plain(runtime) && strlen(runtime) < 60 &&
		       access(runtime, W_OK | X_OK) == 0;

	return is_good ? runtime : "/tmp";
}

/* A directory that only we can enter. */
static int make_directory(struct forward *f, struct err *err)
{
	static const char *const names[] = { SOCKET, NULL };
	const char *place = place_of_directory();

	scratch_sweep(place, PREFIX, TAG_LETTERS, names);
	f->dir = str_format("%s/" PREFIX "XXXXXX", place);
	if (!f->dir)
		return err_nomem(err);
	if (!mkdtemp(f->dir)) {
		err_errno(err, ERR_FAILED, "cannot create %s", f->dir);
		free(steal(&f->dir));
		return -1;
	}
	f->dir_fd = scratch_lock(f->dir);
	if (f->dir_fd < 0)
		return err_errno(err, ERR_FAILED, "cannot lock %s", f->dir);
	f->socket = str_format("%s/" SOCKET, f->dir);
	return f->socket ? 0 : err_nomem(err);
}

struct forward *forward_start(const char *uri, const char *remote_socket, struct err *err)
{
	autotarget struct ssh_target target = { 0 };
	autoforward struct forward *f = calloc(1, sizeof *f);

	if (!f) {
		err_nomem(err);
		return NULL;
	}
	f->end = f->dir_fd = -1;
	if (forward_check(uri, remote_socket, err) < 0 || ssh_target_parse(uri, &target, err) < 0 ||
	    make_directory(f, err) < 0 || start_ssh(f, &target, remote_socket, err) < 0 ||
	    await_answer(f, err) < 0)
		return NULL;
	return steal(&f);
}

const char *forward_socket(const struct forward *f)
{
	return f->socket;
}

void forward_stop(struct forward *f)
{
	if (!f)
		return;
	child_stop(f->ssh);
	if (f->end >= 0)
		close(f->end);
	if (f->socket)
		unlink(f->socket);
	if (f->dir && rmdir(f->dir) < 0)
		log_debug("cannot remove %s: %s", f->dir, strerror(errno));
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	free(f->socket);
	free(f->dir);
	free(f);
}
