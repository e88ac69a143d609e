// SPDX-License-Identifier: Apache-2.0
#include "system/grub.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/size.h"
#include "base/str.h"
#include "system/boot.h"
#include "system/edit.h"
#include "system/grub_dir.h"
#include "system/tool.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	IMAGE_MAX = 8 * 1024 * 1024,
	CORE_MAX = 0x78000, /* GRUB_KERNEL_I386_PC_LINK_ADDR and memory set this limit */
	SECTOR = 512,
	MODULES_MAX = 128,
	PREFIX_MAX = 200,

	/* In boot.img (grub-core/boot/i386/pc/boot.S). */
	BOOT_CORE_LBA = 0x5c,
	BOOT_DRIVE_CHECK = 0x66,
	BOOT_CODE = 440,

	/* In the core's first sector (diskboot.S): where its others are. */
	BLOCKLIST = SECTOR - 12,
	BLOCKLIST_SEGMENT = 0x820,
};

static const char *const mkimage_names[] = { "grub-mkimage", "grub2-mkimage", NULL };

/* What the grub.cfg of distributions use, by insmod or as commands, and what
 * reads the partitions and filesystems of the image; a module that a directory
 * lacks is left out.  A tree's grub directory may have no modules of its own for
 * the firmware that the image meets.
 */
static const char *const modules_disk[] = {
	"part_gpt",	  "part_msdos",	    "ext2",	    "fat",   "search",
	"search_fs_uuid", "search_fs_file", "search_label", "probe", "gzio",
	"xzio",		  "lzopio",	    NULL,
};

static const char *const modules_script[] = {
	"normal", "configfile", "echo",	   "test", "true", "regexp", "sleep",	  "eval",
	"read",	  "loadenv",	"minicmd", "cat",  "ls",   "help",   "keystatus", NULL,
};

static const char *const modules_config[] = {
	"cpuid", "password_pbkdf2", "blscfg", "increment", "version", NULL,
};

static const char *const modules_screen[] = {
	"serial",  "terminal", "gfxterm", "gfxterm_background",
	"gfxmenu", "font",     "png",	  "all_video",
	"video",   "gettext",  NULL,
};

static const char *const modules_boot[] = {
	"linux", "chain", "boot", "halt", "reboot", NULL,
};

/* For what the source's root was on: its grub.cfg still loads them, and an insmod
 * that fails stops the menu for ten seconds.
 */
static const char *const modules_source[] = {
	"xfs",	"btrfs",      "lvm",	       "mdraid09",    "mdraid1x",
	"luks", "cryptodisk", "gcry_rijndael", "gcry_sha256", NULL,
};

static const char *const *const modules_common[] = {
	modules_disk, modules_script, modules_config, modules_screen,
	modules_boot, modules_source, NULL,
};

/* Few, since the core of a BIOS has to fit below 640 KiB. */
static const char *const modules_bios[] = { "biosdisk", "linux16", "hwmatch", NULL };

static const char *const modules_efi[] = {
	"efi_gop",  "efi_uga", "linuxefi", "efifwsetup", "bli",	  "jpeg",	 "tga",
	"loopback", "iso9660", "tr",	   "smbios",	 "luks2", "gcry_sha512", NULL,
};

/* Run by the rescue parser, which knows no "if": regexp sets its variables only
 * when it matches, that is when the search has found something.  If it has not, the
 * message is given time, since normal wipes the screen.
 */
static const char config_text[] =
	"set note='GRUB finds no filesystem with the UUID %s, which this image boots from'\n"
	"set pause=60\n"
	"search --no-floppy --fs-uuid --set=found %s\n"
	"regexp --set=1:root --set=2:pause --set=3:note '^(.+)/(0)()$' \"$found/0\"\n"
	"echo \"$note\"\n"
	"sleep --interruptible $pause\n"
	"set prefix=($root)%s\n"
	"unset note\n"
	"unset pause\n"
	"unset found\n";

/* NULL when there is none. */
static const char *mkimage_name(void)
{
	for (const char *const *name = mkimage_names; *name; name++) {
		autofree char *program = tool_find(*name);

		if (program)
			return *name;
	}
	return NULL;
}

int grub_find(struct edit *e, const struct boot *boot, struct grub *out, bool *can_make,
	      struct err *err)
{
	const struct boot_machine *machine = boot->machine;

	*out = (struct grub){ .bios = { .fd = -1 }, .efi = { .fd = -1 } };
	*can_make = mkimage_name() != NULL;
	if (!machine)
		return 0;
	if ((machine->bios && grub_dir_find(e, machine->bios, &out->bios, err) < 0) ||
	    (machine->efi && grub_dir_find(e, machine->efi, &out->efi, err) < 0)) {
		grub_free(out);
		return -1;
	}
	return 0;
}

void grub_free(struct grub *grub)
{
	cleanup_close(&grub->bios.fd);
	cleanup_close(&grub->efi.fd);
	grub->bios.fd = grub->efi.fd = -1;
}

/* Both become part of a script. */
static int check_config(const struct grub_config *cfg, struct err *err)
{
	static const char path_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789/._-+@";
	size_t uuid = strlen(cfg->uuid), prefix = strlen(cfg->prefix);

	if (uuid == 0 || uuid > 36 || strspn(cfg->uuid, "0123456789abcdefABCDEF-") != uuid)
		return err_set(err, ERR_FAILED, "GRUB cannot search for a UUID like '%s'",
			       cfg->uuid);
	if (cfg->prefix[0] != '/' || prefix > PREFIX_MAX ||
	    strspn(cfg->prefix, path_characters) != prefix)
		return err_set(err, ERR_REFUSED,
			       "the path of GRUB's directory, '%s', is no plain one", cfg->prefix);
	return 0;
}

static int make_config_file(const struct grub_config *cfg, struct err *err)
{
	autofree char *text = str_format(config_text, cfg->uuid, cfg->uuid, cfg->prefix);
	autoclose int fd = memfd_create("grub-config", MFD_CLOEXEC);

	if (!text)
		return err_nomem(err);
	if (fd < 0 || io_pwrite(fd, text, strlen(text), 0) < 0)
		return err_errno(err, ERR_FAILED, "cannot keep GRUB's configuration in memory");
	return steal_fd(&fd);
}

/* A file that cannot grow: hostile modules may make an image of any size.  No pipe,
 * since grub-mkimage wants to fsync what it has written.
 */
static int make_output_file(struct err *err)
{
	autoclose int fd = memfd_create("grub-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, IMAGE_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_errno(err, ERR_FAILED, "cannot keep GRUB's image in memory");
	return steal_fd(&fd);
}

/* The offset that we share with the child tells how much it has written. */
static int take_output(int fd, struct grub_image *out, struct err *err)
{
	off_t len = lseek(fd, 0, SEEK_CUR);
	autofree uint8_t *bytes = len > 0 ? malloc((size_t)len) : NULL;

	if (len <= 0)
		return err_set(err, ERR_FAILED, "grub-mkimage made nothing");
	if (!bytes)
		return err_nomem(err);
	if (io_pread(fd, bytes, (size_t)len, 0, NULL) != len)
		return err_errno(err, ERR_FAILED, "cannot read GRUB's image");
	*out = (struct grub_image){ .bytes = steal(&bytes), .len = (size_t)len };
	return 0;
}

static void add_modules(const char **argv, size_t *n, size_t max, int dir,
			const char *const *modules)
{
	for (; *modules && *n < max; modules++)
		if (grub_dir_has_module(dir, *modules))
			argv[(*n)++] = *modules;
}

static int run_mkimage(int dir, const char *platform, const char *const *modules,
		       const struct grub_config *cfg, struct grub_image *out, struct err *err)
{
	autoclose int config = make_config_file(cfg, err);
	autoclose int output = config < 0 ? -1 : make_output_file(err);
	const char *mkimage = mkimage_name();
	const char *argv[MODULES_MAX + 16] = {
		mkimage ? mkimage : mkimage_names[0],
		"-d",
		"/proc/self/fd/3",
		"-c",
		"/proc/self/fd/4",
		"-p",
		cfg->prefix,
		"-O",
		platform,
	};
	const int fds[] = { dir, config };
	const struct tool tool = {
		.argv = argv,
		.fds = fds,
		.fd_count = 2,
		.stdout_file = &output,
		.package = "grub-common",
	};
	size_t n = 9;

	if (output < 0)
		return -1;
	for (const char *const *const *group = modules_common; *group; group++)
		add_modules(argv, &n, MODULES_MAX, dir, *group);
	add_modules(argv, &n, MODULES_MAX, dir, modules);
	return tool_run(&tool, err) < 0 ? -1 : take_output(output, out, err);
}

static int make(const struct grub_modules *from, const char *platform, const char *const *modules,
		const struct grub_config *cfg, struct grub_image *out, struct err *err)
{
	if (from->fd < 0 || !platform)
		return err_set(err, ERR_REFUSED, "there are no GRUB modules for %s",
			       platform ? platform : "this machine");
	if (check_config(cfg, err) < 0)
		return -1;
	if (run_mkimage(from->fd, platform, modules, cfg, out, err) == 0)
		return 0;
	return err_context(err, "GRUB for %s from %s modules", platform,
			   from->of_tree ? "the source's" : "this system's");
}

int grub_make_efi(const struct grub *grub, const struct boot *boot, const struct grub_config *cfg,
		  struct grub_image *out, struct err *err)
{
	return make(&grub->efi, boot->machine ? boot->machine->efi : NULL, modules_efi, cfg, out,
		    err);
}

/* boot.img as grub-setup would put it on a hard disk: the drive that the BIOS
 * names is believed.
 */
static int make_boot_code(int dir, uint64_t lba, uint8_t boot_code[BOOT_CODE], struct err *err)
{
	uint8_t sector[SECTOR];
	uint64_t place = htole64(lba);

	if (grub_dir_read(dir, "boot.img", sector, sizeof sector, err) < 0)
		return -1;
	memcpy(sector + BOOT_CORE_LBA, &place, sizeof place);
	memset(sector + BOOT_DRIVE_CHECK, 0x90, 2);
	memcpy(boot_code, sector, BOOT_CODE);
	return 0;
}

/* Pad to whole sectors and tell the first one where the others are. */
static int finish_core(struct grub_image *core, uint64_t lba, struct err *err)
{
	size_t len = round_up(core->len, SECTOR);
	uint64_t next = htole64(lba + 1);
	uint16_t count = htole16((uint16_t)(len / SECTOR - 1));
	uint16_t segment = htole16(BLOCKLIST_SEGMENT);
	uint8_t *bytes;

	if (len < 2 * SECTOR || len > CORE_MAX)
		return err_set(err, ERR_FAILED, "GRUB's core for BIOS has %zu bytes, not up to %d",
			       core->len, CORE_MAX);
	bytes = realloc(core->bytes, len);
	if (!bytes)
		return err_nomem(err);
	memset(bytes + core->len, 0, len - core->len);
	memcpy(bytes + BLOCKLIST, &next, sizeof next);
	memcpy(bytes + BLOCKLIST + 8, &count, sizeof count);
	memcpy(bytes + BLOCKLIST + 10, &segment, sizeof segment);
	*core = (struct grub_image){ .bytes = bytes, .len = len };
	return 0;
}

int grub_make_bios(const struct grub *grub, const struct boot *boot, const struct grub_config *cfg,
		   uint64_t lba, uint8_t boot_code[440], struct grub_image *core, struct err *err)
{
	const char *platform = boot->machine ? boot->machine->bios : NULL;
	struct grub_image image = { 0 };

	if (make(&grub->bios, platform, modules_bios, cfg, &image, err) < 0)
		return -1;
	if (make_boot_code(grub->bios.fd, lba, boot_code, err) < 0 ||
	    finish_core(&image, lba, err) < 0) {
		free(image.bytes);
		return -1;
	}
	*core = image;
	return 0;
}
