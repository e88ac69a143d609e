// SPDX-License-Identifier: Apache-2.0
#include "system/names.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "system/boot.h"
#include "system/device.h"
#include "system/edit.h"
#include "system/fstab.h"
#include "walk/mounts.h"
#include "walk/walk.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 16, FAT_LABEL_MAX = 11 };

/* One place after the other that may know a volume's names: the first counts for each. */
struct known {
	bool has_uuid, has_serial, has_label, has_partuuid;
	uint8_t uuid[16], serial[4], partuuid[16];
	char label[LABEL_MAX + 1];
	const char *uuid_origin;
};

static void know_uuid(struct known *k, const char *text, const char *origin)
{
	if (!k->has_serial)
		k->has_serial = fat_serial_parse(text, k->serial);
	if (k->has_uuid || !uuid_parse(text, k->uuid))
		return;
	k->has_uuid = true;
	k->uuid_origin = origin;
}

static void know_partuuid(struct known *k, const char *text)
{
	if (!k->has_partuuid)
		k->has_partuuid = uuid_parse(text, k->partuuid);
}

/* "" may also mean that nobody could tell.  A label that is too long for the image
 * cannot be kept; what refers to it will be brought in line.
 */
static void know_label(struct known *k, const char *label)
{
	if (k->has_label || !*label || strlen(label) > LABEL_MAX)
		return;
	strcpy(k->label, label);
	k->has_label = true;
}

static void know_device(struct known *k, const char *spec, const char *origin)
{
	struct device device = device_parse(spec);

	if (device.kind == DEVICE_UUID)
		know_uuid(k, device.value, origin);
	else if (device.kind == DEVICE_LABEL)
		know_label(k, device.value);
	else if (device.kind == DEVICE_PARTUUID)
		know_partuuid(k, device.value);
}

static void know_filesystem(struct known *k, int fd)
{
	char uuid[37], label[LABEL_MAX + 1], partuuid[37];

	if (!names_of_filesystem(fd, uuid, label, partuuid))
		return;
	know_uuid(k, uuid, "the source's filesystem");
	know_label(k, label);
	know_partuuid(k, partuuid);
}

static int know_fstab(struct known *k, const struct edit *e, const char *point, struct err *err)
{
	struct fstab_entry entry;

	if (fstab_find(e, point, &entry, err) < 0)
		return -1;
	if (entry.device)
		know_device(k, entry.device, "etc/fstab");
	fstab_entry_free(&entry);
	return 0;
}

static int know_root_argument(struct known *k, const struct edit *e, struct err *err)
{
	bool missing;
	autofree char *root = boot_root_argument(e, &missing, err);

	if (!root)
		return missing ? 0 : -1;
	know_device(k, root, "root= of the boot configuration");
	return 0;
}

static void set_uuid(struct volume_names *v, const uint8_t uuid[16])
{
	memcpy(v->uuid, uuid, 16);
	uuid_format(uuid, v->uuid_text);
}

static void set_serial(struct volume_names *v, const uint8_t serial[4])
{
	memset(v->uuid, 0, sizeof v->uuid);
	memcpy(v->uuid, serial, 4);
	snprintf(v->uuid_text, sizeof v->uuid_text, "%02X%02X-%02X%02X", serial[0], serial[1],
		 serial[2], serial[3]);
}

static void set_partuuid(struct volume_names *v, const uint8_t partuuid[16])
{
	memcpy(v->partuuid, partuuid, 16);
	uuid_format(partuuid, v->partuuid_text);
}

/* The GUID of a partition, the root's UUID and a word for it telling what it is
 * when the source does not.
 */
static void choose_partuuid(struct volume_names *v, const struct known *k,
			    const struct names *names, const char *use)
{
	uint8_t derived[16];

	uuid_derive(names->root.uuid, 16, use, derived);
	set_partuuid(v, k->has_partuuid ? k->partuuid : derived);
}

static int choose_root(const struct names_config *cfg, const struct edit *e, struct names *out,
		       struct err *err)
{
	struct known k = { 0 };
	uint8_t derived[16];

	if (cfg->label && strlen(cfg->label) > LABEL_MAX)
		return err_set(err, ERR_USAGE, "LABEL is longer than %d bytes: %s", LABEL_MAX,
			       cfg->label);
	if (cfg->label)
		know_label(&k, cfg->label);
	if (cfg->is_mount_root)
		know_filesystem(&k, cfg->root_fd);
	if (know_root_argument(&k, e, err) < 0 || know_fstab(&k, e, "/", err) < 0)
		return -1;
	uuid_derive(cfg->image_name, strlen(cfg->image_name), "root filesystem", derived);
	out->root.present = true;
	out->origin = k.has_uuid ? k.uuid_origin : "derived from the image's name";
	set_uuid(&out->root, k.has_uuid ? k.uuid : derived);
	strcpy(out->root.label, k.label);
	choose_partuuid(&out->root, &k, out, "root partition");
	return 0;
}

static int choose_boot(const struct names_config *cfg, const struct edit *e, struct names *out,
		       struct err *err)
{
	struct known k = { 0 };
	uint8_t derived[16];

	know_filesystem(&k, cfg->boot_fd);
	if (know_fstab(&k, e, "/boot", err) < 0)
		return -1;
	uuid_derive(out->root.uuid, 16, "boot filesystem", derived);
	out->boot.present = true;
	set_uuid(&out->boot,
		 k.has_uuid && memcmp(k.uuid, out->root.uuid, 16) != 0 ? k.uuid : derived);
	if (!str_equal(k.label, out->root.label))
		strcpy(out->boot.label, k.label);
	choose_partuuid(&out->boot, &k, out, "boot partition");
	return 0;
}

/* What mtools takes: printable ASCII without what FAT forbids. */
static bool is_fat_label(const char *label)
{
	if (strlen(label) > FAT_LABEL_MAX)
		return false;
	for (; *label; label++)
		if (!isprint((unsigned char)*label) || strchr("\"*+,./:;<=>?[\\]|", *label))
			return false;
	return true;
}

static int choose_esp(const struct names_config *cfg, const struct edit *e, const char *point,
		      struct names *out, struct err *err)
{
	const char *const points[] = { point, "/boot/efi", "/efi" };
	struct known k = { 0 };
	uint8_t derived[16];

	know_filesystem(&k, cfg->esp_fd);
	for (size_t i = point ? 0 : 1; i < sizeof points / sizeof *points; i++)
		if (know_fstab(&k, e, points[i], err) < 0)
			return -1;
	uuid_derive(out->root.uuid, 16, "EFI system filesystem", derived);
	out->esp.present = true;
	set_serial(&out->esp, k.has_serial ? k.serial : derived);
	if (is_fat_label(k.label))
		strcpy(out->esp.label, k.label);
	choose_partuuid(&out->esp, &k, out, "EFI system partition");
	return 0;
}

/* No two volumes of one image may be found by the same name. */
static void make_unique(struct names *out)
{
	struct volume_names *const volumes[] = { &out->root, &out->boot, &out->esp };
	static const char *const uses[] = { "", "boot partition", "EFI system partition" };

	for (size_t i = 1; i < 3; i++) {
		uint8_t derived[16];

		uuid_derive(out->root.uuid, 16, uses[i], derived);
		for (size_t k = 0; k < i; k++) {
			if (!volumes[i]->present || !volumes[k]->present)
				continue;
			if (memcmp(volumes[i]->partuuid, volumes[k]->partuuid, 16) == 0)
				set_partuuid(volumes[i], derived);
			if (str_equal(volumes[i]->label, volumes[k]->label))
				volumes[i]->label[0] = '\0';
		}
	}
}

bool names_esp_is_boot(const struct walk_totals *walked)
{
	return walked->esp && str_equal(walked->esp->point, "boot");
}

int names_choose(const struct names_config *cfg, const struct edit *e, bool want_esp,
		 struct names *out, struct err *err)
{
	const struct walk_totals *walked = cfg->walked;
	bool has_boot = cfg->boot_fd >= 0 || (walked && walked->boot_root != MODEL_NONE);
	bool has_esp = cfg->esp_fd >= 0 || (walked && walked->esp_root != MODEL_NONE);

	*out = (struct names){ .esp_is_boot = walked && names_esp_is_boot(walked) };
	if (choose_root(cfg, e, out, err) < 0)
		return -1;
	if (has_boot && choose_boot(cfg, e, out, err) < 0)
		return -1;
	if ((has_esp || want_esp) &&
	    choose_esp(cfg, e, out->esp_is_boot ? "/boot" : NULL, out, err) < 0)
		return -1;
	make_unique(out);
	uuid_derive(out->root.uuid, 16, "disk", out->disk_guid);
	return 0;
}
