// SPDX-License-Identifier: Apache-2.0
#include "tree/tree_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/patience.h"
#include "base/size.h"
#include "ext4/ext4.h"
#include "source/extent.h"
#include "tree/emit.h"
#include "tree/settle.h"
#include "walk/exclude.h"
#include "walk/mounts.h"
#include "walk/reach.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a settle pass may read once more, besides a quarter of all. */
#define SETTLE_BYTES GIB

static struct tree *tree_of(struct source *src)
{
	return (struct tree *)src;
}

/* A file's holes are told by the file. */
static int file_extents(const struct region *r, uint64_t at, uint64_t end, struct extent_list *out,
			struct err *err)
{
	while (at < end) {
		off_t data = lseek(r->fd, (off_t)(at - r->offset), SEEK_DATA);
		uint64_t start = data < 0 ? end : MIN(r->offset + (uint64_t)data, end);
		off_t hole = data < 0 ? -1 : lseek(r->fd, data, SEEK_HOLE);
		uint64_t stop = hole < 0 ? end : MIN(r->offset + (uint64_t)hole, end);

		if (extent_list_add(out, at, start - at, true, err) < 0 ||
		    extent_list_add(out, start, stop - start, false, err) < 0)
			return -1;
		at = stop;
	}
	return 0;
}

static int ext4_extents(const struct region *r, uint64_t at, uint64_t end, struct extent_list *out,
			struct err *err)
{
	while (at < end) {
		struct ext4_piece piece = ext4_piece(r->fs, at - r->offset, end - at);

		if (extent_list_add(out, at, piece.length, piece.kind == EXT4_ZERO, err) < 0)
			return -1;
		at += piece.length;
	}
	return 0;
}

static int region_extents(const struct region *r, uint64_t at, uint64_t end,
			  struct extent_list *out, struct err *err)
{
	switch (r->kind) {
	case REGION_FILE:
		return file_extents(r, at, end, out, err);
	case REGION_EXT4:
		return ext4_extents(r, at, end, out, err);
	default:
		return extent_list_add(out, at, end - at, false, err);
	}
}

static int tree_extents(struct source *src, uint64_t offset, uint64_t length,
			struct extent_list *out, struct err *err)
{
	const struct partitions *parts = &tree_of(src)->partitions;
	uint64_t at = offset, end = offset + length;

	for (size_t i = 0; i < parts->count; i++) {
		const struct region *r = &parts->at[i];
		uint64_t start = MAX(r->offset, at), stop = MIN(r->offset + r->length, end);

		if (start >= stop)
			continue;
		if (extent_list_add(out, at, start - at, true, err) < 0 ||
		    region_extents(r, start, stop, out, err) < 0)
			return -1;
		at = stop;
	}
	return extent_list_add(out, at, end - at, true, err);
}

static int read_ext4(struct tree *t, struct ext4 *fs, uint8_t *buf, size_t len, uint64_t offset,
		     struct err *err)
{
	while (len > 0) {
		struct ext4_piece piece = ext4_piece(fs, offset, len);
		size_t step = (size_t)piece.length;

		if (piece.kind == EXT4_ZERO)
			memset(buf, 0, step);
		else if (piece.kind == EXT4_META)
			ext4_copy_meta(fs, buf, step, offset);
		else if (emit_read(t->emit, piece.node, buf, step, piece.offset, err) < 0)
			return -1;
		buf += step;
		offset += step;
		len -= step;
	}
	return 0;
}

static int read_region(struct tree *t, const struct region *r, uint8_t *buf, size_t len,
		       uint64_t offset, struct err *err)
{
	switch (r->kind) {
	case REGION_MEMORY:
		memcpy(buf, r->bytes + offset, len);
		return 0;
	case REGION_FILE:
		if (io_pread(r->fd, buf, len, offset, NULL) != (ssize_t)len)
			return err_errno(err, ERR_FAILED, "cannot read the EFI system partition");
		return 0;
	default:
		return read_ext4(t, r->fs, buf, len, offset, err);
	}
}

static int tree_read_at(struct source *src, void *buf, size_t len, uint64_t offset, struct err *err)
{
	struct tree *t = tree_of(src);
	uint64_t end = offset + len;

	memset(buf, 0, len);
	for (size_t i = 0; i < t->partitions.count; i++) {
		const struct region *r = &t->partitions.at[i];
		uint64_t start = MAX(r->offset, offset), stop = MIN(r->offset + r->length, end);

		if (start < stop && read_region(t, r, (uint8_t *)buf + (start - offset),
						(size_t)(stop - start), start - r->offset, err) < 0)
			return -1;
	}
	return 0;
}

static int tree_settle(struct source *src, struct extent_list *again, struct err *err)
{
	return settle_round(tree_of(src)->settle, again, err);
}

static void tree_close(struct source *src)
{
	struct tree *t = tree_of(src);

	settle_free(t->settle);
	emit_free(t->emit);
	partitions_free(&t->partitions);
	ext4_close(t->root);
	ext4_close(t->boot);
	bootable_free(&t->bootable);
	description_free(&t->description);
	reach_free(t->reach);
	model_free(&t->model);
	mounts_free(t->mounts);
	excludes_free(t->excludes);
	mounts_free_swaps(t->swaps, t->swap_count);
	free(t->own);
	cleanup_close(&t->root_fd);
	free(src->name);
	free(t);
}

static const struct source_ops tree_ops = {
	.name = "tree",
	.extents = tree_extents,
	.read_at = tree_read_at,
	.settle = tree_settle,
	.close = tree_close,
};

const struct tree_facts *tree_facts(const struct source *src)
{
	return &((const struct tree *)src)->facts;
}

static uint64_t base_of(const struct tree *t, const struct ext4 *fs)
{
	for (size_t i = 0; i < t->partitions.count; i++)
		if (t->partitions.at[i].kind == REGION_EXT4 && t->partitions.at[i].fs == fs)
			return t->partitions.at[i].offset;
	return 0;
}

static int make_readers(struct tree *t, struct err *err)
{
	const struct emit_config emit = {
		.model = &t->model,
		.reach = t->reach,
		.open_files = 2 * t->cfg.threads + 2,
		.keep_going = t->walk.keep_going,
	};
	struct settle_config settle = {
		.model = &t->model,
		.reach = t->reach,
		.walk = &t->walk,
		.account = t->cfg.account,
		.budget = SETTLE_BYTES + t->totals.data_bytes / 4,
	};

	t->emit = emit_new(&emit, err);
	if (!t->emit)
		return -1;
	settle.emit = t->emit;
	settle.volumes[settle.volume_count++] =
		(struct settle_volume){ t->root, MODEL_ROOT, base_of(t, t->root) };
	if (t->boot)
		settle.volumes[settle.volume_count++] =
			(struct settle_volume){ t->boot, t->totals.boot_root, base_of(t, t->boot) };
	t->settle = settle_new(&settle, err);
	return t->settle ? 0 : -1;
}

static void tell(struct tree *t)
{
	const struct walk_totals *w = &t->totals;
	const struct boot *boot = &t->bootable.boot;
	const struct description *d = &t->description;

	t->facts = (struct tree_facts){
		.files = w->files,
		.directories = w->directories,
		.symlinks = w->symlinks,
		.devices = w->devices,
		.fifos = w->fifos,
		.sockets = w->sockets,
		.hard_links = w->hard_links,
		.data_bytes = w->data_bytes,
		.free_bytes = ext4_free_bytes(t->root),
		.root_uuid = t->names.root.uuid_text,
		.root_label = t->names.root.label,
		.uuid_origin = t->names.origin,
		.kernel = boot->version ? boot->version : boot->kernel,
		.boots_bios = t->bootable.bios,
		.boots_uefi = t->bootable.uefi,
		.os_id = d->os_id,
		.os_version = d->os_version,
		.machine = boot->machine ? boot->machine->name : d->machine,
		.provenance = d->provenance,
		.provenance_len = d->provenance_len,
	};
	t->facts.exclude_count = excludes_uses(t->excludes, &t->facts.excludes);
}

static int plan_tree(void *ctx, struct err *err)
{
	struct tree *t = ctx;

	if (tree_look(t, err) < 0 || tree_prepare(t, err) < 0 || tree_lay_out(t, err) < 0 ||
	    make_readers(t, err) < 0)
		return -1;
	tell(t);
	return 0;
}

static struct tree *tree_new(const struct tree_config *cfg, struct err *err)
{
	struct tree *t = calloc(1, sizeof *t);

	if (!t) {
		err_nomem(err);
		return NULL;
	}
	t->source.ops = &tree_ops;
	t->cfg = *cfg;
	if (!t->cfg.sector_size)
		t->cfg.sector_size = 512;
	t->root_fd = -1;
	bootable_init(&t->bootable);
	model_init(&t->model);
	return t;
}

struct source *tree_open(const struct tree_config *cfg, struct err *err)
{
	struct patience *opener = patience_begin(err);
	struct tree *t = opener ? tree_new(cfg, err) : NULL;

	if (t && patience_run(opener, plan_tree, t, cfg->stall_seconds, &t->pulse, cfg->path,
			      err) == 0) {
		t->source.opener = opener;
		return &t->source;
	}
	if (t && !patience_is_lost(opener))
		tree_close(&t->source);
	patience_end(opener);
	return NULL;
}
