// SPDX-License-Identifier: Apache-2.0
#include "tree/partitions.h"

#include "base/err.h"
#include "base/size.h"
#include "base/uuid.h"
#include "ext4/ext4.h"
#include "system/names.h"
#include "tree/gpt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What partitions begin and end at multiples of. */
#define ALIGN MIB

#define BIOS_BOOT_SIZE MIB

/* Partition numbers, as cloud images have them. */
enum { NUMBER_ROOT = 1, NUMBER_BIOS_BOOT = 14, NUMBER_ESP, NUMBER_BOOT };

static_assert(PARTITIONS_BIOS_BOOT_LBA * 512 == ALIGN, "BIOS boot is the first partition");

static uint64_t boot_size(const struct partitions_config *cfg)
{
	return cfg->boot ? round_up(ext4_size(cfg->boot), ALIGN) : 0;
}

static uint64_t esp_size(const struct partitions_config *cfg)
{
	return round_up(cfg->esp_size, ALIGN);
}

static uint64_t bios_size(const struct partitions_config *cfg)
{
	return cfg->boot_code ? BIOS_BOOT_SIZE : 0;
}

uint64_t partitions_around(const struct partitions_config *cfg)
{
	return ALIGN + bios_size(cfg) + esp_size(cfg) + boot_size(cfg) + ALIGN;
}

struct table {
	struct gpt_partition at[4];
	size_t count;
	uint64_t end; /* of the last one */
};

static void add_partition(struct table *t, unsigned number, const char *type, const char *name,
			  const uint8_t guid[16], uint64_t length)
{
	struct gpt_partition *p = &t->at[t->count++];

	*p = (struct gpt_partition){
		.number = number, .type = type, .name = name, .offset = t->end, .length = length
	};
	memcpy(p->guid, guid, sizeof p->guid);
	t->end += length;
}

static void add_region(struct partitions *out, struct region region)
{
	if (region.length > 0)
		out->at[out->count++] = region;
}

static void place(const struct partitions_config *cfg, struct table *t, struct partitions *out)
{
	const struct names *names = cfg->names;
	uint8_t bios_guid[16];

	t->end = ALIGN;
	if (cfg->boot_code) {
		uuid_derive(names->root.uuid, 16, "BIOS boot partition", bios_guid);
		add_region(out, (struct region){ t->end, cfg->core_len, REGION_MEMORY,
						 .bytes = cfg->core });
		add_partition(t, NUMBER_BIOS_BOOT, gpt_type_bios_boot, "BIOS boot", bios_guid,
			      BIOS_BOOT_SIZE);
	}
	if (cfg->esp_size) {
		add_region(out, (struct region){ t->end, cfg->esp_fd < 0 ? 0 : cfg->esp_size,
						 REGION_FILE, .fd = cfg->esp_fd });
		add_partition(t, NUMBER_ESP, gpt_type_esp, "EFI system", names->esp.partuuid,
			      esp_size(cfg));
	}
	if (cfg->boot) {
		add_region(out, (struct region){ t->end, ext4_size(cfg->boot), REGION_EXT4,
						 .fs = cfg->boot });
		add_partition(t, NUMBER_BOOT, gpt_type_xbootldr, "boot", names->boot.partuuid,
			      boot_size(cfg));
	}
	add_region(out,
		   (struct region){ t->end, ext4_size(cfg->root), REGION_EXT4, .fs = cfg->root });
	add_partition(t, NUMBER_ROOT, cfg->root_type, "root", names->root.partuuid,
		      round_up(ext4_size(cfg->root), cfg->sector_size));
}

int partitions_make(const struct partitions_config *cfg, struct partitions *out, struct err *err)
{
	struct gpt_config gpt = { .sector_size = cfg->sector_size, .boot_code = cfg->boot_code };
	size_t head_size = gpt_head_size(cfg->sector_size);
	size_t tail_size = gpt_tail_size(cfg->sector_size);
	struct table table = { 0 };

	*out = (struct partitions){ .head = calloc(1, head_size), .tail = calloc(1, tail_size) };
	if (!out->head || !out->tail)
		return err_nomem(err);
	if (cfg->boot_code && cfg->core_len > BIOS_BOOT_SIZE)
		return err_set(err, ERR_FAILED, "GRUB's core image has %zu bytes: too large",
			       cfg->core_len);
	add_region(out, (struct region){ 0, head_size, REGION_MEMORY, .bytes = out->head });
	place(cfg, &table, out);
	out->disk_size = round_up(table.end, ALIGN) + ALIGN;
	add_region(out, (struct region){ out->disk_size - tail_size, tail_size, REGION_MEMORY,
					 .bytes = out->tail });
	gpt.disk_size = out->disk_size;
	gpt.partitions = table.at;
	gpt.count = table.count;
	memcpy(gpt.disk_guid, cfg->names->disk_guid, sizeof gpt.disk_guid);
	gpt_encode(&gpt, out->head, out->tail);
	return 0;
}

void partitions_free(struct partitions *parts)
{
	free(parts->head);
	free(parts->tail);
	*parts = (struct partitions){ 0 };
}
