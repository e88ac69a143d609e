// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "commands/commands.h"
#include "commands/fetch_disk.h"
#include "commands/stored.h"
#include "dest/manifest.h"
#include "options.h"
#include "report/progress.h"
#include "source/source.h"

#include <stdio.h>
#include <string.h>

/* --- to a file --- */

/* The service chose the name: it must not become a file that some program obeys, nor one
 * that is not seen or shown as it is.
 */
static bool is_harmless(const char *name)
{
	bool is_plain = *name && *name != '.';

	for (; *name && is_plain; name++)
		is_plain = *name != '/' && !str_is_steering(name);
	return is_plain;
}

/* In the current directory; with the suffix of a disk's format, whatever else is there. */
static char *default_output(const struct stored *s, struct err *err)
{
	const char *name = s->info.name ? s->info.name : "";
	const char *format = s->info.format ? s->info.format : "";
	autofree char *suffix = str_format(".%s", format);
	char *path;

	if (!is_harmless(name) || !source_format_find(format)) {
		err_set(err, ERR_REFUSED,
			"the image's name '%s' and format '%s' make no file name that is safe; "
			"say --output",
			name, format);
		return NULL;
	}
	path = suffix ? str_format("%s%s", name, str_ends(name, suffix) ? "" : suffix) : NULL;
	if (!path)
		err_nomem(err);
	return path;
}

/* As with every file of ours, nothing is to be seen of it before it is whole. */
static int fetch_into(struct stored *s, struct dest *file, struct err *err)
{
	int fd;

	file->ops->tidy(file);
	if (dest_check(file, s->info.size, err) < 0 || file->ops->reserve(file, &fd, err) < 0 ||
	    stored_fetch(s, fd, err) < 0)
		return -1;
	return file->ops->publish(file, &s->info, err);
}

static int fetch_to_file(struct stored *s, const struct options *opt, struct err *err)
{
	autofree char *path = opt->output ? strdup(opt->output) : default_output(s, err);
	autofree char *where = path ? str_format("file:%s", path) : NULL;
	const struct dest_config cfg = {
		.where = where, .image_name = path, .suffix = "", .overwrite = opt->overwrite
	};
	autodest struct dest *file = NULL;

	if (!where)
		return path || opt->output ? err_nomem(err) : -1;
	file = dest_open(&cfg, err);
	return file ? fetch_into(s, file, err) : -1;
}

/* --- the command --- */

static const char *proof_of(const struct stored *s)
{
	const char *proof = stored_proof(s);

	return proof ? proof : "size";
}

static int print_json(const struct stored *s, enum progress_style style, struct err *err)
{
	enum manifest_layout layout =
		style == PROGRESS_JSON ? MANIFEST_ONE_LINE : MANIFEST_INDENTED;
	autofree char *json =
		manifest_fetched_to_json(&s->info, s->info.file, proof_of(s), layout, err);

	if (!json)
		return -1;
	fputs(json, stdout);
	return 0;
}

static void print_fetched(const struct stored *s, const struct options *opt)
{
	char shown[4096];

	printf("%s\n", log_printable(shown, sizeof shown, s->info.file));
	printf("  %s %s", size_format(s->info.size).text,
	       log_printable(shown, sizeof shown, s->info.format ? s->info.format : "image"));
	if (opt->to_disk)
		printf(", unpacked to %s, which were read back and compared",
		       size_format(s->info.virtual_size).text);
	printf("\n");
	if (*s->info.digests.sha256)
		printf("  sha256 %s\n", s->info.digests.sha256);
	printf("  verified by %s\n", proof_of(s));
}

static int fetch(struct stored *s, const struct options *opt, struct progress *progress,
		 struct err *err)
{
	if (stored_find(s, opt, progress, err) < 0)
		return -1;
	return opt->to_disk ? fetch_to_disk(s, opt, err) : fetch_to_file(s, opt, err);
}

int command_fetch(const struct options *opt, struct err *err)
{
	enum progress_style style = PROGRESS_NONE;
	autostored struct stored s = STORED_NONE;
	struct progress *progress;
	int done;

	if (!opt->quiet)
		progress_style_parse(opt->progress ? opt->progress : "auto", &style);
	progress = progress_start(style);
	done = fetch(&s, opt, progress, err);
	progress_stop(progress);
	if (done == 0 && opt->json)
		return print_json(&s, style, err);
	if (done == 0 && !opt->quiet && style != PROGRESS_JSON)
		print_fetched(&s, opt);
	return done;
}
