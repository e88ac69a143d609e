// SPDX-License-Identifier: Apache-2.0
#include "ext4/xattr.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "base/str.h"
#include "ext4/acl.h"

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext2fs.h>
#include <stdlib.h>

enum {
	BLOCK = 4096,
	HEADER = sizeof(struct ext2_ext_attr_header),
	ENTRY = sizeof(struct ext2_ext_attr_entry),
	MAGIC = 4,    /* all the header there is in an inode */
	END_MARK = 4, /* of zeros behind the last entry */
	INODE_ROOM = XATTR_INODE_BYTES - MAGIC - END_MARK,
	BLOCK_ROOM = BLOCK - HEADER - END_MARK,
	UNIT = 4, /* all lengths are multiples of it */
	INODE_UNITS = INODE_ROOM / UNIT,
	ROOM = INODE_ROOM + BLOCK_ROOM,
};

/* The kernel's table ext4_xattr_handler_map: what has another prefix could be
 * stored, but nobody would see it again.
 */
static const struct prefix {
	const char *text;
	uint8_t index;
	bool acl; /* a whole name, and its value has another form on disk */
} prefixes[] = {
	{ "user.", 1, false },
	{ "system.posix_acl_access", 2, true },
	{ "system.posix_acl_default", 3, true },
	{ "trusted.", 4, false },
	{ "security.", 6, false },
	{ "gnu.", 10, false },
	{ NULL, 0, false },
};

struct item {
	const struct model_xattr *xattr;
	const char *name; /* behind the prefix */
	size_t name_length;
	uint8_t index;
	bool acl;
	size_t size;   /* of the value on disk */
	uint64_t need; /* bytes on disk, with the entry */
	bool in_inode;
};

struct items {
	struct item *at; /* in the order on disk */
	size_t len;
	uint64_t need;
	void (*dropped)(void *ctx, const char *name, const char *why);
	void *ctx;
};

static void drop(const struct items *items, const struct item *item, const char *why)
{
	items->dropped(items->ctx, item->xattr->name, why);
}

static const struct prefix *prefix_find(const char *name)
{
	const struct prefix *p = prefixes;

	for (; p->text; p++) {
		if (p->acl ? str_equal(name, p->text) : str_starts(name, p->text))
			break;
	}
	return p->text ? p : NULL;
}

/* Fill in *item; what is wrong with the attribute, or NULL. */
static const char *item_init(struct item *item, const struct model_xattr *xattr)
{
	const struct prefix *prefix = prefix_find(xattr->name);
	long acl;

	*item = (struct item){ .xattr = xattr };
	if (!prefix)
		return "ext4 has no attributes of that kind";
	item->index = prefix->index;
	item->acl = prefix->acl;
	item->name = xattr->name + strlen(prefix->text);
	item->name_length = strlen(item->name);
	item->size = xattr->size;
	if (item->name_length > UINT8_MAX || (!prefix->acl && item->name_length == 0))
		return "its name has no length that ext4 can hold";
	if (prefix->acl) {
		acl = acl_disk_size(xattr->value, xattr->size);
		if (acl < 0)
			return "its value is no valid POSIX ACL";
		item->size = (size_t)acl;
	}
	if (item->size > BLOCK_ROOM)
		return "its value is larger than ext4 can hold in a block of 4096 bytes";
	item->need = EXT2_EXT_ATTR_LEN(item->name_length) + EXT2_EXT_ATTR_SIZE(item->size);
	return NULL;
}

/* The kernel stops searching a block where this order says so. */
static int item_compare_name(const struct item *a, const struct item *b)
{
	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	if (a->name_length != b->name_length)
		return a->name_length < b->name_length ? -1 : 1;
	return memcmp(a->name, b->name, a->name_length);
}

static int item_compare(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	const int order = item_compare_name(a, b);

	return order ? order : a->xattr < b->xattr ? -1 : a->xattr > b->xattr;
}

/* The largest first, equal ones in the order on disk. */
static int item_compare_need(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->need != b->need)
		return a->need > b->need ? -1 : 1;
	return item_compare(left, right);
}

static void items_remove(struct items *items, size_t i, const char *why)
{
	drop(items, &items->at[i], why);
	items->need -= items->at[i].need;
	items->len--;
	memmove(&items->at[i], &items->at[i + 1], (items->len - i) * sizeof *items->at);
}

static int items_init(struct items *items, const struct model_xattr_set *set, struct err *err)
{
	items->at = calloc(MAX(set->len, (size_t)1), sizeof *items->at);
	if (!items->at)
		return err_nomem(err);
	for (size_t i = 0; i < set->len; i++) {
		struct item *item = &items->at[items->len];
		const char *why = item_init(item, &set->at[i]);

		if (why) {
			drop(items, item, why);
			continue;
		}
		items->need += item->need;
		items->len++;
	}
	qsort(items->at, items->len, sizeof *items->at, item_compare);
	return 0;
}

static void drop_doubles(struct items *items)
{
	size_t kept = 0;

	for (size_t i = 0; i < items->len; i++) {
		if (kept && !item_compare_name(&items->at[kept - 1], &items->at[i])) {
			drop(items, &items->at[i], "another one has the same name");
			items->need -= items->at[i].need;
			continue;
		}
		items->at[kept++] = items->at[i];
	}
	items->len = kept;
}

static const char no_room[] = "the file has more than ext4 has room for; the largest go first";

/* By the sum alone, so that what remains is a few hundred at the most. */
static void drop_excess(struct items *items)
{
	size_t gone = 0;

	if (items->need <= ROOM)
		return;
	qsort(items->at, items->len, sizeof *items->at, item_compare_need);
	for (; items->need > ROOM; gone++) {
		drop(items, &items->at[gone], no_room);
		items->need -= items->at[gone].need;
	}
	items->len -= gone;
	memmove(items->at, items->at + gone, items->len * sizeof *items->at);
	qsort(items->at, items->len, sizeof *items->at, item_compare);
}

/* Fill the inode in the order on disk; does the rest fit in the block? */
static bool arrange_first_fit(struct items *items)
{
	uint64_t used = 0;

	for (size_t i = 0; i < items->len; i++) {
		struct item *item = &items->at[i];

		item->in_inode = item->need <= INODE_ROOM - used;
		if (item->in_inode)
			used += item->need;
	}
	return items->need - used <= BLOCK_ROOM;
}

/* The fullest inode that there is: if the rest does not fit in the block now,
 * it never does.  Whatever another ext4 holds thus fits here, too.
 */
static bool arrange_best_fit(struct items *items)
{
	const struct item *last[INODE_UNITS + 1] = { NULL }; /* of those that sum up to it */
	size_t used = INODE_UNITS;

	for (size_t i = 0; i < items->len; i++) {
		const uint64_t units = items->at[i].need / UNIT;

		items->at[i].in_inode = false;
		for (size_t sum = INODE_UNITS; sum >= units; sum--) {
			if (!last[sum] && (sum == units || last[sum - units]))
				last[sum] = &items->at[i];
		}
	}
	while (used > 0 && !last[used])
		used--;
	for (size_t sum = used; sum > 0;) {
		struct item *item = &items->at[last[sum] - items->at];

		item->in_inode = true;
		sum -= item->need / UNIT;
	}
	return items->need - used * UNIT <= BLOCK_ROOM;
}

static size_t items_largest(const struct items *items)
{
	size_t largest = 0;

	for (size_t i = 1; i < items->len; i++) {
		if (items->at[i].need > items->at[largest].need)
			largest = i;
	}
	return largest;
}

static void arrange(struct items *items)
{
	drop_doubles(items);
	drop_excess(items);
	while (!arrange_first_fit(items) && !arrange_best_fit(items))
		items_remove(items, items_largest(items), no_room);
}

/* Entries grow upwards from first, values downwards from end. */
struct region {
	uint8_t *first, *end;
	const uint8_t *origin; /* which offsets count from */
};

static void put_value(uint8_t *at, const struct item *item)
{
	if (item->acl)
		acl_to_disk(at, item->xattr->value, item->xattr->size);
	else if (item->size)
		memcpy(at, item->xattr->value, item->size);
}

/* value: where it is, aligned. */
static uint32_t entry_hash(const struct item *item, uint8_t *value)
{
	struct {
		struct ext2_ext_attr_entry entry;
		char name[UINT8_MAX];
	} staged = { 0 };

	staged.entry.e_name_len = (uint8_t)item->name_length;
	staged.entry.e_value_size = (uint32_t)item->size;
	memcpy(staged.name, item->name, item->name_length);
	return ext2fs_ext_attr_hash_entry(&staged.entry, value);
}

static void put_item(struct region *region, const struct item *item, uint32_t hash)
{
	struct ext2_ext_attr_entry entry = {
		.e_name_len = (uint8_t)item->name_length,
		.e_name_index = item->index,
		.e_value_size = htole32((uint32_t)item->size),
		.e_hash = htole32(hash),
	};

	if (item->size)
		entry.e_value_offs = htole16((uint16_t)(region->end - region->origin));
	memcpy(region->first, &entry, sizeof entry);
	memcpy(region->first + ENTRY, item->name, item->name_length);
	region->first += EXT2_EXT_ATTR_LEN(item->name_length);
}

static void encode_inode(const struct items *items, uint8_t bytes[XATTR_INODE_BYTES])
{
	struct region region = { bytes + MAGIC, bytes + XATTR_INODE_BYTES, bytes + MAGIC };

	for (size_t i = 0; i < items->len; i++) {
		const struct item *item = &items->at[i];

		if (!item->in_inode)
			continue;
		region.end -= EXT2_EXT_ATTR_SIZE(item->size);
		put_value(region.end, item);
		put_item(&region, item, 0);
		put_le32(bytes, EXT2_EXT_ATTR_MAGIC);
	}
}

/* As ext2fs_ext_attr_block_rehash, which wants a block in the machine's order. */
static uint32_t fold_hash(uint32_t sum, uint32_t hash)
{
	return (sum << 16 | sum >> 16) ^ hash;
}

/* bytes: aligned, which ext2fs_ext_attr_hash_entry needs. */
static size_t encode_block(const struct items *items, uint8_t bytes[BLOCK])
{
	struct region region = { bytes + HEADER, bytes + BLOCK, bytes };
	struct ext2_ext_attr_header header = {
		.h_magic = htole32(EXT2_EXT_ATTR_MAGIC),
		.h_refcount = htole32(1),
		.h_blocks = htole32(1),
	};
	uint32_t sum = 0;
	size_t count = 0;
	bool sharable = true; /* h_hash 0 says no; an entry's hash 0 is what forbids it */

	for (size_t i = 0; i < items->len; i++) {
		const struct item *item = &items->at[i];
		uint32_t hash;

		if (item->in_inode)
			continue;
		region.end -= EXT2_EXT_ATTR_SIZE(item->size);
		put_value(region.end, item);
		hash = entry_hash(item, region.end);
		put_item(&region, item, hash);
		sum = fold_hash(sum, hash);
		sharable = sharable && hash != 0;
		count++;
	}
	header.h_hash = htole32(sharable ? sum : 0);
	memcpy(bytes, &header, sizeof header);
	return count;
}

int xattr_encode(const struct model_xattr_set *set, struct xattr_image *out,
		 void (*dropped)(void *ctx, const char *name, const char *why), void *ctx,
		 struct err *err)
{
	autofree struct item *list = NULL;
	struct items items = { .dropped = dropped, .ctx = ctx };
	_Alignas(uint32_t) uint8_t block[BLOCK] = { 0 };

	*out = (struct xattr_image){ 0 };
	if (items_init(&items, set, err))
		return -1;
	list = items.at;
	arrange(&items);
	encode_inode(&items, out->inode);
	out->has_block = encode_block(&items, block) > 0;
	if (out->has_block)
		memcpy(out->block, block, sizeof block);
	return 0;
}

void xattr_block_seal(uint8_t block[4096], uint32_t refcount, uint64_t place, uint32_t fs_seed)
{
	const uint64_t number = htole64(place);
	uint32_t sum;

	put_le32(block + offsetof(struct ext2_ext_attr_header, h_refcount), refcount);
	put_le32(block + offsetof(struct ext2_ext_attr_header, h_checksum), 0);
	sum = ext2fs_crc32c_le(fs_seed, (const unsigned char *)&number, sizeof number);
	sum = ext2fs_crc32c_le(sum, block, BLOCK);
	put_le32(block + offsetof(struct ext2_ext_attr_header, h_checksum), sum);
}
