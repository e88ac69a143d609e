/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_CHECKSUM_H
#define CCSNAP_EXT4_CHECKSUM_H

#include <stdint.h>

/* metadata_csum (Linux Documentation/filesystems/ext4/checksums.rst): crc32c,
 * seeded with the filesystem's UUID; what belongs to an inode also with its
 * number and generation, which is always 0 here.
 */
uint32_t checksum_seed_fs(const uint8_t uuid[16]);
uint32_t checksum_seed_inode(uint32_t fs_seed, uint32_t ino);

#endif
