/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_NAMES_H
#define CCSNAP_SYSTEM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the image's filesystems and partitions are called.  Boot configuration
 * and fstab refer to them by these names, so they are the source's own where
 * those are known.
 */
struct edit;
struct err;
struct walk_totals;

struct volume_names {
	bool present;
	uint8_t uuid[16];
	char uuid_text[37]; /* lower case; of a FAT "ABCD-1234", upper case */
	char label[17];	    /* "" for none */
	uint8_t partuuid[16];
	char partuuid_text[37]; /* lower case */
};

struct names {
	struct volume_names root, boot, esp;
	bool esp_is_boot; /* names_esp_is_boot */
	uint8_t disk_guid[16];
	const char *origin; /* where the root's UUID is from, in words */
};

struct names_config {
	int root_fd;		/* of the source */
	bool is_mount_root;	/* the kernel knows its UUID */
	const char *image_name; /* what is derived is derived from this */
	const char *label;	/* LABEL= of the environment, NULL for none */
	const struct walk_totals *walked;
	int boot_fd, esp_fd; /* of their mounts' roots, -1 for none */
};

/* root: of a mount root the kernel's UUID and label, else what root= of the boot
 * configuration or the tree's fstab name, else derived.  boot and esp: of their
 * mounts; an ESP is present anyway when want_esp.
 */
int names_choose(const struct names_config *cfg, const struct edit *e, bool want_esp,
		 struct names *out, struct err *err);

/* Is the ESP what is mounted at /boot? */
bool names_esp_is_boot(const struct walk_totals *walked);

/* Of the filesystem that fd lies on: by ioctl, else by looking at its device
 * (libblkid), else by udev's database.  True when known; *label "" when it has none.
 */
bool names_of_filesystem(int fd, char uuid_text[37], char label[17], char partuuid_text[37]);

#endif
