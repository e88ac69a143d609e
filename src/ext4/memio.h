/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_MEMIO_H
#define CCSNAP_EXT4_MEMIO_H

#include <ext2fs/ext2fs.h>

/* How libext2fs reads and writes a volume in memory.  A block that is written
 * with what it already holds does not count as changed.
 */
struct err;
struct volmap;

extern io_manager const memio_manager;

/* A channel is opened by name only: until this is called there is nothing
 * behind it and all I/O fails.  The map must outlive the channel.
 */
void memio_attach(io_channel channel, struct volmap *map);

/* Why the first write failed, NULL when none has: the library puts a code of its
 * own in place of what a write returns.
 */
const struct err *memio_error(io_channel channel);

#endif
