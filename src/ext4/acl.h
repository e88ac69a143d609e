/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_EXT4_ACL_H
#define CCSNAP_EXT4_ACL_H

#include <stddef.h>
#include <stdint.h>

/* A POSIX ACL as the system calls give it (version 2: each entry with an id)
 * becomes what ext4 stores (version 1: an id only where it means something).
 * Pure.
 */

/* Bytes on disk; -1 when the kernel would not take it for an ACL. */
long acl_disk_size(const void *value, size_t size);

/* What it gives to the owning group when all is said (bits as in a mode's last
 * digit): none when the kernel would not take it for an ACL.
 */
unsigned acl_group_rights(const void *value, size_t size);

/* What every user and group that it names has at the least: no more may be left to
 * those that are not named when it is lost.  All when it names none.
 */
unsigned acl_named_rights(const void *value, size_t size);

/* For a value that has a size on disk. */
void acl_to_disk(uint8_t *disk, const void *value, size_t size);

#endif
