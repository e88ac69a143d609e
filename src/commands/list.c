// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "commands/commands.h"
#include "dest/dest.h"
#include "dest/manifest.h"
#include "options.h"
#include "plan.h"

#include <stdio.h>
#include <string.h>

#define CELL_CAP 1024 /* of a file name with every byte as \xNN */

/* --- the table --- */

enum { GAP = 2 }; /* between columns */

enum { FOLDER = 1, REMOTE = 2, BOTH = FOLDER | REMOTE, TAGGED = 4 };

enum align { LEFT, RIGHT };

static const char *known(const char *text)
{
	return text ? text : "-";
}

static void tell_id(char *cell, const struct image_info *info)
{
	log_printable(cell, CELL_CAP, known(info->id));
}

static void tell_name(char *cell, const struct image_info *info)
{
	log_printable(cell, CELL_CAP, known(info->name));
}

static void tell_format(char *cell, const struct image_info *info)
{
	char format[100];

	snprintf(format, sizeof format, "%s%s%s", known(info->format), info->compression ? "/" : "",
		 info->compression ? info->compression : "");
	log_printable(cell, CELL_CAP, format);
}

static void tell_bytes(char *cell, uint64_t bytes)
{
	snprintf(cell, CELL_CAP, "%s", bytes ? size_format(bytes).text : "-");
}

static void tell_size(char *cell, const struct image_info *info)
{
	tell_bytes(cell, info->size);
}

static void tell_virtual(char *cell, const struct image_info *info)
{
	tell_bytes(cell, info->virtual_size);
}

static void tell_status(char *cell, const struct image_info *info)
{
	char status[100];

	snprintf(status, sizeof status, "%s%s", known(info->status),
		 info->is_protected ? ", protected" : "");
	log_printable(cell, CELL_CAP, status);
}

static void tell_created(char *cell, const struct image_info *info)
{
	log_printable(cell, CELL_CAP, known(info->created_at));
}

static void tell_tags(char *cell, const struct image_info *info)
{
	char tags[CELL_CAP];
	size_t len = 0;

	tags[0] = '\0';
	for (char **tag = info->tags; tag && *tag && len < sizeof tags; tag++)
		len += (size_t)snprintf(tags + len, sizeof tags - len, "%s%s", len ? "," : "",
					*tag);
	log_printable(cell, CELL_CAP, tags);
}

/* What is widest, or may be missing, stands last. */
static const struct column {
	const char *heading;
	enum align align;
	unsigned kinds;
	void (*tell)(char *cell, const struct image_info *info);
} columns[] = {
	{ "ID", LEFT, REMOTE, tell_id },	  { "NAME", LEFT, BOTH, tell_name },
	{ "FORMAT", LEFT, BOTH, tell_format },	  { "SIZE", RIGHT, BOTH, tell_size },
	{ "VIRTUAL", RIGHT, BOTH, tell_virtual }, { "STATUS", LEFT, REMOTE, tell_status },
	{ "CREATED", LEFT, BOTH, tell_created },  { "TAGS", LEFT, TAGGED, tell_tags },
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

/* Columns that valid UTF-8 takes, near enough for a table. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static int widest(const struct column *column, const struct image_list *list)
{
	int width = width_of(column->heading);
	char cell[CELL_CAP];

	for (size_t i = 0; i < list->len; i++) {
		column->tell(cell, &list->at[i]);
		width = MAX(width, width_of(cell));
	}
	return width;
}

/* info NULL: the headings.  Spaces come before what follows them, so that no line
 * ends in some.
 */
static void print_row(const struct image_info *info, const int *widths, unsigned kind)
{
	char cell[CELL_CAP];
	int owed = 0;

	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		int pad;

		if (!(columns[i].kinds & kind))
			continue;
		snprintf(cell, sizeof cell, "%s", columns[i].heading);
		if (info)
			columns[i].tell(cell, info);
		pad = widths[i] - width_of(cell);
		if (*cell)
			printf("%*s%s", owed + (columns[i].align == RIGHT ? pad : 0), "", cell);
		owed = GAP + (columns[i].align == LEFT ? pad : 0) + (*cell ? 0 : owed);
	}
	putchar('\n');
}

static bool are_tagged(const struct image_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->at[i].tags && list->at[i].tags[0])
			return true;
	return false;
}

static void print_table(const struct image_list *list, unsigned kind)
{
	int widths[COLUMN_COUNT];

	if (are_tagged(list))
		kind |= TAGGED;

	for (size_t i = 0; i < COLUMN_COUNT; i++)
		widths[i] = widest(&columns[i], list);
	print_row(NULL, widths, kind);
	for (size_t i = 0; i < list->len; i++)
		print_row(&list->at[i], widths, kind);
}

/* --- the command --- */

static int print_json(const struct image_list *list, struct err *err)
{
	autofree char *json = manifest_list_to_json(list, err);

	if (!json)
		return -1;
	fputs(json, stdout);
	return 0;
}

static bool is_filtered(const struct options *opt)
{
	return opt->name || opt->series || opt->tags;
}

static unsigned kind_of(const char *where)
{
	const char *rest;
	const struct dest_kind *kind = dest_kind_find(where, &rest);

	return kind && kind->is_remote ? REMOTE : FOLDER;
}

static int print_list(const struct image_list *list, const struct options *opt, const char *where,
		      const char *shown, struct err *err)
{
	if (opt->json && print_json(list, err) < 0)
		return -1;
	if (!opt->json && list->len > 0)
		print_table(list, kind_of(where));
	if (!opt->json && list->len == 0)
		log_note("there are no %simages in %s", is_filtered(opt) ? "such " : "", shown);
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_errno(err, ERR_FAILED, "cannot write the list");
	return 0;
}

/* The destination looks for one tag; of several, each must be there. */
static void keep_tagged(struct image_list *list, const char *tag)
{
	const struct image_filter filter = { .tag = tag };
	size_t kept = 0;

	for (size_t i = 0; i < list->len; i++) {
		if (image_matches(&list->at[i], &filter))
			list->at[kept++] = list->at[i];
		else
			image_info_free(&list->at[i]);
	}
	list->len = kept;
}

static int list_images(struct dest *dest, const struct options *opt, struct image_list *out,
		       struct err *err)
{
	const struct image_filter filter = { .name = opt->name,
					     .series = opt->series,
					     .tag = opt->tags ? opt->tags[0] : NULL };

	if (dest->ops->list(dest, &filter, out, err) < 0)
		return -1;
	for (char **tag = opt->tags; tag && *tag; tag++)
		keep_tagged(out, *tag);
	return 0;
}

int command_list(const struct options *opt, struct err *err)
{
	autofree char *where = NULL;
	autodest struct dest *dest = NULL;
	struct image_list list;
	struct dest_config cfg;
	int rc;

	if (plan_store(opt, &cfg, &where, err) < 0)
		return -1;
	dest = dest_open(&cfg, err);
	if (!dest || list_images(dest, opt, &list, err) < 0)
		return -1;
	rc = print_list(&list, opt, cfg.where, dest->name, err);
	image_list_free(&list);
	return rc;
}
