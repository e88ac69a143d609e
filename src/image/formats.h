/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_IMAGE_FORMATS_H
#define CCSNAP_IMAGE_FORMATS_H

#include "image/image.h"

/* The constructors behind image_formats[] with their figures (image.h says
 * what they mean), and what the formats share.
 */
struct image *qcow2_create(const struct image_config *cfg, struct err *err);
uint64_t qcow2_size_max(size_t cluster_size);
uint64_t qcow2_overhead(uint64_t size, size_t cluster_size, uint64_t clusters);

struct image *raw_create(const struct image_config *cfg, struct err *err);
uint64_t raw_size_max(size_t cluster_size);
uint64_t raw_overhead(uint64_t size, size_t cluster_size, uint64_t clusters);

int image_write_at(const struct image *img, const void *buf, size_t len, uint64_t offset,
		   struct err *err);

/* Exactly what was written there before. */
int image_read_at(const struct image *img, void *buf, size_t len, uint64_t offset, struct err *err);

/* What was read back cannot be what we wrote.  -1. */
int image_say_changed(const struct image *img, struct err *err);

#endif
