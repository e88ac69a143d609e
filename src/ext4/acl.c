// SPDX-License-Identifier: Apache-2.0
#include "ext4/acl.h"

#include "base/bytes.h"

#include <stdbool.h>
#include <sys/types.h>

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

enum {
	VERSION = 4, /* all the header there is, in both forms */
	ENTRY = 8,   /* tag, permissions, id */
	SHORT = 4,   /* on disk, without the id */
	DISK_VERSION = 1,
	PERMISSIONS = ACL_READ | ACL_WRITE | ACL_EXECUTE,
};

#define TAGS_NAMED  (ACL_USER | ACL_GROUP)
#define TAGS_ALWAYS (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER)
#define TAGS_ALL    (TAGS_NAMED | TAGS_ALWAYS | ACL_MASK)

static bool is_named(unsigned tag)
{
	return tag == ACL_USER || tag == ACL_GROUP;
}

static bool is_tag(unsigned tag)
{
	return tag && (tag & (tag - 1)) == 0 && (tag & TAGS_ALL);
}

/* The order is that of the tags' numbers; only named ones come more than once. */
static bool is_entry(const uint8_t *entry, unsigned previous)
{
	const unsigned tag = get_le16(entry), permissions = get_le16(entry + 2);

	if (!is_tag(tag) || (permissions & ~(unsigned)PERMISSIONS))
		return false;
	if (is_named(tag))
		return tag >= previous && get_le32(entry + 4) != (uint32_t)ACL_UNDEFINED_ID;
	return tag > previous;
}

/* As the kernel's posix_acl_valid. */
long acl_disk_size(const void *value, size_t size)
{
	const uint8_t *at = value;
	unsigned seen = 0, tag = 0;
	size_t disk = VERSION;

	if (size < VERSION || (size - VERSION) % ENTRY || get_le32(at) != POSIX_ACL_XATTR_VERSION)
		return -1;
	for (size_t i = VERSION; i < size; i += ENTRY) {
		if (!is_entry(at + i, tag))
			return -1;
		tag = get_le16(at + i);
		seen |= tag;
		disk += is_named(tag) ? ENTRY : SHORT;
	}
	if ((seen & TAGS_ALWAYS) != TAGS_ALWAYS || ((seen & TAGS_NAMED) && !(seen & ACL_MASK)))
		return -1;
	return (long)disk;
}

unsigned acl_group_rights(const void *value, size_t size)
{
	const uint8_t *at = value;
	unsigned rights = PERMISSIONS;

	if (acl_disk_size(value, size) < 0)
		return 0;
	for (size_t i = VERSION; i < size; i += ENTRY) {
		if (get_le16(at + i) & (ACL_GROUP_OBJ | ACL_MASK))
			rights &= get_le16(at + i + 2);
	}
	return rights;
}

unsigned acl_named_rights(const void *value, size_t size)
{
	const uint8_t *at = value;
	unsigned rights = PERMISSIONS, mask = PERMISSIONS;
	bool any = false;

	if (acl_disk_size(value, size) < 0)
		return PERMISSIONS;
	for (size_t i = VERSION; i < size; i += ENTRY) {
		const uint16_t tag = get_le16(at + i), granted = get_le16(at + i + 2);

		if (is_named(tag)) {
			rights &= granted;
			any = true;
		} else if (tag == ACL_MASK) {
			mask = granted;
		}
	}
	return any ? rights & mask : PERMISSIONS;
}

void acl_to_disk(uint8_t *disk, const void *value, size_t size)
{
	const uint8_t *at = value;

	put_le32(disk, DISK_VERSION);
	disk += VERSION;
	for (size_t i = VERSION; i < size; i += ENTRY) {
		const size_t length = is_named(get_le16(at + i)) ? ENTRY : SHORT;

		memcpy(disk, at + i, length);
		disk += length;
	}
}
