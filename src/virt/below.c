// SPDX-License-Identifier: Apache-2.0
#include "virt/below.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "virt/errand.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LAYERS_MAX = 200,
	NAME_MAX_BYTES = 1023, /* of a backing file's, by the format's specification */
};

/* Of a qcow2 image, big-endian. */
struct header {
	uint32_t magic, version;
	uint64_t name_offset; /* 0: nothing is below */
	uint32_t name_length;
};

static const uint32_t qcow2_magic = 0x514649fb;

/* Without O_NONBLOCK a name that leads to a FIFO would hold us up. */
static int open_layer(const char *path, struct err *err)
{
	autoclose int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "%s", path);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_set(err, ERR_FAILED, "%s is neither a file nor a block device", path);
	return steal_fd(&fd);
}

static int read_exactly(int fd, void *buf, size_t len, uint64_t offset, const char *path,
			struct err *err)
{
	ssize_t n = io_pread(fd, buf, len, offset, NULL);

	if (n < 0)
		return err_errno(err, ERR_FAILED, "%s", path);
	if ((size_t)n != len)
		return err_set(err, ERR_FAILED, "%s ends within its header", path);
	return 0;
}

/* *name: NULL when it has none below.  What is no qcow2 has none. */
static int read_name(int fd, const char *path, char **name, struct err *err)
{
	char text[NAME_MAX_BYTES + 1] = "";
	struct header h = { 0 };
	uint32_t length;

	if (io_pread(fd, &h, sizeof h, 0, NULL) < 0)
		return err_errno(err, ERR_FAILED, "%s", path);
	if (be32toh(h.magic) != qcow2_magic || h.name_offset == 0)
		return 0;
	length = be32toh(h.name_length);
	if (length > NAME_MAX_BYTES)
		return err_set(err, ERR_FAILED, "%s: the name of its backing file is too long",
			       path);
	if (read_exactly(fd, text, length, be64toh(h.name_offset), path, err) < 0)
		return -1;
	*name = strdup(text);
	return *name ? 0 : err_nomem(err);
}

/* "json:{...}", "nbd:..." */
static bool is_url(const char *name)
{
	size_t n = strcspn(name, ":/");

	return name[n] == ':';
}

/* As QEMU finds it: from the directory of the file that names it. */
static char *resolve(const char *path, const char *name, struct err *err)
{
	autofree char *directory = io_directory(path, &(const char *){ NULL });
	char *found = NULL;

	if (name[0] == '/')
		found = strdup(name);
	else if (directory)
		found = str_format("%s/%s", directory, name);
	if (!found)
		err_nomem(err);
	return found;
}

/* *next: the file below path, NULL: none. */
static int layer_below(const char *path, char **next, struct err *err)
{
	autoclose int fd = open_layer(path, err);
	autofree char *name = NULL;

	*next = NULL;
	if (fd < 0 || read_name(fd, path, &name, err) < 0)
		return -1;
	if (!name)
		return 0;
	if (is_url(name))
		return err_set(err, ERR_FAILED, "%s: its backing file is no plain file", path);
	*next = resolve(path, name, err);
	return *next ? 0 : -1;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (str_equal(a, b))
		return true;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int below_step(char **at, struct err *err)
{
	char *next;

	if (layer_below(*at, &next, err) < 0)
		return -1;
	free(*at);
	*at = next;
	return 0;
}

static int has_below(const char *top, const char *path, struct err *err)
{
	autofree char *at = strdup(top);

	if (!at)
		return err_nomem(err);
	for (int i = 0; i < LAYERS_MAX; i++) {
		if (below_step(&at, err) < 0)
			return -1;
		if (!at)
			return 0;
		if (is_same_file(at, path))
			return 1;
	}
	return err_set(err, ERR_FAILED, "%s has more than %d layers", top, LAYERS_MAX);
}

/* --- in time --- */

struct search {
	struct errand base;
	char *top, *path;
};

static int search_run(struct errand *base, struct err *err)
{
	struct search *s = (struct search *)base;

	return has_below(s->top, s->path, err);
}

static void search_free(struct errand *base)
{
	struct search *s = (struct search *)base;

	free(s->top);
	free(s->path);
	free(s);
}

static const struct errand search = {
	.run = search_run,
	.free = search_free,
	.wait = ERRAND_IN_FULL,
	.kind = ERR_FAILED,
	.advice = "its storage hangs; look at it, and try again",
};

static struct errand *search_new(const char *top, const char *path)
{
	struct search *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->base = search;
	s->top = strdup(top);
	s->path = strdup(path);
	if (s->top && s->path)
		return &s->base;
	search_free(&s->base);
	return NULL;
}

int below_has(const char *top, const char *path, struct err *err)
{
	autoerrand struct errand *e = search_new(top, path);

	return e ? errand_run(&e, top, err) : err_nomem(err);
}
