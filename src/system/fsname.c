// SPDX-License-Identifier: Apache-2.0
#include "system/fsname.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"
#include "base/uuid.h"
#include "system/names.h"
#include "system/text.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* Kernel 6.9. */
#ifndef FS_IOC_GETFSUUID
struct fsuuid2 {
	__u8 len;
	__u8 uuid[16];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

#define RAMFS_MAGIC_NUMBER 0x858458f6 /* the header lacks it in some versions */

/* They make up a UUID with each mount, so nothing can refer to it. */
static const unsigned long made_up[] = { TMPFS_MAGIC, RAMFS_MAGIC_NUMBER, OVERLAYFS_SUPER_MAGIC };

/* A longer label is none: the image could not hold it. */
static void set_label(struct fsname *out, struct slice label)
{
	if (!slice_copy(label, out->label, sizeof out->label))
		out->label[0] = '\0';
}

/* All zeros is what some say that have none. */
static void set_uuid(struct fsname *out, const uint8_t uuid[16])
{
	static const uint8_t nil[16];

	if (memcmp(uuid, nil, sizeof nil) != 0)
		uuid_format(uuid, out->uuid);
}

static bool is_made_up(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return true;
	for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++)
		if ((unsigned long)st.f_type == made_up[i])
			return true;
	return false;
}

/* True when the kernel told the UUID; a label that it does not know is left alone. */
static bool ask_kernel(int fd, struct fsname *out)
{
	struct fsuuid2 uuid = { 0 };
	struct btrfs_ioctl_fs_info_args btrfs = { 0 };
	char label[FSLABEL_MAX + 1] = "";

	if (ioctl(fd, FS_IOC_GETFSUUID, &uuid) == 0 && uuid.len == sizeof uuid.uuid)
		set_uuid(out, uuid.uuid);
	else if (ioctl(fd, BTRFS_IOC_FS_INFO, &btrfs) == 0)
		set_uuid(out, btrfs.fsid);
	if (ioctl(fd, FS_IOC_GETFSLABEL, label) == 0)
		set_label(out, slice_of(label));
	return out->uuid[0];
}

static char *read_small(const char *path)
{
	struct err ignored = { 0 };

	return io_read_file(AT_FDCWD, path, MIB, NULL, &ignored);
}

bool fsname_uevent_value(const char *text, const char *key, char *dst, size_t cap)
{
	struct slice rest = slice_of(text), line;

	while (slice_line(&rest, &line)) {
		line = slice_chomp(line);
		if (!slice_starts(line, key) || line.len <= strlen(key) ||
		    line.at[strlen(key)] != '=')
			continue;
		if (!slice_copy(slice_from(line, strlen(key) + 1), dst, cap))
			dst[0] = '\0';
		return true;
	}
	return false;
}

/* udev writes "\x20" for what might harm a shell. */
static void decode_udev(char *s)
{
	char *to = s;

	while (*s) {
		int byte = s[0] == '\\' && s[1] == 'x' ? str_hex_byte(s + 2) : -1;

		*to++ = byte < 0 ? *s : (char)byte;
		s += byte < 0 ? 1 : 4;
	}
	*to = '\0';
}

static void fill_from(const char *text, const char *key, char *dst, size_t cap)
{
	char value[256];

	if (dst[0] || !fsname_uevent_value(text, key, value, sizeof value))
		return;
	decode_udev(value);
	if (!slice_copy(slice_of(value), dst, cap))
		dst[0] = '\0';
}

void fsname_from_udev(const char *text, struct fsname *out)
{
	fill_from(text, "E:ID_FS_UUID", out->uuid, sizeof out->uuid);
	fill_from(text, "E:ID_FS_LABEL_ENC", out->label, sizeof out->label);
	fill_from(text, "E:ID_PART_ENTRY_UUID", out->partuuid, sizeof out->partuuid);
}

static void ask_udev(dev_t dev, struct fsname *out)
{
	autofree char *path = str_format("/run/udev/data/b%u:%u", major(dev), minor(dev));
	autofree char *text = path ? read_small(path) : NULL;

	if (text)
		fsname_from_udev(text, out);
}

/* The device behind a number, opened for reading, or -1; the kernel may tell its PARTUUID. */
static int open_device(dev_t dev, struct fsname *out)
{
	autofree char *path = str_format("/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
	autofree char *text = path ? read_small(path) : NULL, *node = NULL;
	char name[256];
	struct stat st;
	int fd;

	if (!text || !fsname_uevent_value(text, "DEVNAME", name, sizeof name) || !name[0])
		return -1;
	if (!out->partuuid[0])
		fsname_uevent_value(text, "PARTUUID", out->partuuid, sizeof out->partuuid);
	node = str_format("/dev/%s", name);
	fd = node ? open(node, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode) || st.st_rdev != dev)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void take_value(blkid_probe probe, const char *key, char *dst, size_t cap)
{
	const char *value;

	if (dst[0] || blkid_probe_lookup_value(probe, key, &value, NULL) < 0)
		return;
	if (!slice_copy(slice_of(value), dst, cap))
		dst[0] = '\0';
}

/* blkid_do_safeprobe finds nothing rather than one of two signatures. */
static void ask_device(dev_t dev, struct fsname *out)
{
	autoclose int fd = open_device(dev, out);
	blkid_probe probe = fd < 0 ? NULL : blkid_new_probe();

	if (!probe)
		return;
	if (blkid_probe_set_device(probe, fd, 0, 0) == 0) {
		blkid_probe_enable_superblocks(probe, 1);
		blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_UUID | BLKID_SUBLKS_LABEL);
		blkid_probe_enable_partitions(probe, 1);
		blkid_probe_set_partitions_flags(probe, BLKID_PARTS_ENTRY_DETAILS);
		if (blkid_do_safeprobe(probe) == 0) {
			take_value(probe, "UUID", out->uuid, sizeof out->uuid);
			take_value(probe, "LABEL", out->label, sizeof out->label);
			take_value(probe, "PART_ENTRY_UUID", out->partuuid, sizeof out->partuuid);
		}
	}
	blkid_free_probe(probe);
}

/* A btrfs has no device number of its own; when it lies on one device only,
 * sysfs tells which.
 */
static bool btrfs_device(const char *uuid, dev_t *dev)
{
	autofree char *path = str_format("/sys/fs/btrfs/%s/devices", uuid), *number = NULL;
	autodir DIR *dir = path ? opendir(path) : NULL;
	unsigned found = 0, maj, min;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		free(number);
		number = str_format("%s/%s/dev", path, entry->d_name);
		found++;
	}
	if (found != 1 || !number)
		return false;
	free(path);
	path = read_small(number);
	if (!path || sscanf(path, "%u:%u", &maj, &min) != 2)
		return false;
	*dev = makedev(maj, min);
	return true;
}

bool names_of_filesystem(int fd, char uuid_text[37], char label[17], char partuuid_text[37])
{
	struct fsname name = { 0 };
	struct stat st;
	bool known, on_device;

	uuid_text[0] = label[0] = partuuid_text[0] = '\0';
	if (fd < 0 || is_made_up(fd) || fstat(fd, &st) < 0)
		return false;
	known = ask_kernel(fd, &name);
	on_device = major(st.st_dev) != 0 || (known && btrfs_device(name.uuid, &st.st_dev));
	if (on_device) {
		ask_device(st.st_dev, &name);
		ask_udev(st.st_dev, &name);
	}
	strcpy(uuid_text, name.uuid);
	strcpy(label, name.label);
	strcpy(partuuid_text, name.partuuid);
	return name.uuid[0];
}
