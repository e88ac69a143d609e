// SPDX-License-Identifier: Apache-2.0
#include "system/boot.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/bootfiles.h"
#include "system/edit.h"
#include "system/fstab.h"
#include "system/kernels.h"
#include "system/machine.h"
#include "system/mntopts.h"

#include <stdlib.h>
#include <string.h>

const struct boot_machine boot_machines[] = {
	{ "x86_64", "i386-pc", "x86_64-efi", "BOOTX64.EFI" },
	{ "aarch64", NULL, "arm64-efi", "BOOTAA64.EFI" },
	{ 0 },
};

static const char *const grub_dirs[] = { "boot/grub", "boot/grub2" };

static const struct boot_machine *machine_named(const char *name)
{
	for (const struct boot_machine *m = boot_machines; m->name; m++)
		if (str_equal(m->name, name))
			return m;
	return NULL;
}

static bool is_supported(const char *name)
{
	return machine_named(name) != NULL;
}

static const struct boot_machine *find_machine(const struct edit *e)
{
	const char *name = machine_of_tree(e, is_supported);

	return name ? machine_named(name) : NULL;
}

static int find_kernel(const struct edit *e, struct boot *out, struct err *err)
{
	struct kernels kernels;

	if (kernels_find(e, &kernels, err) < 0)
		return -1;
	if (kernels.len) {
		out->kernel = steal(&kernels.at[0].path);
		out->version = steal(&kernels.at[0].version);
		out->initrd = steal(&kernels.at[0].initrd);
		out->all_have_initrd = out->initrd != NULL;
	}
	for (size_t i = 1; i < kernels.len; i++)
		out->all_have_initrd = out->all_have_initrd && kernels.at[i].initrd;
	kernels_free(&kernels);
	return 0;
}

/* *cfg NULL unless there is a grub.cfg that leads anywhere, or one that we may not read. */
static int look_for_cfg(const struct edit *e, const char *dir, char **cfg, bool *uses_blscfg,
			struct err *err)
{
	autofree char *path = str_format("%s/grub.cfg", dir);
	struct err why = { 0 };
	bool missing = false;
	size_t len = 0;
	autofree char *text = path ? edit_read(e, path, &len, &missing, &why) : NULL;

	*cfg = NULL;
	if (!path)
		return err_nomem(err);
	if (missing || (text && !grubcfg_has_menu((struct slice){ text, len })))
		return 0;
	if (!text && !edit_is_denied(&why)) {
		*err = why;
		return -1;
	}
	*uses_blscfg = text && grubcfg_uses_blscfg((struct slice){ text, len });
	*cfg = steal(&path);
	return 0;
}

static int find_grub(const struct edit *e, struct boot *out, struct err *err)
{
	const size_t count = sizeof grub_dirs / sizeof *grub_dirs;
	const char *dir = NULL;

	for (size_t i = 0; i < count && !out->grub_cfg; i++) {
		if (look_for_cfg(e, grub_dirs[i], &out->grub_cfg, &out->uses_blscfg, err) < 0)
			return -1;
		if (out->grub_cfg)
			dir = grub_dirs[i];
	}
	for (size_t i = 0; i < count && !dir; i++)
		if (edit_exists(e, grub_dirs[i]))
			dir = grub_dirs[i];
	out->grub_dir = strdup(dir ? dir : grub_dirs[0]);
	return out->grub_dir ? 0 : err_nomem(err);
}

static int look_at_file(void *ctx, const struct bootfile *file, struct err *err)
{
	struct grubcfg *cfg = ctx;
	autotext struct text ignored = { 0 };

	if (!file->text.at)
		return 0;
	bootfile_rewrite(file->kind, file->text, cfg, &ignored);
	return text_check(&ignored, err);
}

/* What the arguments in all of the files say. */
static int look_at_arguments(const struct edit *e, struct cmdline *out, struct err *err)
{
	struct grubcfg cfg = { 0 };
	int done = bootfiles_walk(e, look_at_file, &cfg, err);

	*out = cfg.cmdline;
	return done;
}

/* Encrypted?  A subvolume?  The arguments tell, or fstab and crypttab. */
static int find_root(const struct edit *e, struct boot *out, struct err *err)
{
	struct fstab_entry root = { 0 };
	struct cmdline found;

	if (look_at_arguments(e, &found, err) < 0 || fstab_find(e, "/", &root, err) < 0)
		return -1;
	out->was_encrypted = found.names_container || crypttab_opens(e, found.root) ||
			     (root.device && crypttab_opens(e, root.device));
	if (!found.subvolume[0] && root.options)
		mntopts_subvolume(slice_of(root.options), found.subvolume, sizeof found.subvolume);
	fstab_entry_free(&root);
	if (!found.subvolume[0])
		return 0;
	out->subvolume = strdup(found.subvolume);
	return out->subvolume ? 0 : err_nomem(err);
}

/* RESUME= in a shell's text, the last one; as it is when there is none. */
static void find_resume_setting(struct slice text, char *dst, size_t cap)
{
	static const char name[] = "RESUME=";
	struct slice line, word;

	while (slice_line(&text, &line))
		if (slice_quoted_word(&line, &word) && slice_starts(word, name) &&
		    !slice_unquote(slice_from(word, strlen(name)), dst, cap))
			dst[0] = '\0';
}

/* initramfs-tools': what its configuration names, else the swap partition. */
static int find_resume(const struct edit *e, struct boot *out, struct err *err)
{
	autoglob char **files = edit_glob(e, "etc/initramfs-tools/conf.d/*", err);
	char setting[256] = "";
	bool missing;

	if (!files || !edit_exists(e, "usr/share/initramfs-tools"))
		return files ? 0 : -1;
	for (char **file = files; *file; file++) {
		struct err ignored = { 0 };
		size_t len = 0;
		autofree char *text = edit_read(e, *file, &len, &missing, &ignored);

		if (text)
			find_resume_setting((struct slice){ text, len }, setting, sizeof setting);
	}
	if (str_equal(setting, "none"))
		return 0;
	if (*setting && !str_equal(setting, "auto")) {
		out->resume = strdup(setting);
		return out->resume ? 0 : err_nomem(err);
	}
	out->resume = fstab_swap_partition(e, &missing, err);
	return out->resume || missing ? 0 : -1;
}

int boot_find(const struct edit *e, bool boot_is_separate, struct boot *out, struct err *err)
{
	*out = (struct boot){ .machine = find_machine(e), .boot_is_separate = boot_is_separate };
	if (find_kernel(e, out, err) == 0 && find_grub(e, out, err) == 0 &&
	    find_root(e, out, err) == 0 && find_resume(e, out, err) == 0)
		return 0;
	boot_free(out);
	return -1;
}

void boot_free(struct boot *boot)
{
	free(boot->kernel);
	free(boot->initrd);
	free(boot->version);
	free(boot->grub_dir);
	free(boot->grub_cfg);
	free(boot->subvolume);
	free(boot->resume);
	*boot = (struct boot){ 0 };
}

char *boot_root_argument(const struct edit *e, bool *missing, struct err *err)
{
	struct cmdline found;
	char *root;

	*missing = false;
	if (look_at_arguments(e, &found, err) < 0)
		return NULL;
	*missing = !found.root[0];
	if (*missing)
		return NULL;
	root = strdup(found.root);
	if (!root)
		err_nomem(err);
	return root;
}
