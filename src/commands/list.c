// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "commands/commands.h"
#include "dest/dest.h"
#include "dest/manifest.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

#define NAME_CAP 1024 /* of a file name with every byte as \xNN */

/* Columns that valid UTF-8 takes, near enough for a table. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static int widest_name(const struct image_list *list)
{
	int widest = (int)strlen("NAME");

	for (size_t i = 0; i < list->len; i++) {
		char name[NAME_CAP];

		widest = MAX(widest, width_of(log_printable(name, sizeof name, list->at[i].name)));
	}
	return widest;
}

static void print_row(int name_width, const char *name, const char *format, const char *size,
		      const char *virtual_size, const char *created_at)
{
	printf("%s%*s  %-12s  %10s  %10s  %s\n", name, name_width - width_of(name), "", format,
	       size, virtual_size, created_at);
}

static void print_image(int name_width, const struct image_info *info)
{
	char name[NAME_CAP], format[80];

	snprintf(format, sizeof format, "%s/%s", info->format, info->compression);
	print_row(name_width, log_printable(name, sizeof name, info->name), format,
		  size_format(info->size).text, size_format(info->virtual_size).text,
		  info->created_at);
}

static void print_table(const struct image_list *list)
{
	int name_width = widest_name(list);

	print_row(name_width, "NAME", "FORMAT", "SIZE", "VIRTUAL", "CREATED");
	for (size_t i = 0; i < list->len; i++)
		print_image(name_width, &list->at[i]);
}

static int print_json(const struct image_list *list, struct err *err)
{
	autofree char *json = manifest_list_to_json(list, err);

	if (!json)
		return -1;
	fputs(json, stdout);
	return 0;
}

static int print_list(const struct image_list *list, const struct options *opt, const char *where,
		      struct err *err)
{
	if (opt->json && print_json(list, err) < 0)
		return -1;
	if (!opt->json && list->len > 0)
		print_table(list);
	if (!opt->json && list->len == 0)
		log_note("there are no images in %s", where);
	if (fflush(stdout) != 0 || ferror(stdout))
		return err_errno(err, ERR_FAILED, "cannot write the list");
	return 0;
}

int command_list(const struct options *opt, struct err *err)
{
	autofree char *standard = opt->to ? NULL : dest_default();
	const struct dest_config cfg = { .where = opt->to ? opt->to : standard };
	autodest struct dest *dest = NULL;
	struct image_list list;
	int rc;

	if (!cfg.where)
		return err_set(err, ERR_USAGE, "there is no home to look in; say where with --to");
	dest = dest_open(&cfg, err);
	if (!dest || dest->ops->list(dest, &list, err) < 0)
		return -1;
	rc = print_list(&list, opt, dest->name, err);
	image_list_free(&list);
	return rc;
}
