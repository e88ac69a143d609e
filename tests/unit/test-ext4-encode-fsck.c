// SPDX-License-Identifier: Apache-2.0
/* All that the encoders make, put by hand into an empty filesystem of mke2fs:
 * e2fsck and debugfs are the judges.
 */
#include "ext4-dir-kit.h"
#include "ext4/extents.h"
#include "ext4/inode.h"
#include "ext4/xattr.h"

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext2fs.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/test-ext4-XXXXXX";
static ext2_filsys fs;
static uint32_t fs_seed;
static struct names root;

static int shell(const char *command)
{
	const int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void expect_shell(const char *fmt, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	if (shell(command) != 0)
		fail_msg("failed: %s", command);
}

static void check(errcode_t code)
{
	if (code)
		fail_msg("%s", error_message(code));
}

static int enter(void **state)
{
	(void)state;
	if (setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1) || !mkdtemp(dir))
		return -1;
	return chdir(dir);
}

static int leave(void **state)
{
	static const char *const files[] = { "image", "log", "value" };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		unlink(files[i]);
	return chdir("/") || rmdir(dir) ? -1 : 0;
}

static void make_filesystem(void)
{
	expect_shell("mke2fs -q -F -b 4096 -I 256 -N 256 -m 0"
		     " -O none,ext_attr,dir_index,filetype,extent,64bit,sparse_super,large_file,"
		     "huge_file,dir_nlink,extra_isize,metadata_csum"
		     " -U deadbeef-0102-0304-0506-0708090a0b0c -E lazy_itable_init=0,"
		     "hash_seed=11111111-2222-2222-3333-333344444444 image 128M");
	check(ext2fs_open("image", EXT2_FLAG_RW | EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs));
	check(ext2fs_read_bitmaps(fs));
	fs_seed = checksum_seed_fs(fs->super->s_uuid);
	assert_int_equal(fs_seed, fs->csum_seed);
	root = names_new(64);
}

static uint64_t new_block(uint64_t goal)
{
	blk64_t block;

	check(ext2fs_new_block2(fs, goal, NULL, &block));
	ext2fs_block_alloc_stats2(fs, block, +1);
	return block;
}

static void write_block(uint64_t block, const uint8_t *bytes)
{
	check(io_channel_write_blk64(fs->io, block, 1, bytes));
}

static void write_inode(uint32_t ino, const uint8_t raw[INODE_SIZE])
{
	const uint32_t group = (ino - 1) / fs->super->s_inodes_per_group;
	const uint32_t at = (ino - 1) % fs->super->s_inodes_per_group * INODE_SIZE;
	const uint64_t block = ext2fs_inode_table_loc(fs, group) + at / BLOCK;
	uint8_t bytes[BLOCK];

	check(io_channel_read_blk64(fs->io, block, 1, bytes));
	memcpy(bytes + at % BLOCK, raw, INODE_SIZE);
	write_block(block, bytes);
	check(ext2fs_flush_icache(fs));
}

static uint32_t new_inode(const char *name, uint32_t mode)
{
	ext2_ino_t ino;

	check(ext2fs_new_inode(fs, EXT2_ROOT_INO, (int)mode, NULL, &ino));
	ext2fs_inode_alloc_stats2(fs, ino, +1, S_ISDIR(mode));
	names_add(&root, name, 0);
	root.at[root.len - 1].ino = ino;
	root.at[root.len - 1].mode = mode;
	return ino;
}

/* So many extents, gap blocks apart. */
struct shape {
	uint32_t extents, length, gap;
};

static struct placed_extent *new_extents(const struct shape *shape)
{
	struct placed_extent *list = calloc(shape->extents + 1, sizeof *list);
	uint64_t goal = 0;

	assert_non_null(list);
	for (uint32_t i = 0; i < shape->extents; i++) {
		list[i].logical = i * (shape->length + shape->gap);
		list[i].count = shape->length;
		list[i].physical = new_block(goal);
		for (uint32_t k = 1; k < shape->length; k++)
			assert_true(new_block(list[i].physical + k) == list[i].physical + k);
		goal = list[i].physical + shape->length + shape->gap;
	}
	return list;
}

static void put_inode(const struct inode_config *cfg)
{
	uint8_t raw[INODE_SIZE];

	inode_encode(cfg, raw);
	write_inode(cfg->ino, raw);
}

static void put_with_tree(struct inode_config *cfg, const struct placed_extent *list, size_t count)
{
	const uint64_t tree = extents_tree_blocks(count);
	uint64_t *blocks = calloc(tree + 1, sizeof *blocks);
	uint8_t *nodes = calloc(tree + 1, BLOCK), i_block[60];

	assert_true(blocks && nodes);
	for (uint64_t i = 0; i < tree; i++)
		blocks[i] = new_block(0);
	extents_encode(list, count, blocks, cfg->checksum_seed, i_block, nodes);
	for (uint64_t i = 0; i < tree; i++)
		write_block(blocks[i], nodes + i * BLOCK);
	cfg->i_block = i_block;
	cfg->extents = true;
	cfg->blocks += tree;
	put_inode(cfg);
	free(blocks);
	free(nodes);
}

/* Write the inode, with data of that shape; bytes are of the first extent. */
static void put_data(struct inode_config *cfg, const struct shape *shape, const uint8_t *bytes)
{
	struct placed_extent *list = new_extents(shape);

	for (uint32_t i = 0; bytes && i < shape->length; i++)
		write_block(list[0].physical + i, bytes + (size_t)i * BLOCK);
	cfg->blocks += (uint64_t)shape->extents * shape->length;
	put_with_tree(cfg, list, shape->extents);
	for (uint32_t i = 0; i < shape->extents; i++) {
		blk64_t found;

		check(ext2fs_bmap2(fs, cfg->ino, NULL, NULL, 0, list[i].logical, NULL, &found));
		assert_true(found == list[i].physical);
	}
	free(list);
}

static struct inode_config config_of(uint32_t ino, const struct model_node *node)
{
	return (struct inode_config){ .node = node,
				      .links = 1,
				      .ino = ino,
				      .checksum_seed = checksum_seed_inode(fs_seed, ino) };
}

static void put_sparse_file(const char *name, uint32_t extents)
{
	const struct model_node node = { .mode = S_IFREG | 0644 };
	struct inode_config cfg = config_of(new_inode(name, node.mode), &node);

	cfg.size = (uint64_t)extents * 2 * BLOCK;
	put_data(&cfg, &(struct shape){ extents, 1, 1 }, NULL);
}

static void put_directory(const char *name, const struct names *n, uint32_t file)
{
	const struct model_node node = { .mode = S_IFDIR | 0755, .mtime_sec = 1 };
	struct inode_config cfg = config_of(new_inode(name, node.mode), &node);
	struct dir_config dir_cfg = { .ino = cfg.ino,
				      .parent_ino = EXT2_ROOT_INO,
				      .entries = n->at,
				      .count = n->len,
				      .checksum_seed = cfg.checksum_seed };
	struct dir_blocks blocks;
	struct err err = { 0 };

	for (size_t i = 0; i < n->len; i++) {
		n->at[i].ino = file;
		n->at[i].mode = S_IFREG;
	}
	memcpy(dir_cfg.hash_seed, fs->super->s_hash_seed, sizeof dir_cfg.hash_seed);
	if (dir_encode(&dir_cfg, &blocks, &err))
		fail_msg("%s", err.text);
	cfg.links = 2;
	cfg.size = (uint64_t)blocks.count * BLOCK;
	cfg.indexed = blocks.indexed;
	put_data(&cfg, &(struct shape){ 1, blocks.count, 0 }, blocks.bytes);
	dir_blocks_free(&blocks);
}

static void put_directories(void)
{
	static const size_t counts[] = { 0,	   1,	     15,       16,	 507 * 15,
					 508 * 15, 510 * 15, 511 * 15, 1021 * 15 };
	const struct model_node node = { .mode = S_IFREG | 0644 };
	struct inode_config cfg = config_of(new_inode("file", node.mode), &node);
	char name[32];

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct names n = numbered(counts[i], 255);

		cfg.links += (uint32_t)n.len;
		snprintf(name, sizeof name, "dir%zu", n.len);
		put_directory(name, &n, cfg.ino);
		names_free(&n);
	}
	put_data(&cfg, &(struct shape){ 0, 0, 0 }, NULL);
}

/* 145 names of 17 bytes fill one block, without or with one byte more. */
static void put_edges(void)
{
	const struct model_node node = { .mode = S_IFREG | 0644 };
	struct inode_config cfg = config_of(new_inode("other", node.mode), &node);
	struct names n = numbered(1000, 17);

	n.len = 145;
	put_directory("full", &n, cfg.ino);
	n.at[7].len = 21;
	put_directory("one-leaf", &n, cfg.ino);
	n.len = 500;
	names_add(&n, "S3Tm_", 5);
	n.len = 1000;
	put_directory("reserved", &n, cfg.ino);
	cfg.links += 145 + 145 + 1000;
	put_data(&cfg, &(struct shape){ 0, 0, 0 }, NULL);
	names_free(&n);
}

static void put_special(const char *name, const struct model_node *node, const uint8_t *i_block)
{
	struct inode_config cfg = config_of(new_inode(name, node->mode), node);

	cfg.size = node->size;
	cfg.i_block = i_block;
	put_inode(&cfg);
}

static void put_specials(void)
{
	static const uint8_t target[60] = "where/to";
	const struct model_node nodes[] = {
		{ .mode = S_IFBLK | 0600, .rdev_major = 259, .rdev_minor = 74565 },
		{ .mode = S_IFCHR | 0600, .rdev_major = 1, .rdev_minor = 3 },
		{ .mode = S_IFIFO | 0600, .mtime_sec = INT32_MIN, .mtime_nsec = 500000000 },
		{ .mode = S_IFSOCK | 0600, .mtime_sec = 0x37fffffff, .mtime_nsec = 999999999 },
		{ .mode = S_IFLNK | 0777, .size = 8, .flags = UINT32_MAX },
	};
	static const char *const names[] = { "blk", "chr", "fifo", "sock", "link" };

	for (size_t i = 0; i < 5; i++)
		put_special(names[i], &nodes[i], S_ISLNK(nodes[i].mode) ? target : NULL);
}

static void no_drop(void *ctx, const char *name, const char *why)
{
	(void)ctx;
	fail_msg("%s: %s", name, why);
}

/* In the form that debugfs gives back: the ids that mean nothing are 0. */
static const uint8_t acl[] = { 2, 0,	0, 0, 1, 0, 6,	0, 0, 0, 0, 0, 2, 0,  4,
			       0, 0xd2, 4, 0, 0, 4, 0,	4, 0, 0, 0, 0, 0, 16, 0,
			       4, 0,	0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0 };
static const char big[3000] = "large";

/* Two files that share a block of attributes, and have some in the inode. */
static void put_attributes(void)
{
	const struct model_xattr list[] = { { "security.x", "sec", 3 },
					    { "system.posix_acl_access", acl, sizeof acl },
					    { "trusted.\xff", big, 100 },
					    { "user.big", big, sizeof big },
					    { "user.empty", "", 0 } };
	const struct model_xattr_set set = { (struct model_xattr *)list, 5 };
	const struct model_node node = { .mode = S_IFREG | 0640 };
	const uint64_t block = new_block(0);
	struct xattr_image image;
	struct err err;

	assert_int_equal(xattr_encode(&set, &image, no_drop, NULL, &err), 0);
	assert_true(image.has_block);
	xattr_block_seal(image.block, 2, block, fs_seed);
	write_block(block, image.block);
	for (int i = 0; i < 2; i++) {
		const uint32_t ino = new_inode(i ? "attr1" : "attr0", node.mode);
		struct inode_config cfg = config_of(ino, &node);

		cfg.xattrs = image.inode;
		cfg.xattr_block = block;
		cfg.blocks = 1;
		put_data(&cfg, &(struct shape){ 0, 0, 0 }, NULL);
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct dir_entry *x = a, *y = b;
	const int order = memcmp(x->name, y->name, MIN(x->len, y->len));

	return order ? order : x->len - y->len;
}

/* The root directory, whose block and inode mke2fs has made, is ours, too. */
static void put_root(void)
{
	const struct model_node node = { .mode = S_IFDIR | 0755 };
	struct inode_config cfg = config_of(EXT2_ROOT_INO, &node);
	struct dir_config dir_cfg = { .ino = EXT2_ROOT_INO,
				      .parent_ino = EXT2_ROOT_INO,
				      .checksum_seed = cfg.checksum_seed };
	struct dir_blocks blocks;
	struct err err;
	blk64_t old;

	check(ext2fs_bmap2(fs, EXT2_ROOT_INO, NULL, NULL, 0, 0, NULL, &old));
	ext2fs_block_alloc_stats2(fs, old, -1);
	names_add(&root, "lost+found", 0);
	root.at[root.len - 1].ino = 11;
	root.at[root.len - 1].mode = S_IFDIR;
	qsort(root.at, root.len, sizeof *root.at, compare_names);
	dir_cfg.entries = root.at;
	dir_cfg.count = root.len;
	assert_int_equal(dir_encode(&dir_cfg, &blocks, &err), 0);
	cfg.size = BLOCK;
	cfg.links = 2;
	for (size_t i = 0; i < root.len; i++)
		cfg.links += S_ISDIR(root.at[i].mode);
	put_data(&cfg, &(struct shape){ 1, blocks.count, 0 }, blocks.bytes);
	dir_blocks_free(&blocks);
	names_free(&root);
}

static void expect_attribute(const char *name, const void *value, size_t size)
{
	char got[4096];
	FILE *f;

	expect_shell("debugfs -R 'ea_get -f value /attr1 %s' image >log 2>&1", name);
	f = fopen("value", "r");
	assert_non_null(f);
	assert_int_equal(fread(got, 1, sizeof got, f), size);
	assert_memory_equal(got, value, size);
	fclose(f);
}

static void expect_said(const char *file, const char *pattern)
{
	expect_shell("debugfs -R 'stat /%s' image 2>log | grep -q -e '%s'", file, pattern);
}

static void fsck_and_debugfs_find_no_fault(void **state)
{
	static const uint32_t extents[] = { 0, 4, 5, 1360, 1361 };
	char name[32];

	(void)state;
	if (shell("mke2fs -V >log 2>&1 && e2fsck -V >>log 2>&1 && debugfs -V >>log 2>&1"))
		skip();
	make_filesystem();
	put_directories();
	put_edges();
	put_specials();
	put_attributes();
	for (size_t i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "extents%u", (unsigned)extents[i]);
		put_sparse_file(name, extents[i]);
	}
	put_root();
	check(ext2fs_close_free(&fs));

	expect_shell("e2fsck -fn image >log 2>&1 || { cat log; false; }");
	expect_shell("! grep -e '?' -e 'could be' log");
	expect_said("blk", "Device major/minor number: 259:74565");
	expect_said("chr", "Device major/minor number: 01:03");
	expect_said("fifo", "mtime: 0x80000000:77359400 -- Fri Dec 13 ..:..:52 1901");
	expect_said("sock", "mtime: 0x7fffffff:ee6b27ff");
	expect_said("link", "Fast link dest: \"where/to\"");
	expect_attribute("user.big", big, sizeof big);
	expect_attribute("security.x", "sec", 3);
	expect_attribute("system.posix_acl_access", acl, sizeof acl);
	expect_attribute("user.empty", "", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fsck_and_debugfs_find_no_fault, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
