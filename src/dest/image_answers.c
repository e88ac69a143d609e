// SPDX-License-Identifier: Apache-2.0
#include "dest/image_json.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Small documents of the image service.  What is not as it should be counts as not there:
 * none of them is needed.
 */

static bool holds(const json_t *array, const char *text)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *member = json_string_value(json_array_get(array, i));

		if (member && str_equal(member, text))
			return true;
	}
	return false;
}

/* --- tasks --- */

static bool has_failed(const json_t *task)
{
	const char *status = json_string_value(json_object_get(task, "status"));

	return status && str_equal(status, "failure");
}

char *answer_task_failure(const char *text, size_t size)
{
	json_auto_t *answer = json_loadb(text, size, 0, NULL);
	const json_t *tasks = json_object_get(answer, "tasks");

	for (size_t i = 0; i < json_array_size(tasks); i++) {
		const json_t *task = json_array_get(tasks, i);
		const char *message = json_string_value(json_object_get(task, "message"));

		if (has_failed(task))
			return strdup(message && *message ? message : "the service says no more");
	}
	return NULL;
}

/* --- import --- */

bool answer_can_import(const char *text, size_t size)
{
	json_auto_t *answer = json_loadb(text, size, 0, NULL);
	const json_t *methods = json_object_get(answer, "import-methods");

	return holds(json_object_get(methods, "value"), "glance-direct");
}

/* --- room --- */

/* How many of what is counted may come; false without a limit, which is -1. */
static bool rest_of(const json_t *usage, const char *what, uint64_t *rest)
{
	const json_t *counted = json_object_get(usage, what);
	const json_t *limit = json_object_get(counted, "limit");
	json_int_t used = json_integer_value(json_object_get(counted, "usage"));

	if (!json_is_integer(limit) || json_integer_value(limit) < 0)
		return false;
	used = MAX(used, 0);
	*rest = used < json_integer_value(limit) ? (uint64_t)(json_integer_value(limit) - used) : 0;
	return true;
}

uint64_t answer_room(const char *text, size_t size)
{
	json_auto_t *answer = json_loadb(text, size, 0, NULL);
	const json_t *usage = json_object_get(answer, "usage");
	uint64_t images, mib;

	if (rest_of(usage, "image_count_total", &images) && images == 0) {
		log_note("the project has as many images as its quota allows");
		return 0;
	}
	if (!rest_of(usage, "image_size_total", &mib) || mib >= UINT64_MAX / MIB)
		return UINT64_MAX;
	return mib * MIB;
}

/* --- formats --- */

static int refuse_format(const json_t *formats, const char *format, struct err *err)
{
	char list[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < json_array_size(formats) && len < sizeof list; i++) {
		const char *name = json_string_value(json_array_get(formats, i));

		if (name)
			len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
						len ? ", " : "", name);
	}
	err_set(err, ERR_REFUSED, "the image service takes no %s; it takes: %s", format, list);
	return 0;
}

int answer_takes_format(const char *text, size_t size, const char *format, struct err *err)
{
	json_auto_t *answer = json_loadb(text, size, 0, NULL);
	const json_t *properties = json_object_get(answer, "properties");
	const json_t *formats = json_object_get(json_object_get(properties, "disk_format"), "enum");

	if (!json_is_array(formats) || holds(formats, format))
		return 1;
	return refuse_format(formats, format, err);
}
