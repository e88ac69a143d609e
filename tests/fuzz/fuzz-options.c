// SPDX-License-Identifier: Apache-2.0

/* Any words as a command line, any bytes as a configuration file: taken, or
 * refused in one line as a fault of the user's.  The first line of the input
 * is the command line, its words apart by blanks; the rest is the file.
 */
#include "base/err.h"
#include "options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t line = end ? (size_t)(end - data) : size, used = end ? line + 1 : size;
	char *words = strndup((const char *)data, line), *rest = words, file[32];
	char *argv[WORDS_MAX + 3] = { "ccsnap" };
	struct err err = { 0 };
	struct options opt;
	int argc = 1, fd = memfd_create("config", MFD_CLOEXEC);

	assert(fd >= 0 && write(fd, data + used, size - used) == (ssize_t)(size - used));
	snprintf(file, sizeof file, "--config=/proc/self/fd/%d", fd);
	while (rest && argc < WORDS_MAX)
		argv[argc++] = strsep(&rest, " ");
	argv[argc++] = file;
	if (options_parse(&opt, argc, argv, &err) == 0)
		options_free(&opt);
	else
		assert(err.kind == ERR_USAGE && *err.text);
	close(fd);
	free(words);
	return 0;
}
