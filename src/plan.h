/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_PLAN_H
#define CCSNAP_PLAN_H

#include "dest/dest.h"
#include "instance.h"
#include "pipeline/pipeline.h"
#include "source/source.h"
#include "tree/tree.h"

#include <stdbool.h>
#include <stdint.h>

/* What was asked for, with every name resolved to a codec, a format, a place.
 * Made from the options before anything is opened.
 */
struct codec;
struct err;
struct image_format;
struct options;

enum plan_kind { PLAN_DISK, PLAN_TREE, PLAN_DOMAIN };

struct plan {
	char *name; /* of the image; owned */
	enum plan_kind kind;
	unsigned of; /* enum option_of, or'ed: what it may be, when that is not known yet */
	struct instance_config instance; /* of a domain */
	struct tree_config tree;	 /* what is known before it is looked at */
	uint64_t max_data_bytes;	 /* of a tree: more has to be agreed to */
	bool agree;			 /* to whatever would be asked */
	struct source_config source;	 /* its path is a tree's, too; a domain's name */
	unsigned sector_size;		 /* 0: any */
	uint64_t max_virtual_size;	 /* 0: no limit */
	unsigned stall_seconds;

	const struct image_format *format;
	const char *compression;
	const struct codec *codec; /* NULL for "none" */
	int level;
	size_t cluster_size;
	unsigned threads;

	char *where;	   /* owned; dest.where points to it */
	char *where_shown; /* owned */
	struct dest_config dest;
	char **properties;  /* the user's; borrowed, as the next two */
	const char *series; /* NULL: none */
	const char *report; /* where it goes, NULL: beside the image */
	bool dry_run;
};

int plan_create(struct plan *plan, const struct options *opt, struct err *err);
int plan_convert(struct plan *plan, const struct options *opt, struct err *err);
void plan_free(struct plan *plan);

/* The format that a file's name states by its suffix, NULL when it does not.
 * Names only: content is never looked at.
 */
const char *plan_format_of_name(const char *path);

/* What the options say of a store: where it is (*where, malloc; cfg->where points to it)
 * and how to get there; nothing of an image to be.
 */
int plan_store(const struct options *opt, struct dest_config *cfg, char **where, struct err *err);

/* What the options say of a domain, to look at it. */
void plan_instance(const struct options *opt, struct instance_config *cfg);

/* How its source is read and packed. */
struct pipeline_config plan_pipeline(const struct plan *plan);

/* As many as the CPUs we may run on, unless asked otherwise. */
unsigned plan_threads(const struct options *opt);

#endif
