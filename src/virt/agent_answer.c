// SPDX-License-Identifier: Apache-2.0
#include "virt/agent_answer.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "virt/agent.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

/* Real answers have some kilobytes. */
#define ANSWER_MAX MIB

enum { FILESYSTEMS_MAX = 256, MOUNTPOINT_CAP = 1024, TYPE_CAP = 64 };

const char *const agent_command_names[AGENT_COMMANDS] = {
	[AGENT_FREEZE] = "guest-fsfreeze-freeze",
	[AGENT_THAW] = "guest-fsfreeze-thaw",
	[AGENT_STATUS] = "guest-fsfreeze-status",
	[AGENT_TRIM] = "guest-fstrim",
};

static void json_cleanup(json_t **json)
{
	json_decref(*json);
}
#define autojson CLEANUP(json_cleanup)

static int nonsense(const char *about, struct err *err)
{
	return err_set(err, ERR_FAILED, "the guest agent answers nonsense (%s)", about);
}

/* The answer as a whole; *out is what it returns. */
static json_t *read_answer(const char *json, const char *about, json_t **out, struct err *err)
{
	json_t *answer = NULL;

	if (strnlen(json, ANSWER_MAX + 1) <= ANSWER_MAX)
		answer = json_loads(json, 0, NULL);
	*out = json_object_get(answer, "return");
	if (*out)
		return answer;
	json_decref(answer);
	nonsense(about, err);
	return NULL;
}

/* --- guest-info ---------------------------------------------------------------------- */

/* Said twice, the worse counts. */
static void note_command(struct agent_info *out, const json_t *command)
{
	const char *name = json_string_value(json_object_get(command, "name"));
	bool is_allowed = json_is_true(json_object_get(command, "enabled"));

	for (size_t i = 0; name && i < AGENT_COMMANDS; i++)
		if (str_equal(name, agent_command_names[i]) &&
		    (out->abilities[i] == AGENT_LACKS || !is_allowed))
			out->abilities[i] = is_allowed ? AGENT_ALLOWS : AGENT_FORBIDS;
}

int agent_answer_info(const char *json, struct agent_info *out, struct err *err)
{
	json_t *info, *commands;
	autojson json_t *answer = read_answer(json, "guest-info", &info, err);
	const char *version;

	if (!answer)
		return -1;
	memset(out, 0, sizeof *out);
	version = json_string_value(json_object_get(info, "version"));
	commands = json_object_get(info, "supported_commands");
	if (!version || !json_is_array(commands))
		return nonsense("guest-info", err);
	log_printable(out->version, sizeof out->version, version);
	for (size_t i = 0; i < json_array_size(commands); i++)
		note_command(out, json_array_get(commands, i));
	return 0;
}

/* --- guest-fsfreeze-status ----------------------------------------------------------- */

int agent_answer_frozen(const char *json, struct err *err)
{
	json_t *status;
	autojson json_t *answer = read_answer(json, "guest-fsfreeze-status", &status, err);
	const char *word = json_string_value(status);

	if (!answer)
		return -1;
	if (word && str_equal(word, "frozen"))
		return 1;
	if (word && str_equal(word, "thawed"))
		return 0;
	return nonsense("guest-fsfreeze-status", err);
}

/* --- guest-get-fsinfo ---------------------------------------------------------------- */

static char *printable_copy(const char *text, size_t cap)
{
	char *copy = malloc(cap);

	return copy ? log_printable(copy, cap, text) : NULL;
}

static int add_filesystem(struct agent_facts *out, const json_t *fs, struct err *err)
{
	const char *mountpoint = json_string_value(json_object_get(fs, "mountpoint"));
	const char *type = json_string_value(json_object_get(fs, "type"));
	struct agent_filesystem *to = &out->filesystems[out->filesystem_count];

	if (!mountpoint || !type)
		return nonsense("guest-get-fsinfo", err);
	out->filesystem_count++;
	to->mountpoint = printable_copy(mountpoint, MOUNTPOINT_CAP);
	to->type = printable_copy(type, TYPE_CAP);
	return to->mountpoint && to->type ? 0 : err_nomem(err);
}

int agent_answer_filesystems(const char *json, struct agent_facts *out, struct err *err)
{
	json_t *list;
	autojson json_t *answer = read_answer(json, "guest-get-fsinfo", &list, err);
	size_t count;

	if (!answer)
		return -1;
	if (!json_is_array(list))
		return nonsense("guest-get-fsinfo", err);
	count = MIN(json_array_size(list), FILESYSTEMS_MAX);
	out->filesystems = calloc(count + 1, sizeof *out->filesystems);
	if (!out->filesystems)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		if (add_filesystem(out, json_array_get(list, i), err) < 0)
			return -1;
	return 0;
}
