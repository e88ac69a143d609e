// SPDX-License-Identifier: Apache-2.0
#include "tree/bootable.h"

#include "base/account.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/size.h"
#include "base/str.h"
#include "system/edit.h"
#include "system/esp.h"
#include "system/loader.h"
#include "system/names.h"
#include "tree/partitions.h"
#include "walk/mounts.h"
#include "walk/walk.h"

#include <string.h>
#include <sys/stat.h>

/* A BIOS boots from disks with such sectors only. */
#define BIOS_SECTOR 512

/* Room for another boot loader or two. */
#define ESP_SIZE_MIN (128 * MIB)

void bootable_init(struct bootable *b)
{
	*b = (struct bootable){ .esp_fd = -1,
				.grub = { .bios = { .fd = -1 }, .efi = { .fd = -1 } } };
}

void bootable_free(struct bootable *b)
{
	boot_free(&b->boot);
	grub_free(&b->grub);
	free(b->core.bytes);
	cleanup_close(&b->esp_fd);
	bootable_init(b);
}

/* The directory whose content becomes the ESP: its mount, or in a copy of a tree
 * the directory that it would be mounted on.
 */
static uint32_t esp_source(const struct bootable_config *cfg)
{
	static const char *const places[] = { "boot/efi", "efi" };
	const struct model *model = cfg->edit->model;

	if (cfg->walked->esp_root != MODEL_NONE)
		return cfg->walked->esp_root;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		uint32_t node = model_resolve(model, places[i], MODEL_NOFOLLOW);

		if (esp_lookup(model, node, "EFI") != MODEL_NONE)
			return node;
	}
	return MODEL_NONE;
}

static int say_no(struct bootable *b, const struct bootable_config *cfg, const char *what,
		  struct err *err)
{
	b->bios = b->uefi = false;
	if (cfg->wanted == TREE_BOOT_REQUIRED)
		return err_set(
			err, ERR_REFUSED,
			"nothing bootable can be made of %s: %s; --no-boot makes a data disk",
			cfg->source, what);
	log_warn("%s becomes a data disk: %s", cfg->source, what);
	return 0;
}

static int tell_aside(const struct bootable_config *cfg, uint32_t esp, struct err *err)
{
	autofree char *dir = model_path(cfg->edit->model, esp);

	if (!dir)
		return err_nomem(err);
	account_add(cfg->edit->account, ACCOUNT_EDITED, dir,
		    "the boot loader on its fallback path, which may know only its own disk, "
		    "steps aside for ours (NAME.of-source)");
	return 0;
}

static int decide_by_modules(struct bootable *b, const struct bootable_config *cfg, struct err *err)
{
	const struct boot_machine *machine = b->boot.machine;
	uint32_t esp = esp_source(cfg);
	enum loader_kind loader;
	bool can_make;

	if (grub_find(cfg->edit, &b->boot, &b->grub, &can_make, err) < 0 ||
	    loader_look(cfg->edit, esp, machine->efi_loader, &loader, err) < 0)
		return -1;
	b->bios = machine->bios && can_make && b->grub.bios.fd >= 0 &&
		  cfg->sector_size == BIOS_SECTOR;
	b->makes_efi = loader != LOADER_PORTABLE && can_make && b->grub.efi.fd >= 0;
	b->uefi = loader != LOADER_NONE || b->makes_efi;
	if (loader != LOADER_NONE && b->makes_efi && tell_aside(cfg, esp, err) < 0)
		return -1;
	if (loader == LOADER_UNKNOWN && !b->makes_efi)
		log_warn("the source's own %s is kept; it may know only the disk that it came from",
			 machine->efi_loader);
	if (!b->bios && !b->uefi)
		return say_no(b, cfg,
			      can_make ? "neither it nor this machine has GRUB's modules "
					 "(grub-pc-bin, grub-efi-amd64-bin)"
				       : "this machine has no grub-mkimage (grub-common)",
			      err);
	if (machine->bios && !b->bios && cfg->sector_size == BIOS_SECTOR)
		log_warn("the image will boot by UEFI only: GRUB's %s modules are missing",
			 machine->bios);
	if (!b->uefi)
		log_warn("the image will boot by BIOS only: GRUB's %s modules are missing",
			 machine->efi);
	return 0;
}

int bootable_decide(struct bootable *b, const struct bootable_config *cfg, struct err *err)
{
	bool separate = cfg->walked->boot_root != MODEL_NONE || names_esp_is_boot(cfg->walked);

	if (cfg->wanted == TREE_BOOT_NONE)
		return 0;
	if (boot_find(cfg->edit, separate, &b->boot, err) < 0)
		return -1;
	if (!b->boot.kernel)
		return say_no(b, cfg, "it has no kernel in /boot or on its EFI system partition",
			      err);
	if (!b->boot.machine)
		return say_no(b, cfg, "its programs are for a machine that is not supported", err);
	return decide_by_modules(b, cfg, err);
}

void bootable_imagine(struct bootable *b)
{
	if (b->bios || b->uefi)
		b->esp_size = ESP_SIZE_MIN;
}

/* Where the grub directory is on its filesystem, and that one's name. */
static struct grub_config grub_config_of(const struct bootable *b,
					 const struct bootable_config *cfg)
{
	const struct names *names = cfg->names;
	const char *dir = b->boot.grub_dir;

	if (b->boot.boot_is_separate && str_starts(dir, "boot/"))
		return (struct grub_config){
			.uuid = names_esp_is_boot(cfg->walked) ? names->esp.uuid_text
							       : names->boot.uuid_text,
			.prefix = dir + strlen("boot"),
		};
	return (struct grub_config){ .uuid = names->root.uuid_text, .prefix = dir };
}

/* What a GRUB of the source's own on the ESP's fallback path looks for. */
static char *stub_text(const struct grub_config *grub)
{
	return str_format("search.fs_uuid %s root\nset prefix=($root)%s\n"
			  "configfile $prefix/grub.cfg\n",
			  grub->uuid, grub->prefix);
}

static int make_esp(struct bootable *b, const struct bootable_config *cfg,
		    const struct grub_config *grub, const struct grub_image *efi, struct err *err)
{
	autofree char *loader = str_format("EFI/BOOT/%s", b->boot.machine->efi_loader);
	autofree char *stub = stub_text(grub);
	struct esp_file add[2];
	const struct esp_config esp = {
		.edit = cfg->edit,
		.source = esp_source(cfg),
		.add = add,
		.add_count = efi->bytes ? 2 : 1,
		.serial = cfg->names->esp.uuid_text,
		.label = cfg->names->esp.label,
		.sector_size = cfg->sector_size,
		.min_size = ESP_SIZE_MIN,
		.time = cfg->edit->time,
	};

	if (!loader || !stub)
		return err_nomem(err);
	add[0] = (struct esp_file){ "EFI/BOOT/grub.cfg", ESP_IF_MISSING, stub, strlen(stub) };
	add[1] = (struct esp_file){ loader, ESP_INSTEAD, efi->bytes, efi->len };
	return esp_build(&esp, &b->esp_fd, &b->esp_size, err);
}

int bootable_make(struct bootable *b, const struct bootable_config *cfg, struct err *err)
{
	struct grub_image efi = { 0 };
	struct grub_config grub;
	autofree char *prefix = NULL;
	int done = 0;

	if (!b->bios && !b->uefi)
		return 0;
	grub = grub_config_of(b, cfg);
	if (*grub.prefix != '/') {
		prefix = str_format("/%s", grub.prefix);
		if (!prefix)
			return err_nomem(err);
		grub.prefix = prefix;
	}
	if (b->bios)
		done = grub_make_bios(&b->grub, &b->boot, &grub, PARTITIONS_BIOS_BOOT_LBA,
				      b->boot_code, &b->core, err);
	if (done == 0 && b->makes_efi)
		done = grub_make_efi(&b->grub, &b->boot, &grub, &efi, err);
	if (done == 0)
		done = make_esp(b, cfg, &grub, &efi, err);
	free(efi.bytes);
	return done;
}
