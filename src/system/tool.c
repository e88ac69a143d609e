// SPDX-License-Identifier: Apache-2.0
#include "system/tool.h"

#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 256 };

static const char system_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* Programs and their libraries: of files on this host nothing else is theirs to
 * read, neither /usr/share nor settings, which would change what they make.
 */
static const char *const readable[] = {
	"/usr/lib",
	"/usr/lib32",
	"/usr/lib64",
	"/lib",
	"/lib32",
	"/lib64",
	"/nix/store",
	"/gnu/store",
	"/etc/ld.so.cache",
	"/etc/ld.so.preload",
	NULL,
};

/* A relative directory in PATH is somebody else's trap. */
static char *find_in(const char *path, const char *name)
{
	for (const char *dir = path, *end; dir && *dir; dir = *end ? end + 1 : end) {
		autofree char *file = NULL;
		struct stat st;

		end = dir + strcspn(dir, ":");
		if (*dir != '/')
			continue;
		file = str_format("%.*s/%s", (int)(end - dir), dir, name);
		if (file && stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
			return steal(&file);
	}
	return NULL;
}

char *tool_find(const char *name)
{
	char *file = find_in(getenv("PATH"), name);

	return file ? file : find_in(system_path, name);
}

int tool_run(const struct tool *tool, struct err *err)
{
	char epoch[48];
	const char *const env[] = {
		epoch, "TZ=UTC0", "LC_ALL=C", "HOME=/nonexistent", "MTOOLSRC=/dev/null", NULL,
	};
	const char *argv[ARGUMENTS_MAX + 1];
	const struct child_config cfg = {
		.argv = argv,
		.fds = tool->fds,
		.fd_count = tool->fd_count,
		.env = env,
		.readable = readable,
		.stdout_file = tool->stdout_file,
	};
	autofree char *program = tool_find(tool->argv[0]);
	autochild struct child *child = NULL;
	size_t n = 0;

	if (!program)
		return err_set(err, ERR_REFUSED,
			       "%s is needed and was not found; install the package %s",
			       tool->argv[0], tool->package);
	while (n < ARGUMENTS_MAX && tool->argv[n]) {
		argv[n] = tool->argv[n];
		n++;
	}
	if (tool->argv[n])
		return err_set(err, ERR_FAILED, "too many arguments for %s", tool->argv[0]);
	argv[0] = program;
	argv[n] = NULL;
	snprintf(epoch, sizeof epoch, "SOURCE_DATE_EPOCH=%lld", (long long)tool->time);
	child = child_start(&cfg, err);
	return child ? child_expect_success(child, err) : -1;
}
