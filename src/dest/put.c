// SPDX-License-Identifier: Apache-2.0
#include "dest/put_inner.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "dest/kinds.h"
#include "dest/workfile.h"

#include <stdio.h>
#include <string.h>

enum { CHECK_TRIES = 3 };

/* What ccsnap knows of an image by itself, and a user does not miss. */
static const char *const own_properties[] = { PROPERTY_PREFIX, "os_distro=",  "os_version=", "hw_",
					      "architecture=", "provenance-", NULL };

static void put_tidy(struct dest *dest)
{
	struct put_dest *h = (struct put_dest *)dest;

	if (h->work)
		workfile_tidy(h->work);
}

/* --- checking --- */

static bool is_own(const char *property)
{
	for (const char *const *own = own_properties; *own; own++)
		if (str_starts(property, *own))
			return true;
	return false;
}

static bool has_series(const struct dest *dest)
{
	for (char *const *p = dest->properties; p && *p; p++)
		if (str_starts(*p, PROPERTY_SERIES "="))
			return true;
	return false;
}

/* Who asks for an image that nobody else can see, or delete, must not get another; and
 * tags and series are only there to find an image by.
 */
static int check_options(const struct put_dest *h, struct err *err)
{
	const char *misfit = h->misfit;

	if (!misfit && has_series(&h->base))
		misfit = "--series";
	if (!misfit)
		return 0;
	return err_set(
		err, ERR_USAGE,
		"%s needs an image service or a folder: a plain HTTP server only keeps files",
		misfit);
}

/* Properties describe, so an image without them is as good: for these, which may stand in
 * a configuration file for all runs, a warning is enough.
 */
static void warn_of_properties(struct put_dest *h)
{
	char shown[256];

	for (char *const *p = h->base.properties; p && *p && !h->has_warned; p++) {
		if (is_own(*p))
			continue;
		h->has_warned = true;
		log_warn("%s: a plain HTTP server only keeps files; properties such as %s get lost",
			 h->base.name, log_printable(shown, sizeof shown, *p));
	}
}

/* Whatever stands in the way there, nothing was done yet. */
static int check_there(struct put_dest *h, struct err *err)
{
	struct put_sight sight;

	if (put_look(h, CHECK_TRIES, &sight, err) < 0) {
		if (err->kind == ERR_FAILED)
			err->kind = ERR_REFUSED;
		return -1;
	}
	if (sight.presence == PUT_PRESENT && !h->overwrite)
		return put_refuse_existing(h, err);
	return 0;
}

static int put_check(struct dest *dest, uint64_t need, struct err *err)
{
	struct put_dest *h = (struct put_dest *)dest;

	if (check_options(h, err) < 0 || workfile_check(h->work, dest, need, err) < 0)
		return -1;
	warn_of_properties(h);
	return check_there(h, err);
}

/* --- publishing --- */

static int put_reserve(struct dest *dest, int *fd, struct err *err)
{
	return workfile_reserve(((struct put_dest *)dest)->work, fd, err);
}

static void put_adopt(struct dest *dest, int fd)
{
	workfile_adopt(((struct put_dest *)dest)->work, fd);
}

static int set_file(const struct put_dest *h, struct image_info *info, struct err *err)
{
	free(info->file);
	info->file = strdup(h->target.shown);
	return info->file ? 0 : err_nomem(err);
}

/* The file that is to stay comes first: what then fails can be done again from it. */
static int put_publish(struct dest *dest, struct image_info *info, struct err *err)
{
	struct put_dest *h = (struct put_dest *)dest;

	if (set_file(h, info, err) < 0 || workfile_keep(h->work, dest, err) < 0)
		return -1;
	return put_send(h, info, err) == 0 ? 0 : workfile_hint(dest, NULL, NULL, err);
}

/* So there is nothing that fetch or remove could be told. */
static int put_list(struct dest *dest, const struct image_filter *filter, struct image_list *out,
		    struct err *err)
{
	(void)filter;
	(void)out;
	return err_set(err, ERR_USAGE, "%s: a plain HTTP server has no list of images", dest->name);
}

/* --- opening and closing --- */

static void put_close(struct dest *dest)
{
	struct put_dest *h = (struct put_dest *)dest;

	workfile_free(h->work);
	http_close(h->http);
	put_target_free(&h->target);
	free(dest->path);
	free(dest->name);
	free(h);
}

static const struct dest_ops put_ops = {
	.name = "http",
	.tidy = put_tidy,
	.check = put_check,
	.reserve = put_reserve,
	.adopt = put_adopt,
	.publish = put_publish,
	.list = put_list,
	.close = put_close,
};

static const char *misfit_in(const struct dest_config *cfg)
{
	if (cfg->tags && *cfg->tags)
		return "--tag";
	if (cfg->visibility)
		return "--visibility";
	return cfg->make_protected ? "--protected" : NULL;
}

static int find_target(struct put_dest *h, const struct dest_config *cfg, struct err *err)
{
	autofree char *file = NULL;

	if (cfg->image_name) {
		file = str_format("%s%s", cfg->image_name, cfg->suffix ? cfg->suffix : "");
		if (!file)
			return err_nomem(err);
	}
	if (put_target_find(cfg->where, file, &h->target, err) < 0)
		return -1;
	h->base.name = strdup(h->target.shown);
	return h->base.name ? 0 : err_nomem(err);
}

static int open_http(struct put_dest *h, const struct dest_config *cfg, struct err *err)
{
	const struct http_config http = {
		.connect_seconds = cfg->connect_seconds,
		.stall_seconds = cfg->stall_seconds,
		.total_seconds = cfg->total_seconds,
		.limit_rate = cfg->limit_rate,
	};

	h->http = http_open(&http, err);
	return h->http ? 0 : -1;
}

/* rest is not enough: libcurl takes the URL apart, and wants its scheme, too. */
struct dest *put_open(const struct dest_config *cfg, const char *rest, struct err *err)
{
	struct put_dest *h = calloc(1, sizeof *h);
	autodest struct dest *dest = h ? &h->base : NULL;

	(void)rest;
	if (!h) {
		err_nomem(err);
		return NULL;
	}
	dest->ops = &put_ops;
	h->overwrite = cfg->overwrite;
	h->keep_failed = cfg->keep_failed;
	h->misfit = misfit_in(cfg);
	if (find_target(h, cfg, err) < 0 || workfile_open(dest, cfg, &h->work, err) < 0 ||
	    open_http(h, cfg, err) < 0)
		return NULL;
	return steal(&dest);
}
