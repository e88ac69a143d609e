// SPDX-License-Identifier: Apache-2.0
#include "system/grub_dir.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "system/edit.h"
#include "system/grub.h"
#include "walk/reach.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILE_MAX = 4 * 1024 * 1024, /* the largest, zfs.mod, has less than 1 MiB */
	ENTRIES_MAX = 4096,
};

/* The tree's grub directory last: grub-install leaves modules there, but no kernel. */
static const char *const tree_places[] = {
	"usr/lib/grub", "usr/lib/grub2", "usr/share/grub2", "boot/grub", "boot/grub2", NULL,
};

static const char *const host_places[] = {
	"/usr/lib/grub", "/usr/lib/grub2", "/usr/share/grub", "/usr/share/grub2", NULL,
};

/* Without one of these no image can be made, or it would not find its root. */
static const char *const needed[] = {
	"kernel.img", "moddep.lst", "part_gpt.mod",	  "ext2.mod",	"normal.mod", "linux.mod",
	"echo.mod",   "regexp.mod", "search_fs_uuid.mod", "search.mod", "sleep.mod",  NULL,
};

static const char *const needed_for_bios[] = {
	"boot.img", "diskboot.img", "lzma_decompress.img", "biosdisk.mod", NULL,
};

static bool is_sane_file(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size <= FILE_MAX;
}

bool grub_dir_has_module(int dir, const char *module)
{
	char name[64];

	snprintf(name, sizeof name, "%s.mod", module);
	return is_sane_file(dir, name);
}

int grub_dir_read(int dir, const char *name, uint8_t *bytes, size_t len, struct err *err)
{
	autoclose int fd =
		openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, ERR_FAILED, "cannot open GRUB's %s", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != len)
		return err_set(err, ERR_FAILED, "GRUB's %s is no file of %zu bytes", name, len);
	if (io_pread(fd, bytes, len, 0, NULL) != (ssize_t)len)
		return err_errno(err, ERR_FAILED, "cannot read GRUB's %s", name);
	return 0;
}

static bool has_all(int dir, const char *const *names)
{
	for (; *names; names++)
		if (!is_sane_file(dir, *names))
			return false;
	return true;
}

static bool might_be_opened(const char *name)
{
	return str_ends(name, ".mod") || str_ends(name, ".img") || str_ends(name, ".lst");
}

/* Modules drag others in, so every one is looked at. */
static bool has_only_sane_files(int dir)
{
	autodir DIR *list = NULL;
	const struct dirent *entry;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		cleanup_close(&fd);
		return false;
	}
	for (unsigned n = 0; (entry = readdir(list)); n++)
		if (n >= ENTRIES_MAX ||
		    (might_be_opened(entry->d_name) && !is_sane_file(dir, entry->d_name)))
			return false;
	return true;
}

static bool is_complete(int dir, const char *platform)
{
	bool bios = str_ends(platform, "-pc");

	return has_all(dir, needed) && (!bios || has_all(dir, needed_for_bios)) &&
	       has_only_sane_files(dir);
}

static int open_in_tree(struct edit *e, const char *path)
{
	uint32_t node = model_resolve(e->model, path, MODEL_FOLLOW);

	if (node == MODEL_NONE || !S_ISDIR(e->model->nodes[node].mode))
		return -1;
	return reach_directory(e->reach, node);
}

static int open_on_host(struct edit *e, const char *path)
{
	(void)e;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int find_at(struct edit *e, const char *platform, const char *const *places,
		   int (*open_it)(struct edit *e, const char *path), struct grub_modules *out,
		   struct err *err)
{
	for (; *places && out->fd < 0; places++) {
		autofree char *path = str_format("%s/%s", *places, platform);
		autoclose int fd = path ? open_it(e, path) : -1;

		if (!path)
			return err_nomem(err);
		if (fd >= 0 && is_complete(fd, platform))
			out->fd = steal_fd(&fd);
	}
	return 0;
}

int grub_dir_find(struct edit *e, const char *platform, struct grub_modules *out, struct err *err)
{
	*out = (struct grub_modules){ .fd = -1 };
	if (find_at(e, platform, tree_places, open_in_tree, out, err) < 0)
		return -1;
	out->of_tree = out->fd >= 0;
	if (find_at(e, platform, host_places, open_on_host, out, err) < 0)
		return -1;
	out->has_blscfg = out->fd >= 0 && grub_dir_has_module(out->fd, "blscfg");
	return 0;
}
