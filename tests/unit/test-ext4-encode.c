// SPDX-License-Identifier: Apache-2.0
#include "ext4-kit.h"
#include "ext4/extents.h"
#include "ext4/inode.h"
#include "ext4/xattr.h"

#include <sys/stat.h>

enum { BLOCK = 4096, PER_NODE = 340, FLAG_INDEX = 0x1000, FLAG_EXTENTS = 0x80000 };

static void checksums_are_crc32c(void **state)
{
	/* The check value of CRC-32C is that of this text, inverted in the end. */
	static const uint8_t uuid[16] = { 0xde, 0xad, 0xbe, 0xef, 1, 2,	 3,  4,
					  5,	6,    7,    8,	  9, 10, 11, 12 };
	const uint8_t ino_12[8] = { 12, 0, 0, 0, 0, 0, 0, 0 };

	(void)state;
	assert_int_equal(crc32c(~0u, "123456789", 9), ~0xe3069283u);
	assert_int_equal(checksum_seed_fs(uuid), crc32c(~0u, uuid, 16));
	assert_int_equal(checksum_seed_inode(SEED_OF_TEST, 12), crc32c(SEED_OF_TEST, ino_12, 8));
}

struct tree {
	struct placed_extent *extents;
	size_t count;
	uint64_t *blocks;
	size_t node_count;
	uint8_t *nodes;
	uint8_t root[60];
};

/* Extents with a hole behind each; nodes in blocks that descend and lie far away. */
static struct tree tree_new(size_t count)
{
	struct tree t = { .count = count, .node_count = extents_tree_blocks(count) };

	t.extents = calloc(count + 1, sizeof *t.extents);
	t.blocks = calloc(t.node_count + 1, sizeof *t.blocks);
	t.nodes = malloc((t.node_count + 1) * BLOCK);
	assert_true(t.extents && t.blocks && t.nodes);
	memset(t.nodes, 0xee, (t.node_count + 1) * BLOCK);
	for (size_t i = 0; i < count; i++) {
		t.extents[i] = (struct placed_extent){ .logical = (uint32_t)(7 + i * 9),
						       .count = 1 + i % 8,
						       .physical = (1ull << 48) - 9 - i * 16 };
	}
	for (size_t i = 0; i < t.node_count; i++)
		t.blocks[i] = (1ull << 40) - i * 3;
	extents_encode(t.extents, count, t.blocks, SEED_OF_TEST, t.root, t.nodes);
	return t;
}

static void tree_free(struct tree *t)
{
	assert_int_equal(t->nodes[t->node_count * BLOCK], 0xee);
	free(t->extents);
	free(t->blocks);
	free(t->nodes);
}

static uint64_t physical_at(const uint8_t *low, const uint8_t *high)
{
	return (uint64_t)get16(high) << 32 | get32(low);
}

static const uint8_t *node_at(const struct tree *t, uint64_t block)
{
	const uint64_t i = ((1ull << 40) - block) / 3;

	assert_true(i < t->node_count && t->blocks[i] == block);
	return t->nodes + i * BLOCK;
}

/* The last entry that does not begin behind the block, or NULL. */
static const uint8_t *last_entry(const uint8_t *node, uint32_t logical)
{
	const uint8_t *found = NULL;

	for (size_t i = 0; i < get16(node + 2); i++) {
		const uint8_t *entry = node + 12 + i * 12;

		if (get32(entry) <= logical)
			found = entry;
	}
	return found;
}

/* Where the block of the file is; 0: a hole. */
static uint64_t lookup(const struct tree *t, uint32_t logical)
{
	const uint8_t *node = t->root, *entry;

	for (int depth = get16(node + 6); depth > 0; depth--) {
		entry = last_entry(node, logical);
		if (!entry)
			return 0;
		node = node_at(t, physical_at(entry + 4, entry + 8));
		assert_int_equal(get16(node + 6), depth - 1);
	}
	entry = last_entry(node, logical);
	if (!entry || logical - get32(entry) >= get16(entry + 4))
		return 0;
	return physical_at(entry + 8, entry + 6) + (logical - get32(entry));
}

static void expect_header(const uint8_t *node, unsigned max)
{
	assert_int_equal(get16(node), 0xf30a);
	assert_int_equal(get16(node + 4), max);
	assert_true(get16(node + 2) <= max);
	assert_int_equal(get32(node + 8), 0);
}

static void expect_tree(const struct tree *t, unsigned depth, size_t step)
{
	expect_header(t->root, 4);
	assert_int_equal(get16(t->root + 6), depth);
	for (size_t i = 0; i < t->node_count; i++) {
		const uint8_t *node = t->nodes + i * BLOCK;

		expect_header(node, PER_NODE);
		assert_int_equal(get32(node + 4092), crc32c(SEED_OF_TEST, node, 4092));
	}
	for (size_t i = 0; i < t->count; i += step) {
		const struct placed_extent *x = &t->extents[i];

		assert_true(lookup(t, x->logical) == x->physical);
		assert_true(lookup(t, x->logical + x->count - 1) == x->physical + x->count - 1);
		assert_true(lookup(t, x->logical + x->count) == 0);
	}
	assert_true(lookup(t, 0) == 0);
	assert_true(lookup(t, UINT32_MAX) == 0);
}

static void every_extent_is_found_in_its_tree(void **state)
{
	static const struct {
		size_t extents, blocks;
		unsigned depth;
	} cases[] = {
		{ 0, 0, 0 },   { 1, 0, 0 },    { 4, 0, 0 },    { 5, 1, 1 },	{ 340, 1, 1 },
		{ 341, 2, 1 }, { 1360, 4, 1 }, { 1361, 6, 2 }, { 3000, 10, 2 }, { 100000, 296, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tree t = tree_new(cases[i].extents);

		assert_int_equal(t.node_count, cases[i].blocks);
		expect_tree(&t, cases[i].depth, 1);
		tree_free(&t);
	}
}

static void a_third_level_begins_where_the_second_is_full(void **state)
{
	struct tree t = tree_new(4 * PER_NODE * PER_NODE + 1);

	(void)state;
	assert_int_equal(extents_tree_blocks(t.count - 1), 4 * PER_NODE + 4);
	assert_int_equal(t.node_count, 4 * PER_NODE + 1 + 5 + 1);
	expect_tree(&t, 3, 997);
	tree_free(&t);
}

static void the_longest_extent_keeps_its_length(void **state)
{
	const struct placed_extent x = { 0xffff8000u, EXTENT_LENGTH_MAX, 0x123456789abcull };
	static const uint8_t want[24] = { 0x0a, 0xf3, 1,    0,	  4,	0,    0,    0,
					  0,	0,    0,    0,	  0x00, 0x80, 0xff, 0xff,
					  0x00, 0x80, 0x34, 0x12, 0xbc, 0x9a, 0x78, 0x56 };
	uint8_t root[60];

	(void)state;
	extents_encode(&x, 1, NULL, SEED_OF_TEST, root, NULL);
	assert_memory_equal(root, want, sizeof want);
	for (size_t i = sizeof want; i < sizeof root; i++)
		assert_int_equal(root[i], 0);
}

struct made_inode {
	uint8_t at[256];
	bool exact;
};

static struct made_inode make_inode(const struct inode_config *cfg)
{
	struct made_inode made, clean;
	uint32_t sum;

	memset(made.at, 0xee, sizeof made.at);
	made.exact = inode_encode(cfg, made.at);
	clean = made;
	memset(clean.at + 0x7c, 0, 2);
	memset(clean.at + 0x82, 0, 2);
	sum = crc32c(cfg->checksum_seed, clean.at, 256);
	assert_int_equal(get16(made.at + 0x7c), sum & 0xffff);
	assert_int_equal(get16(made.at + 0x82), sum >> 16);
	return made;
}

/* Offsets as in Documentation/filesystems/ext4/inodes.rst. */
static void every_field_is_at_its_place(void **state)
{
	const struct model_node node = { .mode = S_IFREG | 04751,
					 .uid = 0x12345678,
					 .gid = 0x9abcdef0,
					 .mtime_sec = 1000000000,
					 .mtime_nsec = 999999999 };
	uint8_t i_block[60], xattrs[96];
	const struct inode_config cfg = { .node = &node,
					  .size = 0x1122334455667788,
					  .links = 65000,
					  .blocks = 0x123456789,
					  .i_block = i_block,
					  .extents = true,
					  .indexed = true,
					  .xattr_block = 0xaabbccddeeff,
					  .xattrs = xattrs,
					  .checksum_seed = SEED_OF_TEST };
	struct made_inode in;

	(void)state;
	memset(i_block, 0x5a, sizeof i_block);
	memset(xattrs, 0xa5, sizeof xattrs);
	in = make_inode(&cfg);
	assert_true(in.exact);
	assert_int_equal(get16(in.at + 0x00), S_IFREG | 04751);
	assert_int_equal(get16(in.at + 0x02) | (uint32_t)get16(in.at + 0x78) << 16, 0x12345678);
	assert_int_equal(get16(in.at + 0x18) | (uint32_t)get16(in.at + 0x7a) << 16, 0x9abcdef0);
	assert_int_equal(get32(in.at + 0x04), 0x55667788);
	assert_int_equal(get32(in.at + 0x6c), 0x11223344);
	for (size_t at = 0x08; at <= 0x10; at += 4) {
		assert_int_equal(get32(in.at + at), 1000000000);
		assert_int_equal(get32(in.at + at + 0x7c), 999999999u << 2);
	}
	assert_int_equal(get32(in.at + 0x90), 1000000000);
	assert_int_equal(get32(in.at + 0x94), 999999999u << 2);
	assert_int_equal(get32(in.at + 0x14), 0);
	assert_int_equal(get16(in.at + 0x1a), 65000);
	assert_int_equal(get32(in.at + 0x1c), 0x91a2b3c48 & 0xffffffff);
	assert_int_equal(get16(in.at + 0x74), 0x91a2b3c48 >> 32);
	assert_int_equal(get32(in.at + 0x20), FLAG_EXTENTS | FLAG_INDEX);
	assert_memory_equal(in.at + 0x28, i_block, 60);
	assert_int_equal(get32(in.at + 0x64), 0);
	assert_int_equal(get32(in.at + 0x68), 0xccddeeff);
	assert_int_equal(get16(in.at + 0x76), 0xaabb);
	assert_int_equal(get16(in.at + 0x80), 32);
	assert_memory_equal(in.at + 0x98, "\0\0\0\0\0\0\0\0", 8);
	assert_memory_equal(in.at + 0xa0, xattrs, 96);
}

static void times_reach_from_1901_to_2446(void **state)
{
	static const struct {
		int64_t sec;
		uint32_t nsec, low, extra;
		bool exact;
	} cases[] = {
		{ 0, 0, 0, 0, true },
		{ -1, 1, 0xffffffff, 4, true },
		{ INT32_MIN, 500000000, 0x80000000, 2000000000, true },
		{ INT32_MAX, 0, 0x7fffffff, 0, true },
		{ 0x80000000, 0, 0x80000000, 1, true },
		{ 0x100000000, 999999999, 0, 3999999997, true },
		{ 0x17fffffff, 0, 0x7fffffff, 1, true },
		{ 0x180000000, 0, 0x80000000, 2, true },
		{ 0x37fffffff, 3, 0x7fffffff, 15, true },
		{ 0x380000000, 3, 0x7fffffff, 3, false },
		{ INT64_MAX, 3, 0x7fffffff, 3, false },
		{ -0x80000001ll, 7, 0x80000000, 0, false },
		{ INT64_MIN, 0, 0x80000000, 0, false },
		{ 5, 1000000000, 5, 3999999996, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct model_node node = { .mode = S_IFREG,
						 .mtime_sec = cases[i].sec,
						 .mtime_nsec = cases[i].nsec };
		const struct inode_config cfg = { .node = &node, .links = 1 };
		const struct made_inode in = make_inode(&cfg);

		assert_int_equal(in.exact, cases[i].exact);
		assert_int_equal(get32(in.at + 0x10), cases[i].low);
		assert_int_equal(get32(in.at + 0x88), cases[i].extra);
	}
}

static void devices_have_the_encoding_that_their_numbers_need(void **state)
{
	static const struct {
		uint32_t major, minor, word[2];
	} cases[] = {
		{ 0, 0, { 0, 0 } },
		{ 1, 3, { 0x0103, 0 } },
		{ 255, 255, { 0xffff, 0 } },
		{ 8, 256, { 0, 0x00100800 } },
		{ 256, 5, { 0, 0x00010005 } },
		{ 4095, 0xfffff, { 0, 0xffffffff } },
		{ 259, 0x12345, { 0, 0x12310345 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct model_node node = { .mode = i % 2 ? S_IFCHR : S_IFBLK,
						 .rdev_major = cases[i].major,
						 .rdev_minor = cases[i].minor };
		const struct inode_config cfg = { .node = &node, .links = 1 };
		const struct made_inode in = make_inode(&cfg);

		assert_int_equal(get32(in.at + 0x28), cases[i].word[0]);
		assert_int_equal(get32(in.at + 0x2c), cases[i].word[1]);
	}
}

static void only_flags_of_users_are_kept(void **state)
{
	static const struct {
		uint32_t mode, kept;
	} cases[] = {
		{ S_IFREG, 0x0000c0ff }, { S_IFDIR, 0x0003c0ff }, { S_IFLNK, 0x000000c0 },
		{ S_IFIFO, 0x000000c0 }, { S_IFCHR, 0x000000c0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct model_node node = { .mode = cases[i].mode, .flags = UINT32_MAX };
		const struct inode_config cfg = { .node = &node, .links = 1 };
		const struct made_inode in = make_inode(&cfg);

		assert_int_equal(get32(in.at + 0x20), cases[i].kept);
	}
}

static void a_directory_of_too_many_links_counts_one(void **state)
{
	const struct model_node node = { .mode = S_IFDIR | 0755 };
	struct inode_config cfg = { .node = &node, .links = 65000 };

	(void)state;
	assert_int_equal(get16(make_inode(&cfg).at + 0x1a), 65000);
	cfg.links = 65001;
	assert_int_equal(get16(make_inode(&cfg).at + 0x1a), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_are_crc32c),
		cmocka_unit_test(every_extent_is_found_in_its_tree),
		cmocka_unit_test(a_third_level_begins_where_the_second_is_full),
		cmocka_unit_test(the_longest_extent_keeps_its_length),
		cmocka_unit_test(every_field_is_at_its_place),
		cmocka_unit_test(times_reach_from_1901_to_2446),
		cmocka_unit_test(devices_have_the_encoding_that_their_numbers_need),
		cmocka_unit_test(only_flags_of_users_are_kept),
		cmocka_unit_test(a_directory_of_too_many_links_counts_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
