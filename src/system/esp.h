/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_ESP_H
#define CCSNAP_SYSTEM_ESP_H

#include "ext4/model.h"

#include <stddef.h>
#include <stdint.h>

/* An EFI system partition: a FAT32 filesystem in memory (a sealed memfd), made by
 * mtools; hence at least 66 MiB, or 259 MiB with sectors of 4096 bytes, nearly all of
 * them zeros.  Same input, same bytes.
 */
struct edit;
struct err;

enum esp_rule {
	ESP_IF_MISSING, /* the source's own counts */
	ESP_INSTEAD,	/* of the source's, which becomes NAME.of-source */
};

struct esp_file {
	const char *path; /* "EFI/BOOT/BOOTX64.EFI" */
	enum esp_rule rule;
	const void *bytes;
	size_t len;
};

struct esp_config {
	struct edit *edit;
	uint32_t source; /* directory node whose content is copied whole, or MODEL_NONE */
	const struct esp_file *add;
	size_t add_count;
	const char *serial; /* "ABCD-1234" */
	const char *label;  /* up to 11 characters, kept as they are; "" for none */
	unsigned sector_size;
	uint64_t min_size; /* bytes */
	uint32_t time;	   /* of what is added */
};

/* A name or file that FAT cannot hold is entered in the account as ACCOUNT_ATTRIBUTE,
 * one that moved as ACCOUNT_CHANGED or ACCOUNT_VANISHED.  ERR_REFUSED without mtools.
 * size: whole MiB.
 */
/* The node at path below dir, as FAT finds it: in any case.  MODEL_NONE when there is
 * none.
 */
uint32_t esp_lookup(const struct model *m, uint32_t dir, const char *path);

int esp_build(const struct esp_config *cfg, int *fd, uint64_t *size, struct err *err);

#endif
