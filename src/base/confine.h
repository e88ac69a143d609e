/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_CONFINE_H
#define CCSNAP_CONFINE_H

#include <stddef.h>

/* A cage for a helper that parses hostile files: whatever a file makes it
 * believe, it can open no other, and nobody over a socket.
 */
struct err;

struct confine_config {
	const char *const *readable; /* see struct child_config */
	const char *program;	     /* its own file, for reading and executing; may be NULL */
	const int *fds;		     /* what they refer to may be opened again */
	size_t fd_count;
};

#define CONFINE_NONE (-1)

/* Prepare it: *rules gets a descriptor (O_CLOEXEC), or CONFINE_NONE when the
 * kernel lacks Landlock, which is no error.
 */
int confine_prepare(const struct confine_config *cfg, int *rules, struct err *err);

/* Enter it, for good: to be called between fork and exec, does nothing that is
 * forbidden there.  No file but /dev/null can be opened for writing, nor a
 * directory be changed; programs get no more rights by being executed.  Without rules, what
 * the kernel has besides Landlock is still used.  -1 with errno.
 */
int confine_enter(int rules);

#endif
