// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "compress/codec.h"
#include "image/image.h"
#include "options.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define THREADS_MAX 256

static const struct {
	const char *suffix, *format;
} suffixes[] = {
	{ ".qcow2", "qcow2" }, { ".raw", "raw" }, { ".img", "raw" },
	{ ".vmdk", "vmdk" },   { ".vdi", "vdi" }, { ".vhdx", "vhdx" },
};

const char *plan_format_of_name(const char *path)
{
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (str_ends(path, suffixes[i].suffix))
			return suffixes[i].format;
	return NULL;
}

unsigned plan_threads(const struct options *opt)
{
	cpu_set_t cpus;

	if (opt->threads)
		return (unsigned)opt->threads;
	if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
		return 1;
	return (unsigned)MIN(CPU_COUNT(&cpus), THREADS_MAX);
}

/* HOSTNAME_UUID */
static char *default_name(struct err *err)
{
	char host[256] = "instance";
	struct uuid_text uuid;
	char *name;

	if (gethostname(host, sizeof host - 1) < 0 || strchr(host, '/'))
		strcpy(host, "instance");
	if (uuid_random(&uuid, err) < 0)
		return NULL;
	name = str_format("%s_%s", host, uuid.text);
	if (!name)
		err_nomem(err);
	return name;
}

static int plan_image(struct plan *plan, const struct options *opt, const char *format,
		      struct err *err)
{
	const struct image_format *f = image_format_find(format);

	if (!f)
		return err_set(err, ERR_USAGE, "no image is written in format %s; use --format=%s",
			       format, image_formats[0].name);
	plan->format = f;
	plan->compression = opt->compression ? opt->compression : f->compressions[0];
	plan->codec = codec_find(plan->compression);
	plan->level = !plan->codec		   ? OPTION_UNSET
		      : opt->level != OPTION_UNSET ? opt->level
						   : plan->codec->level_default;
	plan->cluster_size = opt->cluster_size ? (size_t)opt->cluster_size : f->cluster_default;
	plan->max_virtual_size = opt->max_virtual_size;
	plan->sector_size = (unsigned)opt->sector_size;
	plan->stall_seconds = (unsigned)opt->stall_timeout;
	plan->threads = plan_threads(opt);
	plan->dry_run = opt->dry_run;
	plan->source.intent = opt->dry_run ? SOURCE_LOOK : SOURCE_CAPTURE;
	plan->source.allow_backing = opt->allow_backing;
	plan->source.connections = plan->threads;
	plan->source.stall_seconds = plan->stall_seconds;
	return 0;
}

static int plan_dest(struct plan *plan, const struct options *opt, const char *file,
		     struct err *err)
{
	if (file)
		plan->where = str_format("file:%s", file);
	else if (opt->to)
		plan->where = strdup(opt->to);
	else
		plan->where = dest_default();
	if (!plan->where)
		return err_set(err, ERR_USAGE,
			       "no home directory; say where to with --to or --output");
	plan->dest = (struct dest_config){
		.where = plan->where,
		.image_name = plan->name,
		.suffix = plan->format->suffix,
		.overwrite = opt->overwrite,
		.lock_wait_seconds = (unsigned)opt->lock_wait,
	};
	plan->properties = opt->properties;
	plan->report = opt->report;
	return 0;
}

int plan_create(struct plan *plan, const struct options *opt, struct err *err)
{
	*plan = (struct plan){ 0 };
	plan->source.path = opt->source;
	plan->source.format = opt->source_format ? opt->source_format : "raw";
	plan->name = opt->arg_count ? strdup(opt->args[0]) : default_name(err);
	if (!plan->name)
		return opt->arg_count ? err_nomem(err) : -1;
	if (plan_image(plan, opt, opt->format ? opt->format : image_formats[0].name, err) < 0)
		return -1;
	return plan_dest(plan, opt, opt->output, err);
}

int plan_convert(struct plan *plan, const struct options *opt, struct err *err)
{
	const char *in = opt->args[0], *out = opt->args[1];
	const char *format = opt->format ? opt->format : plan_format_of_name(out);

	*plan = (struct plan){ 0 };
	plan->source.path = in;
	plan->source.format = opt->source_format ? opt->source_format : plan_format_of_name(in);
	if (!plan->source.format)
		return err_set(err, ERR_USAGE,
			       "the name %s does not tell its format; say it with --source-format",
			       in);
	plan->name = strdup(out);
	if (!plan->name)
		return err_nomem(err);
	if (plan_image(plan, opt, format ? format : image_formats[0].name, err) < 0)
		return -1;
	return plan_dest(plan, opt, out, err);
}

void plan_free(struct plan *plan)
{
	free(plan->name);
	free(plan->where);
}
