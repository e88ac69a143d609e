// SPDX-License-Identifier: Apache-2.0
#include "system/bootfiles.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "system/bls.h"
#include "system/edit.h"
#include "system/grub_text.h"

#include <string.h>

static const char menu_entries[] = "boot/loader/entries/*.conf";

const char *const bootfiles_esp[] = { "boot/efi", "efi", NULL };

/* Where names are those of a FAT, the case of letters does not matter. */
enum where { PLAIN, FAT, ESP };

static const struct place {
	const char *pattern;
	enum bootfile_kind kind;
	enum where where;
} places[] = {
	{ "boot/grub/grub.cfg", BOOTFILE_GRUB_CFG, PLAIN },
	{ "boot/grub2/grub.cfg", BOOTFILE_GRUB_CFG, PLAIN },
	{ "boot/efi/EFI/*/grub.cfg", BOOTFILE_GRUB_CFG, FAT },
	{ "efi/EFI/*/grub.cfg", BOOTFILE_GRUB_CFG, FAT },
	{ "boot/EFI/*/grub.cfg", BOOTFILE_GRUB_CFG, FAT },
	{ "boot/grub/custom.cfg", BOOTFILE_GRUB_CFG, PLAIN },
	{ "boot/grub2/custom.cfg", BOOTFILE_GRUB_CFG, PLAIN },
	{ "boot/grub/grubenv", BOOTFILE_GRUBENV, PLAIN },
	{ "boot/grub2/grubenv", BOOTFILE_GRUBENV, PLAIN },
	{ "boot/efi/EFI/*/grubenv", BOOTFILE_GRUBENV, FAT },
	{ menu_entries, BOOTFILE_ENTRY, PLAIN },
	{ "boot/efi/loader/entries/*.conf", BOOTFILE_ENTRY, ESP },
	{ "efi/loader/entries/*.conf", BOOTFILE_ENTRY, ESP },
	{ "etc/kernel/cmdline", BOOTFILE_CMDLINE, PLAIN },
	{ "usr/lib/kernel/cmdline", BOOTFILE_CMDLINE, PLAIN },
	{ "etc/default/grub", BOOTFILE_DEFAULT_GRUB, PLAIN },
	{ "etc/default/grub.d/*.cfg", BOOTFILE_DEFAULT_GRUB, PLAIN },
};

void bootfile_rewrite(enum bootfile_kind kind, struct slice text, struct grubcfg *cfg,
		      struct text *out)
{
	switch (kind) {
	case BOOTFILE_GRUB_CFG:
		grubcfg_rewrite(text, cfg, out);
		return;
	case BOOTFILE_ENTRY:
		bls_rewrite(text, &cfg->cmdline, &cfg->paths, out);
		return;
	case BOOTFILE_GRUBENV:
		if (!grubenv_rewrite(text, &cfg->cmdline, out))
			text_add(out, text);
		return;
	case BOOTFILE_CMDLINE:
		cmdline_rewrite(text, &cfg->cmdline, out);
		return;
	case BOOTFILE_DEFAULT_GRUB:
		default_grub_rewrite(text, &cfg->cmdline, out);
		return;
	}
}

static const char *esp_of(const struct place *place)
{
	const char *const *dir = bootfiles_esp;

	while (*dir && !str_starts(place->pattern, *dir))
		dir++;
	return *dir;
}

typedef int visitor(void *ctx, const struct bootfile *file, struct err *err);

static int visit(const struct edit *e, const char *path, const struct place *place, visitor *fn,
		 void *ctx, struct err *err)
{
	bool missing, odd = edit_is_odd(e, path);
	size_t len = 0;
	struct err why = { 0 };
	autofree char *text = edit_read(e, path, &len, &missing, &why);
	const struct bootfile file = {
		.path = path,
		.kind = place->kind,
		.text = { text, len },
		.why = odd ? "it is no regular file" : why.text,
		.makes_menu = place->pattern == menu_entries,
		.esp = place->where == ESP ? esp_of(place) : NULL,
	};

	if (!text && missing && !odd)
		return 0;
	if (!text && !missing && !edit_is_denied(&why)) {
		*err = why;
		return -1;
	}
	return fn(ctx, &file, err);
}

static int walk_place(const struct edit *e, const struct place *place, visitor *fn, void *ctx,
		      struct err *err)
{
	autoglob char **paths = place->where == PLAIN ? edit_glob(e, place->pattern, err)
						      : edit_glob_fat(e, place->pattern, err);
	int done = paths ? 0 : -1;

	for (char **p = paths; done == 0 && *p; p++)
		done = visit(e, *p, place, fn, ctx, err);
	return done;
}

/* A plain name may lead through links, which a pattern does not follow. */
int bootfiles_walk(const struct edit *e, visitor *fn, void *ctx, struct err *err)
{
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const struct place *place = &places[i];
		int done = strchr(place->pattern, '*')
				   ? walk_place(e, place, fn, ctx, err)
				   : visit(e, place->pattern, place, fn, ctx, err);

		if (done != 0)
			return done;
	}
	return 0;
}
