// SPDX-License-Identifier: Apache-2.0
#include "ext4/checksum.h"

#include <endian.h>
#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext2fs.h>

uint32_t checksum_seed_fs(const uint8_t uuid[16])
{
	return ext2fs_crc32c_le(~0u, uuid, 16);
}

uint32_t checksum_seed_inode(uint32_t fs_seed, uint32_t ino)
{
	const uint32_t number_and_generation[2] = { htole32(ino), 0 };

	return ext2fs_crc32c_le(fs_seed, (const unsigned char *)number_and_generation,
				sizeof number_and_generation);
}
