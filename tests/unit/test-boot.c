// SPDX-License-Identifier: Apache-2.0
#include "boot-kit.h"
#include "system/boot.h"

#include <elf.h>

/* The 20 bytes of an ELF header that tell the machine. */
static void add_program(struct tree *t, const char *path, unsigned char class, unsigned machine)
{
	char head[64] = ELFMAG;

	head[EI_CLASS] = (char)class;
	head[EI_DATA] = ELFDATA2LSB;
	head[18] = (char)machine;
	head[19] = (char)(machine >> 8);
	assert_int_equal(edit_create(&t->edit, path, head, sizeof head, 0755, "test", &t->err), 0);
}

static void find(struct tree *t, bool separate, struct boot *boot)
{
	if (boot_find(&t->edit, separate, boot, &t->err) < 0)
		fail_msg("%s", t->err.text);
}

static void configure(struct tree *t, struct boot *boot, const struct boot_config *cfg)
{
	if (boot_configure(&t->edit, boot, cfg, &t->err) < 0)
		fail_msg("%s", t->err.text);
}

#define autoboot CLEANUP(boot_free)

/* --- what is found ------------------------------------------------------------------ */

static void the_machine_is_read_from_a_program(void **state)
{
	static const struct {
		unsigned char class;
		unsigned machine;
		const char *name;
	} rows[] = { { ELFCLASS64, EM_X86_64, "x86_64" },
		     { ELFCLASS64, EM_AARCH64, "aarch64" },
		     { ELFCLASS32, EM_X86_64, NULL },
		     { ELFCLASS64, EM_S390, NULL } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct tree_file files[] = { TREE_FILE("usr/bin/env",
							     "#!/bin/sh\n a script, no program"),
						   TREE_LINK("bin", "usr/bin"),
						   { 0 } };
		autotree struct tree t;
		struct boot autoboot boot;

		tree_start(&t, files);
		add_program(&t, "usr/bin/sh", rows[i].class, rows[i].machine);
		find(&t, false, &boot);
		if (rows[i].name)
			assert_string_equal(boot.machine->name, rows[i].name);
		else
			assert_null(boot.machine);
	}
}

/* The kit's content ends with the first NUL, so the machine is put in afterwards. */
static void a_program_on_disk_is_read_there(void **state)
{
	const char program[] = "\177ELF\2\1\1...........x\076";
	const struct tree_file files[] = { TREE_FILE("bin/sh", program), { 0 } };
	autotree struct tree t;
	struct boot autoboot boot;
	char full[512];
	autoclose int fd = -1;

	(void)state;
	tree_start_real(&t, files);
	tree_join(&t, "bin/sh", full, sizeof full);
	fd = open(full, O_WRONLY);
	assert_int_equal(pwrite(fd, "\076\0", 2, 18), 2);
	find(&t, false, &boot);
	assert_non_null(boot.machine);
	assert_string_equal(boot.machine->name, "x86_64");
}

/* Files of a tree, the newest kernel and its initrd. */
static const struct {
	const char *files[8];
	const char *kernel, *initrd, *version;
} kernels[] = {
	{ { "boot/vmlinuz-6.1.0-9-amd64", "boot/initrd.img-6.1.0-9-amd64",
	    "boot/vmlinuz-6.1.0-13-amd64", "boot/initrd.img-6.1.0-13-amd64",
	    "boot/config-6.1.0-99-amd64" },
	  "boot/vmlinuz-6.1.0-13-amd64",
	  "boot/initrd.img-6.1.0-13-amd64",
	  "6.1.0-13-amd64" },
	{ { "boot/vmlinuz-5.14.0-427.el9.x86_64", "boot/initramfs-5.14.0-427.el9.x86_64.img",
	    "boot/vmlinuz-5.14.0-70.el9.x86_64", "boot/vmlinuz-9-rescue-0123",
	    "boot/initramfs-9-rescue-0123.img" },
	  "boot/vmlinuz-5.14.0-427.el9.x86_64",
	  "boot/initramfs-5.14.0-427.el9.x86_64.img",
	  "5.14.0-427.el9.x86_64" },
	{ { "boot/vmlinuz-5.14.21-default", "boot/initrd-5.14.21-default",
	    "boot/initrd-5.14.21-default-kdump" },
	  "boot/vmlinuz-5.14.21-default",
	  "boot/initrd-5.14.21-default",
	  "5.14.21-default" },
	{ { "boot/vmlinuz-linux", "boot/initramfs-linux.img", "boot/initramfs-linux-fallback.img" },
	  "boot/vmlinuz-linux",
	  "boot/initramfs-linux.img",
	  NULL },
	{ { "boot/vmlinuz", "boot/initrd.img" }, "boot/vmlinuz", "boot/initrd.img", NULL },
	{ { "boot/vmlinuz-6.9.old", "boot/vmlinuz-6.1", "boot/vmlinuz-7.0.hmac",
	    "boot/vmlinuz-8.0.efi.signed" },
	  "boot/vmlinuz-6.1",
	  NULL,
	  "6.1" },
	{ { "boot/Image-6.1", "boot/initrd.img-6.1" },
	  "boot/Image-6.1",
	  "boot/initrd.img-6.1",
	  "6.1" },
	{ { "boot/0123/6.5.6/linux", "boot/0123/6.5.6/initrd", "usr/lib/modules/6.6/vmlinuz" },
	  "boot/0123/6.5.6/linux",
	  "boot/0123/6.5.6/initrd",
	  "6.5.6" },
	{ { "usr/lib/modules/6.6.1/vmlinuz", "usr/lib/modules/6.6.2/vmlinuz",
	    "boot/initramfs-6.6.2.img" },
	  "usr/lib/modules/6.6.2/vmlinuz",
	  "boot/initramfs-6.6.2.img",
	  "6.6.2" },
	{ { "usr/lib/modules/6.7/vmlinuz", "boot/vmlinuz-6.6" }, "boot/vmlinuz-6.6", NULL, "6.6" },
	{ { "boot.real/vmlinuz-6.1", "boot.real/initrd.img-6.1", "boot" },
	  "boot/vmlinuz-6.1",
	  "boot/initrd.img-6.1",
	  "6.1" },
	{ { "efi/m/6.5/linux", "efi/m/6.5/initrd", "efi/loader/entries/m-6.5.conf",
	    "usr/lib/modules/6.5/vmlinuz" },
	  "efi/m/6.5/linux",
	  "efi/m/6.5/initrd",
	  "6.5" },
	{ { "boot/efi/m/6.5/linux", "boot/efi/LOADER/Entries/M-6.5.CONF" },
	  "boot/efi/m/6.5/linux",
	  NULL,
	  "6.5" },
	{ { "efi/loader/entries/m-6.5.conf", "usr/lib/modules/6.5/vmlinuz" },
	  "usr/lib/modules/6.5/vmlinuz",
	  NULL,
	  "6.5" },
	{ { "boot/vmlinuz-6.1\nx", "boot/grub/vmlinuz-5" }, NULL, NULL, NULL },
	{ { "boot/efi/EFI/x" }, NULL, NULL, NULL },
};

static void assert_same(const char *is, const char *expected)
{
	if (!expected)
		assert_null(is);
	else
		assert_string_equal(is ? is : "(none)", expected);
}

/* "boot" is a link, an entry says what entries say. */
static struct tree_file kernel_file(const char *path)
{
	if (strcmp(path, "boot") == 0)
		return (struct tree_file)TREE_LINK("boot", "boot.real");
	if (strcasestr(path, ".conf"))
		return (struct tree_file)TREE_FILE(path, "version 6.5\nlinux /m/6.5/linux\n"
							 "initrd /m/6.5/initrd\n");
	return (struct tree_file)TREE_FILE(path, "x");
}

static void the_newest_kernel_is_found_with_its_initrd(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
		struct tree_file files[9] = { 0 };
		autotree struct tree t;
		struct boot autoboot boot;

		for (size_t k = 0; kernels[i].files[k]; k++)
			files[k] = kernel_file(kernels[i].files[k]);
		tree_start(&t, files);
		find(&t, false, &boot);
		assert_same(boot.kernel, kernels[i].kernel);
		assert_same(boot.initrd, kernels[i].initrd);
		assert_same(boot.version, kernels[i].version);
	}
}

static void directories_and_empty_files_are_no_kernels(void **state)
{
	const struct tree_file files[] = { TREE_DIR("boot/vmlinuz-9"),
					   TREE_FILE("boot/vmlinuz-8", ""),
					   TREE_LINK("boot/vmlinuz-7", "nowhere"),
					   TREE_FILE("boot/vmlinuz-6", "x"),
					   TREE_LINK("boot/vmlinuz", "vmlinuz-6"),
					   { 0 } };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	assert_string_equal(boot.kernel, "boot/vmlinuz-6");
}

static void kernels_on_a_filesystem_mounted_at_boot_count(void **state)
{
	const struct tree_file files[] = { TREE_DIR("boot"), { 0 } };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	tree_mount(&t, "boot");
	assert_int_equal(edit_create(&t.edit, "boot/vmlinuz-linux", "x", 1, 0644, "test", &t.err),
			 0);
	find(&t, true, &boot);
	assert_string_equal(boot.kernel, "boot/vmlinuz-linux");
	assert_true(boot.boot_is_separate);
}

static const struct {
	const char *grub, *grub2; /* their grub.cfg; "-": only the directory */
	const char *dir, *cfg;
} grub_dirs[] = {
	{ NULL, NULL, "boot/grub", NULL },
	{ "-", NULL, "boot/grub", NULL },
	{ NULL, "-", "boot/grub2", NULL },
	{ "menuentry a {}", NULL, "boot/grub", "boot/grub/grub.cfg" },
	{ "-", "blscfg", "boot/grub2", "boot/grub2/grub.cfg" },
	{ "# nothing", "blscfg", "boot/grub2", "boot/grub2/grub.cfg" },
	{ "# nothing", NULL, "boot/grub", NULL },
};

static void the_grub_directory_is_the_one_that_leads_somewhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof grub_dirs / sizeof *grub_dirs; i++) {
		struct tree_file files[3] = { 0 };
		autotree struct tree t;
		struct boot autoboot boot;
		size_t n = 0;

		if (grub_dirs[i].grub)
			files[n++] = (struct tree_file)TREE_FILE(
				*grub_dirs[i].grub == '-' ? "boot/grub/x" : "boot/grub/grub.cfg",
				grub_dirs[i].grub);
		if (grub_dirs[i].grub2)
			files[n++] = (struct tree_file)TREE_FILE(
				*grub_dirs[i].grub2 == '-' ? "boot/grub2/x" : "boot/grub2/grub.cfg",
				grub_dirs[i].grub2);
		tree_start(&t, files);
		find(&t, false, &boot);
		assert_string_equal(boot.grub_dir, grub_dirs[i].dir);
		assert_same(boot.grub_cfg, grub_dirs[i].cfg);
		assert_int_equal(boot.uses_blscfg,
				 grub_dirs[i].grub2 && strcmp(grub_dirs[i].grub2, "blscfg") == 0);
	}
}

static const struct {
	const char *path, *text, *root;
} root_arguments[] = {
	{ "boot/grub/grub.cfg",
	  "menuentry a { linux /memtest\n}\nmenuentry b { linux /v root=LABEL=x ro\n}", "LABEL=x" },
	{ "boot/grub2/grub.cfg", "set kernelopts=\"root=/dev/a\"\nblscfg\n", "/dev/a" },
	{ "boot/grub2/grubenv", "# GRUB Environment Block\nkernelopts=root=/dev/b ro\n", "/dev/b" },
	{ "boot/loader/entries/a.conf", "linux /v\noptions ro root=UUID=x\n", "UUID=x" },
	{ "efi/loader/entries/a.conf", "options ro root=UUID=y\n", "UUID=y" },
	{ "etc/kernel/cmdline", "ro root=PARTUUID=z\n", "PARTUUID=z" },
	{ "boot/grub/grub.cfg", "linux /v root=$x\n", NULL },
	{ "boot/grub/grub.cfg",
	  "### BEGIN /etc/grub.d/30_os-prober ###\nlinux /v root=/dev/other\n"
	  "### END /etc/grub.d/30_os-prober ###\n",
	  NULL },
	{ "etc/passwd", "root=/dev/x\n", NULL },
};

static void the_root_argument_is_that_of_what_boots(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof root_arguments / sizeof *root_arguments; i++) {
		const struct tree_file files[] = {
			TREE_FILE(root_arguments[i].path, root_arguments[i].text), { 0 }
		};
		autotree struct tree t;
		struct boot autoboot boot;
		bool missing;
		autofree char *root = NULL;

		tree_start(&t, files);
		find(&t, false, &boot);
		root = boot_root_argument(&t.edit, &missing, &t.err);
		assert_same(root, root_arguments[i].root);
		assert_int_equal(missing, !root_arguments[i].root);
	}
}

static const struct {
	const char *fstab, *crypttab, *cmdline;
	bool encrypted;
} containers[] = {
	{ "/dev/mapper/cr_root / ext4 rw\n", "cr_root UUID=x none luks\n", "", true },
	{ "/dev/mapper/vg-root / ext4 rw\n", "sda3_crypt UUID=x none luks\n", "", true },
	{ "/dev/vg/root / ext4 rw\n", "sda3_crypt UUID=x none luks\n", "", true },
	{ "UUID=x / ext4 rw\n", "luks-x UUID=y none\n", "rd.luks.uuid=y ro", true },
	{ "UUID=x / ext4 rw\n", "", "cryptdevice=UUID=y:root", true },
	{ "UUID=x / ext4 rw\n", "c UUID=y none luks\n", "root=/dev/mapper/c", true },
	{ "/dev/mapper/vg-root / ext4 rw\n", "swap /dev/sda2 /dev/urandom swap\n", "", false },
	{ "/dev/mapper/vg-root / ext4 rw\n", "usb /dev/sdb1 none luks,noauto\n", "", false },
	{ "/dev/mapper/vg-root / ext4 rw\n", "", "rd.lvm.lv=vg/root rd.luks=0", false },
	{ "UUID=x / ext4 rw\n", "data UUID=y none luks\n", "root=UUID=x", false },
};

static void an_encrypted_root_is_noticed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
		const struct tree_file files[] = {
			TREE_FILE("etc/fstab", containers[i].fstab),
			TREE_FILE("etc/crypttab", containers[i].crypttab),
			TREE_FILE("etc/kernel/cmdline", containers[i].cmdline),
			{ 0 },
		};
		autotree struct tree t;
		struct boot autoboot boot;

		tree_start(&t, files);
		find(&t, false, &boot);
		if (boot.was_encrypted != containers[i].encrypted)
			fail_msg("row %zu", i);
	}
}

static void what_may_not_be_read_is_passed_over_when_looking(void **state)
{
	const struct tree_file files[] = { TREE_MODE("boot/grub/grub.cfg", "menuentry a {}",
						     S_IFREG),
					   TREE_FILE("etc/kernel/cmdline", "root=/dev/x"),
					   { 0 } };
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	if (geteuid() == 0)
		skip();
	tree_start_real(&t, files);
	find(&t, false, &boot);
	assert_string_equal(boot.grub_cfg, "boot/grub/grub.cfg");
	configure(&t, &boot, &cfg);
	assert_non_null(strstr(warned, "/boot/grub/grub.cfg is left as it is: cannot read"));
}

/* --- what is changed ------------------------------------------------------------------- */

static void a_tree_that_fits_is_left_alone(void **state)
{
	const struct tree_file files[] = {
		TREE_FILE("boot/vmlinuz-6.1", "x"),
		TREE_FILE("boot/initrd.img-6.1", "x"),
		TREE_FILE("boot/grub/grub.cfg",
			  "search --fs-uuid --set=root " ROOT_UUID
			  "\nmenuentry a {\n\tlinux /boot/vmlinuz-6.1 root=UUID=" ROOT_UUID
			  " ro\n\tinitrd /boot/initrd.img-6.1\n}\n"),
		TREE_FILE("boot/grub/grubenv", "# GRUB Environment Block\nkernelopts=ro\n###"),
		TREE_FILE("etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n"),
		TREE_FILE("etc/kernel/cmdline", "root=LABEL=rootfs ro\n"),
		TREE_FILE("boot/loader/entries/a.conf", "linux /boot/vmlinuz-6.1\noptions ro\n"),
		{ 0 },
	};
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_int_equal(t.account.len, 0);
	assert_int_equal(*warned, '\0');
}

static void every_place_for_arguments_is_brought_in_line(void **state)
{
	static const struct {
		const char *path, *before, *after;
	} rows[] = {
		{ "boot/grub/grub.cfg", "linux /boot/vmlinuz-6.1 root=/dev/sda1 ro",
		  "linux /boot/vmlinuz-6.1 root=UUID=" ROOT_UUID " ro" },
		{ "boot/grub/custom.cfg", "linux /boot/vmlinuz-6.1 root=/dev/sda1",
		  "linux /boot/vmlinuz-6.1 root=UUID=" ROOT_UUID },
		{ "boot/efi/EFI/debian/grub.cfg",
		  "search.fs_uuid " OLD_UUID " root hd0,gpt2 \nset prefix=($root)'/boot/grub'\n",
		  "search.fs_uuid " ROOT_UUID " root hd0,gpt2 \nset prefix=($root)'/boot/grub'\n" },
		{ "boot/efi/EFI/ubuntu/GRUB.CFG", "linux /x root=/dev/a",
		  "linux /x root=UUID=" ROOT_UUID },
		{ "boot/efi/efi/x/grub.cfg", "linux /x root=/dev/a",
		  "linux /x root=UUID=" ROOT_UUID },
		{ "efi/EFI/arch/grub.cfg", "linux /x root=/dev/a",
		  "linux /x root=UUID=" ROOT_UUID },
		{ "boot/loader/entries/a.conf", "options root=/dev/sda1 ro\n",
		  "options root=UUID=" ROOT_UUID " ro\n" },
		{ "boot/efi/loader/entries/a.conf", "options resume=/dev/a ro\n", "options ro\n" },
		{ "efi/loader/entries/a.conf", "options resume=/dev/a ro\n", "options ro\n" },
		{ "etc/kernel/cmdline", "root=/dev/sda1 rd.lvm.lv=a/b\n",
		  "root=UUID=" ROOT_UUID "\n" },
		{ "etc/default/grub", "GRUB_CMDLINE_LINUX=\"resume=x a\"\n",
		  "GRUB_CMDLINE_LINUX=\"a\"\n" },
		{ "etc/default/grub.d/50-cloud.cfg", "GRUB_CMDLINE_LINUX=\"rd.luks.uuid=x\"\n",
		  "GRUB_CMDLINE_LINUX=\"\"\n" },
	};
	const struct boot_config cfg = { .names = &root_only };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6.1", "x"),
						   TREE_FILE("boot/initrd.img-6.1", "x"),
						   TREE_FILE("boot/grub/x", "x"),
						   TREE_FILE(rows[i].path, rows[i].before),
						   { 0 } };
		autotree struct tree t;
		struct boot autoboot boot;

		tree_start(&t, files);
		find(&t, false, &boot);
		configure(&t, &boot, &cfg);
		assert_text(&t, rows[i].path, rows[i].after);
		assert_true(strlen(tree_told(&t, ACCOUNT_EDITED, rows[i].path)) > 0);
	}
}

/* RHEL 8: the menu is in BLS entries, the arguments in the environment, which a link leads to. */
static void a_bls_menu_is_written_out_for_a_grub_without_blscfg(void **state)
{
	const struct tree_file files[] = {
		TREE_FILE("boot/vmlinuz-4.18.0-9", "x"),
		TREE_FILE("boot/initramfs-4.18.0-9.img", "x"),
		TREE_FILE("boot/vmlinuz-4.18.0-10", "x"),
		TREE_FILE("boot/initramfs-4.18.0-10.img", "x"),
		TREE_FILE("boot/grub2/grub.cfg", "insmod blscfg\nblscfg\n# end\n"),
		TREE_FILE("boot/efi/EFI/rocky/grubenv",
			  "# GRUB Environment Block\nkernelopts=root=/dev/mapper/rl-root ro \n"
			  "##################################################################"),
		TREE_LINK("boot/grub2/grubenv", "../efi/EFI/rocky/grubenv"),
		TREE_FILE(
			"boot/loader/entries/m-4.18.0-9.conf",
			"title Old\nversion 4.18.0-9\nlinux /vmlinuz-4.18.0-9\noptions $kernelopts\n"),
		TREE_FILE("boot/loader/entries/m-4.18.0-10.conf",
			  "title New\nversion 4.18.0-10\nlinux /vmlinuz-4.18.0-10\n"
			  "initrd /initramfs-4.18.0-10.img\noptions $kernelopts quiet\n"),
		{ 0 },
	};
	const struct boot_config cfg = { .names = &with_boot };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, true, &boot);
	assert_true(boot.uses_blscfg);
	configure(&t, &boot, &cfg);
	assert_text(&t, "boot/grub2/grub.cfg",
		    "true\n"
		    "menuentry 'New' --unrestricted --id 'm-4.18.0-10' {\n"
		    "\tlinux '/vmlinuz-4.18.0-10' root=UUID=" ROOT_UUID " ro quiet\n"
		    "\tinitrd /initramfs-4.18.0-10.img\n}\n"
		    "menuentry 'Old' --unrestricted --id 'm-4.18.0-9' {\n"
		    "\tlinux '/vmlinuz-4.18.0-9' root=UUID=" ROOT_UUID " ro\n}\n"
		    "\n# end\n");
}

static void with_blscfg_the_menu_stays_as_it_is(void **state)
{
	const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-5", "x"),
					   TREE_FILE("boot/grub2/grub.cfg", "blscfg\n"),
					   TREE_FILE("boot/loader/entries/a.conf",
						     "linux /boot/vmlinuz-5\noptions ro\n"),
					   { 0 } };
	const struct boot_config cfg = { .names = &root_only, .has_blscfg = true };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_int_equal(t.account.len, 0);
}

#define HEAD(uuid)                                                                                 \
	"# Made by ccsnap: there was no grub.cfg.\nset default=0\nset timeout=1\n"                 \
	"if serial --unit=0 --speed=115200; then\n\tterminal_input console serial\n"               \
	"\tterminal_output console serial\nfi\n"                                                   \
	"search --no-floppy --fs-uuid --set=root " uuid "\n"

static void without_a_grub_cfg_a_minimal_one_is_made(void **state)
{
	const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6.1", "x"),
					   TREE_FILE("boot/initrd.img-6.1", "x"),
					   TREE_FILE("boot/vmlinuz-6.2", "x"),
					   { 0 } };
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	add_program(&t, "bin/sh", ELFCLASS64, EM_X86_64);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_string_equal(boot.grub_cfg, "boot/grub/grub.cfg");
	assert_text(&t, "boot/grub/grub.cfg",
		    HEAD(ROOT_UUID) "menuentry 'Linux 6.2' --id 'Linux 6.2' {\n"
				    "\tsearch --no-floppy --fs-uuid --set=root " ROOT_UUID "\n"
				    "\tlinux '/boot/vmlinuz-6.2' root=PARTUUID=" ROOT_PART
				    " ro console=tty0 console=ttyS0,115200\n}\n"
				    "menuentry 'Linux 6.1' --id 'Linux 6.1' {\n"
				    "\tsearch --no-floppy --fs-uuid --set=root " ROOT_UUID "\n"
				    "\tlinux '/boot/vmlinuz-6.1' root=UUID=" ROOT_UUID
				    " ro console=tty0 console=ttyS0,115200\n"
				    "\tinitrd '/boot/initrd.img-6.1'\n}\n");
}

static void a_hostile_kernel_name_is_no_script(void **state)
{
	const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-'; reboot; '{}$x\\", "x"),
					   { 0 } };
	const struct boot_config cfg = { .names = &with_boot };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	add_program(&t, "bin/sh", ELFCLASS64, EM_AARCH64);
	find(&t, true, &boot);
	configure(&t, &boot, &cfg);
	assert_text(
		&t, "boot/grub/grub.cfg",
		HEAD(BOOT_UUID) "menuentry 'Linux vmlinuz-'\\''; reboot; '\\''{}$x\\' --id "
				"'Linux vmlinuz-'\\''; reboot; '\\''{}$x\\' {\n"
				"\tsearch --no-floppy --fs-uuid --set=root " BOOT_UUID "\n"
				"\tlinux '/vmlinuz-'\\''; reboot; '\\''{}$x\\' root=PARTUUID=" ROOT_PART
				" ro console=tty0 console=ttyAMA0,115200\n}\n");
}

static void an_empty_grub_cfg_counts_as_none(void **state)
{
	const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6.1", "x"),
					   TREE_FILE("boot/grub2/grub.cfg", ""),
					   { 0 } };
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;
	size_t len;
	bool missing;
	autofree char *text = NULL;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	text = edit_read(&t.edit, "boot/grub2/grub.cfg", &len, &missing, &t.err);
	assert_non_null(text);
	assert_non_null(strstr(text, "menuentry 'Linux 6.1'"));
}

static void the_trees_own_entries_count_for_a_minimal_menu(void **state)
{
	const struct tree_file files[] = {
		TREE_FILE("boot/m/6.5/linux", "x"),
		TREE_FILE("boot/m/6.5/initrd", "x"),
		TREE_FILE("boot/loader/entries/m-6.5.conf",
			  "title T\nversion 6.5\nlinux /m/6.5/linux\ninitrd /m/6.5/initrd\n"
			  "options root=/dev/sda2 rw mine\n"),
		{ 0 }
	};
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_text(&t, "boot/grub/grub.cfg",
		    HEAD(ROOT_UUID) "menuentry 'T' --unrestricted --id 'm-6.5' {\n"
				    "\tlinux '/boot/m/6.5/linux' root=UUID=" ROOT_UUID " rw mine\n"
				    "\tinitrd /boot/m/6.5/initrd\n}\n");
}

/* systemd-boot's: kernels and entries are on the ESP, and nothing is in /boot. */
static void entries_on_the_esp_make_a_menu(void **state)
{
	const struct tree_file files[] = {
		TREE_DIR("boot"),
		TREE_FILE("efi/m/6.5/linux", "x"),
		TREE_FILE("efi/m/6.5/initrd", "x"),
		TREE_FILE("efi/loader/entries/m-6.5.conf",
			  "title T\nversion 6.5\nlinux /m/6.5/linux\ninitrd /m/6.5/initrd\n"
			  "options root=/dev/sda2 rw\n"),
		TREE_FILE("efi/loader/entries/gone.conf", "linux /m/6.4/linux\noptions rw\n"),
		{ 0 }
	};
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_text(&t, "boot/grub/grub.cfg",
		    HEAD(ROOT_UUID) "menuentry 'T' --unrestricted --id 'm-6.5' {\n"
				    "\tsearch --no-floppy --fs-uuid --set=root " ESP_SERIAL "\n"
				    "\tlinux '/m/6.5/linux' root=UUID=" ROOT_UUID " rw\n"
				    "\tinitrd /m/6.5/initrd\n}\n");
	assert_text(&t, "efi/loader/entries/m-6.5.conf",
		    "title T\nversion 6.5\nlinux /m/6.5/linux\ninitrd /m/6.5/initrd\n"
		    "options root=UUID=" ROOT_UUID " rw\n");
}

static void a_separate_boot_hides_what_the_root_has_there(void **state)
{
	const struct tree_file files[] = { TREE_DIR("boot"),
					   TREE_FILE("usr/lib/modules/6/vmlinuz", "x"),
					   { 0 } };
	static const char cfg_text[] = "set root='hd0,gpt2'\nlinux /boot/vmlinuz-6 ro\n"
				       "set root='hd0,gpt3'\n"
				       "linux /usr/lib/modules/6/vmlinuz ro\n";
	const struct boot_config cfg = { .names = &with_boot };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	tree_mount(&t, "boot");
	assert_int_equal(edit_create(&t.edit, "boot/vmlinuz-6", "x", 1, 0644, "w", &t.err), 0);
	assert_int_equal(edit_create(&t.edit, "boot/grub/grub.cfg", cfg_text, strlen(cfg_text),
				     0644, "w", &t.err),
			 0);
	find(&t, true, &boot);
	configure(&t, &boot, &cfg);
	assert_text(&t, "boot/grub/grub.cfg",
		    "set root='hd0,gpt2'; search --no-floppy --fs-uuid --set=root " BOOT_UUID
		    "\nlinux /vmlinuz-6 ro\n"
		    "set root='hd0,gpt3'; search --no-floppy --fs-uuid --set=root " ROOT_UUID
		    "\nlinux /usr/lib/modules/6/vmlinuz ro\n");
}

/* In a copy of a subvolume nobody but its files can tell. */
static void the_subvolume_is_the_one_that_arguments_or_fstab_name(void **state)
{
	static const struct {
		const char *fstab, *cmdline, *dir, *after;
	} rows[] = {
		{ "UUID=x / btrfs subvol=@ 0 0\n", "ro", "data", "font=\"/usr/f\"\n" },
		{ "", "rootflags=subvol=@,ssd", "data", "font=\"/usr/f\"\n" },
		{ "UUID=x / btrfs defaults 0 0\n", "ro", "data", "font=\"/@/usr/f\"\n" },
		{ "UUID=x / btrfs subvol=@ 0 0\n", "ro", "@", "font=\"/@/usr/f\"\n" },
	};
	const struct boot_config cfg = { .names = &root_only, .subvolume = "" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6", "x"),
						   TREE_FILE("boot/grub/grub.cfg",
							     "font=\"/@/usr/f\"\nblscfg\n"),
						   TREE_FILE("etc/fstab", rows[i].fstab),
						   TREE_FILE("etc/kernel/cmdline", rows[i].cmdline),
						   TREE_DIR(rows[i].dir),
						   { 0 } };
		autofree char *after = str_format("%sblscfg\n", rows[i].after);
		struct boot_config with_blscfg = cfg;
		autotree struct tree t;
		struct boot autoboot boot;

		with_blscfg.has_blscfg = true;
		tree_start(&t, files);
		find(&t, false, &boot);
		configure(&t, &boot, &with_blscfg);
		assert_text(&t, "boot/grub/grub.cfg", after);
	}
}

static void one_kernel_without_an_initrd_is_enough_for_partuuid(void **state)
{
	const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6.2", "x"),
					   TREE_FILE("boot/initrd.img-6.2", "x"),
					   TREE_FILE("boot/vmlinuz-6.1", "x"),
					   TREE_FILE("boot/grub/grub.cfg",
						     "linux /boot/vmlinuz-6.1 root=/dev/sda1\n"),
					   { 0 } };
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_text(&t, "boot/grub/grub.cfg",
		    "linux /boot/vmlinuz-6.1 root=PARTUUID=" ROOT_PART "\n");
}

static void an_initrd_does_not_wait_for_a_swap_that_is_gone(void **state)
{
	static const struct {
		const char *setting, *fstab, *tools, *after;
	} rows[] = {
		{ "RESUME=UUID=" OTHER_UUID "\n", "", "usr/share/initramfs-tools/x", " noresume" },
		{ "#\nRESUME=\"/dev/sda2\"\n", "", "usr/share/initramfs-tools/x", " noresume" },
		{ "", "/dev/sda2 none swap sw\n", "usr/share/initramfs-tools/x", " noresume" },
		{ "RESUME=auto", "/dev/sda2 none swap sw\n", "usr/share/initramfs-tools/x",
		  " noresume" },
		{ "RESUME=none", "/dev/sda2 none swap sw\n", "usr/share/initramfs-tools/x", "" },
		{ "RESUME=UUID=" ROOT_UUID, "", "usr/share/initramfs-tools/x", "" },
		{ "", "/swapfile none swap sw\n", "usr/share/initramfs-tools/x", "" },
		{ "RESUME=/dev/sda2", "", "usr/lib/dracut/x", "" },
	};
	const struct boot_config cfg = { .names = &root_only };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		autofree char *after = str_format(
			"linux /boot/vmlinuz-6 root=UUID=" ROOT_UUID " ro%s\n", rows[i].after);
		const struct tree_file files[] = {
			TREE_FILE("boot/vmlinuz-6", "x"),
			TREE_FILE("boot/initrd.img-6", "x"),
			TREE_FILE("etc/initramfs-tools/conf.d/resume", rows[i].setting),
			TREE_FILE("etc/fstab", rows[i].fstab),
			TREE_FILE(rows[i].tools, "x"),
			TREE_FILE("boot/grub/grub.cfg",
				  "linux /boot/vmlinuz-6 root=UUID=" ROOT_UUID " ro\n"),
			{ 0 }
		};
		autotree struct tree t;
		struct boot autoboot boot;

		tree_start(&t, files);
		find(&t, false, &boot);
		configure(&t, &boot, &cfg);
		assert_text(&t, "boot/grub/grub.cfg", after);
	}
}

/* What the image cannot boot without is refused when something else is in its place. */
static void a_grub_cfg_that_cannot_be_made_is_refused(void **state)
{
	static const struct tree_file odd[] = {
		TREE_DIR("boot/grub/grub.cfg"),
		TREE_MODE("boot/grub/grub.cfg", NULL, S_IFIFO | 0600),
		TREE_LINK("boot/grub/grub.cfg", "nowhere"),
		TREE_LINK("boot/grub/grub.cfg", "grub.cfg"),
		TREE_FILE("boot/grub", "x"),
		TREE_LINK("boot/grub", "nowhere"),
	};
	const struct boot_config cfg = { .names = &root_only };

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6", "x"),
						   odd[i],
						   { 0 } };
		autotree struct tree t;
		struct boot autoboot boot;

		tree_start(&t, files);
		find(&t, false, &boot);
		assert_int_equal(boot_configure(&t.edit, &boot, &cfg, &t.err), -1);
		assert_int_equal(t.err.kind, ERR_REFUSED);
		assert_non_null(strstr(t.err.text, "--no-boot makes a data disk"));
	}
}

static void an_odd_or_huge_file_is_left_as_it_is(void **state)
{
	const size_t len = (4 << 20) + 1;
	autofree char *big = malloc(len + 1);
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	assert_non_null(big);
	memset(big, '#', len);
	big[len] = '\0';
	{
		const struct tree_file files[] = { TREE_FILE("boot/vmlinuz-6", "x"),
						   TREE_FILE("boot/grub/grub.cfg", big),
						   TREE_DIR("etc/default/grub"),
						   TREE_MODE("etc/kernel/cmdline", NULL,
							     S_IFIFO | 0600),
						   { 0 } };

		tree_start(&t, files);
	}
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_int_equal(t.account.len, 0);
	assert_non_null(strstr(warned, "/boot/grub/grub.cfg is left as it is"));
	assert_non_null(
		strstr(warned, "/etc/default/grub is left as it is: it is no regular file"));
	assert_non_null(strstr(warned, "/etc/kernel/cmdline is left as it is"));
}

static void without_a_kernel_nothing_is_made(void **state)
{
	const struct tree_file files[] = { TREE_DIR("boot/grub"), { 0 } };
	const struct boot_config cfg = { .names = &root_only };
	autotree struct tree t;
	struct boot autoboot boot;

	(void)state;
	tree_start(&t, files);
	find(&t, false, &boot);
	configure(&t, &boot, &cfg);
	assert_false(tree_has(&t, "boot/grub/grub.cfg"));
	assert_int_equal(t.account.len, 0);
}

static void an_initrd_for_a_container_is_warned_of(void **state)
{
	static const char *const hooks[] = { "usr/share/initramfs-tools/hooks/cryptroot",
					     "usr/lib/initcpio/install/encrypt",
					     "usr/lib/dracut/modules.d/90crypt/module-setup.sh",
					     "etc/x" };
	const struct boot_config cfg = { .names = &root_only };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct tree_file files[] = {
			TREE_FILE("boot/vmlinuz-6.1", "x"),
			TREE_FILE("boot/initrd.img-6.1", "x"),
			TREE_FILE("etc/kernel/cmdline",
				  "cryptdevice=UUID=x:c root=/dev/mapper/c rw"),
			TREE_FILE(hooks[i], "x"),
			{ 0 }
		};
		autotree struct tree t;
		struct boot autoboot boot;

		*warned = '\0';
		tree_start(&t, files);
		find(&t, false, &boot);
		configure(&t, &boot, &cfg);
		assert_text(&t, "etc/kernel/cmdline", "root=UUID=" ROOT_UUID " rw");
		assert_int_equal(strstr(warned, "/boot/initrd.img-6.1 may still ask") != NULL,
				 i < 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_machine_is_read_from_a_program),
		TEST(a_program_on_disk_is_read_there),
		TEST(the_newest_kernel_is_found_with_its_initrd),
		TEST(directories_and_empty_files_are_no_kernels),
		TEST(kernels_on_a_filesystem_mounted_at_boot_count),
		TEST(the_grub_directory_is_the_one_that_leads_somewhere),
		TEST(the_root_argument_is_that_of_what_boots),
		TEST(an_encrypted_root_is_noticed),
		TEST(what_may_not_be_read_is_passed_over_when_looking),
		TEST(a_tree_that_fits_is_left_alone),
		TEST(every_place_for_arguments_is_brought_in_line),
		TEST(a_bls_menu_is_written_out_for_a_grub_without_blscfg),
		TEST(with_blscfg_the_menu_stays_as_it_is),
		TEST(without_a_grub_cfg_a_minimal_one_is_made),
		TEST(a_hostile_kernel_name_is_no_script),
		TEST(an_empty_grub_cfg_counts_as_none),
		TEST(the_trees_own_entries_count_for_a_minimal_menu),
		TEST(entries_on_the_esp_make_a_menu),
		TEST(a_separate_boot_hides_what_the_root_has_there),
		TEST(the_subvolume_is_the_one_that_arguments_or_fstab_name),
		TEST(one_kernel_without_an_initrd_is_enough_for_partuuid),
		TEST(an_initrd_does_not_wait_for_a_swap_that_is_gone),
		TEST(a_grub_cfg_that_cannot_be_made_is_refused),
		TEST(an_odd_or_huge_file_is_left_as_it_is),
		TEST(without_a_kernel_nothing_is_made),
		TEST(an_initrd_for_a_container_is_warned_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
