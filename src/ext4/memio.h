/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_MEMIO_H
#define CCSNAP_EXT4_MEMIO_H

#include <ext2fs/ext2fs.h>

/* How libext2fs reads and writes a volume in memory.  A block that is written
 * with what it already holds does not count as changed.
 */
struct volmap;

extern io_manager const memio_manager;

/* A channel is opened by name only: until this is called there is nothing
 * behind it and all I/O fails.  The map must outlive the channel.
 */
void memio_attach(io_channel channel, struct volmap *map);

#endif
