// SPDX-License-Identifier: Apache-2.0
#include "system/fstab.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "system/device.h"
#include "system/edit.h"
#include "system/fstab_text.h"
#include "system/names.h"

#include <string.h>
#include <sys/stat.h>

#define FSTAB	 "etc/fstab"
#define CRYPTTAB "etc/crypttab"

/* The tree behind struct fstab_facts. */
struct facts_ctx {
	const struct edit *edit;
	struct slice crypttab;
};

static bool fact_exists(const void *ctx, const char *path)
{
	return edit_exists(((const struct facts_ctx *)ctx)->edit, path);
}

static bool fact_has_content(const void *ctx, const char *directory)
{
	const struct model *m = ((const struct facts_ctx *)ctx)->edit->model;
	uint32_t node = model_resolve(m, directory, MODEL_FOLLOW);

	return node != MODEL_NONE && S_ISDIR(m->nodes[node].mode) && m->nodes[node].count > 0;
}

static bool fact_is_mapped_file(const void *ctx, const char *device)
{
	static const char mapper[] = "/dev/mapper/";
	const struct facts_ctx *facts = ctx;
	char file[4096];

	return str_starts(device, mapper) &&
	       crypttab_find(facts->crypttab, device + strlen(mapper), file, sizeof file) &&
	       file[0] == '/' && !str_starts(file, "/dev/") && fact_exists(ctx, file);
}

typedef void rewriter(struct slice text, const struct fstab_facts *facts, struct text *out,
		      struct text *why);

/* What is not there is empty; so is, with *denied, what we may not read. */
static char *read_table(const struct edit *e, const char *path, struct slice *text, bool *denied,
			struct err *err)
{
	struct err why = { 0 };
	bool missing;
	size_t len = 0;
	char *bytes = edit_read(e, path, &len, &missing, &why);

	*text = (struct slice){ bytes ? bytes : "", bytes ? len : 0 };
	*denied = !bytes && !missing && edit_is_denied(&why);
	if (!bytes && !missing && !*denied)
		*err = why;
	else if (!bytes && !(bytes = strdup("")))
		err_nomem(err);
	return bytes;
}

static int fix(struct edit *e, const struct names *names, const char *path, rewriter *rewrite,
	       struct err *err)
{
	struct facts_ctx ctx = { .edit = e };
	struct slice text;
	bool denied = false, ignored;
	autofree char *bytes = read_table(e, path, &text, &denied, err);
	autofree char *crypttab =
		bytes ? read_table(e, CRYPTTAB, &ctx.crypttab, &ignored, err) : NULL;
	autotext struct text out = { 0 }, why = { 0 };
	const struct fstab_facts facts = {
		.names = names,
		.exists = fact_exists,
		.has_content = fact_has_content,
		.is_mapped_file = fact_is_mapped_file,
		.ctx = &ctx,
	};

	if (!crypttab)
		return -1;
	if (denied)
		log_warn("/%s is left as it is: it cannot be read or is too large", path);
	else if (edit_is_odd(e, path))
		log_warn("/%s is left as it is: it is no regular file", path);
	rewrite(text, &facts, &out, &why);
	if (text_check(&out, err) < 0 || text_check(&why, err) < 0)
		return -1;
	if (slice_same(text, text_slice(&out)))
		return 0;
	return edit_write(e, path, out.at, out.len, why.at, err);
}

int fstab_fix(struct edit *e, const struct names *names, struct err *err)
{
	return fix(e, names, FSTAB, fstab_rewrite, err);
}

int crypttab_fix(struct edit *e, const struct names *names, struct err *err)
{
	return fix(e, names, CRYPTTAB, crypttab_rewrite, err);
}

static int entry_fill(struct fstab_entry *out, const struct fstab_fields *raw, struct err *err)
{
	const struct slice *fields[] = { &raw->device, &raw->type, &raw->options };
	char **to[] = { &out->device, &out->type, &out->options };

	for (size_t i = 0; i < 3; i++) {
		*to[i] = malloc(fields[i]->len + 1);
		if (!*to[i])
			return err_nomem(err);
		if (!fstab_decode(*fields[i], *to[i], fields[i]->len + 1))
			**to[i] = '\0';
	}
	return 0;
}

int fstab_find(const struct edit *e, const char *point, struct fstab_entry *out, struct err *err)
{
	struct slice text, line;
	bool denied;
	autofree char *bytes = read_table(e, FSTAB, &text, &denied, err);
	int done = bytes ? 0 : -1;

	*out = (struct fstab_entry){ 0 };
	while (bytes && slice_line(&text, &line)) {
		struct fstab_fields raw;
		char at[4096];

		if (!fstab_split(line, &raw) || !fstab_decode_point(raw.point, at, sizeof at) ||
		    !str_equal(at, point) || slice_is(raw.type, "swap"))
			continue;
		done = entry_fill(out, &raw, err);
		break;
	}
	if (done < 0)
		fstab_entry_free(out);
	return done;
}

char *fstab_swap_partition(const struct edit *e, bool *missing, struct err *err)
{
	struct slice text, line;
	bool denied;
	autofree char *bytes = read_table(e, FSTAB, &text, &denied, err), *found = NULL;

	*missing = bytes != NULL;
	while (bytes && !found && slice_line(&text, &line)) {
		struct fstab_fields raw;
		char device[4096];

		if (!fstab_split(line, &raw) || !slice_is(raw.type, "swap") ||
		    !fstab_decode(raw.device, device, sizeof device) ||
		    device_parse(device).kind == DEVICE_ELSEWHERE)
			continue;
		*missing = false;
		found = strdup(device);
		if (!found)
			err_nomem(err);
		break;
	}
	return steal(&found);
}

void fstab_entry_free(struct fstab_entry *entry)
{
	free(entry->device);
	free(entry->type);
	free(entry->options);
	*entry = (struct fstab_entry){ 0 };
}

/* "/dev/vg/root", but not "/dev/disk/...". */
static bool is_volume_path(const char *device)
{
	const char *slash = str_starts(device, "/dev/") ? strchr(device + 5, '/') : NULL;

	return slash && !str_starts(device, "/dev/disk/") && !strchr(slash + 1, '/');
}

bool crypttab_opens(const struct edit *e, const char *device)
{
	static const char mapper[] = "/dev/mapper/", lvm[] = "/dev/disk/by-id/dm-uuid-";
	struct err ignored = { 0 };
	struct slice text;
	bool denied;
	autofree char *bytes = read_table(e, CRYPTTAB, &text, &denied, &ignored);
	char container[4096];

	if (!bytes)
		return false;
	if (str_starts(device, mapper) &&
	    crypttab_find(text, device + strlen(mapper), container, sizeof container))
		return true;
	return (str_starts(device, mapper) || str_starts(device, lvm) || is_volume_path(device)) &&
	       crypttab_has_container(text);
}
