// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "walk/locate.h"
#include "walk/mounts_inner.h"

#include <string.h>

/* The system's places, with all below: what is mounted there is followed. */
static const char *const system_places[] = { "boot", "efi", "home", "opt",
					     "root", "srv", "usr",  "var" };

/* Where firmware or boot loaders look for an ESP. */
static const char *const esp_places[] = { "boot", "boot/efi", "efi" };

/* Filesystems on local disks that have no device number of a disk. */
static const struct {
	const char *fstype, *device;
} numberless[] = { { "bcachefs", "/dev/" }, { "btrfs", "/dev/" }, { "zfs", "" } };

static bool is_one_of(const char *path, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(list[i], path))
			return true;
	return false;
}

static bool is_system_place(const char *path)
{
	for (size_t i = 0; i < sizeof system_places / sizeof *system_places; i++)
		if (path_below(system_places[i], path))
			return true;
	return false;
}

/* FUSE may stand on a disk and still be served by whoever likes to. */
static bool is_local_disk(const struct mount *mount)
{
	for (size_t i = 0; i < sizeof numberless / sizeof *numberless; i++)
		if (str_equal(numberless[i].fstype, mount->fstype))
			return str_starts(mount->device, numberless[i].device);
	return mount->major != 0 && !str_starts(mount->fstype, "fuse");
}

static bool is_same_disk(const struct mount *a, const struct mount *b)
{
	return a->major == b->major && a->minor == b->minor;
}

/* The subvolume that a btrfs mount is of; the option is the last one. */
static const char *subvolume(const struct mount *mount)
{
	const char *option = strstr(mount->options, "subvol=");

	return option && str_equal(mount->fstype, "btrfs") ? option + strlen("subvol=") : "";
}

/* Is it all of a filesystem (of a subvolume), no part of it bound somewhere? */
static bool is_whole(const struct mount *mount)
{
	return str_equal(mount->fs_root, "/") || str_equal(mount->fs_root, subvolume(mount));
}

/* Where in the tree its content is already; a new string, "" for nowhere. */
static char *find_original(const struct mounts *m, const struct mount_entry *e)
{
	for (size_t i = 0; i < m->followed_count; i++) {
		const struct mount_entry *other = m->followed[i];
		const char *below = path_below(other->shown, e->mount.fs_root);

		if (!below || !is_same_disk(&other->mount, &e->mount) ||
		    !str_equal(subvolume(&other->mount), subvolume(&e->mount)))
			continue;
		return str_format("/%s%s%s", other->mount.point,
				  *other->mount.point && *below ? "/" : "", below);
	}
	return strdup("");
}

static bool is_disk_followed(const struct mounts *m, const struct mount_entry *e)
{
	for (size_t i = 0; i < m->followed_count; i++)
		if (is_same_disk(&m->followed[i]->mount, &e->mount))
			return true;
	return false;
}

/* Why it is no part of the system, as a new string: "" when it is. */
static char *reason_to_skip(const struct mounts *m, const struct mount_entry *e)
{
	const struct mount *mount = &e->mount;
	autofree char *original = find_original(m, e);

	if (!original)
		return NULL;
	if (*original)
		return str_format(
			"a bind mount of %s, where its files are in the image unless that is left "
			"out",
			original);
	if (!is_local_disk(mount))
		return str_format("not a local disk's filesystem (%s)", mount->fstype);
	if (!is_system_place(mount->point))
		return str_format(
			"not part of the system by its place; --include-mount=/%s adds it",
			mount->point);
	return strdup("");
}

static bool is_esp(const struct mounts *m, const struct mount_entry *e)
{
	return !m->has_esp && str_equal(e->mount.fstype, "vfat") && is_whole(&e->mount) &&
	       is_one_of(e->mount.point, esp_places, sizeof esp_places / sizeof *esp_places);
}

/* A part of a filesystem at /boot, or a subvolume of the root's, is no partition. */
static bool is_boot(const struct mounts *m, const struct mount_entry *e)
{
	return str_equal(e->mount.point, "boot") && !str_equal(e->mount.fstype, "vfat") &&
	       is_whole(&e->mount) && !is_disk_followed(m, e);
}

static int skip(struct mount_entry *e, char *why, struct err *err)
{
	if (!why)
		return err_nomem(err);
	e->mount.role = MOUNT_SKIP;
	e->mount.why = e->why = why;
	return 0;
}

/* By the table; what was asked for besides comes on top. */
static int classify(struct mounts *m, struct mount_entry *e, struct err *err)
{
	autofree char *why = reason_to_skip(m, e);

	if (!why)
		return err_nomem(err);
	if (*why && !e->mount.included)
		return skip(e, steal(&why), err);
	e->mount.role = MOUNT_FOLD;
	if (*why)
		return 0;
	if (is_esp(m, e)) {
		e->mount.role = MOUNT_ESP;
		m->has_esp = true;
	} else if (is_boot(m, e)) {
		e->mount.role = MOUNT_BOOT;
	} else if (m->cfg->one_file_system && !e->mount.included &&
		   !str_equal(e->mount.point, "boot")) {
		return skip(e, strdup("--one-file-system"), err);
	}
	return 0;
}

static int check_boot(const struct mount_entry *e, struct err *err)
{
	if (e->mount.role != MOUNT_SKIP || !str_equal(e->mount.point, "boot"))
		return 0;
	return err_set(err, ERR_REFUSED,
		       "the image would lack /boot: the mount there is %s; unmount it (or, if it "
		       "is an automount, look into it once), or add it by --include-mount=/boot",
		       e->why);
}

static int choose_role(struct mounts *m, struct mount_entry *e, struct err *err)
{
	e->is_nested = e->above->mount.role == MOUNT_SKIP;
	e->shown = strdup(e->mount.fs_root);
	if (!e->shown)
		return err_nomem(err);
	if (!e->is_nested)
		return classify(m, e, err) < 0 ? -1 : check_boot(e, err);
	if (e->mount.included)
		return err_set(err, ERR_USAGE,
			       "--include-mount: /%s lies below /%s, which is left out (%s); "
			       "include that, too",
			       e->mount.point, e->above->mount.point, e->above->why);
	return skip(e, strdup("below a mount that is skipped"), err);
}

int mounts_choose_roles(struct mounts *m, struct err *err)
{
	m->followed[m->followed_count++] = &m->entries[0];
	for (size_t i = 1; i < m->count; i++) {
		struct mount_entry *e = &m->entries[i];

		if (choose_role(m, e, err) < 0)
			return -1;
		if (e->mount.role != MOUNT_SKIP)
			m->followed[m->followed_count++] = e;
	}
	return 0;
}
