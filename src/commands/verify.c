// SPDX-License-Identifier: Apache-2.0
#include "commands/commands.h"

#include "base/err.h"
#include "base/log.h"
#include "base/patience.h"
#include "base/size.h"
#include "base/str.h"
#include "commands/compare.h"
#include "commands/local_image.h"
#include "commands/stored.h"
#include "options.h"
#include "pipeline/pipeline.h"
#include "plan.h"
#include "report/progress.h"
#include "source/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What was found to be right. */
struct verdict {
	char *stored;	   /* the image at a store, for people; NULL: a file of ours */
	const char *proof; /* by what its bytes are those that are stored */
	bool manifest;	   /* they are what a manifest says */
	bool noted;	   /* they are what ccsnap noted when it made the image */
	uint64_t size;	   /* of the disk in it */
};

/* --- the disk in the image --- */

/* Held against writers, as for a capture: what changes meanwhile proves nothing. */
static struct source *open_disk(const struct options *opt, const char *path, const char *format,
				struct err *err)
{
	const struct source_config cfg = {
		.path = path,
		.format = format,
		.intent = SOURCE_CAPTURE,
		.allow_backing = path == opt->against && opt->allow_backing,
		.connections = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
	};

	return source_open(&cfg, err);
}

/* What a store or manifest says of the disk; 0: nothing.  Of an odd file a service
 * tells the exact size.
 */
static int check_promise(const struct source *image, uint64_t told, struct err *err)
{
	if (told == 0 || told == image->size || told == image->size - image->padding)
		return 0;
	return err_set(err, ERR_FAILED, "%s holds a disk of %llu bytes, it should have %llu",
		       image->name, (unsigned long long)image->size, (unsigned long long)told);
}

/* An image of a disk of odd size is larger by its padding. */
static int check_sizes(const struct source *image, const struct source *disk, struct err *err)
{
	uint64_t ours = image->size - image->padding, theirs = disk->size - disk->padding;

	if (ours == theirs || ours == disk->size)
		return 0;
	return err_set(err, ERR_FAILED, "%s is %llu bytes large, %s is %llu", image->name,
		       (unsigned long long)ours, disk->name, (unsigned long long)theirs);
}

static int read_all(const struct options *opt, struct source *image, struct source *disk,
		    struct progress *progress, struct err *err)
{
	const struct pipeline_config cfg = {
		.workers = plan_threads(opt),
		.stall_seconds = (unsigned)opt->stall_timeout,
		.progress = progress_update,
		.progress_ctx = progress,
	};

	progress_phase(progress, "verify", image->size);
	if (compare_disks(&cfg, image, disk, err) < 0 || source_check(image, err) < 0)
		return -1;
	return disk ? source_check(disk, err) : 0;
}

static int read_against(const struct options *opt, struct source *image, struct progress *progress,
			struct err *err)
{
	const char *format = opt->source_format ? opt->source_format : "raw";
	autosource struct source *disk = open_disk(opt, opt->against, format, err);

	if (!disk || check_sizes(image, disk, err) < 0)
		return -1;
	return read_all(opt, image, disk, progress, err);
}

static int verify_disk(const struct options *opt, struct source *image, uint64_t told,
		       struct progress *progress, struct verdict *verdict, struct err *err)
{
	verdict->size = image->size;
	if (check_promise(image, told, err) < 0)
		return -1;
	return opt->against ? read_against(opt, image, progress, err)
			    : read_all(opt, image, NULL, progress, err);
}

/* --- an image in a file --- */

/* The file and its manifest, for a thread that may hang in reading either; lost with it
 * then (base/patience.h).
 */
struct claim {
	char *path, *manifest; /* manifest NULL: the one beside it, if there is one */
	const char *format;    /* asked for; NULL */
	struct local_image image;
	struct progress *progress;
};

static void claim_free(struct claim *c)
{
	if (!c)
		return;
	local_image_free(&c->image);
	free(c->path);
	free(c->manifest);
	free(c);
}

static struct claim *claim_new(const struct options *opt, struct progress *progress,
			       struct err *err)
{
	struct claim *c = calloc(1, sizeof *c);

	if (c) {
		c->path = strdup(opt->args[0]);
		c->manifest = opt->manifest ? strdup(opt->manifest) : NULL;
		c->format = opt->format;
		c->progress = progress;
	}
	if (c && c->path && (c->manifest || !opt->manifest))
		return c;
	claim_free(c);
	err_nomem(err);
	return NULL;
}

static int load_claim(void *ctx, struct err *err)
{
	struct claim *c = ctx;

	return local_image_load(&c->image, c->path, c->manifest, c->format, err);
}

/* name: of what has those digests. */
static int check_digests(const char *name, const struct digests *found,
			 const struct image_info *claimed, struct err *err)
{
	uint64_t start, end;

	if (digests_equal(found, &claimed->digests))
		return 0;
	digests_difference(found, &claimed->digests, claimed->size, &start, &end);
	return err_set(err, ERR_FAILED,
		       "%s is not what its manifest says: it begins to differ at offset %llu or up "
		       "to %llu bytes behind",
		       name, (unsigned long long)start, (unsigned long long)(end - start));
}

static int check_length(const char *name, uint64_t length, const struct image_info *claimed,
			struct err *err)
{
	if (length == claimed->size)
		return 0;
	return err_set(err, ERR_FAILED, "%s is %llu bytes long, its manifest says %llu", name,
		       (unsigned long long)length, (unsigned long long)claimed->size);
}

static int check_manifest(void *ctx, struct err *err)
{
	struct claim *c = ctx;
	autoclose int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const struct image_info *claimed = &c->image.info;
	struct digests digests;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_REFUSED, "cannot open %s", c->path);
	if (check_length(c->path, (uint64_t)st.st_size, claimed, err) < 0)
		return -1;
	progress_phase(c->progress, "hash", claimed->size);
	if (hash_file(fd, c->path, claimed->size, &digests, progress_update, c->progress, err) < 0)
		return -1;
	return check_digests(c->path, &digests, claimed, err);
}

static int verify_claim(const struct options *opt, struct claim *c, struct patience *patience,
			struct verdict *verdict, struct err *err)
{
	autosource struct source *image = NULL;

	if (patience_run(patience, load_claim, c, (unsigned)opt->stall_timeout, NULL, c->path,
			 err) < 0)
		return -1;
	/* First, since it tells where a damaged image is damaged.  It takes as long
	 * as it takes: only a signal ends it early.
	 */
	verdict->manifest = c->image.has_manifest;
	if (verdict->manifest &&
	    patience_run(patience, check_manifest, c, 0, NULL, c->path, err) < 0)
		return -1;
	image = open_disk(opt, opt->args[0], c->image.format, err);
	if (!image)
		return -1;
	return verify_disk(opt, image, c->image.info.virtual_size, c->progress, verdict, err);
}

static int verify_file(const struct options *opt, struct progress *progress,
		       struct verdict *verdict, struct err *err)
{
	struct claim *c = claim_new(opt, progress, err);
	struct patience *patience = c ? patience_begin(err) : NULL;
	int done = patience ? verify_claim(opt, c, patience, verdict, err) : -1;

	if (!patience || !patience_is_lost(patience))
		claim_free(c);
	patience_end(patience);
	return done;
}

/* --- an image at a store --- */

/* A snapshot that a cloud makes of an instance inherits all properties of the image that
 * the instance was started from, this one, too.
 */
static int check_noted(const struct stored *s, struct verdict *verdict, struct err *err)
{
	const char *noted = image_property(&s->info, PROPERTY_SHA256);

	if (!noted || !*s->info.digests.sha256)
		return 0;
	if (!str_equal(noted, s->info.digests.sha256))
		return err_set(err, ERR_FAILED,
			       "%s is whole, but not the image that ccsnap made: its sha256 is %s, "
			       "the property " PROPERTY_SHA256 " says %.64s",
			       stored_name(s), s->info.digests.sha256, noted);
	verdict->noted = true;
	return 0;
}

static int check_named_manifest(const struct stored *s, const struct options *opt,
				struct verdict *verdict, struct err *err)
{
	struct local_image claimed;
	int done = local_image_load(&claimed, opt->manifest, opt->manifest, s->info.format, err);

	if (done == 0 && (check_length(stored_name(s), s->info.size, &claimed.info, err) < 0 ||
			  check_digests(stored_name(s), &s->info.digests, &claimed.info, err) < 0))
		done = -1;
	verdict->manifest = done == 0;
	local_image_free(&claimed);
	return done;
}

static int set_format(struct stored *s, const char *format, struct err *err)
{
	char *copy = strdup(format);

	if (!copy)
		return err_nomem(err);
	free(s->info.format);
	s->info.format = copy;
	return 0;
}

static int verify_fetched(struct stored *s, const struct options *opt, struct verdict *verdict,
			  struct err *err)
{
	autosource struct source *image = NULL;

	if ((opt->format && set_format(s, opt->format, err) < 0) ||
	    check_noted(s, verdict, err) < 0 ||
	    (opt->manifest && check_named_manifest(s, opt, verdict, err) < 0))
		return -1;
	image = stored_open(s, opt, err);
	if (!image)
		return -1;
	return verify_disk(opt, image, s->info.virtual_size, s->progress, verdict, err);
}

static int verify_stored(const struct options *opt, struct progress *progress,
			 struct verdict *verdict, struct err *err)
{
	autostored struct stored s = STORED_NONE;

	if (stored_find(&s, opt, progress, err) < 0 || stored_fetch_aside(&s, opt, err) < 0 ||
	    verify_fetched(&s, opt, verdict, err) < 0)
		return -1;
	verdict->proof = stored_proof(&s);
	verdict->stored = str_format("%s (%s)", stored_name(&s), s.info.id);
	return verdict->stored ? 0 : err_nomem(err);
}

/* --- the command --- */

static void print_verdict(const struct options *opt, const struct verdict *verdict)
{
	const char *name = verdict->stored ? verdict->stored : opt->args[0];
	char shown[4096];

	printf("%s: all of %s can be read", log_printable(shown, sizeof shown, name),
	       size_format(verdict->size).text);
	if (verdict->stored)
		printf(", the store has it as it was stored (%s)",
		       verdict->proof ? verdict->proof : "size");
	if (verdict->noted)
		printf(", it is what ccsnap made (sha256)");
	if (verdict->manifest)
		printf(", the file is what its manifest says");
	if (opt->against)
		printf(", identical to %s", log_printable(shown, sizeof shown, opt->against));
	printf("\n");
}

int command_verify(const struct options *opt, struct err *err)
{
	enum progress_style style = PROGRESS_NONE;
	struct verdict verdict = { 0 };
	struct progress *progress;
	int done;

	if (!opt->quiet)
		progress_style_parse(opt->progress ? opt->progress : "auto", &style);
	progress = progress_start(style);
	done = opt->to ? verify_stored(opt, progress, &verdict, err)
		       : verify_file(opt, progress, &verdict, err);
	progress_stop(progress);
	if (done == 0 && !opt->quiet && style != PROGRESS_JSON)
		print_verdict(opt, &verdict);
	free(verdict.stored);
	return done;
}
