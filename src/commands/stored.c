// SPDX-License-Identifier: Apache-2.0
#include "commands/stored.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/workfile.h"
#include "options.h"
#include "plan.h"
#include "report/progress.h"
#include "source/source.h"

#include <stdio.h>
#include <string.h>

/* Of a work file, which has no other; by it the source's own checks open it again. */
struct fd_path {
	char text[32];
};

static struct fd_path path_of(int fd)
{
	struct fd_path path;

	snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", fd);
	return path;
}

const char *stored_name(const struct stored *s)
{
	return s->info.name && *s->info.name ? s->info.name : s->info.id;
}

static int check_whole(const struct stored *s, struct err *err)
{
	if (!s->info.status || str_equal(s->info.status, "active"))
		return 0;
	if (str_equal(s->info.status, "deactivated"))
		return err_set(err, ERR_REFUSED,
			       "the image %s (%s) is deactivated: nobody gets its data until an "
			       "administrator reactivates it",
			       stored_name(s), s->info.id);
	return err_set(err, ERR_REFUSED, "the image %s (%s) is not whole: its status is %s",
		       stored_name(s), s->info.id, s->info.status);
}

int stored_find(struct stored *s, const struct options *opt, struct progress *progress,
		struct err *err)
{
	struct dest_config cfg;

	if (plan_store(opt, &cfg, &s->where, err) < 0)
		return -1;
	s->progress = progress;
	s->store = dest_open(&cfg, err);
	if (!s->store || dest_find(s->store, opt->args[0], &s->info, err) < 0)
		return -1;
	s->store->progress = progress_update;
	s->store->progress_ctx = progress;
	return check_whole(s, err);
}

void stored_free(struct stored *s)
{
	if (s->aside >= 0)
		close(s->aside);
	image_info_free(&s->info);
	dest_close(s->store);
	free(s->where);
}

int stored_fetch(struct stored *s, int fd, struct err *err)
{
	progress_phase(s->progress, "fetch", s->info.size);
	return s->store->ops->fetch(s->store, &s->info, fd, err);
}

const char *stored_proof(const struct stored *s)
{
	return s->store->receipt.verified_by;
}

int stored_fetch_aside(struct stored *s, const struct options *opt, struct err *err)
{
	if (workfile_unnamed(opt->work_dir, &s->aside, err) < 0)
		return -1;
	return stored_fetch(s, s->aside, err);
}

/* What was said of a path that means nothing to anybody, said of the image. */
static void name_it(const struct stored *s, const char *path, struct err *err)
{
	size_t len = strlen(path);

	if (!str_starts(err->text, path) || !str_starts(err->text + len, ": "))
		return;
	memmove(err->text, err->text + len + 2, strlen(err->text + len + 2) + 1);
	err_context(err, "%s", stored_name(s));
}

struct source *stored_open(const struct stored *s, const struct options *opt, struct err *err)
{
	const struct fd_path path = path_of(s->aside);
	const struct source_config cfg = {
		.path = path.text,
		.format = s->info.format ? s->info.format : "",
		.intent = SOURCE_CAPTURE,
		.connections = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
	};
	autosource struct source *src = NULL;
	char *name;

	if (!source_format_find(cfg.format)) {
		err_set(err, ERR_REFUSED,
			"%s: disks of format %s cannot be read here; fetch it to a file",
			stored_name(s), *cfg.format ? cfg.format : "(unknown)");
		return NULL;
	}
	src = source_open(&cfg, err);
	name = src ? strdup(stored_name(s)) : NULL;
	if (!src) {
		name_it(s, path.text, err);
	} else if (!name) {
		err_nomem(err);
	} else {
		free(src->name);
		src->name = name;
		return steal(&src);
	}
	return NULL;
}
