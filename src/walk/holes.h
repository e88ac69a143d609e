/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_HOLES_H
#define CCSNAP_WALK_HOLES_H

#include "ext4/model.h"

#include <stdint.h>

/* Ask the kernel which blocks of the file node are data: its data and segments,
 * by its size.  allocated: the bytes that stat says it takes; what it cannot
 * tell is data.  fd's position changes.
 */
struct err;

int holes_find(struct model *model, uint32_t node, int fd, uint64_t allocated, struct err *err);

#endif
