// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include "base/err.h"
#include "base/patience.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "compress/codec.h"
#include "image/image.h"
#include "options.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#define THREADS_MAX 256

#define MEGABYTE      UINT64_C(1000000)
#define DATA_LIMIT_MB 8000

/* Of ext4 (s_volume_name). */
#define LABEL_MAX 16

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

static bool is_remote(const char *where)
{
	const char *rest;
	const struct dest_kind *kind = dest_kind_find(where, &rest);

	return kind && kind->is_remote;
}

static unsigned service_of(const char *where)
{
	return is_remote(where) ? OF_SERVICE : 0;
}

static void set_store(const struct options *opt, struct dest_config *cfg, const char *where)
{
	*cfg = (struct dest_config){
		.where = where,
		.overwrite = opt->overwrite,
		.lock_wait_seconds = (unsigned)opt->lock_wait,
		.work_dir = opt->work_dir,
		.cloud = opt->os_cloud,
		.tags = opt->tags,
		.visibility = opt->visibility,
		.make_protected = opt->make_protected,
		.keep_failed = opt->keep_failed,
		.upload_method = opt->upload_method ? opt->upload_method : "auto",
		.limit_rate = opt->limit_rate,
		.connect_seconds = (unsigned)opt->connect_timeout,
		.stall_seconds = (unsigned)opt->upload_stall_timeout,
		.total_seconds = (unsigned)opt->upload_timeout,
	};
}

/* file: of --output, where the image is to be there only; else NULL. */
static int find_where(const struct options *opt, const char *file, char **where, struct err *err)
{
	*where = file ? str_format("file:%s", file) : opt->to ? strdup(opt->to) : dest_default();
	if (*where)
		return 0;
	if (file || opt->to)
		return err_nomem(err);
	return err_set(err, ERR_USAGE, "no home directory; say where the store is with --to");
}

int plan_store(const struct options *opt, struct dest_config *cfg, char **where, struct err *err)
{
	if (find_where(opt, NULL, where, err) < 0)
		return -1;
	set_store(opt, cfg, *where);
	return options_check_kinds(opt, service_of(*where) | (opt->domain ? OF_DOMAIN : 0),
				   opt->domain, *where, err);
}

/* file: --output, or NULL.  With a remote destination the image stays there, too. */
static int plan_dest(struct plan *plan, const struct options *opt, const char *file,
		     struct err *err)
{
	bool is_alone = file && !opt->to;

	if (find_where(opt, is_alone ? file : NULL, &plan->where, err) < 0 ||
	    options_check_kinds(opt, plan->of | service_of(plan->where), plan->source.path,
				plan->where, err) < 0)
		return -1;
	set_store(opt, &plan->dest, plan->where);
	plan->where_shown = dest_for_messages(plan->where);
	if (!plan->where_shown)
		return err_nomem(err);
	plan->dest.image_name = plan->name;
	plan->dest.suffix = plan->format->suffix;
	plan->dest.format = plan->format->name;
	plan->dest.keep_path = is_alone ? NULL : file;
	plan->properties = opt->properties;
	plan->series = opt->series;
	plan->report = opt->report;
	return 0;
}

/* In megabytes, as cc-snapshot has it. */
static int data_limit(uint64_t *bytes, struct err *err)
{
	const char *text = getenv("CC_SNAPSHOT_MAX_TARBALL_SIZE");
	uint64_t megabytes = DATA_LIMIT_MB;

	if (text && *text && (text[strspn(text, "0123456789")] || size_parse(text, &megabytes) < 0))
		return err_set(err, ERR_USAGE,
			       "CC_SNAPSHOT_MAX_TARBALL_SIZE: '%.100s' is no number of megabytes",
			       text);
	*bytes = megabytes < UINT64_MAX / MEGABYTE ? megabytes * MEGABYTE : UINT64_MAX;
	return 0;
}

/* As cc-snapshot has it, too: the label that the root filesystem gets. */
static int label_of_environment(const char **label, struct err *err)
{
	const char *text = getenv("LABEL");

	*label = text && *text ? text : NULL;
	if (*label && strlen(text) > LABEL_MAX)
		return err_set(err, ERR_USAGE, "LABEL: a filesystem's label has at most %d bytes",
			       LABEL_MAX);
	for (const char *p = *label; p && *p; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || strchr("\"'\\$`", *p))
			return err_set(err, ERR_USAGE,
				       "LABEL: only letters, digits and plain signs can be in the "
				       "label of a filesystem");
	return 0;
}

#define AS_LIST(list) ((const char *const *)(list))

static int plan_tree(struct plan *plan, const struct options *opt, struct err *err)
{
	autofree char *real = realpath(plan->source.path, NULL);
	bool running = real && str_equal(real, "/");

	plan->kind = PLAN_TREE;
	plan->of = OF_TREE;
	plan->agree = opt->yes || opt->ignore_warnings;
	plan->tree = (struct tree_config){
		.path = plan->source.path,
		.excludes = AS_LIST(opt->excludes),
		.exclude_globs = AS_LIST(opt->exclude_globs),
		.exclude_files = AS_LIST(opt->exclude_files),
		.include_mounts = AS_LIST(opt->include_mounts),
		.one_file_system = opt->one_file_system,
		.keep_going = opt->keep_going,
		.default_excludes = running,
		.allow_idle_excludes = opt->ignore_warnings,
		.boot = opt->no_boot ? TREE_BOOT_NONE
			: running    ? TREE_BOOT_REQUIRED
				     : TREE_BOOT_WANTED,
		.reset = opt->reset ? opt->reset
			 : running  ? "identity"
				    : "none",
		.image_name = plan->name,
		.free_bytes = opt->free_space,
		.disk_size = opt->disk_size,
		.sector_size = (unsigned)opt->sector_size,
		.intent = plan->source.intent,
		.threads = plan->threads,
		.stall_seconds = plan->stall_seconds,
	};
	return label_of_environment(&plan->tree.label, err) < 0
		       ? -1
		       : data_limit(&plan->max_data_bytes, err);
}

static enum quiesce_wish wish_of(const char *word)
{
	enum quiesce_wish wish = QUIESCE_AUTO;

	for (unsigned i = 0; word && quiesce_wish_names[i]; i++)
		if (str_equal(word, quiesce_wish_names[i]))
			wish = (enum quiesce_wish)i;
	return wish;
}

void plan_instance(const struct options *opt, struct instance_config *cfg)
{
	*cfg = (struct instance_config){
		.uri = opt->connect,
		.name = opt->domain,
		.disk = opt->disk,
		.wish = wish_of(opt->quiesce),
		.freeze_seconds = (unsigned)opt->freeze_timeout,
		.wants_trim = opt->trim,
		.scratch_dir = opt->scratch_dir,
		.lock_wait_seconds = (unsigned)opt->lock_wait,
		.intent = SOURCE_LOOK,
		.stall_seconds = (unsigned)opt->stall_timeout,
		.allow_backing = opt->allow_backing,
		.bytes_per_second = opt->limit_rate,
	};
}

static void plan_domain(struct plan *plan, const struct options *opt)
{
	plan->kind = PLAN_DOMAIN;
	plan->of = OF_DOMAIN;
	plan->source.path = opt->domain;
	plan_instance(opt, &plan->instance);
	plan->instance.intent = plan->source.intent;
	plan->instance.connections = plan->threads;
}

/* On the heap: it is the thread's if that cannot be called back. */
struct look {
	mode_t mode;
	char path[];
};

static int look_at(void *ctx, struct err *err)
{
	struct look *look = ctx;
	struct stat st;

	(void)err;
	look->mode = stat(look->path, &st) == 0 ? st.st_mode : 0;
	return 0;
}

/* Of the source, which may be on a server that hangs; 0 when there is none. */
static int mode_of(const struct plan *plan, mode_t *mode, struct err *err)
{
	size_t len = strlen(plan->source.path) + 1;
	struct look *look = malloc(sizeof *look + len);
	struct patience *patience = patience_begin(err);
	int done = -1;

	if (look && patience) {
		memcpy(look->path, plan->source.path, len);
		done = patience_run(patience, look_at, look, plan->stall_seconds, NULL,
				    plan->source.path, err);
	}
	if (done == 0)
		*mode = look->mode;
	if (!patience || !patience_is_lost(patience))
		free(look);
	patience_end(patience);
	return done;
}

/* A directory is a tree; whatever else is there, a disk.  That nothing is there will be
 * said, and reported, when it is opened.
 */
static int plan_source(struct plan *plan, const struct options *opt, struct err *err)
{
	mode_t mode;

	if (opt->domain) {
		plan_domain(plan, opt);
		return 0;
	}
	if (mode_of(plan, &mode, err) < 0)
		return -1;
	plan->of = mode ? OF_DISK : OF_DISK | OF_TREE;
	return S_ISDIR(mode) ? plan_tree(plan, opt, err) : 0;
}

int plan_create(struct plan *plan, const struct options *opt, struct err *err)
{
	*plan = (struct plan){ 0 };
	plan->source.path = opt->source ? opt->source : "/";
	plan->source.format = opt->source_format ? opt->source_format : "raw";
	plan->name = opt->arg_count ? strdup(opt->args[0]) : default_name(err);
	if (!plan->name)
		return opt->arg_count ? err_nomem(err) : -1;
	if (plan_image(plan, opt, opt->format ? opt->format : image_formats[0].name, err) < 0 ||
	    plan_source(plan, opt, err) < 0)
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
	plan->of = OF_DISK;
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

struct pipeline_config plan_pipeline(const struct plan *plan)
{
	return (struct pipeline_config){
		.workers = plan->threads,
		.codec = plan->codec,
		.level = plan->level,
		.stall_seconds = plan->stall_seconds,
	};
}

void plan_free(struct plan *plan)
{
	free(plan->name);
	free(plan->where);
	free(plan->where_shown);
}
