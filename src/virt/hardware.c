// SPDX-License-Identifier: Apache-2.0
#include "virt/hardware.h"

#include "base/err.h"
#include "base/str.h"
#include "virt/disk_source.h"
#include "virt/xml.h"

#include <stdlib.h>
#include <string.h>

enum { DISKS_MAX = 4096 }; /* libvirt's own limits end far below */

static int or_default(char **text, const char *fallback, struct err *err)
{
	if (!*text)
		*text = strdup(fallback);
	return *text ? 0 : err_nomem(err);
}

/* --- a disk --- */

static int read_source(const xmlNode *node, struct virt_disk *disk, struct err *err)
{
	struct disk_source source;

	if (disk_source_read(node, &source, err) < 0)
		return -1;
	disk->kind = source.kind;
	disk->source = source.text;
	disk->pool = source.pool;
	disk->volume = source.volume;
	return 0;
}

static int read_words(const xmlNode *node, struct virt_disk *disk, struct err *err)
{
	const xmlNode *target = xml_child(node, "target");

	if (xml_copy(target, "dev", &disk->target, err) < 0 ||
	    xml_copy(target, "bus", &disk->bus, err) < 0 ||
	    xml_copy(node, "device", &disk->device, err) < 0 ||
	    xml_copy(xml_child(node, "driver"), "type", &disk->format, err) < 0 ||
	    xml_copy(xml_child(node, "mirror"), "job", &disk->mirror, err) < 0)
		return -1;
	if (!disk->target)
		return err_set(err, ERR_FAILED, "the domain's XML has a disk without a target");
	if (xml_child(node, "mirror") && or_default(&disk->mirror, "copy", err) < 0)
		return -1;
	return or_default(&disk->device, "disk", err) < 0 ||
			       or_default(&disk->format, "raw", err) < 0
		       ? -1
		       : 0;
}

/* An empty <backingStore/> ends a chain; while the domain is off, most XML has none at all. */
static bool has_backing(const xmlNode *node)
{
	const xmlNode *below = xml_child(node, "backingStore");

	return below && xml_child(below, "source");
}

/* Old XML has <encryption> beside <source>, not in it. */
static bool is_encrypted(const xmlNode *node)
{
	return xml_child(node, "encryption") || xml_child(xml_child(node, "source"), "encryption");
}

static void read_marks(const xmlNode *node, struct virt_disk *disk)
{
	disk->is_shareable = xml_child(node, "shareable");
	disk->is_transient = xml_child(node, "transient");
	disk->has_backing = has_backing(node);
	disk->is_encrypted = is_encrypted(node);
	disk->is_part = xml_child(xml_child(node, "source"), "slices");
	disk->boot_order = xml_number(xml_child(node, "boot"), "order");
	disk->sector_size = xml_number(xml_child(node, "blockio"), "logical_block_size");
}

static int check_unique(const struct hardware *hw, const char *target, struct err *err)
{
	for (size_t i = 0; i < hw->disk_count; i++)
		if (str_equal(hw->disks[i].target, target))
			return err_set(err, ERR_FAILED,
				       "the domain's XML has two disks with the same target");
	return 0;
}

static void disk_free(struct virt_disk *disk)
{
	free(disk->target);
	free(disk->bus);
	free(disk->device);
	free(disk->kind);
	free(disk->source);
	free(disk->pool);
	free(disk->volume);
	free(disk->format);
	free(disk->mirror);
}

static int add_disk(struct hardware *hw, const xmlNode *node, struct err *err)
{
	struct virt_disk disk = { 0 };

	if (read_words(node, &disk, err) < 0 || check_unique(hw, disk.target, err) < 0 ||
	    read_source(node, &disk, err) < 0) {
		disk_free(&disk);
		return -1;
	}
	read_marks(node, &disk);
	hw->disks[hw->disk_count++] = disk;
	return 0;
}

static int read_disks(const xmlNode *devices, struct hardware *hw, struct err *err)
{
	size_t count = 0;

	for (const xmlNode *n = xml_child(devices, "disk"); n; n = xml_next(n))
		count++;
	if (count > DISKS_MAX)
		return err_set(err, ERR_FAILED, "the domain's XML has more than %d disks",
			       DISKS_MAX);
	hw->disks = calloc(count + 1, sizeof *hw->disks);
	if (!hw->disks)
		return err_nomem(err);
	for (const xmlNode *n = xml_child(devices, "disk"); n; n = xml_next(n))
		if (add_disk(hw, n, err) < 0)
			return -1;
	return 0;
}

/* --- how it boots --- */

static bool is_uefi(const xmlNode *os)
{
	return xml_says(os, "firmware", "efi") ||
	       xml_says(xml_child(os, "loader"), "type", "pflash");
}

static int read_machine(const xmlNode *os, struct hardware *hw, struct err *err)
{
	const xmlNode *type = xml_child(os, "type");

	if (xml_copy(type, "arch", &hw->architecture, err) < 0 ||
	    xml_copy(type, "machine", &hw->machine, err) < 0)
		return -1;
	return or_default(&hw->firmware, is_uefi(os) ? "uefi" : "bios", err);
}

static unsigned passed_boot_order(const xmlNode *devices)
{
	unsigned first = 0;

	for (const xmlNode *n = xml_child(devices, "hostdev"); n; n = xml_next(n)) {
		unsigned order = xml_number(xml_child(n, "boot"), "order");

		if (order > 0 && (first == 0 || order < first))
			first = order;
	}
	return first;
}

/* --- the agent's channel, QEMU's user --- */

static void read_agent(const xmlNode *devices, struct hardware *hw)
{
	for (const xmlNode *n = xml_child(devices, "channel"); n; n = xml_next(n)) {
		const xmlNode *target = xml_child(n, "target");

		if (!xml_says(target, "name", "org.qemu.guest_agent.0"))
			continue;
		hw->has_agent_channel = true;
		hw->agent_is_connected = xml_says(target, "state", "connected");
	}
}

static int read_label(const xmlNode *root, char **out, struct err *err)
{
	for (const xmlNode *n = xml_child(root, "seclabel"); n; n = xml_next(n))
		if (xml_says(n, "model", "dac"))
			return xml_copy_text(xml_child(n, "label"), out, err);
	return 0;
}

/* --- the whole --- */

static int read_domain(const xmlNode *root, struct hardware *hw, struct err *err)
{
	const xmlNode *os = xml_child(root, "os"), *devices = xml_child(root, "devices");

	if (read_machine(os, hw, err) < 0 || read_disks(devices, hw, err) < 0 ||
	    read_label(root, &hw->qemu_label, err) < 0)
		return -1;
	hw->boots_host_kernel = xml_child(os, "kernel");
	hw->passed_boot_order = passed_boot_order(devices);
	read_agent(devices, hw);
	return 0;
}

int hardware_parse(const char *xml, struct hardware *out, struct err *err)
{
	autoxml xmlDoc *doc = xml_read(xml, "domain", err);

	*out = (struct hardware){ 0 };
	if (!doc)
		return -1;
	if (read_domain(xmlDocGetRootElement(doc), out, err) < 0) {
		hardware_free(out);
		return -1;
	}
	return 0;
}

void hardware_free(struct hardware *hw)
{
	for (size_t i = 0; i < hw->disk_count; i++)
		disk_free(&hw->disks[i]);
	free(hw->disks);
	free(hw->architecture);
	free(hw->machine);
	free(hw->firmware);
	free(hw->qemu_label);
	*hw = (struct hardware){ 0 };
}
