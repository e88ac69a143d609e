/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_TOOL_H
#define CCSNAP_SYSTEM_TOOL_H

#include <stddef.h>
#include <stdint.h>

/* Runs a program of the host that builds a part of the image from hostile input
 * (GRUB modules, files of an ESP).  It is confined to its libraries and to the
 * descriptors that it is given, asks nobody, and knows no time but ours, so that
 * the same input makes the same bytes.
 */
struct err;

struct tool {
	const char *const *argv; /* argv[0]: a name, looked up as tool_find does */
	const int *fds;		 /* the child's 3, 4, ... */
	size_t fd_count;
	const int *stdout_file; /* NULL: /dev/null */
	int64_t time;		/* what it takes for now (SOURCE_DATE_EPOCH) */
	const char *package;	/* that has it, for the message */
};

/* Path (malloc) of a program in PATH or where the system's are, which cron and
 * ordinary users do not look; NULL for none.
 */
char *tool_find(const char *name);

/* Start it and wait.  ERR_REFUSED when it is not installed, ERR_FAILED with its
 * last words, ERR_INTERRUPTED.
 */
int tool_run(const struct tool *tool, struct err *err);

#endif
