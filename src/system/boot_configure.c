// SPDX-License-Identifier: Apache-2.0
#include "system/boot.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "system/bls.h"
#include "system/bootfiles.h"
#include "system/device.h"
#include "system/edit.h"
#include "system/grub_text.h"
#include "system/kernels.h"
#include "system/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* One of the entries that blscfg would show, as the image has it. */
struct entry {
	char *id, *text;
	size_t len;
	bool on_esp;
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

static bool exists_on_esp(const struct fix *f, const char *path)
{
	for (const char *const *dir = bootfiles_esp; *dir; dir++) {
		autofree char *below = str_format("%s%s", *dir, path);

		if (below && edit_exists(f->edit, below))
			return true;
	}
	return false;
}

/* What a separate /boot hides is not on the root filesystem of the image. */
static bool exists_on_root(const struct fix *f, const char *path)
{
	return !(f->boot->boot_is_separate && str_starts(path, "/boot/")) &&
	       edit_exists(f->edit, path);
}

/* Is there such a path, seen from the volume's top? */
static bool path_exists(const void *ctx, enum boot_volume volume, const char *path)
{
	const struct fix *f = ctx;
	autofree char *below = NULL;

	if (volume == BOOT_VOLUME_ESP)
		return exists_on_esp(f, path);
	if (volume == BOOT_VOLUME_ROOT || !f->boot->boot_is_separate)
		return exists_on_root(f, path);
	below = str_format("/boot%s", path);
	return below && edit_exists(f->edit, below);
}

/* The volume that a path in the tree is on, and (malloc) the path on it. */
static const struct volume_names *find_volume(const struct fix *f, const char *path, char **on_it)
{
	size_t boot = strlen("boot/");

	for (const char *const *dir = bootfiles_esp; *dir; dir++) {
		size_t len = strlen(*dir);

		if (strncasecmp(path, *dir, len) != 0 || path[len] != '/')
			continue;
		*on_it = strdup(path + len);
		return &f->cfg->names->esp;
	}
	if (!f->boot->boot_is_separate || !str_starts(path, "boot/"))
		boot = 0;
	*on_it = str_format("/%s", path + boot);
	return boot ? f->holder : &f->cfg->names->root;
}

static bool takes_blscfg(const struct fix *f)
{
	return !f->cfg->has_blscfg && f->boot->uses_blscfg;
}

/* Where a directory of the name is in the tree, it is no subvolume's. */
static const char *subvolume_of(const struct fix *f)
{
	const char *guess = f->boot->subvolume;

	if (f->cfg->subvolume && *f->cfg->subvolume)
		return f->cfg->subvolume;
	return guess && !edit_exists(f->edit, guess) ? guess : NULL;
}

/* It would be waited for at each boot. */
static bool resumes_from_elsewhere(const struct fix *f)
{
	struct device device = device_parse(f->boot->resume ? f->boot->resume : "");

	return f->boot->initrd && device.kind != DEVICE_ELSEWHERE &&
	       !device_is(&device, &f->cfg->names->root);
}

static struct grubcfg grubcfg_of(const struct fix *f, const struct bootfile *file)
{
	return (struct grubcfg){
		.cmdline = { .names = f->cfg->names,
			     .has_initrd = f->boot->all_have_initrd,
			     .wants_noresume = resumes_from_elsewhere(f),
			     .old_root = f->old_root },
		.holder = f->holder,
		.paths = { subvolume_of(f), path_exists, f,
			   file->esp ? BOOT_VOLUME_ESP : BOOT_VOLUME_KERNELS },
		.entries = takes_blscfg(f) ? (f->menu.at ? f->menu.at : "") : NULL,
	};
}

/* Is the kernel of an entry on the ESP there? */
static bool leads_to_kernel(const struct fix *f, const struct text *text)
{
	char path[4096];

	return bls_value(text_slice(text), "linux", path, sizeof path) && path[0] == '/' &&
	       exists_on_esp(f, path);
}

/* "boot/loader/entries/ID.conf" */
static int keep_entry(struct fix *f, const struct bootfile *file, const struct text *text,
		      struct err *err)
{
	const char *name = strrchr(file->path, '/') + 1;
	struct entry *entry;

	if (file->esp && !leads_to_kernel(f, text))
		return 0;

	if (!array_room(f->entries, f->entry_cap, f->entry_count + 1))
		return err_nomem(err);
	entry = &f->entries[f->entry_count++];
	*entry = (struct entry){ .id = strndup(name, strlen(name) - strlen(".conf")),
				 .text = malloc(text->len + 1),
				 .len = text->len,
				 .on_esp = file->esp != NULL };
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
	return file->makes_menu || file->esp ? keep_entry(f, file, text, err) : 0;
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
	struct grubcfg cfg = grubcfg_of(f, file);
	autotext struct text out = { 0 };

	if ((file->kind == BOOTFILE_GRUB_CFG) != (f->now == FIX_GRUB_CFG))
		return 0;
	if (!file->text.at) {
		log_warn("/%s is left as it is: %s", file->path, file->why);
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
	const struct names *names = f->cfg->names;
	size_t count = 0;

	if (!list)
		return err_nomem(err);
	for (size_t i = 0; i < f->entry_count; i++) {
		const struct entry *entry = &f->entries[i];

		if (entry->on_esp && takes_blscfg(f))
			continue;
		list[count] =
			(struct bls_entry){ .id = entry->id, .text = { entry->text, entry->len } };
		if (entry->on_esp) {
			list[count].volume_uuid = names->esp.uuid_text;
			list[count].root_uuid = names->root.uuid_text;
		}
		count++;
	}
	bls_sort(list, count);
	for (size_t i = 0; i < count; i++) /* a link may show one file twice */
		if (i == 0 || !str_equal(list[i].id, list[i - 1].id))
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
	autofree char *path = NULL, *initrd = NULL;
	autofree char *title = str_format("Linux %s", kernel->version ? kernel->version : name);
	const struct volume_names *volume = find_volume(f, kernel->path, &path);
	struct menu_kernel entry = { .title = title, .volume_uuid = volume->uuid_text };

	if (kernel->initrd)
		find_volume(f, kernel->initrd, &initrd);
	if (!path || !title || (kernel->initrd && !initrd))
		return err_nomem(err);
	entry.kernel = path;
	entry.initrd = initrd;
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

/* Is there anything on the way to path, or at it, that is in the way? */
static bool is_blocked(const struct fix *f, const char *path)
{
	const struct model *m = f->edit->model;

	for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
		autofree char *above = strndup(path, (size_t)(end - path));
		uint32_t node = above ? model_resolve(m, above, MODEL_FOLLOW) : MODEL_NONE;

		if (node != MODEL_NONE && !S_ISDIR(m->nodes[node].mode))
			return true;
		if (node == MODEL_NONE)
			return above && model_resolve(m, above, MODEL_NOFOLLOW) != MODEL_NONE;
	}
	return edit_is_odd(f->edit, path) || (!edit_exists(f->edit, path) &&
					      model_resolve(m, path, MODEL_NOFOLLOW) != MODEL_NONE);
}

static int make_grub_cfg(struct fix *f, struct err *err)
{
	static const char why[] = "made: the source has no grub.cfg that leads to a kernel";
	const struct menu_config cfg = menu_config_of(f);
	autofree char *path = str_format("%s/grub.cfg", f->boot->grub_dir);
	int done;

	if (!path)
		return err_nomem(err);
	if (is_blocked(f, path))
		return err_set(err, ERR_REFUSED,
			       "the image needs a file /%s to boot, and something else is in its "
			       "place; --no-boot makes a data disk",
			       path);
	menu_begin(&cfg, &f->menu);
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
