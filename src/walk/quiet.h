/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_WALK_QUIET_H
#define CCSNAP_WALK_QUIET_H

/* Open name (one component, or ".") in dirfd for reading, without following a
 * link, waiting for anybody at a FIFO, or changing its access time where we may.
 * flags: O_DIRECTORY or 0.  -1 with errno.
 */
int quiet_open(int dirfd, const char *name, int flags);

#endif
