// SPDX-License-Identifier: Apache-2.0
#include "properties.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "base/uuid.h"
#include "config.h"
#include "dest/dest.h"
#include "dest/provenance.h"
#include "instance.h"
#include "plan.h"
#include "tree/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a list ------------------------------------------------------------------------ */

static size_t key_length(const char *pair)
{
	return strcspn(pair, "=");
}

/* The place of key, or of the NULL at the end. */
static char **place_of(char **list, const char *key, size_t len)
{
	while (*list && (key_length(*list) != len || strncmp(*list, key, len) != 0))
		list++;
	return list;
}

static int append(char ***list, char *pair, struct err *err)
{
	size_t len = 0;
	char **longer;

	while (*list && (*list)[len])
		len++;
	longer = reallocarray(*list, len + 2, sizeof *longer);
	if (!longer)
		return err_nomem(err);
	longer[len] = pair;
	longer[len + 1] = NULL;
	*list = longer;
	return 0;
}

int properties_set(char ***list, const char *key, const char *value, struct err *err)
{
	autofree char *pair = str_format("%s=%s", key, value);
	char **place = *list ? place_of(*list, key, strlen(key)) : NULL;

	if (!pair)
		return err_nomem(err);
	if (place && *place) {
		free(*place);
		*place = steal(&pair);
		return 0;
	}
	if (append(list, pair, err) < 0)
		return -1;
	steal(&pair);
	return 0;
}

static void remove_key(char **list, const char *key, size_t len)
{
	char **place = list ? place_of(list, key, len) : NULL;

	if (!place)
		return;
	free(*place);
	for (; *place; place++)
		place[0] = place[1];
}

/* --- what is found in a tree -------------------------------------------------------- */

/* What it says may be any bytes.  Control characters are taken out; false for what is no
 * UTF-8, and for characters of 4 bytes, which image services refuse: what nobody asked
 * for must not stop the run.
 */
static bool make_fit(char *text)
{
	char *to = text;
	size_t n;

	for (; *text; text += n) {
		n = str_utf8_len(text);
		if (n == 0 || n == 4)
			return false;
		if (str_is_control(text))
			continue;
		memmove(to, text, n);
		to += n;
	}
	*to = '\0';
	return true;
}

/* value NULL: not known. */
static int add_found(char ***list, const char *key, const char *value, struct err *err)
{
	autofree char *fit = value ? strdup(value) : NULL;

	if (value && !fit)
		return err_nomem(err);
	if (fit && !make_fit(fit)) {
		log_warn("the image gets no property %s: it has characters that not every "
			 "image service takes",
			 key);
		return 0;
	}
	return fit && *fit ? properties_set(list, key, fit, err) : 0;
}

/* NULL: it boots by both, or not at all. */
static const char *firmware_of(const struct tree_facts *facts)
{
	if (facts->boots_bios == facts->boots_uefi)
		return NULL;
	return facts->boots_uefi ? "uefi" : "bios";
}

static int add_system(char ***list, const struct tree_facts *facts, struct err *err)
{
	return add_found(list, "os_distro", facts->os_id, err) < 0 ||
			       add_found(list, "os_version", facts->os_version, err) < 0 ||
			       add_found(list, "architecture", facts->machine, err) < 0 ||
			       add_found(list, "hw_firmware_type", firmware_of(facts), err) < 0
		       ? -1
		       : 0;
}

static int add_provenance(char ***list, const struct tree_facts *facts, struct err *err)
{
	autostrings char **found = NULL;
	struct err why = { 0 };

	if (!facts->provenance)
		return 0;
	found = provenance_properties(facts->provenance, facts->provenance_len, &why);
	if (!found)
		log_warn("the image gets no provenance: /opt/chameleon/provenance.json: %s",
			 why.text);
	for (char **p = found; p && *p; p++) {
		size_t len = key_length(*p);

		(*p)[len] = '\0';
		if (add_found(list, *p, *p + len + 1, err) < 0)
			return -1;
	}
	return 0;
}

/* --- what is known of a domain -------------------------------------------------------- */

/* Of the disk, in the image service's words, where they say all that is needed: a SCSI disk
 * has a controller, too, that has to be the right one.
 */
static const char *disk_bus_of(const struct instance_facts *facts)
{
	static const char *const known[] = { "virtio", "sata", "ide", "usb" };

	for (size_t i = 0; facts->bus && i < sizeof known / sizeof *known; i++)
		if (str_equal(facts->bus, known[i]))
			return known[i];
	return NULL;
}

static int add_hardware(char ***list, const struct instance_facts *facts, struct err *err)
{
	return add_found(list, "architecture", facts->architecture, err) < 0 ||
			       add_found(list, "hw_firmware_type", facts->firmware, err) < 0 ||
			       add_found(list, "hw_disk_bus", disk_bus_of(facts), err) < 0
		       ? -1
		       : 0;
}

/* --- what is known besides ----------------------------------------------------------- */

static int source_id(const struct plan *plan, const struct instance_facts *instance,
		     struct uuid_text *out, struct err *err)
{
	if (!instance)
		return properties_source_id(plan->source.path, out, err);
	properties_domain_id(instance->uuid, out);
	return 0;
}

static int add_own(char ***list, const struct plan *plan, const struct instance_facts *instance,
		   struct err *err)
{
	struct uuid_text source;

	if (source_id(plan, instance, &source, err) < 0 ||
	    properties_set(list, PROPERTY_VERSION, PACKAGE_VERSION, err) < 0)
		return -1;
	if (plan->series && properties_set(list, PROPERTY_SERIES, plan->series, err) < 0)
		return -1;
	return properties_set(list, PROPERTY_SOURCE, source.text, err);
}

int properties_set_users(char ***list, char *const *pairs, struct err *err)
{
	for (; pairs && *pairs; pairs++) {
		size_t len = key_length(*pairs);
		autofree char *key = strndup(*pairs, len);
		const char *value = *pairs + len + ((*pairs)[len] == '=');

		if (!key)
			return err_nomem(err);
		if (str_starts(key, PROPERTY_PREFIX))
			return err_set(err, ERR_USAGE,
				       "--property: %s: what begins with " PROPERTY_PREFIX
				       " is ccsnap's own; use another name",
				       key);
		if (!*value)
			remove_key(*list, key, len);
		else if (properties_set(list, key, value, err) < 0)
			return -1;
	}
	return 0;
}

char **properties_of(const struct plan *plan, const struct tree_facts *tree,
		     const struct instance_facts *instance, struct err *err)
{
	autostrings char **list = calloc(1, sizeof *list);

	if (!list) {
		err_nomem(err);
		return NULL;
	}
	if (tree && add_system(&list, tree, err) < 0)
		return NULL;
	if (instance && add_hardware(&list, instance, err) < 0)
		return NULL;
	if (add_own(&list, plan, instance, err) < 0)
		return NULL;
	if (tree && add_provenance(&list, tree, err) < 0)
		return NULL;
	return properties_set_users(&list, plan->properties, err) < 0 ? NULL : steal(&list);
}

/* --- the source ----------------------------------------------------------------------- */

int properties_source_id(const char *path, struct uuid_text *out, struct err *err)
{
	autofree char *real = realpath(path, NULL);

	if (!real)
		return err_errno(err, ERR_FAILED, "cannot find %s", path);
	return uuid_derive_here(real, "image source", out, err);
}

void properties_domain_id(const char *uuid, struct uuid_text *out)
{
	uint8_t id[16];

	uuid_derive(uuid, strlen(uuid), "image source domain", id);
	uuid_format(id, out->text);
}
