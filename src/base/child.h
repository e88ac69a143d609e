/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CHILD_H
#define CCSNAP_CHILD_H

#include <stddef.h>
#include <sys/types.h>

struct err;

/* A helper program: started without a shell, stdin and stdout on /dev/null
 * (or a pipe of ours), stderr kept for the error message, killed when we die
 * however that happens.  Of our environment, which may hold passwords, it gets
 * PATH and the like only.  Start it from the main thread: the kernel ties the
 * death signal to the thread that forked.
 */
struct child;

struct child_config {
	const char *const *argv; /* argv[0] is looked up in PATH */

	/* Descriptors of ours that the child gets as 3, 4, ...; nothing else
	 * of ours is open in it.
	 */
	const int *fds;
	size_t fd_count;

	/* LISTEN_FDS=1 and LISTEN_PID are set: 3 is a listening socket
	 * (sd_listen_fds(3)).
	 */
	int listen_fd;

	/* NULL, or gets the read end of a pipe on the child's stdout; the caller
	 * closes it.
	 */
	int *stdout_fd;
};

struct child *child_start(const struct child_config *cfg, struct err *err);

/* The last line that the child has written to stderr so far, "" for none.
 * Owned by the child.
 */
const char *child_last_words(struct child *child);

/* Wait for it to end by itself.  Returns its exit status as waitpid gives it. */
int child_wait(struct child *child);

/* SIGTERM, a moment's patience, SIGKILL, reap, free.  NULL is fine. */
void child_stop(struct child *child);

#endif
