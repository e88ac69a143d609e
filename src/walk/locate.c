// SPDX-License-Identifier: Apache-2.0
#include "walk/locate.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { LINKS_MAX = 40 }; /* as the kernel */

/* A path on its way through the source. */
struct trace {
	int root; /* of the source; borrowed */
	int at;	  /* the directory that done names, -1 when it is not there */
	char *done;
	char *rest;
	size_t given; /* bytes at the end of rest that the user wrote, no link's text */
	unsigned links;
	bool outside;
};

static void trace_free(struct trace *t)
{
	cleanup_close(&t->at);
	free(t->done);
	free(t->rest);
}

void location_free(struct location *l)
{
	free(l->seen);
	free(l->relative);
	*l = (struct location){ 0 };
}

const char *path_below(const char *directory, const char *path)
{
	size_t len = strlen(directory);

	if (str_equal(directory, "/"))
		len = 0;
	if (strncmp(directory, path, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	return path + len + strspn(path + len, "/");
}

/* Behind slashes and "." components. */
static const char *skip_empty(const char *s)
{
	for (;;) {
		s += strspn(s, "/");
		if (s[0] != '.' || (s[1] && s[1] != '/'))
			return s;
		s++;
	}
}

static int open_below(int dir, const char *name)
{
	return openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void trace_stand(struct trace *t, int at)
{
	cleanup_close(&t->at);
	t->at = at;
}

/* From the root again, to done; it may be longer than the kernel takes at once. */
static int trace_return(struct trace *t, struct err *err)
{
	autofree char *copy = strdup(t->done);
	char *save = NULL;

	if (!copy)
		return err_nomem(err);
	trace_stand(t, open_below(t->root, "."));
	for (char *s = strtok_r(copy, "/", &save); s && t->at >= 0; s = strtok_r(NULL, "/", &save))
		trace_stand(t, open_below(t->at, s));
	return 0;
}

/* is_given: the user wrote the "..", who is told; a link's ends at the root. */
static int trace_up(struct trace *t, bool is_given, struct err *err)
{
	char *slash = strrchr(t->done, '/');

	t->outside = t->at < 0 || (!*t->done && is_given);
	if (t->outside)
		return 0;
	*(slash ? slash : t->done) = '\0';
	return trace_return(t, err);
}

static int trace_follow(struct trace *t, const char *name, struct err *err)
{
	autofree char *target = malloc(PATH_MAX);
	ssize_t n = target ? readlinkat(t->at, name, target, PATH_MAX) : 0;
	char *rest;

	if (!target)
		return err_nomem(err);
	if (n <= 0 || n == PATH_MAX || ++t->links > LINKS_MAX) {
		t->outside = true;
		return 0;
	}
	t->given = MIN(t->given, strlen(t->rest));
	rest = str_format("%.*s/%s", (int)n, target, t->rest);
	if (!rest)
		return err_nomem(err);
	free(t->rest);
	t->rest = rest;
	if (*target != '/')
		return 0;
	*t->done = '\0';
	return trace_return(t, err);
}

static int trace_enter(struct trace *t, const char *name, struct err *err)
{
	char *done = str_format("%s%s%s", t->done, *t->done ? "/" : "", name);

	if (!done)
		return err_nomem(err);
	free(t->done);
	t->done = done;
	if (t->at >= 0)
		trace_stand(t, open_below(t->at, name));
	return 0;
}

/* One component; *exists for the last. */
static int trace_step(struct trace *t, bool *exists, struct err *err)
{
	const char *s = skip_empty(t->rest);
	size_t len = strcspn(s, "/");
	bool is_given = strlen(s) <= t->given, is_last = !*skip_empty(s + len);
	autofree char *name = strndup(s, len);
	struct stat st;

	if (!name)
		return err_nomem(err);
	memmove(t->rest, s + len, strlen(s + len) + 1);
	if (str_equal(name, ".."))
		return trace_up(t, is_given, err);
	*exists = t->at >= 0 && fstatat(t->at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (*exists && S_ISLNK(st.st_mode) && !is_last)
		return trace_follow(t, name, err);
	return trace_enter(t, name, err);
}

/* NULL in *path when text leads out of the directory or nowhere. */
static int trace(int root, const char *text, char **path, bool *exists, struct err *err)
{
	CLEANUP(trace_free)
	struct trace t = { .root = root,
			   .at = -1,
			   .done = strdup(""),
			   .rest = strdup(text),
			   .given = strlen(text) };

	*path = NULL;
	*exists = true;
	if (!t.done || !t.rest)
		return err_nomem(err);
	if (trace_return(&t, err) < 0)
		return -1;
	while (!t.outside && *skip_empty(t.rest))
		if (trace_step(&t, exists, err) < 0)
			return -1;
	if (t.outside)
		*exists = false;
	else
		*path = steal(&t.done);
	return 0;
}

static char *absolute(const char *text)
{
	autofree char *cwd = NULL;

	if (*text == '/')
		return strdup(text);
	cwd = getcwd(NULL, 0);
	return cwd && *cwd == '/' ? str_format("%s/%s", cwd, text) : NULL;
}

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Is the part of text before len another name of source? */
static bool names_source(const char *source, const char *text, size_t len)
{
	bool is_whole = !*skip_empty(text + len);
	autofree char *prefix = len ? strndup(text, len) : strdup("/");
	autofree char *real = prefix ? realpath(prefix, NULL) : NULL;

	return real && str_equal(real, source) && !(is_whole && is_link(prefix));
}

/* The rest of an absolute path behind the longest part that names the source. */
static const char *behind_source(const char *source, const char *text)
{
	size_t len = strlen(text);

	for (;;) {
		while (len && text[len - 1] == '/')
			len--;
		if (names_source(source, text, len))
			return text + len;
		if (!len)
			return NULL;
		while (len && text[len - 1] != '/')
			len--;
	}
}

/* The last component of a path that enters the source by a link from outside. */
static const char *last_name(const char *text)
{
	const char *last = NULL;

	for (const char *s = skip_empty(text); *s; s = skip_empty(s + strcspn(s, "/")))
		last = s;
	return last;
}

static int locate_by_link(const char *source, int root, const char *text, struct location *out,
			  struct err *err)
{
	const char *last = last_name(text), *below;
	autofree char *parent = last ? strndup(text, (size_t)(last - text)) : NULL;
	autofree char *real = parent ? realpath(parent, NULL) : NULL;
	autofree char *rest = NULL;

	below = real ? path_below(source, real) : NULL;
	if (!below)
		return 0;
	rest = str_format("%s/%s", below, last);
	return rest ? trace(root, rest, &out->seen, &out->seen_exists, err) : err_nomem(err);
}

static int locate_seen(const char *source, int root, const char *text, struct location *out,
		       struct err *err)
{
	autofree char *path = absolute(text);
	const char *rest = path ? behind_source(source, path) : NULL;

	if (!path)
		return 0;
	if (rest && trace(root, rest, &out->seen, &out->seen_exists, err) < 0)
		return -1;
	return out->seen ? 0 : locate_by_link(source, root, path, out, err);
}

int locate(const char *source, const char *text, struct location *out, struct err *err)
{
	autoclose int root = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);

	*out = (struct location){ 0 };
	if (root < 0)
		return err_errno(err, ERR_FAILED, "cannot open %s", source);
	if (locate_seen(source, root, text, out, err) == 0 &&
	    trace(root, text, &out->relative, &out->relative_exists, err) == 0)
		return 0;
	location_free(out);
	return -1;
}
