// SPDX-License-Identifier: Apache-2.0
#include "system/describe.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "system/edit.h"
#include "system/machine.h"

#include <stdlib.h>
#include <string.h>

/* The second counts when the first is not there. */
static const char *const os_releases[] = { "etc/os-release", "usr/lib/os-release" };

enum { VALUE_MAX = 255 };

/* The value behind KEY=; false when the line is another one. */
static bool line_value(struct slice line, const char *key, char value[VALUE_MAX + 1])
{
	size_t len = strlen(key);
	struct slice word;

	if (!slice_starts(line, key) || line.len <= len || line.at[len] != '=')
		return false;
	line = slice_from(line, len + 1);
	if (!slice_quoted_word(&line, &word) || !slice_unquote(word, value, VALUE_MAX + 1))
		value[0] = '\0';
	return true;
}

char *os_release_value(struct slice text, const char *key)
{
	char value[VALUE_MAX + 1] = "";
	struct slice line;

	while (slice_line(&text, &line))
		line_value(slice_chomp(line), key, value);
	return value[0] ? strdup(value) : NULL;
}

/* NULL when it is not there, or, with a warning, cannot be had. */
static char *read_or_warn(const struct edit *e, const char *path, size_t *len, bool *missing)
{
	struct err why = { 0 };
	char *text = edit_read(e, path, len, missing, &why);

	if (!text && !*missing)
		log_warn("%s; the image's properties do without it", why.text);
	return text;
}

static void describe_os(const struct edit *e, struct description *out)
{
	bool missing = true;

	for (size_t i = 0; i < sizeof os_releases / sizeof *os_releases && missing; i++) {
		size_t len = 0;
		autofree char *text = read_or_warn(e, os_releases[i], &len, &missing);

		if (!text)
			continue;
		out->os_id = os_release_value((struct slice){ text, len }, "ID");
		out->os_version = os_release_value((struct slice){ text, len }, "VERSION_ID");
	}
}

void describe_tree(const struct edit *e, struct description *out)
{
	bool missing;

	*out = (struct description){ .machine = machine_of_tree(e, NULL) };
	describe_os(e, out);
	out->provenance = read_or_warn(e, DESCRIBE_PROVENANCE, &out->provenance_len, &missing);
}

void description_free(struct description *d)
{
	free(d->os_id);
	free(d->os_version);
	free(d->provenance);
	*d = (struct description){ 0 };
}
