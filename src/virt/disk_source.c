// SPDX-License-Identifier: Apache-2.0
#include "virt/disk_source.h"

#include "base/err.h"
#include "base/str.h"
#include "virt/xml.h"

#include <stdlib.h>
#include <string.h>

/* "rbd:pool/image"; what has no name is told by its first host. */
static int network_text(const xmlNode *source, struct disk_source *out, struct err *err)
{
	autofree char *protocol = NULL, *name = NULL, *host = NULL;

	if (xml_copy(source, "protocol", &protocol, err) < 0 ||
	    xml_copy(source, "name", &name, err) < 0 ||
	    xml_copy(xml_child(source, "host"), "name", &host, err) < 0)
		return -1;
	out->text = str_format("%s:%s", protocol ? protocol : "", name ? name : host ? host : "");
	return out->text ? 0 : err_nomem(err);
}

static int volume_text(const xmlNode *source, struct disk_source *out, struct err *err)
{
	if (xml_copy(source, "pool", &out->pool, err) < 0 ||
	    xml_copy(source, "volume", &out->volume, err) < 0)
		return -1;
	if (!out->pool || !out->volume)
		return 0;
	out->text = str_format("%s/%s", out->pool, out->volume);
	return out->text ? 0 : err_nomem(err);
}

static int nvme_text(const xmlNode *source, struct disk_source *out, struct err *err)
{
	const xmlNode *pci = xml_child(source, "address");

	out->text = str_format("%04x:%02x:%02x.%x namespace %u", xml_number(pci, "domain"),
			       xml_number(pci, "bus"), xml_number(pci, "slot"),
			       xml_number(pci, "function"), xml_number(source, "namespace"));
	return out->text ? 0 : err_nomem(err);
}

static const struct kind {
	const char *name;
	const char *attribute; /* that has the path */
	int (*text)(const xmlNode *source, struct disk_source *out, struct err *err);
	const char *why_not; /* NULL: QEMU's block layer reads it */
} kinds[] = {
	{ .name = "file", .attribute = "file" },
	{ .name = "block", .attribute = "dev" },
	{ .name = "network", .text = network_text },
	{ .name = "volume", .text = volume_text },
	{ .name = "nvme", .text = nvme_text },
	{ .name = "dir",
	  .attribute = "dir",
	  .why_not = "it is a directory that QEMU shows as a FAT disk" },
	{ .name = "vhostuser",
	  .attribute = "path",
	  .why_not = "another program (vhost-user) serves it past QEMU" },
	{ .name = "vhostvdpa",
	  .attribute = "dev",
	  .why_not = "hardware (vDPA) serves it past QEMU" },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (str_equal(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static int read_text(const xmlNode *source, struct disk_source *out, struct err *err)
{
	const struct kind *kind = find_kind(out->kind);

	if (!source || !kind)
		return 0;
	return kind->text ? kind->text(source, out, err)
			  : xml_copy(source, kind->attribute, &out->text, err);
}

static int read_kind(const xmlNode *holder, struct disk_source *out, struct err *err)
{
	if (xml_copy(holder, "type", &out->kind, err) < 0)
		return -1;
	if (!out->kind)
		out->kind = strdup("file");
	return out->kind ? 0 : err_nomem(err);
}

int disk_source_read(const xmlNode *holder, struct disk_source *out, struct err *err)
{
	*out = (struct disk_source){ 0 };
	if (read_kind(holder, out, err) < 0 ||
	    read_text(xml_child(holder, "source"), out, err) < 0) {
		disk_source_free(out);
		return -1;
	}
	return 0;
}

void disk_source_free(struct disk_source *s)
{
	free(s->kind);
	free(s->text);
	free(s->pool);
	free(s->volume);
	*s = (struct disk_source){ 0 };
}

const char *disk_source_why_not(const char *name)
{
	const struct kind *kind = find_kind(name);

	return kind ? kind->why_not : "its kind of source is not known";
}
