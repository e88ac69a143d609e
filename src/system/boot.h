/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CCSNAP_SYSTEM_BOOT_H
#define CCSNAP_SYSTEM_BOOT_H

#include <stdbool.h>

/* What a tree boots with, and its boot configuration brought in line with the
 * image: the tree's own grub.cfg is what boots; where there is none, a minimal
 * one for its newest kernel is made.  Paths from the source's root, without
 * links, no slash in front.
 */
struct edit;
struct err;
struct names;

struct boot_machine {
	const char *name;	/* as machine_of_tree has it */
	const char *bios;	/* GRUB's platform, NULL: boots by UEFI only */
	const char *efi;	/* "x86_64-efi" */
	const char *efi_loader; /* "BOOTX64.EFI" */
};

extern const struct boot_machine boot_machines[]; /* ends with a NULL name */

struct boot {
	const struct boot_machine *machine; /* NULL: unknown, of what no table tells */
	char *kernel, *initrd;		    /* the newest; NULL: none */
	char *version;			    /* of the kernel, NULL when its name does not tell */
	char *grub_dir; /* "boot/grub" or "boot/grub2"; the first when there is none */
	char *grub_cfg; /* NULL: the tree has none */
	bool boot_is_separate;
	bool all_have_initrd; /* every one of its kernels */
	bool uses_blscfg;     /* its grub.cfg leaves the menu to the blscfg command */
	bool was_encrypted; /* its root was in a LUKS container, by crypttab or kernel arguments */
	char *subvolume;    /* of its root, "/@", by kernel arguments or fstab; NULL: none */
	char *resume; /* what its initrds look for by themselves to resume from; NULL: nothing */
};

int boot_find(const struct edit *e, bool boot_is_separate, struct boot *out, struct err *err);
void boot_free(struct boot *boot);

/* The root= of what boots (grub.cfg, BLS entries, etc/kernel/cmdline), malloc;
 * NULL with *missing when nothing names one.
 */
char *boot_root_argument(const struct edit *e, bool *missing, struct err *err);

/* Kernel arguments and paths that name what is not in the image: root=, rootflags=subvol,
 * rd.luks.*, rd.lvm.*, cryptdevice=, resume= (in grub.cfg, BLS entries, etc/default/grub,
 * etc/kernel/cmdline); a subvolume's path in front of kernels; has_blscfg false: BLS
 * entries become menu entries; without grub.cfg a minimal one.  Warns where an
 * initrd would still ask for a container that is gone.
 * A grub.cfg that would have to be made where something odd is: ERR_REFUSED.
 * subvolume: "/@" when the source's root was that of a filesystem, "" or NULL if not: then
 * the one that the boot configuration or fstab names counts.
 */
struct boot_config {
	const struct names *names;
	const char *subvolume;
	bool has_blscfg;
};
int boot_configure(struct edit *e, struct boot *boot, const struct boot_config *cfg,
		   struct err *err);

#endif
