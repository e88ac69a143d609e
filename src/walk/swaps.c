// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/mountinfo.h"
#include "base/str.h"
#include "walk/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SWAPS_MAX = 1024 * 1024 }; /* bytes of the table; a kernel has at most 32 swaps */

struct swap_list {
	struct mount_swap *at;
	size_t count;
};

static void swap_list_free(struct swap_list *list)
{
	mounts_free_swaps(list->at, list->count);
}

void mounts_free_swaps(struct mount_swap *swaps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(swaps[i].path);
	free(swaps);
}

/* One line of swaps (proc_swaps(5)): false when it is none. */
static bool parse_line(char *line, char **path, bool *is_file, uint64_t *size)
{
	char *save = NULL, *type, *kib, *end;

	*path = strtok_r(line, " \t", &save);
	type = strtok_r(NULL, " \t", &save);
	kib = strtok_r(NULL, " \t", &save);
	if (!kib || **path != '/' || kib[strspn(kib, "0123456789")])
		return false;
	errno = 0;
	*size = strtoull(kib, &end, 10);
	if (errno || *size > UINT64_MAX / 1024)
		return false;
	*size *= 1024;
	*is_file = str_equal(type, "file");
	return mountinfo_unescape(*path) == 0;
}

/* A removed file, "/swap (deleted)", is in no tree, nor is what we cannot see.  In a
 * container the path may be the host's: another file of that name is no swap,
 * which shows when it is smaller than its swap space.
 */
static bool is_there(const char *path, uint64_t size, struct stat *st)
{
	return lstat(path, st) == 0 && S_ISREG(st->st_mode) && (uint64_t)st->st_size >= size;
}

static int add_swap(struct swap_list *list, const char *path, const struct stat *st,
		    struct err *err)
{
	struct mount_swap *grown = reallocarray(list->at, list->count + 1, sizeof *grown);
	char *copy = strdup(path);

	if (grown)
		list->at = grown;
	if (!grown || !copy) {
		free(copy);
		return err_nomem(err);
	}
	grown[list->count++] = (struct mount_swap){ st->st_dev, st->st_ino, copy };
	return 0;
}

/* A kernel without swap has no such file. */
static int read_table(const char *swaps, char **text, struct err *err)
{
	struct err why = { 0 };
	size_t len;

	*text = io_read_file(AT_FDCWD, swaps, SWAPS_MAX, &len, &why);
	if (*text || why.sys_errno == ENOENT)
		return 0;
	*err = why;
	return -1;
}

int mounts_read_swaps(const char *swaps, struct mount_swap **out, size_t *count, struct err *err)
{
	CLEANUP(swap_list_free) struct swap_list list = { 0 };
	autofree char *text = NULL;
	char *rest, *line;

	*out = NULL;
	*count = 0;
	if (read_table(swaps, &text, err) < 0)
		return -1;
	rest = text;
	strsep(&rest, "\n"); /* the heading */
	while ((line = strsep(&rest, "\n")) && (*line || rest)) {
		char *path;
		struct stat st;
		bool is_file;
		uint64_t size;

		if (!parse_line(line, &path, &is_file, &size))
			return err_set(err, ERR_FAILED, "%s has a line that is no swap space",
				       swaps);
		if (is_file && is_there(path, size, &st) && add_swap(&list, path, &st, err) < 0)
			return -1;
	}
	*out = steal(&list.at);
	*count = list.count;
	list.count = 0;
	return 0;
}
