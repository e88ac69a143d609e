/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_ESP_LIST_H
#define CCSNAP_SYSTEM_ESP_LIST_H

#include "system/esp.h"

#include <stdbool.h>

/* What goes on an ESP, in the order in which it is put there: directories before
 * what is in them, and in each directory first the names that are short already,
 * so that none of them meets one that mtools has made up.
 */
struct esp_item {
	char *path; /* "EFI/BOOT", ASCII, free of all that mtools would interpret */
	bool is_directory;
	uint32_t node;		     /* of the model; MODEL_NONE: made here */
	const struct esp_file *file; /* of what is added, else NULL */
	int64_t time;		     /* seconds, within what FAT can tell */
	uint64_t size;
};

struct esp_list {
	struct esp_item *at;
	size_t len, cap;
};

/* What FAT cannot hold is left out and entered in the account. */
int esp_list_make(const struct esp_config *cfg, struct esp_list *out, struct err *err);
void esp_list_free(struct esp_list *list);

#endif
