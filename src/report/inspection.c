// SPDX-License-Identifier: Apache-2.0
#include "report/inspection.h"

#include "report/value.h"

static json_t *disk(const struct inspected_disk *d)
{
	json_t *o = json_object();
	int bad = 0;

	bad |= value_put(o, "target", value_text(d->target));
	bad |= value_put(o, "bus", value_text(d->bus));
	bad |= value_put(o, "device", value_text(d->device));
	bad |= value_put(o, "kind", value_text(d->kind));
	bad |= value_put(o, "source", value_text(d->source));
	bad |= value_put(o, "format", value_text(d->format));
	bad |= value_put(o, "size_bytes", value_integer_or_null(d->size, d->is_sized));
	bad |= value_put(o, "allocated_bytes", value_integer_or_null(d->allocation, d->is_sized));
	bad |= value_put(o, "chosen", json_boolean(d->is_chosen));
	bad |= value_put(o, "why_not", value_text(d->why_not));
	return value_finish(o, bad);
}

static json_t *disks(const struct inspection *found)
{
	json_t *array = json_array();
	int bad = 0;

	for (size_t i = 0; i < found->disk_count; i++)
		bad |= value_append(array, disk(&found->disks[i]));
	return value_finish(array, bad);
}

static json_t *filesystems(const struct inspection *found)
{
	json_t *array = json_array();
	int bad = 0;

	for (size_t i = 0; i < found->agent.filesystem_count; i++) {
		json_t *o = json_object();

		bad |= value_put(o, "mountpoint",
				 value_text(found->agent.filesystems[i].mountpoint));
		bad |= value_put(o, "type", value_text(found->agent.filesystems[i].type));
		bad |= value_append(array, o);
	}
	return value_finish(array, bad);
}

static json_t *known_boolean(bool value, bool known)
{
	return known ? json_boolean(value) : json_null();
}

static json_t *agent(const struct inspection *found)
{
	bool asked = found->agent.was_asked;
	json_t *o = json_object();
	int bad = 0;

	bad |= value_put(o, "channel", json_boolean(found->agent.has_channel));
	bad |= value_put(o, "connected", json_boolean(found->agent.is_connected));
	bad |= value_put(o, "answers", known_boolean(found->agent.answers, asked));
	bad |= value_put(o, "version", value_text(found->agent.version));
	bad |= value_put(o, "can_freeze", known_boolean(found->agent.can_freeze, asked));
	bad |= value_put(o, "can_trim", known_boolean(found->agent.can_trim, asked));
	bad |= value_put(o, "frozen", known_boolean(found->agent.is_frozen, asked));
	bad |= value_put(o, "why_not", value_text(found->agent.why_not));
	bad |= value_put(o, "filesystems", filesystems(found));
	return value_finish(o, bad);
}

static json_t *whole(const struct inspection *found)
{
	json_t *o = json_object();
	int bad = 0;

	bad |= value_put(o, "schema", value_text("ccsnap.inspection/1"));
	bad |= value_put(o, "name", value_text(found->name));
	bad |= value_put(o, "uuid", value_text(found->uuid));
	bad |= value_put(o, "uri", value_text(found->uri));
	bad |= value_put(o, "state", value_text(found->state));
	bad |= value_put(o, "active", json_boolean(found->is_active));
	bad |= value_put(o, "architecture", value_text(found->architecture));
	bad |= value_put(o, "machine", value_text(found->machine));
	bad |= value_put(o, "firmware", value_text(found->firmware));
	bad |= value_put(o, "disks", disks(found));
	bad |= value_put(o, "agent", agent(found));
	bad |= value_put(o, "left", value_text(found->left));
	bad |= value_put(o, "would", value_text(found->would));
	bad |= value_put(o, "refusal", value_text(found->refusal));
	return value_finish(o, bad);
}

char *inspection_to_json(const struct inspection *found, struct err *err)
{
	return value_print(whole(found), JSON_INDENT(2), err);
}
