/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_TEST_EXT4_BUILD_KIT_H
#define CCSNAP_TEST_EXT4_BUILD_KIT_H

/* Models made by hand, laid out, written to a sparse file, and judged by e2fsck
 * and debugfs.
 */
#include "base/account.h"
#include "base/err.h"
#include "base/size.h"
#include "ext4/ext4.h"
#include "source/extent.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KIT_TIME 1700000000u
#define KIT_MIN	 (16 * MIB) /* of the filesystem, unless a test says otherwise */

static char kit_dir[64];
static struct err err;
static struct model model;
static struct account account;
static struct ext4 *fs;
static struct ext4_config config;

/* --- a place for the image -------------------------------------------------------- */

static inline int kit_enter(void **state)
{
	(void)state;
	strcpy(kit_dir, "/tmp/test-laid-out-XXXXXX");
	if (setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1) || !mkdtemp(kit_dir))
		return -1;
	return chdir(kit_dir);
}

static inline int kit_leave(void **state)
{
	(void)state;
	return chdir("/") || rmdir(kit_dir) ? -1 : 0;
}

static inline uint32_t add_node(uint32_t mode)
{
	const struct model_node node = { .mode = mode, .mtime_sec = KIT_TIME };
	const uint32_t id = model_add(&model, &node, &err);

	assert_int_not_equal(id, MODEL_NONE);
	return id;
}

static inline int kit_begin(void **state)
{
	(void)state;
	model_init(&model);
	memset(&account, 0, sizeof account);
	memset(&err, 0, sizeof err);
	config = (struct ext4_config){
		.model = &model,
		.root = MODEL_ROOT,
		.uuid = { 0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x46, 0x87, 0x98, 0xa9, 0xba, 0xcb,
			  0xdc, 0xed, 0xfe, 0x0f },
		.label = "cloudimg",
		.time = KIT_TIME,
		.min_size = KIT_MIN,
		.account = &account,
	};
	add_node(S_IFDIR | 0755);
	return 0;
}

static inline int kit_end(void **state)
{
	(void)state;
	ext4_close(fs);
	fs = NULL;
	model_free(&model);
	account_free(&account);
	unlink("image");
	unlink("image2");
	unlink("out");
	return 0;
}

/* --- nodes ------------------------------------------------------------------------- */

static inline void link_node(uint32_t dir, const char *name, uint32_t node)
{
	assert_int_equal(model_link(&model, dir, name, strlen(name), node, &err), 0);
}

static inline uint32_t add_dir(uint32_t dir, const char *name)
{
	const uint32_t node = add_node(S_IFDIR | 0755);

	link_node(dir, name, node);
	return node;
}

/* A file whose bytes are read from outside: those of pattern(). */
static inline uint32_t add_file(uint32_t dir, const char *name, uint64_t size)
{
	const uint32_t node = add_node(S_IFREG | 0644);

	model.nodes[node].size = size;
	model.nodes[node].data = MODEL_DENSE;
	link_node(dir, name, node);
	return node;
}

static inline uint32_t add_content(uint32_t dir, const char *name, uint32_t mode, const char *text)
{
	const uint32_t node = add_node(mode);

	model.nodes[node].size = strlen(text);
	model.nodes[node].data = MODEL_DENSE;
	model.nodes[node].content = strdup(text);
	link_node(dir, name, node);
	return node;
}

static inline void set_xattrs(uint32_t node, const char *name, const void *value, size_t size)
{
	const struct model_xattr attr = { name, value, size };

	assert_int_equal(model_xattrs(&model, &attr, 1, &model.nodes[node].xattrs, &err), 0);
}

/* --- images ------------------------------------------------------------------------- */

static inline uint8_t pattern(uint32_t node, uint64_t offset)
{
	return (uint8_t)((node + 1) * 2654435761u >> 8 ^ offset * 31 ^ offset >> 12) | 1;
}

static inline void pattern_fill(uint8_t *buf, size_t len, uint32_t node, uint64_t offset)
{
	const uint64_t size = model.nodes[node].size;

	for (size_t i = 0; i < len; i++)
		buf[i] = offset + i < size ? pattern(node, offset + i) : 0;
}

static inline void build(void)
{
	ext4_close(fs);
	fs = ext4_build(&config, &err);
	if (!fs)
		fail_msg("%s", err.text);
}

static inline void write_piece(int fd, uint64_t at, const struct ext4_piece *piece)
{
	static uint8_t buf[MIB];

	for (uint64_t done = 0; done < piece->length;) {
		const size_t part = MIN(piece->length - done, sizeof buf);

		if (piece->kind == EXT4_META)
			ext4_copy_meta(fs, buf, part, at + done);
		else
			pattern_fill(buf, part, piece->node, piece->offset + done);
		assert_int_equal(pwrite(fd, buf, part, (off_t)(at + done)), part);
		done += part;
	}
}

static inline void write_range(int fd, uint64_t offset, uint64_t length)
{
	const uint64_t end = offset + length;

	while (offset < end) {
		const struct ext4_piece piece = ext4_piece(fs, offset, end - offset);

		assert_true(piece.length > 0 && piece.length <= end - offset);
		if (piece.kind != EXT4_ZERO)
			write_piece(fd, offset, &piece);
		offset += piece.length;
	}
}

static inline void write_image(const char *name)
{
	const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)ext4_size(fs)), 0);
	write_range(fd, 0, ext4_size(fs));
	close(fd);
}

static inline int shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline int shell(const char *fmt, ...)
{
	char command[1024];
	va_list ap;
	int status;

	va_start(ap, fmt);
	vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void expect_clean(const char *image)
{
	if (shell("e2fsck -fn %s >out 2>&1", image) != 0) {
		shell("head -c 4000 out");
		fail_msg("e2fsck -fn finds fault");
	}
}

static inline void build_and_check(void)
{
	build();
	write_image("image");
	expect_clean("image");
}

/* What debugfs or dumpe2fs prints, until the next call. */
static inline const char *ask(const char *command)
{
	static char text[65536];
	FILE *pipe = popen(command, "r");
	size_t len;

	assert_non_null(pipe);
	len = fread(text, 1, sizeof text - 1, pipe);
	text[len] = '\0';
	pclose(pipe);
	return text;
}

static inline const char *debugfs(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline const char *debugfs(const char *fmt, ...)
{
	char request[600], command[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(request, sizeof request, fmt, ap);
	va_end(ap);
	snprintf(command, sizeof command, "debugfs -R '%s' image 2>&1", request);
	return ask(command);
}

static inline void expect_text(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" not in: %s", part, text);
}

/* The file at path in the image has the node's bytes. */
static inline void expect_bytes(const char *path, uint32_t node)
{
	const struct model_node *n = &model.nodes[node];
	uint8_t *found = malloc(n->size + 1), *wanted = malloc(n->size + 1);
	FILE *file;

	debugfs("dump %s out", path);
	file = fopen("out", "r");
	assert_non_null(file);
	assert_int_equal(fread(found, 1, n->size + 1, file), n->size);
	fclose(file);
	if (n->content)
		memcpy(wanted, n->content, n->size);
	else
		pattern_fill(wanted, n->size, node, 0);
	assert_memory_equal(found, wanted, n->size);
	free(found);
	free(wanted);
}

static inline bool same_files(const char *a, const char *b)
{
	return shell("cmp -s %s %s", a, b) == 0;
}

#endif
