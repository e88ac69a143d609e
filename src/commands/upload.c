// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/io.h"
#include "base/str.h"
#include "commands/local_image.h"
#include "commands/outcome.h"
#include "commands/reported.h"
#include "config.h"
#include "dest/dest.h"
#include "image/image.h"
#include "options.h"
#include "plan.h"
#include "properties.h"
#include "publish.h"
#include "report/progress.h"
#include "report/report.h"
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* An image that exists goes to a destination.  It is opened twice: as a disk, which
 * proves that it is one of its format, complete in itself, and holds it against
 * writers; and as the file that is sent.
 */
struct uploading {
	const struct options *opt;
	struct report *report;
	struct progress *progress;
	char *where, *where_shown, *suffix;
	struct dest *dest;
	struct local_image image;
	struct source *disk;
	int fd;
	char *name;
};

/* Of the file, without what its format or compression puts behind. */
static char *name_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
	const char *dot = strrchr(last, '.');

	return dot && dot != last ? strndup(last, (size_t)(dot - last)) : strdup(last);
}

static int set_name(struct uploading *u, struct err *err)
{
	if (u->opt->arg_count > 1)
		u->name = strdup(u->opt->args[1]);
	else if (u->image.has_manifest)
		u->name = strdup(u->image.info.name);
	else
		u->name = name_of_file(u->opt->args[0]);
	u->report->name = u->name;
	return u->name ? 0 : err_nomem(err);
}

static int set_properties(struct uploading *u, struct err *err)
{
	char ***list = &u->image.info.properties;

	/* one that has none was made by others, but is ours to prune from now on */
	if ((!image_property(&u->image.info, PROPERTY_VERSION) &&
	     properties_set(list, PROPERTY_VERSION, PACKAGE_VERSION, err) < 0) ||
	    properties_set_users(list, u->opt->properties, err) < 0)
		return -1;
	return u->opt->series ? properties_set(list, PROPERTY_SERIES, u->opt->series, err) : 0;
}

/* A manifest needs a word. */
static const char unknown_compression[] = "unknown";

/* What a manifest would have said, and is not known otherwise. */
static int complete_info(struct image_info *info, const char *format, struct err *err)
{
	if (!info->format)
		info->format = strdup(format);
	if (!info->compression)
		info->compression = strdup(str_equal(format, "raw") ? "none" : unknown_compression);
	if (!info->created_at)
		info->created_at = strdup(clock_now().text);
	return info->format && info->compression && info->created_at ? 0 : err_nomem(err);
}

static int open_disk(struct uploading *u, struct err *err)
{
	const struct source_config cfg = {
		.path = u->opt->args[0],
		.format = u->image.format,
		.intent = u->opt->dry_run ? SOURCE_LOOK : SOURCE_CAPTURE,
		.connections = 1,
	};

	u->disk = source_open(&cfg, err);
	if (!u->disk)
		return -1;
	u->image.info.virtual_size = u->disk->size - u->disk->padding;
	return 0;
}

static int open_file(struct uploading *u, struct err *err)
{
	const char *path = u->opt->args[0];
	const struct image_info *info = &u->image.info;
	struct stat st;

	u->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (u->fd < 0 || fstat(u->fd, &st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open %s", path);
	if (!io_is_protected(&st)) /* as the disk is, since it was opened */
		return err_set(err, ERR_REFUSED, "%s was replaced meanwhile; try again", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_REFUSED,
			       "%s is no regular file; capture a device with create --source",
			       path);
	if (u->image.has_manifest && info->size != (uint64_t)st.st_size)
		return err_set(err, ERR_REFUSED, "%s is %llu bytes long, its manifest says %llu",
			       path, (unsigned long long)st.st_size,
			       (unsigned long long)info->size);
	u->image.info.size = (uint64_t)st.st_size;
	u->report->image.allocated_bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

static void report_image(struct uploading *u)
{
	struct report *r = u->report;
	const struct image_info *info = &u->image.info;

	r->source.size_bytes = u->disk->size - u->disk->padding;
	r->source.padding_bytes = u->disk->padding;
	r->source.logical_sector_size = u->disk->sector_size;
	r->source.consistency = "offline";
	r->image.compression =
		str_equal(info->compression, unknown_compression) ? NULL : info->compression;
	r->image.size_bytes = info->size;
	r->image.digests = info->digests;
	r->image.is_whole = true;
}

static int open_image(struct uploading *u, struct err *err)
{
	if (local_image_load(&u->image, u->opt->args[0], u->opt->manifest, u->opt->format, err) <
	    0) {
		err->kind = err->kind == ERR_FAILED ? ERR_REFUSED : err->kind;
		return -1;
	}
	u->report->source.format = u->report->image.format = u->image.format;
	if (complete_info(&u->image.info, u->image.format, err) < 0 || set_name(u, err) < 0 ||
	    set_properties(u, err) < 0 || open_disk(u, err) < 0 || open_file(u, err) < 0)
		return -1;
	report_image(u);
	return 0;
}

static int open_dest(struct uploading *u, struct err *err)
{
	const struct image_format *format = image_format_find(u->image.format);
	struct dest_config cfg;

	u->suffix = format ? strdup(format->suffix) : str_format(".%s", u->image.format);
	if (!u->suffix)
		return err_nomem(err);
	if (plan_store(u->opt, &cfg, &u->where, err) < 0)
		return -1;
	u->where_shown = dest_for_messages(u->where);
	u->report->upload.destination = u->where_shown;
	cfg.image_name = u->name;
	cfg.format = u->image.format;
	cfg.suffix = u->suffix;
	u->dest = dest_open(&cfg, err);
	if (!u->dest)
		return -1;
	u->dest->properties = u->image.info.properties;
	u->dest->progress = progress_update;
	u->dest->progress_ctx = u->progress;
	if (u->dest->ops->adopt)
		u->dest->ops->adopt(u->dest, u->fd);
	return 0;
}

static int open_both(struct uploading *u, struct err *err)
{
	if (open_image(u, err) < 0 || open_dest(u, err) < 0)
		return -1;
	if (!u->opt->dry_run)
		u->dest->ops->tidy(u->dest);
	return 0;
}

static int check(struct uploading *u, struct err *err)
{
	return dest_check(u->dest, u->image.info.size, err);
}

/* Into the file that the destination builds its image in. */
static int copy_image(struct uploading *u, struct err *err)
{
	struct image_info *info = &u->image.info;
	struct digests digests;
	int fd;

	if (u->dest->ops->reserve(u->dest, &fd, err) < 0 ||
	    hash_copy(u->fd, fd, u->opt->args[0], info->size, &digests, progress_update,
		      u->progress, err) < 0 ||
	    source_check(u->disk, err) < 0)
		return -1;
	if (*info->digests.sha256 && !digests_equal(&digests, &info->digests))
		return err_set(err, ERR_FAILED,
			       "%s is not what its manifest says; see ccsnap verify",
			       u->opt->args[0]);
	info->digests = digests;
	return 0;
}

static int publish(struct uploading *u, struct err *err)
{
	struct image_info *info = &u->image.info;
	int done;

	progress_phase(u->progress, report_phase_names[PHASE_PUBLISH], info->size);
	if (!u->dest->ops->adopt && copy_image(u, err) < 0)
		return -1;
	free(info->name);
	info->name = strdup(u->name);
	done = info->name ? publish_image(u->dest, info, u->report, err) : err_nomem(err);
	u->report->image.digests = info->digests;
	return done;
}

static int step(struct uploading *u, enum report_phase phase,
		int (*run)(struct uploading *u, struct err *err), struct err *err)
{
	uint64_t start = clock_ns();
	int done = interrupt_check(err);

	if (done == 0)
		done = run(u, err);
	return report_phase_done(u->report, phase, start, done);
}

static int uploading_run(void *ctx, struct report *r, struct progress *progress, struct err *err)
{
	struct uploading *u = ctx;

	u->report = r;
	u->progress = progress;
	r->source.kind = "image";
	r->source.path = u->opt->args[0];
	r->image.level = -1;
	if (step(u, PHASE_PLAN, open_both, err) < 0 || step(u, PHASE_CHECK, check, err) < 0)
		return -1;
	if (u->opt->dry_run)
		return 0;
	if (step(u, PHASE_PUBLISH, publish, err) < 0)
		return -1;
	r->upload_seconds = r->phase_seconds[PHASE_PUBLISH];
	return 0;
}

static int uploading_attach(void *ctx, const char *json, struct err *err)
{
	struct uploading *u = ctx;

	return u->dest->ops->attach_report ? u->dest->ops->attach_report(u->dest, json, err) : 0;
}

static void uploading_print(void *ctx, const struct report *r)
{
	struct uploading *u = ctx;

	outcome_print_upload(u->opt, r, u->dest ? u->dest->name : u->where_shown);
}

int command_upload(const struct options *opt, struct err *err)
{
	struct uploading u = { .opt = opt, .fd = -1 };
	const struct reported what = { .run = uploading_run,
				       .attach = uploading_attach,
				       .print = uploading_print,
				       .ctx = &u,
				       .is_dry_run = opt->dry_run };
	int done = reported_run(opt, &what, err);

	dest_close(u.dest);
	source_close(u.disk);
	if (u.fd >= 0)
		close(u.fd);
	local_image_free(&u.image);
	free(u.where);
	free(u.where_shown);
	free(u.suffix);
	free(u.name);
	return done;
}
