// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "commands/commands.h"
#include "dest/dest.h"
#include "dest/manifest.h"
#include "instance.h"
#include "options.h"
#include "plan.h"
#include "properties.h"

#include <stdio.h>
#include <string.h>

#define NAME_CAP 1024 /* of a file name with every byte as \xNN */

/* All that is to go is known before anything goes. */
struct pruning {
	const struct options *opt;
	struct dest *dest;
	struct uuid_text source;   /* unless --all-sources */
	size_t of_series;	   /* images there */
	struct image_list images;  /* of them, what counts, oldest first */
	struct image_list removed; /* moved from there */
	size_t failed;
};

/* --- which --- */

/* Not what is being made, what never got its data, nor what a service has lost; and only
 * what is known to be older than others can be found to be too old.
 */
static bool is_whole(const struct image_info *info)
{
	return (!info->status || str_equal(info->status, "active")) && info->size > 0 &&
	       info->created_at;
}

static bool is_from_source(const struct pruning *p, const struct image_info *info)
{
	const char *source = image_property(info, PROPERTY_SOURCE);

	return p->opt->all_sources || (source && str_equal(source, p->source.text));
}

static bool is_of_series(const struct pruning *p, const struct image_info *info)
{
	const struct image_filter series = { .series = p->opt->series };

	return image_matches(info, &series) && image_property(info, PROPERTY_VERSION) &&
	       is_whole(info) && is_from_source(p, info);
}

/* Protected images stay in addition to those that are to be kept. */
static void tell_protected(const struct image_info *info)
{
	log_note("%s (%s) is protected and stays", info->name ? info->name : "-", info->id);
}

static void keep_candidates(struct pruning *p, struct image_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->len; i++) {
		bool ours = is_of_series(p, &list->at[i]);

		if (ours && list->at[i].is_protected)
			tell_protected(&list->at[i]);
		if (ours && !list->at[i].is_protected)
			list->at[kept++] = list->at[i];
		else
			image_info_free(&list->at[i]);
	}
	list->len = kept;
}

static int find_images(struct pruning *p, struct err *err)
{
	const struct image_filter filter = { .series = p->opt->series };

	if (p->dest->ops->list(p->dest, &filter, &p->images, err) < 0)
		return -1;
	p->of_series = p->images.len;
	keep_candidates(p, &p->images);
	return 0;
}

static size_t count_too_many(const struct pruning *p)
{
	return p->images.len > p->opt->keep_last ? p->images.len - (size_t)p->opt->keep_last : 0;
}

/* Somebody who expected more learns why. */
static void tell_nothing_to_do(const struct pruning *p)
{
	bool has_others = !p->opt->all_sources && p->images.len < p->of_series;

	log_note("nothing to remove: of the %zu images of series %s, %zu %s%s", p->of_series,
		 p->opt->series, p->images.len,
		 p->opt->all_sources ? "count" : "count and are of this source",
		 has_others ? "; see --source and --all-sources" : "");
}

/* --- out with them --- */

static void tell_removed(const struct options *opt, const struct image_info *info)
{
	char name[NAME_CAP];

	if (opt->json || opt->quiet)
		return;
	printf("%s %s (%s), %s, of %s\n", opt->dry_run ? "would remove" : "removed",
	       log_printable(name, sizeof name, info->name ? info->name : "-"), info->id,
	       size_format(info->size).text, info->created_at);
	fflush(stdout); /* each takes its time */
}

static int remove_one(struct pruning *p, struct image_info *info, struct err *err)
{
	struct err why;

	if (!p->opt->dry_run && p->dest->ops->remove(p->dest, info, &why) < 0) {
		log_error("%s (%s) stays: %s", info->name ? info->name : "-", info->id, why.text);
		p->failed++;
		return 0;
	}
	tell_removed(p->opt, info);
	return image_list_add(&p->removed, info, err);
}

static int remove_all(struct pruning *p, struct err *err)
{
	size_t count = count_too_many(p);

	if (count == 0)
		tell_nothing_to_do(p);
	for (size_t i = 0; i < count; i++)
		if (interrupt_check(err) < 0 || remove_one(p, &p->images.at[i], err) < 0)
			return -1;
	return interrupt_check(err);
}

static int print_json(const struct pruning *p, struct err *err)
{
	autofree char *json = manifest_list_to_json(&p->removed, err);

	if (!json)
		return -1;
	fputs(json, stdout);
	return 0;
}

/* What was removed is told, also when a signal ended it. */
static int remove_and_tell(struct pruning *p, struct err *err)
{
	int done = remove_all(p, err);
	struct err late;

	if (p->opt->json && print_json(p, &late) < 0 && done == 0) {
		*err = late;
		return -1;
	}
	if (done == 0 && p->failed)
		return err_set(err, ERR_FAILED, "%zu of %zu images could not be removed", p->failed,
			       count_too_many(p));
	return done;
}

/* --- the command --- */

static int check_options(const struct options *opt, struct err *err)
{
	if (opt->series && opt->keep_last)
		return 0;
	return err_set(err, ERR_USAGE,
		       "prune needs both --series=SERIES and --keep-last=N, so that nothing else "
		       "is ever removed");
}

static int find_source(struct pruning *p, struct err *err)
{
	const struct options *opt = p->opt;
	struct uuid_text uuid;

	if (opt->all_sources)
		return 0;
	if (opt->domain) {
		if (instance_uuid(opt->connect, opt->domain, &uuid, err) < 0)
			return err_context(err, "--domain");
		properties_domain_id(uuid.text, &p->source);
		return 0;
	}
	if (properties_source_id(opt->source ? opt->source : "/", &p->source, err) == 0)
		return 0;
	err->kind = ERR_REFUSED;
	return err_context(err, "--source");
}

static int prune(struct pruning *p, struct err *err)
{
	if (find_source(p, err) < 0)
		return -1;
	return find_images(p, err) < 0 ? -1 : remove_and_tell(p, err);
}

int command_prune(const struct options *opt, struct err *err)
{
	struct pruning p = { .opt = opt };
	autofree char *where = NULL;
	struct dest_config cfg;
	int done = -1;

	if (check_options(opt, err) < 0 || plan_store(opt, &cfg, &where, err) < 0)
		return -1;
	p.dest = dest_open(&cfg, err);
	if (p.dest)
		done = prune(&p, err);
	image_list_free(&p.images);
	image_list_free(&p.removed);
	dest_close(p.dest);
	return done;
}
