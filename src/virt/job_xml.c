// SPDX-License-Identifier: Apache-2.0
#include "virt/job_xml.h"

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "virt/backup.h"
#include "virt/hardware.h"
#include "virt/xml.h"

#include <string.h>

/* --- writing --- */

static bool is_sayable(const char *s)
{
	size_t n = 1;

	while (*s && n > 0 && !str_is_control(s)) {
		n = str_utf8_len(s);
		s += n;
	}
	return *s == '\0';
}

static int check_sayable(const char *const *words, size_t count, struct err *err)
{
	char shown[300];

	for (size_t i = 0; i < count; i++)
		if (!is_sayable(words[i]))
			return err_set(err, ERR_REFUSED,
				       "%s: libvirt takes only names in UTF-8 without control "
				       "characters",
				       log_printable(shown, sizeof shown, words[i]));
	return 0;
}

/* libxml2 tells of lack of memory by NULL, and takes NULL for a parent: looked at once, in the
 * end.
 */
static xmlNode *add(xmlNode *parent, const char *name)
{
	return parent ? xmlNewChild(parent, NULL, (const xmlChar *)name, NULL) : NULL;
}

static bool set(xmlNode *node, const char *attribute, const char *value)
{
	return node && xmlNewProp(node, (const xmlChar *)attribute, (const xmlChar *)value);
}

/* An element with one attribute, of which much of this XML consists. */
static bool add_with(xmlNode *parent, const char *name, const char *attribute, const char *value)
{
	return set(add(parent, name), attribute, value);
}

static xmlNode *new_root(xmlDoc *doc, const char *name)
{
	xmlNode *root = doc ? xmlNewNode(NULL, (const xmlChar *)name) : NULL;

	if (root)
		xmlDocSetRootElement(doc, root);
	return root;
}

static char *to_text(const xmlDoc *doc, struct err *err)
{
	xmlChar *text = NULL;
	char *copy;
	int len;

	xmlDocDumpMemoryEnc((xmlDoc *)doc, &text, &len, "UTF-8");
	copy = text ? strdup((const char *)text) : NULL;
	xmlFree(text);
	if (!copy)
		err_nomem(err);
	return copy;
}

/* Every other disk is told to keep out, since what happens to one that is not named differs
 * between the two kinds of job.
 */
static bool add_others(xmlNode *disks, const char *target, const struct hardware *hw,
		       const char *attribute)
{
	for (size_t i = 0; i < hw->disk_count; i++) {
		xmlNode *disk;

		if (str_equal(hw->disks[i].target, target))
			continue;
		disk = add(disks, "disk");
		if (!set(disk, "name", hw->disks[i].target) || !set(disk, attribute, "no"))
			return false;
	}
	return true;
}

static bool add_server(xmlNode *root, const char *socket)
{
	xmlNode *server = add(root, "server");

	return set(server, "transport", "unix") && set(server, "socket", socket);
}

static bool add_backup_disk(xmlNode *disks, const struct backup_request *request)
{
	xmlNode *disk = add(disks, "disk");

	return set(disk, "name", request->target) && set(disk, "backup", "yes") &&
	       set(disk, "type", "file") && set(disk, "exportname", request->export_name) &&
	       add_with(disk, "driver", "type", "qcow2") &&
	       add_with(disk, "scratch", "file", request->scratch);
}

static bool fill_backup(xmlNode *root, const struct backup_request *request,
			const struct hardware *hw)
{
	xmlNode *disks;

	if (!set(root, "mode", "pull") || !add_server(root, request->socket))
		return false;
	disks = add(root, "disks");
	return add_backup_disk(disks, request) && add_others(disks, request->target, hw, "backup");
}

char *job_xml_backup(const struct backup_request *request, const struct hardware *hw,
		     struct err *err)
{
	const char *const words[] = { request->target, request->export_name, request->socket,
				      request->scratch };
	autoxml xmlDoc *doc = NULL;

	if (check_sayable(words, sizeof words / sizeof words[0], err) < 0)
		return NULL;
	doc = xmlNewDoc((const xmlChar *)"1.0");
	if (!fill_backup(new_root(doc, "domainbackup"), request, hw)) {
		err_nomem(err);
		return NULL;
	}
	return to_text(doc, err);
}

static bool add_overlay_disk(xmlNode *disks, const char *target, const char *path)
{
	xmlNode *disk = add(disks, "disk");

	return set(disk, "name", target) && set(disk, "snapshot", "external") &&
	       set(disk, "type", "file") && add_with(disk, "driver", "type", "qcow2") &&
	       add_with(disk, "source", "file", path);
}

static bool fill_overlay(xmlNode *root, const char *target, const char *path,
			 const struct hardware *hw)
{
	xmlNode *disks;

	if (!add_with(root, "memory", "snapshot", "no"))
		return false;
	disks = add(root, "disks");
	return add_overlay_disk(disks, target, path) && add_others(disks, target, hw, "snapshot");
}

char *job_xml_overlay(const char *target, const char *path, const struct hardware *hw,
		      struct err *err)
{
	const char *const words[] = { target, path };
	autoxml xmlDoc *doc = NULL;

	if (check_sayable(words, sizeof words / sizeof words[0], err) < 0)
		return NULL;
	doc = xmlNewDoc((const xmlChar *)"1.0");
	if (!fill_overlay(new_root(doc, "domainsnapshot"), target, path, hw)) {
		err_nomem(err);
		return NULL;
	}
	return to_text(doc, err);
}

/* --- a backup's XML --- */

static const xmlNode *first_taking_part(const xmlNode *root)
{
	const xmlNode *disk = xml_child(xml_child(root, "disks"), "disk");

	while (disk && xml_says(disk, "backup", "no"))
		disk = xml_next(disk);
	return disk;
}

int job_xml_read_backup(const char *xml, struct backup_job *out, struct err *err)
{
	autoxml xmlDoc *doc = xml_read(xml, "domainbackup", err);
	const xmlNode *root, *disk;

	if (!doc)
		return -1;
	root = xmlDocGetRootElement(doc);
	disk = first_taking_part(root);
	if (xml_copy(disk, "name", &out->target, err) < 0 ||
	    xml_copy(xml_child(disk, "scratch"), "file", &out->scratch, err) < 0)
		return -1;
	return xml_copy(xml_child(root, "server"), "socket", &out->socket, err);
}
