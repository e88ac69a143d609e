// SPDX-License-Identifier: Apache-2.0
#include "tree/tree_inner.h"

#include "base/err.h"
#include "base/size.h"
#include "ext4/ext4.h"
#include "tree/gpt.h"

#include <string.h>

/* Free in the image's root filesystem unless asked otherwise: room to boot, to
 * install a few packages, to work.
 */
#define FREE_DEFAULT (1500 * MIB)

/* A separate /boot needs room for another kernel or two. */
#define BOOT_FREE (256 * MIB)

static struct ext4_config ext4_config_of(struct tree *t, uint32_t root,
					 const struct volume_names *names)
{
	struct ext4_config cfg = {
		.model = &t->model,
		.root = root,
		.label = names->label,
		.time = t->edit.time,
		.account = t->cfg.account,
	};

	memcpy(cfg.uuid, names->uuid, sizeof cfg.uuid);
	return cfg;
}

static int build_boot(struct tree *t, struct err *err)
{
	struct ext4_config cfg = ext4_config_of(t, t->totals.boot_root, &t->names.boot);

	if (t->totals.boot_root == MODEL_NONE)
		return 0;
	cfg.free_bytes = BOOT_FREE;
	cfg.step = MIB;
	t->boot = ext4_build(&cfg, err);
	return t->boot ? 0 : -1;
}

static struct partitions_config partitions_config_of(struct tree *t)
{
	const struct bootable *b = &t->bootable;

	return (struct partitions_config){
		.sector_size = t->cfg.sector_size,
		.names = &t->names,
		.root_type = !b->bios && !b->uefi    ? gpt_type_linux
			     : b->boot.machine->bios ? gpt_type_root_x86_64
						     : gpt_type_root_arm64,
		.boot_code = b->bios ? b->boot_code : NULL,
		.core = b->core.bytes,
		.core_len = b->core.len,
		.esp_fd = b->esp_fd,
		.esp_size = b->esp_size,
		.boot = t->boot,
		.root = t->root,
	};
}

/* A guess at what the root filesystem needs, on the safe side as a rule. */
static uint64_t guess_size(const struct tree *t, uint64_t free_bytes)
{
	uint64_t data = t->totals.data_bytes, entries = t->model.node_count;

	return data + data / 32 + free_bytes + free_bytes / 32 + entries * 1024 + 96 * MIB;
}

/* In a disk of the size that was asked for. */
static int build_sized(struct tree *t, uint64_t around, struct ext4_config *cfg, struct err *err)
{
	uint64_t disk = round_down(t->cfg.disk_size, MIB);

	cfg->min_size = disk > around ? disk - around : MIB;
	t->root = ext4_build(cfg, err);
	if (!t->root)
		return -1;
	if (around + ext4_size(t->root) > disk)
		return err_set(
			err, ERR_REFUSED,
			"a disk of %s is too small for %s: with %s of free space "
			"(--free-space) it takes %lluM",
			size_format(t->cfg.disk_size).text, t->source.name,
			size_format(cfg->free_bytes).text,
			(unsigned long long)(round_up(around + ext4_size(t->root), MIB) / MIB));
	return 0;
}

/* In a disk of whole GiB, since that is what clouds count in. */
static int build_rounded(struct tree *t, uint64_t around, struct ext4_config *cfg, struct err *err)
{
	uint64_t need = guess_size(t, cfg->free_bytes);

	do {
		cfg->min_size = round_up(around + need, GIB) - around;
		ext4_close(t->root);
		t->root = ext4_build(cfg, err);
		if (!t->root)
			return -1;
		need = ext4_size(t->root);
	} while (need > cfg->min_size);
	return 0;
}

static int build_root(struct tree *t, struct err *err)
{
	const struct partitions_config parts = partitions_config_of(t);
	struct ext4_config cfg = ext4_config_of(t, MODEL_ROOT, &t->names.root);
	uint64_t around = partitions_around(&parts);

	cfg.free_bytes = t->cfg.free_bytes == UINT64_MAX ? FREE_DEFAULT : t->cfg.free_bytes;
	return t->cfg.disk_size ? build_sized(t, around, &cfg, err)
				: build_rounded(t, around, &cfg, err);
}

int tree_lay_out(struct tree *t, struct err *err)
{
	struct partitions_config parts;

	if (model_index_names(&t->model, err) < 0 || build_boot(t, err) < 0 ||
	    build_root(t, err) < 0)
		return -1;
	parts = partitions_config_of(t);
	if (partitions_make(&parts, &t->partitions, err) < 0)
		return -1;
	t->source.size = t->partitions.disk_size;
	t->source.sector_size = t->cfg.sector_size;
	return 0;
}
