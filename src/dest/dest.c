// SPDX-License-Identifier: Apache-2.0
#include "dest/dest.h"

#include "base/err.h"
#include "base/str.h"
#include "dest/kinds.h"

#include <stdio.h>
#include <string.h>

const struct dest_kind dest_kinds[] = {
	{ "folder", folder_open },
	{ "file", file_open },
	{ NULL, NULL },
};

static const struct dest_kind *find_kind(const char *where, const char **rest)
{
	for (const struct dest_kind *kind = dest_kinds; kind->scheme; kind++) {
		size_t len = strlen(kind->scheme);

		if (strncmp(where, kind->scheme, len) == 0 && where[len] == ':') {
			*rest = where + len + 1;
			return kind;
		}
	}
	return NULL;
}

static void list_kinds(char *text, size_t cap)
{
	size_t len = 0;

	for (const struct dest_kind *kind = dest_kinds; kind->scheme && len < cap; kind++)
		len += (size_t)snprintf(text + len, cap - len, "%s%s:PATH", len ? ", " : "",
					kind->scheme);
}

struct dest *dest_open(const struct dest_config *cfg, struct err *err)
{
	const char *rest, *hint = "";
	const struct dest_kind *kind = find_kind(cfg->where, &rest);
	char accepted[128];

	if (kind)
		return kind->open(cfg, rest, err);
	list_kinds(accepted, sizeof accepted);
	if (!strchr(cfg->where, ':') || strchr("/.~", cfg->where[0]))
		hint = "; for a directory put folder: in front";
	err_set(err, ERR_USAGE, "--to='%s' is no destination; accepted are %s%s", cfg->where,
		accepted, hint);
	return NULL;
}

void dest_close(struct dest *dest)
{
	if (dest)
		dest->ops->close(dest);
}

char *dest_default(void)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return strdup("folder:/var/lib/ccsnap/images");
	/* the XDG rules have relative paths ignored */
	if (data && data[0] == '/')
		return str_format("folder:%s/ccsnap/images", data);
	if (home && home[0] == '/')
		return str_format("folder:%s/.local/share/ccsnap/images", home);
	return NULL;
}

void image_info_free(struct image_info *info)
{
	free(info->id);
	free(info->name);
	free(info->file);
	free(info->format);
	free(info->compression);
	free(info->created_at);
	for (char **p = info->properties; p && *p; p++)
		free(*p);
	free(info->properties);
	memset(info, 0, sizeof *info);
}

void image_list_free(struct image_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		image_info_free(&list->at[i]);
	free(list->at);
	memset(list, 0, sizeof *list);
}
