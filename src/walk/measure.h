/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_MEASURE_H
#define CCSNAP_WALK_MEASURE_H

#include <stdint.h>

/* How many bytes are allocated below a directory, what is mounted there and what
 * cannot be read aside; hard links count with each name.  -1 only when memory
 * runs out or a signal came.
 */
struct err;

int measure_below(int dirfd, const char *name, uint64_t *bytes, struct err *err);

#endif
