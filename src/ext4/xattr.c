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
	BLOCK = MODEL_BLOCK,
	HEADER = sizeof(struct ext2_ext_attr_header),
	ENTRY = sizeof(struct ext2_ext_attr_entry),
	MAGIC = 4,    /* all the header there is in an inode */
	END_MARK = 4, /* of zeros behind the last entry */
	INODE_ROOM = XATTR_INODE_BYTES - MAGIC - END_MARK,
	BLOCK_ROOM = BLOCK - HEADER - END_MARK,
	UNIT = 4, /* all lengths are multiples of it */
	INODE_UNITS = INODE_ROOM / UNIT,
	ROOM = INODE_ROOM + BLOCK_ROOM,
	INDEX_ACL_ACCESS = 2,
	LENT_LEAST = 64, /* what keeping account of a loan costs is much less */
};

/* What goes last when not all fit: losing it changes what a program or a user may do. */
enum worth { WORTH_USER, WORTH_TRUSTED, WORTH_OTHER, WORTH_MOST };

static const char *const worth_most[] = { "security.capability", "security.selinux" };

/* The kernel's table ext4_xattr_handler_map: what has another prefix could be
 * stored, but nobody would see it again.
 */
static const struct prefix {
	const char *text;
	uint8_t index;
	bool acl; /* a whole name, and its value has another form on disk */
	enum worth worth;
} prefixes[] = {
	{ "user.", 1, false, WORTH_USER },
	{ XATTR_ACL_ACCESS, INDEX_ACL_ACCESS, true, WORTH_MOST },
	{ XATTR_ACL_DEFAULT, 3, true, WORTH_MOST },
	{ "trusted.", 4, false, WORTH_TRUSTED },
	{ "security.", 6, false, WORTH_OTHER },
	{ "gnu.", 10, false, WORTH_OTHER },
	{ NULL, 0, false, 0 },
};

struct item {
	const struct model_xattr *xattr;
	const char *name; /* behind the prefix */
	size_t name_length;
	uint8_t index;
	bool acl;
	enum worth worth;
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

static enum worth worth_of(const char *name, const struct prefix *prefix)
{
	for (size_t i = 0; i < sizeof worth_most / sizeof *worth_most; i++)
		if (str_equal(name, worth_most[i]))
			return WORTH_MOST;
	return prefix->worth;
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
	item->worth = worth_of(xattr->name, prefix);
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

/* Those that matter most first, of these the smallest, equal ones against the order
 * on disk.
 */
static int item_compare_worth(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->worth != b->worth)
		return a->worth > b->worth ? -1 : 1;
	if (a->need != b->need)
		return a->need < b->need ? -1 : 1;
	return item_compare(right, left);
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

static bool arrange(struct items *items)
{
	return items->need <= ROOM && (arrange_first_fit(items) || arrange_best_fit(items));
}

/* One after the other, as long as there is an arrangement.  When one does not fit, a
 * larger one does not either; of those that matter less there may be smaller ones.
 */
static void keep_what_matters(struct items *items)
{
	const size_t count = items->len;
	bool full[WORTH_MOST + 1] = { false };

	qsort(items->at, count, sizeof *items->at, item_compare_worth);
	items->len = items->need = 0;
	for (size_t i = 0; i < count; i++) {
		const struct item item = items->at[i];

		items->at[items->len++] = item;
		items->need += item.need;
		if (!full[item.worth] && arrange(items))
			continue;
		full[item.worth] = true;
		items->len--;
		items->need -= item.need;
		drop(items, &item, "the file has more than ext4 has room for");
	}
	qsort(items->at, items->len, sizeof *items->at, item_compare);
}

static void items_fit(struct items *items)
{
	drop_doubles(items);
	if (arrange(items))
		return;
	keep_what_matters(items);
	arrange(items);
}

static uint32_t mode_cut(const struct items *items, const struct model_xattr_set *set)
{
	unsigned group = 07, other = 07;

	for (size_t i = 0; i < items->len; i++)
		if (items->at[i].index == INDEX_ACL_ACCESS)
			return 0;
	for (size_t i = 0; i < set->len; i++)
		if (str_equal(set->at[i].name, XATTR_ACL_ACCESS)) {
			other = acl_named_rights(set->at[i].value, set->at[i].size);
			group = acl_group_rights(set->at[i].value, set->at[i].size) & other;
		}
	return (~group & 07) << 3 | (~other & 07);
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

static void lend_value(struct xattr_image *out, const struct item *item, size_t at)
{
	if (item->acl || item->size < LENT_LEAST || out->lent_count == VOLMAP_LOANS_MAX)
		return;
	out->lent[out->lent_count++] = (struct volmap_loan){
		.bytes = item->xattr->value,
		.at = (uint16_t)at,
		.len = (uint16_t)item->size,
	};
}

static void encode_block(const struct items *items, struct xattr_image *out)
{
	_Alignas(uint32_t) uint8_t bytes[BLOCK] = { 0 }; /* as ext2fs_ext_attr_hash_entry needs */
	struct region region = { bytes + HEADER, bytes + BLOCK, bytes };
	struct ext2_ext_attr_header header = {
		.h_magic = htole32(EXT2_EXT_ATTR_MAGIC),
		.h_refcount = htole32(1),
		.h_blocks = htole32(1),
	};
	uint32_t sum = 0;
	bool sharable = true; /* h_hash 0 says no; an entry's hash 0 is what forbids it */

	for (size_t i = 0; i < items->len; i++) {
		const struct item *item = &items->at[i];
		uint32_t hash;

		if (item->in_inode)
			continue;
		region.end -= EXT2_EXT_ATTR_SIZE(item->size);
		put_value(region.end, item);
		lend_value(out, item, (size_t)(region.end - bytes));
		hash = entry_hash(item, region.end);
		put_item(&region, item, hash);
		sum = fold_hash(sum, hash);
		sharable = sharable && hash != 0;
		out->has_block = true;
	}
	if (!out->has_block)
		return;
	header.h_hash = htole32(sharable ? sum : 0);
	memcpy(bytes, &header, sizeof header);
	memcpy(out->block, bytes, sizeof bytes);
}

int xattr_encode(const struct model_xattr_set *set, struct xattr_image *out,
		 void (*dropped)(void *ctx, const char *name, const char *why), void *ctx,
		 struct err *err)
{
	autofree struct item *list = NULL;
	struct items items = { .dropped = dropped, .ctx = ctx };

	*out = (struct xattr_image){ 0 };
	if (items_init(&items, set, err))
		return -1;
	list = items.at;
	items_fit(&items);
	encode_inode(&items, out->inode);
	encode_block(&items, out);
	out->mode_cut = mode_cut(&items, set);
	return 0;
}

void xattr_block_seal(uint8_t block[MODEL_BLOCK], uint32_t refcount, uint64_t place,
		      uint32_t fs_seed)
{
	const uint64_t number = htole64(place);
	uint32_t sum;

	put_le32(block + offsetof(struct ext2_ext_attr_header, h_refcount), refcount);
	put_le32(block + offsetof(struct ext2_ext_attr_header, h_checksum), 0);
	sum = ext2fs_crc32c_le(fs_seed, (const unsigned char *)&number, sizeof number);
	sum = ext2fs_crc32c_le(sum, block, BLOCK);
	put_le32(block + offsetof(struct ext2_ext_attr_header, h_checksum), sum);
}
