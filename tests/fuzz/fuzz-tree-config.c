// SPDX-License-Identifier: Apache-2.0

/* Every file of a tree is hostile, and so are its attributes.  The first byte of the
 * input chooses who reads it, the rest is what is read.
 */
#include "base/err.h"
#include "base/log.h"
#include "base/mountinfo.h"
#include "base/size.h"
#include "base/str.h"
#include "dest/provenance.h"
#include "ext4/acl.h"
#include "ext4/xattr.h"
#include "system/bls.h"
#include "system/describe.h"
#include "system/fstab_text.h"
#include "system/grub_text.h"
#include "system/grubcfg.h"
#include "system/names.h"
#include "walk/pattern.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct names names = {
	.root = { .present = true,
		  .uuid_text = "01234567-89ab-cdef-0123-456789abcdef",
		  .label = "cloudimg",
		  .partuuid_text = "11234567-89ab-cdef-0123-456789abcdef" },
	.boot = { .present = true, .uuid_text = "21234567-89ab-cdef-0123-456789abcdef" },
	.esp = { .present = true, .uuid_text = "ABCD-1234" },
};

/* --- what is there, as good as by chance and the same each time --- */

static bool path_exists(const void *ctx, const char *path)
{
	(void)ctx;
	return strlen(path) % 2;
}

static bool volume_has_path(const void *ctx, enum boot_volume volume, const char *path)
{
	(void)ctx;
	return (strlen(path) + volume) % 3 == 0;
}

static const struct boot_paths paths = { .subvolume = "/@", .exists = volume_has_path };

static const char *const unwanted[] = { "quiet", "console=", NULL };

static struct cmdline cmdline_of(const struct names *of)
{
	return (struct cmdline){
		.names = of,
		.has_initrd = true,
		.wants_noresume = true,
		.old_root = "UUID=8e2d",
		.unwanted = unwanted,
	};
}

/* --- who reads it --- */

typedef void rewrite_fn(struct slice text, const struct fstab_facts *facts, struct text *out,
			struct text *why);

static void rewrite_table(struct slice text, rewrite_fn *rewrite)
{
	const struct fstab_facts facts = { &names, path_exists, path_exists, path_exists, NULL };
	autotext struct text out = { 0 }, why = { 0 }, again = { 0 };

	rewrite(text, &facts, &out, &why);
	rewrite(text_slice(&out), &facts, &again, &why);
}

static void try_fstab(struct slice text)
{
	rewrite_table(text, fstab_rewrite);
}

static void try_crypttab(struct slice text)
{
	char device[64];

	rewrite_table(text, crypttab_rewrite);
	crypttab_find(text, "root", device, sizeof device);
	crypttab_has_container(text);
}

static void rewrite_grubcfg(struct slice text, const struct names *of, const char *entries)
{
	struct grubcfg cfg = {
		.cmdline = cmdline_of(of), .holder = &names.boot, .paths = paths, .entries = entries
	};
	autotext struct text out = { 0 };

	grubcfg_rewrite(text, &cfg, &out);
	free(boot_changes_text(cfg.cmdline.changes));
}

static void try_grubcfg(struct slice text)
{
	rewrite_grubcfg(text, NULL, NULL);
	rewrite_grubcfg(text, &names, NULL);
	rewrite_grubcfg(text, &names, "menuentry x {\n}\n");
	grubcfg_uses_blscfg(text);
	grubcfg_has_menu(text);
}

static void try_grubenv(struct slice text)
{
	struct cmdline cmdline = cmdline_of(&names);
	autotext struct text out = { 0 };
	struct slice value;

	grubenv_get(text, "kernelopts", &value);
	if (grubenv_rewrite(text, &cmdline, &out))
		assert(out.len == text.len);
	else
		assert(out.len == 0);
}

/* An entry and, behind a byte that is in no text, the environment. */
static void try_bls(struct slice text)
{
	struct cmdline cmdline = cmdline_of(&names);
	autotext struct text out = { 0 }, menu = { 0 };
	struct bls_entry entries[] = {
		{ .id = "a-6.1.0" },
		{ .id = "b", .volume_uuid = names.boot.uuid_text, .root_uuid = "1" },
	};
	struct slice rest = text;

	slice_item(&rest, '\xff', &entries[0].text);
	entries[1].text = rest;
	bls_rewrite(entries[0].text, &cmdline, &paths, &out);
	bls_sort(entries, 2);
	bls_menuentry(&entries[0], entries[1].text, &menu);
	bls_menuentry(&entries[1], entries[0].text, &menu);
}

static void try_default_grub(struct slice text)
{
	struct cmdline cmdline = cmdline_of(&names);
	autotext struct text out = { 0 };

	default_grub_rewrite(text, &cmdline, &out);
}

static void try_cmdline(struct slice text)
{
	struct cmdline cmdline = cmdline_of(&names), look = { 0 };
	autotext struct text out = { 0 }, same = { 0 };

	cmdline_rewrite(text, &cmdline, &out);
	cmdline_rewrite(text, &look, &same);
}

static void try_mountinfo(struct slice text)
{
	automountinfo struct mountinfo info = { 0 };
	int fd = memfd_create("mountinfo", MFD_CLOEXEC);
	char path[32];
	struct err err;

	assert(fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (mountinfo_read(path, &info, &err) < 0)
		assert(err.kind == ERR_FAILED);
	close(fd);
}

/* The pattern is the first line, a path the rest. */
static void try_pattern(struct slice text)
{
	struct pattern *pattern = NULL;
	struct slice line = { 0 };
	struct err err;
	char *of, *path;

	slice_line(&text, &line);
	line = slice_chomp(line);
	of = strndup(line.len ? line.at : "", line.len);
	path = strndup(text.len ? text.at : "", text.len);
	assert(of && path);
	if (pattern_parse(of, &pattern, &err) < 0)
		assert(err.kind == ERR_USAGE && !pattern);
	else if (pattern)
		pattern_matches(pattern, path, path[0] % 2);
	pattern_free(pattern);
	free(of);
	free(path);
}

static void try_acl(struct slice text)
{
	const long size = acl_disk_size(text.at, text.len);
	uint8_t *disk;

	assert(acl_group_rights(text.at, text.len) <= 7);
	if (size < 0)
		return;
	disk = malloc((size_t)size);
	assert(disk);
	acl_to_disk(disk, text.at, text.len);
	free(disk);
}

static void count_drop(void *ctx, const char *name, const char *why)
{
	size_t *count = ctx;

	assert(name && why);
	++*count;
}

/* Names to a NUL, then two bytes with the value's length, then the value. */
static void try_xattrs(struct slice text)
{
	struct model_xattr list[256];
	struct model_xattr_set set = { list, 0 };
	struct xattr_image image;
	size_t dropped = 0;
	struct err err;

	while (set.len < sizeof list / sizeof *list) {
		const char *end = text.len ? memchr(text.at, 0, text.len) : NULL;
		const size_t name = end ? (size_t)(end - text.at) : 0;
		size_t size;

		if (!end || text.len < name + 3)
			break;
		size = MIN((size_t)(uint8_t)end[1] << 8 | (uint8_t)end[2], text.len - name - 3);
		list[set.len++] = (struct model_xattr){ text.at, end + 3, size };
		text = slice_from(text, name + 3 + size);
	}
	assert(xattr_encode(&set, &image, count_drop, &dropped, &err) == 0);
	assert(dropped <= set.len);
	for (size_t i = 0; i < image.lent_count; i++)
		assert(memcmp(image.block + image.lent[i].at, image.lent[i].bytes,
			      image.lent[i].len) == 0);
}

static void try_os_release(struct slice text)
{
	free(os_release_value(text, "ID"));
}

static void try_provenance(struct slice text)
{
	struct err err;
	char **list = provenance_properties(text.at, text.len, &err);

	for (char **p = list; p && *p; p++) {
		assert(str_starts(*p, "provenance-") && strchr(*p, '='));
		free(*p);
	}
	free(list);
}

static void (*const readers[])(struct slice text) = {
	try_fstab,	  try_crypttab,	  try_grubcfg,	  try_grubenv, try_bls,
	try_default_grub, try_cmdline,	  try_mountinfo,  try_pattern, try_acl,
	try_xattrs,	  try_os_release, try_provenance,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	log_set_level(LOG_ERROR);
	if (size > 0)
		readers[data[0] % (sizeof readers / sizeof *readers)](
			(struct slice){ (const char *)data + 1, size - 1 });
	return 0;
}
