/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CHILD_H
#define CCSNAP_CHILD_H

#include "base/cleanup.h"

#include <stddef.h>
#include <sys/types.h>

struct err;
struct stat;

/* A helper program: started without a shell, stdin and stdout on /dev/null
 * (or a pipe of ours), stderr kept for the error message, killed when we die
 * however that happens.  Of our environment, which may hold passwords, it gets
 * PATH and the like only.  Start it from a thread that outlives it: the kernel
 * ties the death signal to the thread that forked.
 */
struct child;

enum child_bond {
	CHILD_HELPER, /* all of the above */

	/* It outlives us, has our stderr (no last words) and of our environment also what leads to
	 * services: for this program itself, started anew to end what we may not get to.
	 */
	CHILD_HEIR,
};

struct child_config {
	const char *const *argv; /* argv[0] is looked up in PATH */
	const char *program;	 /* NULL, or the path of what is started under that name */
	enum child_bond bond;

	/* Descriptors of ours that the child gets as 3, 4, ...; nothing else
	 * of ours is open in it.
	 */
	const int *fds;
	size_t fd_count;

	/* NULL, or "NAME=VALUE" strings that come on top of the environment
	 * that it gets anyway and replace what that has; ends with NULL.
	 */
	const char *const *env;

	/* LISTEN_FDS=1 and LISTEN_PID are set: 3 is a listening socket
	 * (sd_listen_fds(3)).
	 */
	int listen_fd;

	/* NULL, or all that the child may open by name, for reading only, and
	 * what lies beneath; ends with NULL, what is not there is skipped.
	 * Besides that it may open its own program, and again what fds refer
	 * to (/proc/self/fd/N); and it makes no connection.  Kernels before
	 * 5.13 cannot hold it back: look at child_check_files, too.
	 */
	const char *const *readable;

	/* NULL, or gets the read end of a pipe on the child's stdout; the caller
	 * closes it.
	 */
	int *stdout_fd;

	/* NULL, or a file of ours that is the child's stdout instead. */
	const int *stdout_file;
};

struct child *child_start(const struct child_config *cfg, struct err *err);

/* The last line that the child has written to stderr so far, "" for none.
 * Owned by the child.
 */
const char *child_last_words(struct child *child);

/* Does is_known know every regular file and block device that the child has
 * open, apart from its standard streams?  If not, the message names one.
 */
int child_check_files(const struct child *child,
		      int (*is_known)(const void *ctx, const struct stat *st), const void *ctx,
		      struct err *err);

/* Wait for it to end by itself.  Returns its exit status as waitpid gives it. */
int child_wait(struct child *child);

/* Has it ended by now? */
int child_has_ended(struct child *child);

/* The same as child_wait, but an error unless it exits with 0: ERR_FAILED with its last words,
 * ERR_INTERRUPTED when a signal comes first.
 */
int child_expect_success(struct child *child, struct err *err);

/* Let it run on without us, and free. */
void child_leave(struct child *child);

/* SIGTERM, a moment's patience, SIGKILL, reap, free.  NULL is fine. */
void child_stop(struct child *child);

CLEANUP_TYPE(struct child, child, child_stop)
#define autochild CLEANUP(child_cleanup)

#endif
