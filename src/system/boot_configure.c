// SPDX-License-Identifier: Apache-2.0
#include "system/boot.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "system/bls.h"
#include "system/bootfiles.h"
#include "system/edit.h"
#include "system/grub_text.h"
#include "system/kernels.h"
#include "system/names.h"

#include <stdlib.h>
#include <string.h>

/* One of the entries that blscfg would show, as the image has it. */
struct entry {
	char *id, *text;
	size_t len;
};

struct fix {
	struct edit *edit;
	struct boot *boot;
	const struct boot_config *cfg;
	const struct volume_names *holder; /* of the kernels */
	char *old_root;
	struct text menu;    /* in place of blscfg, or of all of a grub.cfg */
	struct text grubenv; /* the tree's, as the image has it */
	struct entry *entries;
	size_t entry_count, entry_cap;
	enum { FIX_REST, FIX_GRUB_CFG } now;
};

static void fix_free(struct fix *f)
{
	for (size_t i = 0; i < f->entry_count; i++) {
		free(f->entries[i].id);
		free(f->entries[i].text);
	}
	free(f->entries);
	free(f->old_root);
	text_free(&f->menu);
	text_free(&f->grubenv);
}

/* The path in the tree of a path on the kernels' volume. */
static bool path_exists(const void *ctx, const char *path)
{
	const struct fix *f = ctx;
	autofree char *below = f->boot->boot_is_separate ? str_format("/boot%s", path) : NULL;

	return edit_exists(f->edit, below ? below : path);
}

/* "boot/vmlinuz" as a path on its volume (malloc). */
static char *path_on_volume(const struct fix *f, const char *path)
{
	if (f->boot->boot_is_separate && str_starts(path, "boot/"))
		path += strlen("boot/");
	return str_format("/%s", path);
}

static bool takes_blscfg(const struct fix *f)
{
	return !f->cfg->has_blscfg && f->boot->uses_blscfg;
}

static struct grubcfg grubcfg_of(const struct fix *f)
{
	return (struct grubcfg){
		.cmdline = { .names = f->cfg->names, .has_initrd = f->boot->initrd != NULL },
		.holder = f->holder,
		.old_root = f->old_root,
		.paths = { f->cfg->subvolume, path_exists, f },
		.entries = takes_blscfg(f) ? (f->menu.at ? f->menu.at : "") : NULL,
	};
}

/* "boot/loader/entries/ID.conf" */
static int keep_entry(struct fix *f, const char *path, const struct text *text, struct err *err)
{
	const char *name = strrchr(path, '/') + 1;
	struct entry *entry;

	if (!array_room(f->entries, f->entry_cap, f->entry_count + 1))
		return err_nomem(err);
	entry = &f->entries[f->entry_count++];
	*entry = (struct entry){ .id = strndup(name, strlen(name) - strlen(".conf")),
				 .text = malloc(text->len + 1),
				 .len = text->len };
	if (!entry->id || !entry->text)
		return err_nomem(err);
	if (text->len)
		memcpy(entry->text, text->at, text->len);
	return 0;
}

static int keep(struct fix *f, const struct bootfile *file, const struct text *text,
		struct err *err)
{
	if (file->kind == BOOTFILE_GRUBENV && !f->grubenv.len)
		text_add(&f->grubenv, text_slice(text));
	return file->makes_menu ? keep_entry(f, file->path, text, err) : 0;
}

static int write_if_changed(struct fix *f, const struct bootfile *file, const struct text *text,
			    unsigned changes, struct err *err)
{
	autofree char *why = NULL;

	if (slice_same(file->text, text_slice(text)))
		return 0;
	why = boot_changes_text(changes);
	if (!why)
		return err_nomem(err);
	return edit_write(f->edit, file->path, text->at ? text->at : "", text->len, why, err);
}

static int fix_file(void *ctx, const struct bootfile *file, struct err *err)
{
	struct fix *f = ctx;
	struct grubcfg cfg = grubcfg_of(f);
	autotext struct text out = { 0 };

	if ((file->kind == BOOTFILE_GRUB_CFG) != (f->now == FIX_GRUB_CFG))
		return 0;
	if (!file->text.at) {
		log_warn("cannot read /%s, so it is left as it is", file->path);
		return 0;
	}
	bootfile_rewrite(file->kind, file->text, &cfg, &out);
	if (text_check(&out, err) < 0 || keep(f, file, &out, err) < 0)
		return -1;
	return write_if_changed(f, file, &out, cfg.cmdline.changes, err);
}

/* --- the menu ---------------------------------------------------------------- */

static int menu_of_entries(struct fix *f, struct err *err)
{
	autofree struct bls_entry *list = calloc(f->entry_count + 1, sizeof *list);

	if (!list)
		return err_nomem(err);
	for (size_t i = 0; i < f->entry_count; i++)
		list[i] = (struct bls_entry){ f->entries[i].id,
					      { f->entries[i].text, f->entries[i].len } };
	bls_sort(list, f->entry_count);
	for (size_t i = 0; i < f->entry_count; i++)
		bls_menuentry(&list[i], text_slice(&f->grubenv), &f->menu);
	return text_check(&f->menu, err);
}

static struct menu_config menu_config_of(const struct fix *f)
{
	const struct boot_machine *machine = f->boot->machine;
	bool is_arm = machine && str_equal(machine->name, "aarch64");

	return (struct menu_config){
		.volume_uuid = f->holder->uuid_text,
		.root_uuid = f->cfg->names->root.uuid_text,
		.partuuid = f->cfg->names->root.partuuid_text,
		.serial_console = is_arm ? "ttyAMA0,115200" : "ttyS0,115200",
	};
}

static int add_kernel(struct fix *f, const struct kernel *kernel, struct err *err)
{
	const struct menu_config cfg = menu_config_of(f);
	const char *name = strrchr(kernel->path, '/') + 1;
	autofree char *path = path_on_volume(f, kernel->path);
	autofree char *initrd = kernel->initrd ? path_on_volume(f, kernel->initrd) : NULL;
	autofree char *title = str_format("Linux %s", kernel->version ? kernel->version : name);
	bool in_boot = f->boot->boot_is_separate && str_starts(kernel->path, "boot/");
	const struct menu_kernel entry = {
		.kernel = path,
		.initrd = initrd,
		.title = title,
		.volume_uuid = in_boot ? f->holder->uuid_text : f->cfg->names->root.uuid_text,
	};

	if (!path || !title || (kernel->initrd && !initrd))
		return err_nomem(err);
	menu_entry(&cfg, &entry, &f->menu);
	return text_check(&f->menu, err);
}

static int menu_of_kernels(struct fix *f, struct err *err)
{
	struct kernels kernels;
	int done = kernels_find(f->edit, &kernels, err);

	for (size_t i = 0; done == 0 && i < kernels.len; i++)
		done = add_kernel(f, &kernels.at[i], err);
	kernels_free(&kernels);
	return done;
}

/* What the tree's own entries say counts, if there are any. */
static int make_menu(struct fix *f, struct err *err)
{
	size_t before = f->menu.len;

	if (menu_of_entries(f, err) < 0)
		return -1;
	return f->menu.len == before ? menu_of_kernels(f, err) : 0;
}

static int make_grub_cfg(struct fix *f, struct err *err)
{
	static const char why[] = "made: the source has no grub.cfg that leads to a kernel";
	const struct menu_config cfg = menu_config_of(f);
	autofree char *path = str_format("%s/grub.cfg", f->boot->grub_dir);
	int done;

	menu_begin(&cfg, &f->menu);
	if (!path)
		return err_nomem(err);
	if (make_menu(f, err) < 0)
		return -1;
	done = edit_exists(f->edit, path)
		       ? edit_write(f->edit, path, f->menu.at, f->menu.len, why, err)
		       : edit_create(f->edit, path, f->menu.at, f->menu.len, 0600, why, err);
	if (done == 0)
		f->boot->grub_cfg = steal(&path);
	return done;
}

/* --- encrypted roots ------------------------------------------------------------ */

static const struct {
	const char *hook, *advice;
} initrd_hooks[] = {
	{ "usr/share/initramfs-tools/hooks/cryptroot",
	  "comment it out in /etc/crypttab and run update-initramfs -u" },
	{ "usr/lib/initcpio/install/encrypt", "take encrypt out of HOOKS and run mkinitcpio -P" },
	{ "usr/lib/initcpio/install/sd-encrypt",
	  "take sd-encrypt out of HOOKS and run mkinitcpio -P" },
	{ "usr/lib/dracut/modules.d/90crypt", "run dracut -f --regenerate-all -o crypt" },
	{ "usr/lib/dracut/modules.d/70crypt", "run dracut -f --regenerate-all -o crypt" },
};

static void warn_about_initrd(const struct fix *f)
{
	if (!f->boot->was_encrypted || !f->boot->initrd)
		return;
	for (size_t i = 0; i < sizeof initrd_hooks / sizeof *initrd_hooks; i++) {
		if (!edit_exists(f->edit, initrd_hooks[i].hook))
			continue;
		log_warn("the root is encrypted and will be plain in the image, but /%s may still "
			 "ask for its container; to have one that does not, %s in a copy of the "
			 "tree and capture that",
			 f->boot->initrd, initrd_hooks[i].advice);
		return;
	}
}

static const struct volume_names *find_holder(const struct boot *boot, const struct names *names)
{
	if (!boot->boot_is_separate)
		return &names->root;
	if (names->boot.present)
		return &names->boot;
	return names->esp.present ? &names->esp : &names->root;
}

/* The entries and the environment are put right before grub.cfg, which may come to
 * contain them.
 */
static int fix_all(struct fix *f, struct err *err)
{
	bool missing;

	f->old_root = boot_root_argument(f->edit, &missing, err);
	if (!f->old_root && !missing)
		return -1;
	f->now = FIX_REST;
	if (bootfiles_walk(f->edit, fix_file, f, err) < 0 || text_check(&f->grubenv, err) < 0)
		return -1;
	if (takes_blscfg(f) && make_menu(f, err) < 0)
		return -1;
	f->now = FIX_GRUB_CFG;
	if (bootfiles_walk(f->edit, fix_file, f, err) < 0)
		return -1;
	return f->boot->grub_cfg || !f->boot->kernel ? 0 : make_grub_cfg(f, err);
}

int boot_configure(struct edit *e, struct boot *boot, const struct boot_config *cfg,
		   struct err *err)
{
	struct fix f = { .edit = e, .boot = boot, .cfg = cfg };
	int done;

	f.holder = find_holder(boot, cfg->names);
	warn_about_initrd(&f);
	done = fix_all(&f, err);
	fix_free(&f);
	return done;
}
