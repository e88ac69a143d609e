// SPDX-License-Identifier: Apache-2.0
#include "tree/tree_inner.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/size.h"
#include "system/fstab.h"
#include "system/identity.h"
#include "walk/mounts.h"
#include "walk/reach.h"

#include <string.h>
#include <time.h>

/* No clock goes into the image: the newest file tells the time, unless it is from
 * the future, which e2fsck takes for an error.
 */
static uint32_t settle_time(const struct tree *t)
{
	const uint64_t now = (uint64_t)time(NULL);
	int64_t root = t->model.nodes[MODEL_ROOT].mtime_sec;

	if (t->totals.times_newest > 0 && t->totals.times_newest <= MIN(now, UINT32_MAX))
		return (uint32_t)t->totals.times_newest;
	return root > 0 && (uint64_t)root <= MIN(now, UINT32_MAX) ? (uint32_t)root : 1;
}

static int choose_names(struct tree *t, bool want_esp, struct err *err)
{
	const struct walk_totals *walked = &t->totals;
	autoclose int boot_fd = -1;
	autoclose int esp_fd = -1;
	struct names_config cfg = {
		.root_fd = t->root_fd,
		.is_mount_root = t->is_mount_root,
		.image_name = t->cfg.image_name,
		.label = t->cfg.label,
		.walked = walked,
	};

	if (walked->boot_root != MODEL_NONE)
		boot_fd = reach_directory(t->reach, walked->boot_root);
	if (walked->esp_root != MODEL_NONE)
		esp_fd = reach_directory(t->reach, walked->esp_root);
	cfg.boot_fd = boot_fd;
	cfg.esp_fd = esp_fd;
	return names_choose(&cfg, &t->edit, want_esp, &t->names, err);
}

/* What of a btrfs is mounted as the source's root. */
static const char *subvolume_of(const struct tree *t)
{
	const struct mount *m;

	for (size_t i = 0; t->is_mount_root && (m = mounts_at(t->mounts, i)); i++)
		if (m->role == MOUNT_SOURCE && strcmp(m->fstype, "btrfs") == 0)
			return strcmp(m->fs_root, "/") == 0 ? "" : m->fs_root;
	return "";
}

/* Files that were made here have no SELinux label, and a policy that is enforced
 * would not let them be used.
 */
static bool selinux_is_on(const char *config)
{
	const char *line = config;

	for (; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		line += strspn(line, " \t");
		if (strncmp(line, "SELINUX=enforcing", 17) == 0 ||
		    strncmp(line, "SELINUX=permissive", 18) == 0)
			return true;
	}
	return false;
}

static int relabel_if_needed(struct tree *t, struct err *err)
{
	bool missing;
	size_t len;
	autofree char *config = edit_read(&t->edit, "etc/selinux/config", &len, &missing, err);
	bool labelled[2] = { false, false };

	if (!config)
		return missing ? 0 : -1;
	if (!selinux_is_on(config))
		return 0;
	for (uint32_t i = 0; i < t->model.node_count; i++)
		if (t->model.nodes[i].names || i == MODEL_ROOT)
			labelled[model_has_xattr(&t->model, i, "security.selinux")] = true;
	if (!labelled[false] || edit_exists(&t->edit, ".autorelabel"))
		return 0;
	return edit_create(&t->edit, ".autorelabel", "", 0, 0600,
			   "some files have no SELinux label: they get theirs at the first boot",
			   err);
}

static int edit_for_boot(struct tree *t, struct err *err)
{
	struct boot_config boot = {
		.names = &t->names,
		.subvolume = subvolume_of(t),
		.has_blscfg = (!t->bootable.bios || t->bootable.grub.bios.has_blscfg) &&
			      (!t->bootable.makes_efi || t->bootable.grub.efi.has_blscfg),
	};

	if (!t->bootable.bios && !t->bootable.uefi)
		return 0;
	return fstab_fix(&t->edit, &t->names, err) < 0 ||
			       crypttab_fix(&t->edit, &t->names, err) < 0 ||
			       boot_configure(&t->edit, &t->bootable.boot, &boot, err) < 0
		       ? -1
		       : relabel_if_needed(t, err);
}

static struct bootable_config bootable_config_of(struct tree *t)
{
	return (struct bootable_config){
		.edit = &t->edit,
		.walked = &t->totals,
		.names = &t->names,
		.source = t->source.name,
		.wanted = t->cfg.boot,
		.sector_size = t->cfg.sector_size,
	};
}

int tree_prepare(struct tree *t, struct err *err)
{
	const struct bootable_config cfg = bootable_config_of(t);
	struct bootable *b = &t->bootable;

	t->edit = (struct edit){ .model = &t->model,
				 .reach = t->reach,
				 .account = t->cfg.account,
				 .time = settle_time(t) };
	if (bootable_decide(b, &cfg, err) < 0 || choose_names(t, b->bios || b->uefi, err) < 0 ||
	    identity_reset(&t->edit, t->cfg.reset, err) < 0 || edit_for_boot(t, err) < 0)
		return -1;
	describe_tree(&t->edit, &t->description);
	if (t->cfg.intent == SOURCE_LOOK) {
		bootable_imagine(b);
		return 0;
	}
	return bootable_make(b, &cfg, err);
}
