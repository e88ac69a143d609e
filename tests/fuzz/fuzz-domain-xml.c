// SPDX-License-Identifier: Apache-2.0

/* Any bytes as XML from libvirt: of a domain, whose disks are looked at and which is written
 * into the XML of jobs; and of a backup job, which is read back after having been written.
 */
#include "base/err.h"
#include "virt/backup.h"
#include "virt/chain.h"
#include "virt/hardware.h"
#include "virt/job_xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(char *xml)
{
	struct backup_job job = { 0 };
	struct err err;

	if (xml && job_xml_read_backup(xml, &job, &err) < 0)
		abort();
	backup_job_free(&job);
	free(xml);
}

static void use_disk(const struct hardware *hw, const struct virt_disk *disk, const char *xml)
{
	const char *source = disk->source ? disk->source : "";
	const struct backup_request request = { disk->target, source, source, source };
	autochain struct chain chain = { 0 };
	struct err err;

	virt_disk_why_not_off(disk);
	hardware_root_disk(hw, disk->target, &err);
	read_back(job_xml_backup(&request, hw, &err));
	free(job_xml_overlay(disk->target, source, hw, &err));
	if (chain_read(xml, disk->target, &chain, &err) == 0)
		chain_find(&chain, source);
}

static void use_domain(const char *xml)
{
	autohardware struct hardware hw = { 0 };
	struct err err;

	if (hardware_parse(xml, &hw, &err) < 0)
		return;
	hardware_root_disk(&hw, NULL, &err);
	hardware_root_disk(&hw, xml, &err);
	for (size_t i = 0; i < hw.disk_count && i < 4; i++)
		use_disk(&hw, &hw.disks[i], xml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *xml = strndup((const char *)data, size);
	struct backup_job job = { 0 };
	struct err err;

	if (!xml)
		return 0;
	use_domain(xml);
	job_xml_read_backup(xml, &job, &err);
	backup_job_free(&job);
	free(xml);
	return 0;
}
