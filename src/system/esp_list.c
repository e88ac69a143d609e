// SPDX-License-Identifier: Apache-2.0
#include "system/esp_list.h"

#include "base/account.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "system/edit.h"
#include "system/edit_inner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
	ITEMS_MAX = 20000,  /* one program is run for each */
	PATH_LEN_MAX = 240, /* firmware and Windows end at 260 */
};

#define FAT_TIME_MIN INT64_C(315532800)	 /* 1980-01-01 */
#define FAT_TIME_MAX INT64_C(4354819198) /* 2107-12-31 23:59:58 */

void esp_list_free(struct esp_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		free(list->at[i].path);
	free(list->at);
	*list = (struct esp_list){ 0 };
}

static int64_t fat_time(int64_t seconds)
{
	return MIN(MAX(seconds, FAT_TIME_MIN), FAT_TIME_MAX);
}

/* Takes item->path, also when it fails. */
static int add_item(struct esp_list *list, const struct esp_item *item, struct err *err)
{
	if (list->len >= ITEMS_MAX) {
		free(item->path);
		return err_set(err, ERR_REFUSED, "the EFI system partition has more than %d files",
			       ITEMS_MAX);
	}
	if (!item->path || !array_room(list->at, list->cap, list->len + 1)) {
		free(item->path);
		return err_nomem(err);
	}
	list->at[list->len++] = *item;
	return 0;
}

/* mtools takes them for the devices that DOS had. */
static bool is_device(const char *name)
{
	static const char *const devices[] = { "con", "prn", "aux", "nul", NULL };
	bool numbered = (strncasecmp(name, "com", 3) == 0 || strncasecmp(name, "lpt", 3) == 0) &&
			name[3] >= '1' && name[3] <= '4' && name[4] == '\0';

	for (const char *const *device = devices; *device; device++)
		if (strcasecmp(name, *device) == 0)
			return true;
	return numbered;
}

/* Can a FAT hold a file of this name, and mtools write it?  NULL, or why not. */
static const char *name_problem(const char *name)
{
	size_t len = strlen(name);

	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c < ' ' || strchr("\"*/:<>?\\|\x7f", *c))
			return "a character in its name cannot be stored on FAT";
		if ((unsigned char)*c > '~')
			return "a name that is not ASCII cannot be stored on FAT here";
		if (*c == '[' || *c == ']')
			return "brackets in its name cannot be stored on FAT by mtools";
	}
	if (len == 0 || name[len - 1] == '.' || name[len - 1] == ' ' || len > 255)
		return "its name cannot be stored on FAT";
	return is_device(name) ? "the name of a DOS device cannot be stored on FAT" : NULL;
}

/* 8.3, in any case: what FAT can hold without a second, long name. */
static bool is_short(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789!#$%&'()-@^_`{}~";
	size_t base = strspn(name, allowed), ext;

	if (base < 1 || base > 8)
		return false;
	if (name[base] == '\0')
		return true;
	ext = name[base] == '.' ? strspn(name + base + 1, allowed) : 0;
	return ext >= 1 && ext <= 3 && name[base + 1 + ext] == '\0';
}

static int compare_names(const void *a, const void *b)
{
	const struct esp_item *x = a, *y = b;
	int order = strcasecmp(x->path, y->path);

	return order ? order : strcmp(x->path, y->path);
}

static int compare_places(const void *a, const void *b)
{
	const struct esp_item *x = a, *y = b;
	const char *slash_x = strrchr(x->path, '/'), *slash_y = strrchr(y->path, '/');
	int order = is_short(slash_y ? slash_y + 1 : y->path) -
		    is_short(slash_x ? slash_x + 1 : x->path);

	return order ? order : compare_names(a, b);
}

static int leave_out(const struct esp_config *cfg, uint32_t node, const char *why, struct err *err)
{
	return edit_account(cfg->edit, ACCOUNT_ATTRIBUTE, node,
			    "left out of the EFI system partition: ", why, err);
}

static const char *node_problem(const struct model_node *node)
{
	if (S_ISDIR(node->mode))
		return NULL;
	if (!S_ISREG(node->mode))
		return "links, devices and the like cannot be stored on FAT";
	return node->size > UINT32_MAX ? "4 GiB and more cannot be stored on FAT" : NULL;
}

static int add_entry(const struct esp_config *cfg, const char *above, const char *name,
		     uint32_t number, struct esp_list *out, struct err *err)
{
	const struct model_node *node = &cfg->edit->model->nodes[number];
	const char *problem = node_problem(node);
	struct esp_item item = {
		.is_directory = S_ISDIR(node->mode),
		.node = number,
		.time = fat_time(node->mtime_sec),
		.size = S_ISREG(node->mode) ? node->size : 0,
	};

	if (!problem)
		problem = name_problem(name);
	if (!problem && strlen(above) + strlen(name) + 1 > PATH_LEN_MAX)
		problem = "its path is too long for firmware to find";
	if (problem)
		return leave_out(cfg, number, problem, err);
	item.path = str_format("%s%s%s", above, *above ? "/" : "", name);
	return add_item(out, &item, err);
}

/* Of names that differ in case only, the first one stays. */
static int drop_clashes(const struct esp_config *cfg, struct esp_list *list, size_t from,
			struct err *err)
{
	size_t kept = from;
	int rc = 0;

	if (list->len == from)
		return 0;
	qsort(list->at + from, list->len - from, sizeof *list->at, compare_names);
	for (size_t i = from; i < list->len; i++) {
		const struct esp_item item = list->at[i];

		if (kept == from || strcasecmp(list->at[kept - 1].path, item.path) != 0) {
			list->at[kept++] = item;
			continue;
		}
		free(item.path);
		if (leave_out(cfg, item.node, "another name differs from it only in case", err) < 0)
			rc = -1;
	}
	list->len = kept;
	qsort(list->at + from, list->len - from, sizeof *list->at, compare_places);
	return rc;
}

/* The entries of one directory, which is at above. */
static int add_directory(const struct esp_config *cfg, uint32_t dir, const char *above,
			 struct esp_list *out, struct err *err)
{
	const struct model *m = cfg->edit->model;
	const struct model_node *node = &m->nodes[dir];
	size_t from = out->len;

	for (uint32_t i = 0; i < node->count; i++) {
		const struct model_entry *entry = &m->entries[node->first + i];

		if (add_entry(cfg, above, model_string(m, entry->name), entry->node, out, err) < 0)
			return -1;
	}
	return drop_clashes(cfg, out, from, err);
}

uint32_t esp_lookup(const struct model *m, uint32_t dir, const char *path)
{
	while (dir != MODEL_NONE && *path) {
		const struct model_node *d = &m->nodes[dir];
		size_t len = strcspn(path, "/");
		uint32_t found = MODEL_NONE;

		for (uint32_t i = 0; S_ISDIR(d->mode) && i < d->count; i++) {
			const char *name = model_string(m, m->entries[d->first + i].name);

			if (strncasecmp(name, path, len) == 0 && name[len] == '\0')
				found = m->entries[d->first + i].node;
		}
		dir = found;
		path += len + (path[len] == '/');
	}
	return dir;
}

static struct esp_item *find_item(const struct esp_list *list, const char *path, size_t len)
{
	for (size_t i = 0; i < list->len; i++)
		if (strncasecmp(list->at[i].path, path, len) == 0 && list->at[i].path[len] == '\0')
			return &list->at[i];
	return NULL;
}

static int add_parents(const struct esp_config *cfg, const struct esp_file *file,
		       struct esp_list *out, struct err *err)
{
	for (const char *end = strchr(file->path, '/'); end; end = strchr(end + 1, '/')) {
		size_t len = (size_t)(end - file->path);
		const struct esp_item *there = find_item(out, file->path, len);
		const struct esp_item made = {
			.path = there ? NULL : strndup(file->path, len),
			.is_directory = true,
			.node = MODEL_NONE,
			.time = fat_time(cfg->time),
		};

		if (there && !there->is_directory)
			return err_set(err, ERR_REFUSED,
				       "%s cannot be put on the EFI system partition: %s is a file",
				       file->path, there->path);
		if (!there && add_item(out, &made, err) < 0)
			return -1;
	}
	return 0;
}

/* To the first free of PATH.of-source, PATH.of-source.1, ... */
static int step_aside(const struct esp_list *list, struct esp_item *item, struct err *err)
{
	char *path = str_format("%s.of-source", item->path);

	for (size_t n = 1; path && find_item(list, path, strlen(path)); n++) {
		free(path);
		path = str_format("%s.of-source.%zu", item->path, n);
	}
	if (!path)
		return err_nomem(err);
	free(item->path);
	item->path = path;
	return 0;
}

static int add_file(const struct esp_config *cfg, const struct esp_file *file, struct esp_list *out,
		    struct err *err)
{
	struct esp_item *there = find_item(out, file->path, strlen(file->path));
	struct esp_item item = {
		.node = MODEL_NONE,
		.file = file,
		.time = fat_time(cfg->time),
		.size = file->len,
	};

	if (there && there->is_directory)
		return err_set(err, ERR_REFUSED,
			       "%s cannot be put on the EFI system partition: it is a directory",
			       file->path);
	if (there && file->rule == ESP_IF_MISSING)
		return 0;
	if (there && step_aside(out, there, err) < 0)
		return -1;
	if (add_parents(cfg, file, out, err) < 0)
		return -1;
	item.path = strdup(file->path);
	return add_item(out, &item, err);
}

/* The list itself is the queue of directories that are still to be opened. */
static int add_source(const struct esp_config *cfg, struct esp_list *out, struct err *err)
{
	if (add_directory(cfg, cfg->source, "", out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->len; i++) {
		const struct esp_item item = out->at[i]; /* the array may move */

		if (item.is_directory && add_directory(cfg, item.node, item.path, out, err) < 0)
			return -1;
	}
	return 0;
}

int esp_list_make(const struct esp_config *cfg, struct esp_list *out, struct err *err)
{
	struct esp_list list = { 0 };
	int rc = cfg->source == MODEL_NONE ? 0 : add_source(cfg, &list, err);

	for (size_t i = 0; rc == 0 && i < cfg->add_count; i++)
		rc = add_file(cfg, &cfg->add[i], &list, err);
	if (rc < 0) {
		esp_list_free(&list);
		return -1;
	}
	*out = list;
	return 0;
}
