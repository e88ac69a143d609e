// SPDX-License-Identifier: Apache-2.0
#include "system/esp.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"
#include "system/device.h"
#include "system/edit.h"
#include "system/edit_inner.h"
#include "system/esp_list.h"
#include "system/tool.h"
#include "walk/reach.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Always FAT32, as the UEFI specification wants it on disks. */
enum {
	CLUSTERS_MIN = 66000, /* FAT32 begins at 65525 */
	RESERVED_SECTORS = 32,
	SLOT_SIZE = 32, /* of a directory entry, of which a long name takes several */
	NAME_UNITS = 13,
	LABEL_LEN = 11,

	/* In the boot sector and its copy (FAT specification 1.03, section 3). */
	BPB_RESERVED = 14,
	BPB_FATS = 16,
	BPB_FAT_SECTORS = 36,
	BPB_LABEL = 71,
	BOOT_COPY_SECTOR = 6,
};

/* Clusters as large as they usually are for the size.  Not below 1 KiB: mtools
 * grows a directory by one cluster, which must hold the longest name.
 */
static const struct {
	uint64_t cluster, size_max;
} geometries[] = {
	{ 1 * KIB, 260 * MIB }, { 4 * KIB, 8 * GIB },	{ 8 * KIB, 16 * GIB },
	{ 16 * KIB, 24 * GIB }, { 32 * KIB, 32 * GIB },
};

struct esp {
	const struct esp_config *cfg;
	struct esp_list list;
	uint64_t size, cluster;
	int fd;
};

static void esp_cleanup(struct esp *esp)
{
	esp_list_free(&esp->list);
	cleanup_close(&esp->fd);
}

/* Of all files and directories, and an eighth more to work with. */
static uint64_t clusters_needed(const struct esp_list *list, uint64_t cluster)
{
	uint64_t clusters = 1, slots = 0;

	for (size_t i = 0; i < list->len; i++) {
		const struct esp_item *item = &list->at[i];

		clusters += div_up(item->size, cluster) + (item->is_directory ? 2 : 0);
		slots += 2 + strlen(item->path) / NAME_UNITS;
	}
	clusters += div_up(slots * SLOT_SIZE, cluster);
	return clusters + clusters / 8 + div_up(MIB, cluster);
}

static uint64_t size_of(uint64_t clusters, uint64_t cluster, unsigned sector_size)
{
	uint64_t fat = div_up((clusters + 2) * 4, sector_size) + 1;

	return (RESERVED_SECTORS + 2 * fat) * sector_size + clusters * cluster;
}

static int choose_geometry(struct esp *esp, struct err *err)
{
	const struct esp_config *cfg = esp->cfg;

	for (size_t i = 0; i < sizeof geometries / sizeof *geometries; i++) {
		uint64_t cluster = MAX(geometries[i].cluster, cfg->sector_size);
		uint64_t clusters = MAX(clusters_needed(&esp->list, cluster), CLUSTERS_MIN);
		uint64_t size = MAX(size_of(clusters, cluster, cfg->sector_size), cfg->min_size);

		size = round_up(size, MIB);
		if (size <= geometries[i].size_max) {
			esp->size = size;
			esp->cluster = cluster;
			return 0;
		}
	}
	return err_set(err, ERR_REFUSED, "an EFI system partition cannot be larger than 32 GiB");
}

/* The image is the program's 3, fd its 4; arguments end with NULL. */
static int run(const struct esp *esp, const char *const *argv, int fd, int64_t now, struct err *err)
{
	const int fds[] = { esp->fd, fd };
	const struct tool tool = {
		.argv = argv,
		.fds = fds,
		.fd_count = fd < 0 ? 1 : 2,
		.time = now,
		.package = "mtools",
	};

	return tool_run(&tool, err);
}

static int format(const struct esp *esp, struct err *err)
{
	unsigned sector_size = esp->cfg->sector_size;
	char sectors[24], cluster[24], serial[9], code[12], bytes[12];
	uint8_t id[4];
	const char *argv[24] = { "mformat", "-i",    "/proc/self/fd/3",
				 "-F",	    "-T",    sectors,
				 "-h",	    "255",   "-s",
				 "63",	    "-m",    "248",
				 "-c",	    cluster, "-N",
				 serial,    "-S",    code,
				 "-M",	    bytes };
	size_t n = 20;

	if (!fat_serial_parse(esp->cfg->serial, id))
		return err_set(err, ERR_FAILED, "'%s' is no serial number of a FAT",
			       esp->cfg->serial);
	snprintf(serial, sizeof serial, "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
	snprintf(sectors, sizeof sectors, "%llu", (unsigned long long)(esp->size / sector_size));
	snprintf(cluster, sizeof cluster, "%llu", (unsigned long long)(esp->cluster / sector_size));
	snprintf(code, sizeof code, "%d", sector_size == 4096 ? 5 : 2); /* 128 << code */
	snprintf(bytes, sizeof bytes, "%u", sector_size);
	if (*esp->cfg->label) {
		argv[n++] = "-v";
		argv[n++] = "UNNAMED"; /* see write_label */
	}
	argv[n] = "::";
	return run(esp, argv, -1, esp->cfg->time, err);
}

/* mformat makes capitals of a label, by which fstab could not find it any more. */
static int write_label(const struct esp *esp, struct err *err)
{
	uint64_t sector_size = esp->cfg->sector_size, root;
	uint8_t boot[128];
	char label[LABEL_LEN];
	uint32_t fat_sectors;
	size_t len = strlen(esp->cfg->label);

	if (len == 0)
		return 0;
	if (io_pread(esp->fd, boot, sizeof boot, 0, NULL) != sizeof boot)
		return err_errno(err, ERR_FAILED, "cannot read the EFI system partition");
	memcpy(&fat_sectors, boot + BPB_FAT_SECTORS, sizeof fat_sectors);
	root = boot[BPB_RESERVED] + boot[BPB_FATS] * (uint64_t)le32toh(fat_sectors);
	memset(label, ' ', sizeof label);
	memcpy(label, esp->cfg->label, MIN(len, sizeof label));
	/* the label is the root directory's first entry */
	if (io_pwrite(esp->fd, label, sizeof label, root * sector_size) < 0 ||
	    io_pwrite(esp->fd, label, sizeof label, BPB_LABEL) < 0 ||
	    io_pwrite(esp->fd, label, sizeof label, BOOT_COPY_SECTOR * sector_size + BPB_LABEL) < 0)
		return err_errno(err, ERR_FAILED, "cannot name the EFI system partition");
	return 0;
}

/* As many bytes as the plan has room for, and what is missing stays zero. */
static int copy_file(const struct esp *esp, const struct esp_item *item, int from, char *to,
		     struct err *err)
{
	const struct model *m = esp->cfg->edit->model;
	const struct model_node *node = &m->nodes[item->node];
	size_t done = 0;
	struct stat st;

	if (io_pread(from, to, item->size, 0, &done) < 0 || fstat(from, &st) < 0) {
		autofree char *path = model_path(m, item->node);

		return err_errno(err, ERR_FAILED, "%s: cannot read at offset %zu",
				 path ? path : item->path, done);
	}
	if (reach_is_unchanged(node, &st))
		return 0;
	return edit_account(esp->cfg->edit, ACCOUNT_CHANGED, item->node,
			    "changed before it was copied to the ESP", "", err);
}

/* 1 when it has gone. */
static int read_source(const struct esp *esp, const struct esp_item *item, char *to,
		       struct err *err)
{
	const struct edit *e = esp->cfg->edit;
	const struct model_node *node = &e->model->nodes[item->node];
	autofree char *path = NULL;
	autoclose int from = -1;
	struct stat now;

	if (node->content) {
		memcpy(to, node->content, item->size);
		return 0;
	}
	from = reach_file(e->reach, item->node, &now);
	if (from >= 0)
		return copy_file(esp, item, from, to, err);
	if (errno == ESTALE || errno == ENOENT)
		return edit_account(e, ACCOUNT_VANISHED, item->node,
				    "replaced or removed before it was copied to the ESP", "",
				    err) < 0
			       ? -1
			       : 1;
	path = model_path(e->model, item->node);
	return err_errno(err, ERR_FAILED, "%s: cannot open", path ? path : item->path);
}

static int fill(const struct esp *esp, const struct esp_item *item, char *to, struct err *err)
{
	if (!item->file)
		return read_source(esp, item, to, err);
	memcpy(to, item->file->bytes, item->size);
	return 0;
}

/* The file's bytes in a memfd: mtools never gets hold of a file of the source.
 * 1 when it has gone.
 */
static int hold_content(const struct esp *esp, const struct esp_item *item, int *fd,
			struct err *err)
{
	autoclose int held = memfd_create("esp-file", MFD_CLOEXEC);
	char none[1], *map = none;
	int rc;

	if (held < 0 || ftruncate(held, (off_t)item->size) < 0)
		return err_errno(err, ERR_FAILED, "cannot keep %s in memory", item->path);
	if (item->size > 0)
		map = mmap(NULL, item->size, PROT_READ | PROT_WRITE, MAP_SHARED, held, 0);
	if (map == MAP_FAILED)
		return err_errno(err, ERR_FAILED, "cannot keep %s in memory", item->path);
	rc = fill(esp, item, map, err);
	if (map != none)
		munmap(map, item->size);
	if (rc == 0)
		*fd = steal_fd(&held);
	return rc;
}

static int put_item(const struct esp *esp, const struct esp_item *item, struct err *err)
{
	autofree char *target = str_format("::/%s", item->path);
	autoclose int content = -1;
	/* -D s: what is there already is skipped, and that is an error */
	const char *const make[] = {
		"mmd", "-i", "/proc/self/fd/3", "-D", "s", target, NULL,
	};
	const char *const copy[] = {
		"mcopy", "-i", "/proc/self/fd/3", "-D", "s", "/proc/self/fd/4", target, NULL,
	};
	int rc = 0;

	if (!target)
		return err_nomem(err);
	if (!item->is_directory)
		rc = hold_content(esp, item, &content, err);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	rc = run(esp, item->is_directory ? make : copy, content, item->time, err);
	return rc < 0 ? err_context(err, "%s on the EFI system partition", item->path) : 0;
}

static int make_image(struct esp *esp, struct err *err)
{
	esp->fd = memfd_create("esp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (esp->fd < 0 || ftruncate(esp->fd, (off_t)esp->size) < 0)
		return err_errno(err, ERR_FAILED, "cannot keep an EFI system partition in memory");
	if (format(esp, err) < 0 || write_label(esp, err) < 0)
		return -1;
	for (size_t i = 0; i < esp->list.len; i++)
		if (put_item(esp, &esp->list.at[i], err) < 0)
			return -1;
	if (fcntl(esp->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) <
	    0)
		return err_errno(err, ERR_FAILED, "cannot seal the EFI system partition");
	return 0;
}

int esp_build(const struct esp_config *cfg, int *fd, uint64_t *size, struct err *err)
{
	CLEANUP(esp_cleanup) struct esp esp = { .cfg = cfg, .fd = -1 };

	if (esp_list_make(cfg, &esp.list, err) < 0 || choose_geometry(&esp, err) < 0 ||
	    make_image(&esp, err) < 0)
		return -1;
	*fd = steal_fd(&esp.fd);
	*size = esp.size;
	return 0;
}
