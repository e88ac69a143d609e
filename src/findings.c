// SPDX-License-Identifier: Apache-2.0
#include "findings.h"

#include "instance.h"
#include "pipeline/pipeline.h"
#include "report/report.h"
#include "source/source.h"
#include "tree/tree.h"

void findings_of_source(struct report *r, const struct source *source)
{
	r->source.size_bytes = source->size - source->padding;
	r->source.padding_bytes = source->padding;
	r->source.logical_sector_size = source->sector_size;
}

void findings_of_tree(struct report *r, const struct tree_facts *facts)
{
	r->source.consistency = "file-by-file";
	r->tree.planned = true;
	r->tree.files = facts->files;
	r->tree.directories = facts->directories;
	r->tree.symlinks = facts->symlinks;
	r->tree.devices = facts->devices;
	r->tree.fifos = facts->fifos;
	r->tree.sockets = facts->sockets;
	r->tree.hard_links = facts->hard_links;
	r->tree.data_bytes = facts->data_bytes;
	r->tree.free_bytes = facts->free_bytes;
	r->tree.uuid = facts->root_uuid;
	r->tree.uuid_origin = facts->uuid_origin;
	r->tree.label = facts->root_label;
	r->tree.kernel = facts->kernel;
	r->tree.boots_bios = facts->boots_bios;
	r->tree.boots_uefi = facts->boots_uefi;
}

void findings_of_instance(struct report *r, const struct instance_facts *facts)
{
	r->source.path = facts->path;
	r->source.format = facts->format;
	r->source.size_bytes = facts->size;
	r->source.logical_sector_size = facts->sector_size;
	r->source.domain.name = facts->name;
	r->source.domain.uuid = facts->uuid;
	r->source.domain.uri = facts->uri;
	r->source.domain.state = facts->state;
	r->source.domain.disk = facts->disk;
}

void findings_of_hold(struct report *r, const struct instance *instance)
{
	const struct quiesce_outcome *o = instance_outcome(instance);

	if (!o)
		return;
	r->quiesce.method = o->method;
	r->quiesce.quiesced = o->quiesced;
	r->quiesce.trimmed = o->trimmed;
	r->quiesce.filesystems = o->filesystems;
	r->quiesce.frozen_ms = o->frozen_ms;
	r->quiesce.thawed_by = o->thawed_by;
	r->quiesce.reason = *o->why_not ? o->why_not : NULL;
	r->quiesce.scratch_bytes = instance_scratch_used(instance);
}

void findings_of_capture(struct report *r, uint64_t size, const struct pipeline_stats *stats)
{
	r->capture.ran = true;
	r->capture.virtual_size_bytes = size;
	r->capture.bytes_read = stats->read_bytes;
	r->capture.data_bytes = stats->data_bytes;
	r->capture.zero_bytes = size - stats->data_bytes;
	r->capture.skipped_bytes = stats->skipped_bytes;
}
