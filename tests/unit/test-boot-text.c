// SPDX-License-Identifier: Apache-2.0
#include "boot-kit.h"
#include "system/bls.h"
#include "system/cmdline.h"
#include "system/grub_text.h"
#include "system/grubcfg.h"

/* --- kernel arguments --------------------------------------------------------------- */

static const struct {
	const char *before, *after;
} arguments[] = {
	/* what fits stays */
	{ "root=UUID=" ROOT_UUID " ro quiet", "root=UUID=" ROOT_UUID " ro quiet" },
	{ " root=LABEL=rootfs  ro\tsplash ", " root=LABEL=rootfs  ro\tsplash " },
	{ "root=PARTUUID=" ROOT_PART, "root=PARTUUID=" ROOT_PART },
	{ "root=/dev/disk/by-uuid/" ROOT_UUID, "root=/dev/disk/by-uuid/" ROOT_UUID },
	{ "root=${rootdev} $kernelopts ro", "root=${rootdev} $kernelopts ro" },
	{ "xroot=/dev/sda1 noresume rd.lvm=0 rd.luks=0 luks=no resume",
	  "xroot=/dev/sda1 noresume rd.lvm=0 rd.luks=0 luks=no resume" },
	{ "rootfstype=ext4 rootflags=data=journal,noatime",
	  "rootfstype=ext4 rootflags=data=journal,noatime" },
	{ "dyndbg=\"file ec.c +p\" resume=$x", "dyndbg=\"file ec.c +p\" resume=$x" },
	{ "", "" },
	/* the root */
	{ "root=/dev/sda1 ro", "root=UUID=" ROOT_UUID " ro" },
	{ "ro root=UUID=" OLD_UUID "\tquiet", "ro root=UUID=" ROOT_UUID "\tquiet" },
	{ "\"root=LABEL=old\" ro", "root=UUID=" ROOT_UUID " ro" },
	{ "root=PARTUUID=" OLD_UUID, "root=PARTUUID=" ROOT_PART },
	{ "root=ZFS=rpool/ROOT/debian boot=zfs ro", "root=UUID=" ROOT_UUID " ro" },
	/* subvolumes and other kinds of filesystem */
	{ "root=UUID=" ROOT_UUID " ro rootflags=subvol=@ quiet",
	  "root=UUID=" ROOT_UUID " ro quiet" },
	{ "rootflags=subvol=root,noatime,ssd ro", "rootflags=noatime ro" },
	{ "rootflags=uquota,pquota ro", "ro" },
	{ "ro rootfstype=btrfs", "ro" },
	{ "ro rootfstype=ext4,btrfs", "ro rootfstype=ext4,btrfs" },
	/* containers, volumes, hibernation */
	{ "rd.luks.uuid=luks-x rd.luks.options=discard ro", "ro" },
	{ "ro rd.luks.name=x=root rd.lvm.lv=rl/root  rd.lvm.lv=rl/swap rhgb", "ro rhgb" },
	{ "cryptdevice=UUID=x:cr root=/dev/mapper/cr rw", "root=UUID=" ROOT_UUID " rw" },
	{ "ro resume=/dev/sda2 resume_offset=1 quiet", "ro quiet" },
	{ "rd.md.uuid=a:b mount.usr=UUID=x mount.usrflags=ro ro", "ro" },
	{ "resume=UUID=x", "" },
};

static void arguments_are_taken_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
		struct cmdline c = { .names = &root_only, .has_initrd = true };
		autotext struct text out = { 0 };

		cmdline_rewrite(slice_of(arguments[i].before), &c, &out);
		assert_became(&out, arguments[i].after);
		assert_int_equal(c.changes != 0,
				 strcmp(arguments[i].before, arguments[i].after) != 0);
	}
}

static void without_an_initrd_the_root_is_named_by_partuuid(void **state)
{
	struct cmdline c = { .names = &root_only };
	autotext struct text out = { 0 };

	(void)state;
	cmdline_rewrite(slice_of("root=/dev/vda1 ro"), &c, &out);
	assert_became(&out, "root=PARTUUID=" ROOT_PART " ro");
}

static const struct {
	const char *before, *after;
} network_roots[] = {
	{ "root=/dev/nfs nfsroot=1.2.3.4:/x ip=dhcp boot=nfs rw", "root=UUID=" ROOT_UUID " rw" },
	{ "ip=dhcp root=nfs:1.2.3.4:/x ro", "root=UUID=" ROOT_UUID " ro" },
	{ "root=/dev/sda1 netroot=iscsi:x rd.iscsi.initiator=a ip=dhcp overlayroot=tmpfs",
	  "root=UUID=" ROOT_UUID " ip=dhcp" },
	{ "root=/dev/ram0 real_root=/dev/sda3 ro", "root=UUID=" ROOT_UUID " ro" },
	{ "boot=live root=/dev/x rd.live.image", "root=UUID=" ROOT_UUID },
	/* the root's own are left */
	{ "root=UUID=" ROOT_UUID " netroot=iscsi:x rd.iscsi.a=b ip=dhcp overlayroot=tmpfs",
	  "root=UUID=" ROOT_UUID " netroot=iscsi:x rd.iscsi.a=b ip=dhcp overlayroot=tmpfs" },
	{ "root=$x nfsroot=y", "root=$x nfsroot=y" },
	{ "ip=dhcp overlayroot=tmpfs", "ip=dhcp overlayroot=tmpfs" },
};

static void arguments_of_a_network_root_go_with_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof network_roots / sizeof *network_roots; i++) {
		struct cmdline c = { .names = &root_only, .has_initrd = true };
		autotext struct text out = { 0 };

		cmdline_rewrite(slice_of(network_roots[i].before), &c, &out);
		assert_became(&out, network_roots[i].after);
	}
}

/* etc/default/grub has no root=. */
static void arguments_without_a_root_go_by_the_old_one(void **state)
{
	struct cmdline c = { .names = &root_only, .old_root = "/dev/nfs" };
	autotext struct text out = { 0 };

	(void)state;
	cmdline_rewrite(slice_of("nfsroot=x ip=dhcp quiet"), &c, &out);
	assert_became(&out, "quiet");
}

static void noresume_is_said_once_where_a_root_is_named(void **state)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{ "root=UUID=" ROOT_UUID " ro \n", "root=UUID=" ROOT_UUID " ro noresume \n" },
		{ "root=/dev/a resume=/dev/b", "root=UUID=" ROOT_UUID " noresume" },
		{ "root=UUID=" ROOT_UUID " noresume ro", "root=UUID=" ROOT_UUID " noresume ro" },
		{ "quiet", "quiet" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cmdline c = { .names = &root_only,
				     .has_initrd = true,
				     .wants_noresume = true };
		autotext struct text out = { 0 };

		cmdline_rewrite(slice_of(rows[i].before), &c, &out);
		assert_became(&out, rows[i].after);
	}
}

static void looking_finds_the_first_root_and_changes_nothing(void **state)
{
	static const char args[] =
		"root=$x root=/dev/mapper/a root=/dev/b cryptdevice=c:d resume=e";
	struct cmdline c = { 0 };
	autotext struct text out = { 0 };

	(void)state;
	cmdline_rewrite(slice_of(args), &c, &out);
	assert_became(&out, args);
	assert_string_equal(c.root, "/dev/mapper/a");
	assert_true(c.names_container);
	assert_int_equal(c.changes, 0);
}

/* --- grub.cfg ------------------------------------------------------------------------- */

static bool nothing_exists(const void *ctx, enum boot_volume volume, const char *path)
{
	(void)ctx, (void)volume, (void)path;
	return false;
}

/* ctx: the one path that exists. */
static bool one_exists(const void *ctx, enum boot_volume volume, const char *path)
{
	return volume == BOOT_VOLUME_KERNELS && strcmp(ctx, path) == 0;
}

/* As in an image with a /boot of its own. */
static bool files_exist(const void *ctx, enum boot_volume volume, const char *path)
{
	static const char *const files[] = {
		[BOOT_VOLUME_KERNELS] = "/vmlinuz-5 /initrd-5 /grub2 /grub2/grub.cfg",
		[BOOT_VOLUME_ROOT] = "/usr/lib/modules/5/vmlinuz",
		[BOOT_VOLUME_ESP] = "/EFI/debian/grub.cfg",
	};
	struct slice rest = slice_of(files[volume]), file;

	(void)ctx;
	while (slice_word(&rest, &file))
		if (slice_is(file, path))
			return true;
	return false;
}

static struct grubcfg config_for(const struct names *names)
{
	return (struct grubcfg){
		.cmdline = { .names = names, .has_initrd = true, .old_root = "UUID=" OLD_UUID },
		.holder = names->boot.present ? &names->boot : &names->root,
		.paths = { .exists = nothing_exists },
	};
}

static void check_grub(struct grubcfg cfg, const char *before, const char *after)
{
	autotext struct text out = { 0 };

	grubcfg_rewrite(slice_of(before), &cfg, &out);
	assert_became(&out, after);
	assert_int_equal(cfg.cmdline.changes != 0, strcmp(before, after) != 0);
}

#define DEBIAN(uuid)                                                                               \
	"#\n# DO NOT EDIT THIS FILE\n#\n"                                                          \
	"if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n"               \
	"if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\nelse\n   set "         \
	"default=\"0\"\nfi\n"                                                                      \
	"if [ x\"${feature_menuentry_id}\" = xy ]; then\n  menuentry_id_option=\"--id\"\nfi\n"     \
	"function savedefault {\n  if [ -z \"${boot_once}\" ]; then\n    save_env "                \
	"saved_entry\n  fi\n}\n"                                                                   \
	"### BEGIN /etc/grub.d/10_linux ###\n"                                                     \
	"menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-" uuid  \
	"' {\n"                                                                                    \
	"\tload_video\n\tinsmod gzio\n"                                                            \
	"\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi\n"                   \
	"\tinsmod part_gpt\n\tinsmod ext2\n\tset root='hd0,gpt1'\n"                                \
	"\tif [ x$feature_platform_search_hint = xy ]; then\n"                                     \
	"\t  search --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt1 "                        \
	"--hint-efi=hd0,gpt1  " uuid "\n\telse\n"                                                  \
	"\t  search --no-floppy --fs-uuid --set=root " uuid "\n\tfi\n"                             \
	"\techo\t'Loading Linux 6.1.0-13-amd64 ...'\n"                                             \
	"\tlinux\t/boot/vmlinuz-6.1.0-13-amd64 root=UUID=" uuid " ro  quiet\n"                     \
	"\tinitrd\t/boot/initrd.img-6.1.0-13-amd64\n}\n"                                           \
	"### END /etc/grub.d/10_linux ###\n"                                                       \
	"### BEGIN /etc/grub.d/30_os-prober ###\n### END /etc/grub.d/30_os-prober ###\n"

static void debians_grub_cfg_stays_when_it_names_the_image(void **state)
{
	(void)state;
	check_grub(config_for(&root_only), DEBIAN(ROOT_UUID), DEBIAN(ROOT_UUID));
}

/* The entry's id keeps the old UUID: it is only a name. */
static void debians_grub_cfg_is_brought_in_line(void **state)
{
	struct grubcfg cfg = config_for(&root_only);
	autotext struct text out = { 0 };
	const char *at;
	size_t old = 0, new = 0;

	(void)state;
	grubcfg_rewrite(slice_of(DEBIAN(OLD_UUID)), &cfg, &out);
	for (at = out.at; (at = strstr(at, OLD_UUID)); at++)
		old++;
	for (at = out.at; (at = strstr(at, ROOT_UUID)); at++)
		new ++;
	assert_int_equal(old, 1);
	assert_int_equal(new, 3);
	assert_int_equal(cfg.cmdline.changes, CHANGE_ROOT | CHANGE_SEARCH);
	assert_int_equal(out.len, strlen(DEBIAN(OLD_UUID)));
}

static const struct {
	const char *before, *after;
} searches[] = {
	{ "search --no-floppy --fs-uuid --set=root " ROOT_UUID "\n", NULL },
	{ "search --fs-uuid --set=root abcd-1234", NULL },
	{ "search --label --set=root bootfs", NULL },
	{ "search -l rootfs --set=root", NULL },
	{ "search --file --set=root /vmlinuz", NULL },
	{ "search --fs-uuid --set=data " OTHER_UUID, NULL },
	{ "search --fs-uuid --set=root $bootuuid", NULL },
	{ "search.fs_uuid " BOOT_UUID " root hd0,gpt2", NULL },
	{ "# search --fs-uuid --set=root " OTHER_UUID, NULL },
	{ "echo 'search --fs-uuid --set=root " OTHER_UUID "'", NULL },
	{ "search --fs-uuid --set=root " OTHER_UUID "; true",
	  "search --fs-uuid --set=root " BOOT_UUID "; true" },
	{ "search --fs-uuid --set=root '" OLD_UUID "'", "search --fs-uuid --set=root " ROOT_UUID },
	{ "if true; then search -u " OTHER_UUID " --set=boot; fi",
	  "if true; then search -u " BOOT_UUID " --set=boot; fi" },
	{ "search --no-floppy --label --set=root \"old boot\"\n",
	  "search --no-floppy --fs-uuid --set=root " BOOT_UUID "\n" },
	{ "search.fs_uuid " OTHER_UUID " root hd0,msdos1 \nset prefix=($root)'/grub'\n",
	  "search.fs_uuid " BOOT_UUID " root hd0,msdos1 \nset prefix=($root)'/grub'\n" },
	{ "search.fs_label old root", "search.fs_uuid " BOOT_UUID " root" },
	/* the first word that is no option is the name */
	{ "search --no-floppy --label oldroot --set root",
	  "search --no-floppy --fs-uuid " BOOT_UUID " --set root" },
	{ "search -l oldroot -s root", "search --fs-uuid " BOOT_UUID " -s root" },
	{ "search -l rootfs -s root", NULL },
	{ "search oldroot --label --set", "search " BOOT_UUID " --fs-uuid --set" },
	{ "search --hint hd0,gpt2 --fs-uuid " OTHER_UUID " --set=root",
	  "search --hint hd0,gpt2 --fs-uuid " BOOT_UUID " --set=root" },
	{ "search --no-floppy --root-dev-only --fs-uuid --set=dev " OTHER_UUID "\n",
	  "search --no-floppy --root-dev-only --fs-uuid --set=dev " BOOT_UUID "\n" },
};

static void searches_name_the_images_volumes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
		check_grub(config_for(&with_boot), searches[i].before,
			   searches[i].after ? searches[i].after : searches[i].before);
}

static const struct {
	const char *before, *after;
} scripts[] = {
	{ "menuentry x { linux /v root=/dev/sda1; initrd /i }",
	  "menuentry x { linux /v root=UUID=" ROOT_UUID "; initrd /i }" },
	{ "\tlinux16 /v root=/dev/a \\\n\t\tresume=/dev/b \\\n\t\tro\n",
	  "\tlinux16 /v root=UUID=" ROOT_UUID " \\\n \\\n\t\tro\n" },
	{ "linuxefi /v root=/dev/a # root=/dev/b\n",
	  "linuxefi /v root=UUID=" ROOT_UUID " # root=/dev/b\n" },
	{ "set kernelopts=\"root=/dev/a ro resume=/dev/b\"\n",
	  "set kernelopts=\"root=UUID=" ROOT_UUID " ro\"\n" },
	{ "set default_kernelopts='rd.lvm.lv=a/b root=/dev/a'",
	  "set default_kernelopts='root=UUID=" ROOT_UUID "'" },
	{ "set other=\"root=/dev/a\"\n", "set other=\"root=/dev/a\"\n" },
	{ "module2 --nounzip /v placeholder root=/dev/a ro",
	  "module2 --nounzip /v placeholder root=UUID=" ROOT_UUID " ro" },
	{ "if true; then\n\tcryptomount -u abc\nfi\n", "if true; then\n\ttrue\nfi\n" },
	{ "btrfs-mount-subvol ($root) /boot/grub2 /@/boot/grub2\n", "true\n" },
	{ "linux \"/v\" \"root=/dev/a\" 'a b' ro",
	  "linux \"/v\" root=UUID=" ROOT_UUID " 'a b' ro" },
	{ "linux\nlinux /v\nlinux", "linux\nlinux /v\nlinux" },
	{ "echo 'linux /v root=/dev/a\nlinux /w root=/dev/b'",
	  "echo 'linux /v root=/dev/a\nlinux /w root=/dev/b'" },
	{ "blscfg\ninsmod blscfg\n", "blscfg\ninsmod blscfg\n" },
};

static void commands_are_told_apart_as_grub_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		check_grub(config_for(&root_only), scripts[i].before, scripts[i].after);
}

static void entries_of_other_systems_are_left_out(void **state)
{
	static const char begin[] = "### BEGIN /etc/grub.d/30_os-prober ###\n";
	static const char end[] = "### END /etc/grub.d/30_os-prober ###\nmenuentry b { true; }\n";
	autofree char *full = str_format("menuentry a { true; }\n%smenuentry 'Windows' {\n\tsearch "
					 "--fs-uuid --set=root 1234-ABCD\n\tchainloader /x\n}\n"
					 "set timeout_style=menu\n%s",
					 begin, end);
	autofree char *empty = str_format("menuentry a { true; }\n%s%s", begin, end);
	autofree char *open = str_format("%smenuentry a { true; }\n", begin);

	(void)state;
	check_grub(config_for(&root_only), full, empty);
	check_grub(config_for(&root_only), empty, empty);
	check_grub(config_for(&root_only), open, open);
}

static void a_subvolume_in_front_of_paths_goes(void **state)
{
	struct grubcfg cfg = config_for(&root_only);

	(void)state;
	cfg.paths.subvolume = "/@";
	check_grub(cfg,
		   "linux /@/boot/vmlinuz-5 root=UUID=" ROOT_UUID " ro rootflags=subvol=@\n"
		   "initrd /@/boot/initrd.img-5 /boot/@/x /x/@/y\n"
		   "font=\"/@/usr/share/grub/unicode.pf2\"\nset prefix=($root)'/@/boot/grub'\n"
		   "set prefix=($root)/@/boot/grub\n",
		   "linux /boot/vmlinuz-5 root=UUID=" ROOT_UUID " ro\n"
		   "initrd /boot/initrd.img-5 /boot/@/x /x/@/y\n"
		   "font=\"/usr/share/grub/unicode.pf2\"\nset prefix=($root)'/boot/grub'\n"
		   "set prefix=($root)/boot/grub\n");
	cfg.paths.subvolume = "/@/.snapshots/1/snapshot";
	check_grub(cfg, "linux /@/.snapshots/1/snapshot/boot/v\nset prefix=($root)/@/boot/grub2\n",
		   "linux /boot/v\nset prefix=($root)/boot/grub2\n");
	cfg.paths.subvolume = "";
	check_grub(cfg, "linux /@/boot/v\n", "linux /@/boot/v\n");
}

/* A copy of a system whose /boot was a filesystem of its own, and the other way round. */
static void paths_follow_a_boot_that_came_or_went(void **state)
{
	struct grubcfg cfg = config_for(&root_only);

	(void)state;
	cfg.paths = (struct boot_paths){ .exists = one_exists, .ctx = "/boot/vmlinuz-5" };
	check_grub(
		cfg, "linux ($root)/vmlinuz-5 ro\nlinux /vmlinuz-6 ro\nlinux /boot/vmlinuz-5 ro\n",
		"linux ($root)/boot/vmlinuz-5 ro\nlinux /vmlinuz-6 ro\nlinux /boot/vmlinuz-5 ro\n");
	cfg.paths.ctx = "/initrd-5";
	check_grub(cfg, "initrd '/boot/initrd-5' /initrd-5 /other\n",
		   "initrd '/initrd-5' /initrd-5 /other\n");
	cfg.paths.ctx = "/boot/grub2";
	check_grub(cfg, "set prefix=($dev)/grub2\nconfigfile $prefix/grub.cfg\n",
		   "set prefix=($dev)/boot/grub2\nconfigfile $prefix/grub.cfg\n");
}

/* openSUSE's, with the default subvolume in the arguments. */
/* A copy of a btrfs subvolume, of which nothing else is known. */
static void what_stands_in_front_of_a_path_that_is_there_goes(void **state)
{
	static const struct {
		const char *exists, *before, *after;
	} rows[] = {
		{ "/boot/v", "linux /@/boot/v ro\n", "linux /boot/v ro\n" },
		{ "/boot/v", "linux ($root)'/@/.snapshots/1/snapshot/boot/v'\n",
		  "linux ($root)'/boot/v'\n" },
		{ "/boot/v", "initrd /@boot/v /other/boot/w\n", "initrd /boot/v /other/boot/w\n" },
		{ "/v", "linux /@/boot/v\n", "linux /v\n" },
		{ "/boot/grub", "set prefix=($root)/@/boot/grub\n",
		  "set prefix=($root)/boot/grub\n" },
		{ "/boot/grub/x.cfg", "configfile /@/boot/grub/x.cfg\nsource /@/boot/grub/x.cfg\n",
		  "configfile /boot/grub/x.cfg\nsource /boot/grub/x.cfg\n" },
		{ "/@/boot/v", "linux /@/boot/v\n", "linux /@/boot/v\n" },
		{ "/boot/v", "linux /\\@/boot/v\n", "linux /\\@/boot/v\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct grubcfg cfg = config_for(&root_only);

		cfg.paths = (struct boot_paths){ .exists = one_exists, .ctx = rows[i].exists };
		check_grub(cfg, rows[i].before, rows[i].after);
	}
}

#define SEARCH(uuid) "search --no-floppy --fs-uuid --set=root " uuid

static const struct {
	const char *before, *after;
} numbered[] = {
	{ "set root=(hd0,msdos1)\nlinux /vmlinuz-5\n",
	  "set root=(hd0,msdos1); " SEARCH(BOOT_UUID) "\nlinux /vmlinuz-5\n" },
	{ "set root='hd0,gpt2'\nlinux /usr/lib/modules/5/vmlinuz\n",
	  "set root='hd0,gpt2'; " SEARCH(ROOT_UUID) "\nlinux /usr/lib/modules/5/vmlinuz\n" },
	{ "root=\"lvmid/a/b\" # x\nlinux /x\n",
	  "root=\"lvmid/a/b\"; " SEARCH(BOOT_UUID) " # x\nlinux /x\n" },
	{ "if true; then set root=(md/0); fi",
	  "if true; then set root=(md/0); " SEARCH(BOOT_UUID) "; fi" },
	{ "menuentry a {\n\tset root=(hd0,1)\n}\n" SEARCH(BOOT_UUID) "\n",
	  "menuentry a {\n\tset root=(hd0,1); " SEARCH(BOOT_UUID) "\n}\n" SEARCH(BOOT_UUID) "\n" },
	{ "set root=hd0,gpt1\nset prefix=($root)/grub2\nconfigfile $prefix/grub.cfg\n",
	  "set root=hd0,gpt1; " SEARCH(
		  BOOT_UUID) "\nset prefix=($root)/grub2\nconfigfile $prefix/grub.cfg\n" },
	/* what a search, another partition, or another boot loader follows */
	{ "set root='hd0,gpt2'\nif true; then\n " SEARCH(BOOT_UUID) "\nfi\nlinux /vmlinuz-5\n",
	  NULL },
	{ "set root='hd0,gpt2'\nsearch --file --set=root /x\nlinux /vmlinuz-5\n", NULL },
	{ "set root=(hd0,gpt1)\nchainloader /EFI/x.efi\n", NULL },
	{ "set root=$x\nset root=(memdisk)\nset root=(hd$n,1)\nset root=\nset root=(\n", NULL },
	/* paths */
	{ "linux (hd0,gpt2)/boot/vmlinuz-5 ro\ninitrd (hd0,gpt2)/boot/initrd-5 /x\n",
	  SEARCH(BOOT_UUID) "; linux ($root)/vmlinuz-5 ro\n" SEARCH(
		  BOOT_UUID) "; initrd ($root)/initrd-5 /x\n" },
	{ "linux '(hd0,msdos1)/vmlinuz-5'", SEARCH(BOOT_UUID) "; linux ($root)'/vmlinuz-5'" },
	{ "then linux (hd0,2)/usr/lib/modules/5/vmlinuz",
	  "then " SEARCH(ROOT_UUID) "; linux ($root)/usr/lib/modules/5/vmlinuz" },
	{ "configfile (hd0,msdos1)/grub2/grub.cfg\n",
	  SEARCH(BOOT_UUID) "; configfile ($root)/grub2/grub.cfg\n" },
	{ "configfile (hd0,gpt1)/EFI/debian/grub.cfg\n",
	  SEARCH(ESP_SERIAL) "; configfile ($root)/EFI/debian/grub.cfg\n" },
	{ "set prefix=(hd0,msdos2)/boot/grub2\n",
	  SEARCH(BOOT_UUID) "; set prefix=($root)/grub2\n" },
	{ "linux (hd1,1)/vmlinuz-other\nlinux ($root)/vmlinuz-5\nlinux (hd0,1)$x/v\n", NULL },
};

static void partitions_by_number_become_the_images_volumes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
		struct grubcfg cfg = config_for(&with_boot);
		const char *after = numbered[i].after ? numbered[i].after : numbered[i].before;

		cfg.paths.exists = files_exist;
		check_grub(cfg, numbered[i].before, after);
		check_grub(cfg, after, after);
	}
}

static void opensuses_grub_cfg_loses_its_subvolumes(void **state)
{
	struct grubcfg cfg = config_for(&root_only);

	(void)state;
	cfg.paths.subvolume = "/@/.snapshots/1/snapshot";
	check_grub(cfg,
		   "set btrfs_relative_path=\"y\"\nexport btrfs_relative_path\n"
		   "menuentry 'openSUSE Leap 15.5'  --class opensuse $menuentry_id_option "
		   "'osuse' {\n\tset gfxpayload=keep\n\tinsmod btrfs\n\tset root='hd0,gpt2'\n"
		   "\tsearch --no-floppy --fs-uuid --set=root " OLD_UUID "\n"
		   "\tlinux\t/boot/vmlinuz-5.14.21-default root=UUID=" OLD_UUID
		   "  splash=silent resume=/dev/disk/by-uuid/x mitigations=auto quiet\n"
		   "\tinitrd\t/boot/initrd-5.14.21-default\n}\n",
		   "set btrfs_relative_path=\"y\"\nexport btrfs_relative_path\n"
		   "menuentry 'openSUSE Leap 15.5'  --class opensuse $menuentry_id_option "
		   "'osuse' {\n\tset gfxpayload=keep\n\tinsmod btrfs\n\tset root='hd0,gpt2'\n"
		   "\tsearch --no-floppy --fs-uuid --set=root " ROOT_UUID "\n"
		   "\tlinux\t/boot/vmlinuz-5.14.21-default root=UUID=" ROOT_UUID
		   "  splash=silent mitigations=auto quiet\n"
		   "\tinitrd\t/boot/initrd-5.14.21-default\n}\n");
}

static void blscfg_gives_way_to_entries(void **state)
{
	struct grubcfg cfg = config_for(&root_only);

	(void)state;
	cfg.entries = "menuentry a {\n\ttrue\n}\n";
	check_grub(cfg, "insmod part_gpt\ninsmod blscfg\nblscfg\n### END\n",
		   "insmod part_gpt\ntrue\nmenuentry a {\n\ttrue\n}\n\n### END\n");
	cfg.entries = "";
	check_grub(cfg, "if true; then\n  blscfg\nfi\n", "if true; then\n  true\nfi\n");
}

static void entries_that_are_wanted_twice_are_made_once(void **state)
{
	struct grubcfg cfg = config_for(&root_only);

	(void)state;
	cfg.entries = "menuentry a {\n\ttrue\n}\n";
	check_grub(cfg, "if true; then\n  blscfg\nelse\n  blscfg\nfi\n",
		   "function ccsnap_entries {\nmenuentry a {\n\ttrue\n}\n}\n"
		   "if true; then\n  ccsnap_entries\nelse\n  ccsnap_entries\nfi\n");
}

static void a_menu_is_told_from_none(void **state)
{
	(void)state;
	assert_true(grubcfg_has_menu(slice_of(DEBIAN(ROOT_UUID))));
	assert_true(grubcfg_has_menu(slice_of("if true; then blscfg; fi")));
	assert_true(grubcfg_has_menu(slice_of("configfile /x")));
	assert_false(grubcfg_has_menu(slice_of("")));
	assert_false(
		grubcfg_has_menu(slice_of("# menuentry x { }\nset timeout=1\necho 'linux'\n")));
	assert_true(grubcfg_uses_blscfg(slice_of("insmod blscfg\nblscfg\n")));
	assert_false(grubcfg_uses_blscfg(slice_of("insmod blscfg\n# blscfg\n")));
}

static void check_bytes(struct slice text)
{
	struct grubcfg cfg = config_for(&root_only);
	autotext struct text out = { 0 };

	cfg.paths.subvolume = "/@";
	cfg.entries = "x";
	grubcfg_rewrite(text, &cfg, &out);
	assert_int_equal(out.len, text.len);
	assert_memory_equal(out.len ? out.at : "", text.at, text.len);
}

static void hostile_scripts_come_out_as_they_went_in(void **state)
{
	static const char *const texts[] = {
		"",
		"\\",
		"'",
		"\"\\",
		"${",
		"linux",
		"linux ",
		"linux '",
		"linux \\",
		"set",
		"set ",
		"set kernelopts",
		"set kernelopts=",
		"set kernelopts=\"",
		"set prefix=",
		"search",
		"search.fs_uuid",
		"search --fs-uuid",
		"search --fs-uuid --set=root",
		"{{{{",
		"}};;\n\n",
		"then then then",
		"menuentry '",
		"# x",
		"#",
		"a#b",
		"(((",
		"initrd (",
		"initrd (hd0",
		"linux ''",
		"insmod",
		"### BEGIN /etc/grub.d/30_os-prober ###",
	};
	static const char nuls[] = "\0linux /v\0root=/dev/a\0\nlinux /v root=/dev\0/a\n\0";

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		check_bytes(slice_of(texts[i]));
	check_bytes((struct slice){ nuls, sizeof nuls - 1 });
}

static void four_mebibytes_of_anything_take_no_more_than_memory(void **state)
{
	static const char *const units[] = { "a",
					     "{",
					     "'",
					     "\\",
					     "linux /v a=b ",
					     "x/@",
					     "${",
					     "### BEGIN /etc/grub.d/30_os-prober ###\n",
					     "\"\\\"" };
	const size_t len = 4 << 20;

	(void)state;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		autotext struct text in = { 0 };

		while (in.len < len)
			text_puts(&in, units[i]);
		check_bytes(text_slice(&in));
	}
}

static void quoting_leaves_one_word(void **state)
{
	autotext struct text out = { 0 };

	(void)state;
	grubscript_quote("a'b; reboot\n\"$x\\", &out);
	assert_became(&out, "'a'\\''b; reboot\n\"$x\\'");
}

/* --- boot loader entries and the smaller files --------------------------------------------- */

static const char rocky_env[] = "# GRUB Environment Block\n"
				"saved_entry=abc-4.18.0-477\n"
				"kernelopts=root=UUID=" ROOT_UUID " ro crashkernel=auto \n"
				"boot_success=0\n####";

static void entries_become_menu_entries(void **state)
{
	static const char text[] = "title Rocky Linux (4.18.0-477.el8.x86_64) 8.8\n"
				   "version 4.18.0-477.el8.x86_64\n"
				   "linux /vmlinuz-4.18.0-477.el8.x86_64\n"
				   "initrd /initramfs-4.18.0-477.el8.x86_64.img $tuned_initrd\n"
				   "initrd /second.img\n"
				   "options $kernelopts $tuned_params dyndbg=\"file ec.c +p\" a;b\n"
				   "id rocky-x\ngrub_users $grub_users\ngrub_class kernel\n";
	const struct bls_entry entry = { .id = "abc-4.18.0-477", .text = slice_of(text) };
	autotext struct text out = { 0 };

	(void)state;
	bls_menuentry(&entry, slice_of(rocky_env), &out);
	assert_became(
		&out,
		"menuentry 'Rocky Linux (4.18.0-477.el8.x86_64) 8.8' --unrestricted --id "
		"'abc-4.18.0-477' {\n"
		"\tlinux '/vmlinuz-4.18.0-477.el8.x86_64' root=UUID=" ROOT_UUID
		" ro crashkernel=auto $tuned_params 'dyndbg=file ec.c +p' 'a;b'\n"
		"\tinitrd /initramfs-4.18.0-477.el8.x86_64.img $tuned_initrd /second.img\n}\n");
}

static void a_hostile_entry_is_no_script(void **state)
{
	static const char text[] = "title x' { reboot }\nlinux /v'; reboot; '\n"
				   "options a'b ${x;reboot} `id` $(id) {\ninitrd /i;reboot\n";
	const struct bls_entry entry = { .id = "i'd", .text = slice_of(text) };
	autotext struct text out = { 0 };

	(void)state;
	bls_menuentry(&entry, slice_of(""), &out);
	assert_became(&out, "menuentry 'x'\\'' { reboot }' --unrestricted --id 'i'\\''d' {\n"
			    "\tlinux '/v'\\''; reboot; '\\''' 'ab ${x;reboot} `id` $(id) {'\n"
			    "\tinitrd '/i;reboot'\n}\n");
}

static void an_entry_on_another_volume_is_searched_there(void **state)
{
	static const struct {
		const char *options, *root;
	} rows[] = { { "options ro", " root=UUID=" ROOT_UUID },
		     { "options ro root=/dev/x", "" },
		     { "options ro $kernelopts", "" } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		autofree char *text = str_format("linux /m/6/linux\n%s\n", rows[i].options);
		autofree char *after = str_format(
			"menuentry 'a' --unrestricted --id 'a' {\n\tsearch --no-floppy --fs-uuid "
			"--set=root ABCD-1234\n\tlinux '/m/6/linux' %s%s\n}\n",
			rows[i].options + strlen("options "), rows[i].root);
		const struct bls_entry entry = { "a", slice_of(text), ESP_SERIAL, ROOT_UUID };
		autotext struct text out = { 0 };

		bls_menuentry(&entry, slice_of(""), &out);
		assert_became(&out, after);
	}
}

static void an_entry_without_a_kernel_is_none(void **state)
{
	const struct bls_entry entry = { .id = "a", .text = slice_of("title A\nefi /shell.efi\n") };
	autotext struct text out = { 0 };

	(void)state;
	bls_menuentry(&entry, slice_of(""), &out);
	assert_int_equal(out.len, 0);
}

static void the_newest_entry_comes_first(void **state)
{
	struct bls_entry entries[] = {
		{ .id = "m-0-rescue", .text = slice_of("version 0-rescue-abc\n") },
		{ .id = "m-5.14.0-70", .text = slice_of("version 5.14.0-70\n") },
		{ .id = "m-5.14.0-427", .text = slice_of("version 5.14.0-427\n") },
		{ .id = "m-5.9", .text = slice_of("version 5.9.0\n") }
	};

	(void)state;
	bls_sort(entries, 4);
	assert_string_equal(entries[0].id, "m-5.14.0-427");
	assert_string_equal(entries[1].id, "m-5.14.0-70");
	assert_string_equal(entries[2].id, "m-5.9");
	assert_string_equal(entries[3].id, "m-0-rescue");
}

static void entry_files_are_brought_in_line(void **state)
{
	static const char before[] =
		"title Fedora Linux (6.5.6) 39\nversion 6.5.6\n"
		"linux /root/boot/vmlinuz-6.5.6\ninitrd /initramfs-6.5.6.img\n"
		"options root=UUID=" OLD_UUID
		" ro rootflags=subvol=root rhgb quiet \n# options root=/dev/x\n";
	static const char after[] =
		"title Fedora Linux (6.5.6) 39\nversion 6.5.6\n"
		"linux /boot/vmlinuz-6.5.6\ninitrd /initramfs-6.5.6.img\n"
		"options root=UUID=" ROOT_UUID " ro rhgb quiet \n# options root=/dev/x\n";
	const struct boot_paths paths = { .subvolume = "/root",
					  .exists = one_exists,
					  .ctx = "/boot/vmlinuz-6.5.6" };
	struct cmdline c = { .names = &root_only, .has_initrd = true };
	autotext struct text out = { 0 };
	autotext struct text again = { 0 };

	(void)state;
	bls_rewrite(slice_of(before), &c, &paths, &out);
	assert_became(&out, after);
	assert_int_equal(c.changes, CHANGE_ROOT | CHANGE_ROOTFLAGS | CHANGE_PATHS);
	bls_rewrite(slice_of(after), &c, &paths, &again);
	assert_became(&again, after);
}

static void the_environment_block_keeps_its_length(void **state)
{
	struct cmdline c = { .names = &root_only, .has_initrd = true };
	autotext struct text in = { 0 };
	autotext struct text out = { 0 };
	struct slice value;

	(void)state;
	text_puts(&in, "# GRUB Environment Block\nkernelopts=root=/dev/mapper/rl-root ro "
		       "rd.lvm.lv=rl/root\nboot_success=0\n");
	while (in.len < 1024)
		text_puts(&in, "#");
	assert_true(grubenv_rewrite(text_slice(&in), &c, &out));
	assert_int_equal(out.len, 1024);
	assert_true(grubenv_get(text_slice(&out), "kernelopts", &value));
	assert_true(slice_is(value, "root=UUID=" ROOT_UUID " ro"));
	assert_true(grubenv_get(text_slice(&out), "boot_success", &value));
	assert_true(slice_is(value, "0"));
	assert_int_equal(out.at[1023], '#');
}

static void an_environment_block_that_is_full_is_left_alone(void **state)
{
	struct cmdline c = { .names = &root_only, .has_initrd = true };
	autotext struct text out = { 0 };

	(void)state;
	assert_false(grubenv_rewrite(
		slice_of("# GRUB Environment Block\nkernelopts=root=/dev/sda1\n"), &c, &out));
	assert_int_equal(out.len, 0);
	assert_false(grubenv_rewrite(slice_of("kernelopts=root=/dev/sda1\n"), &c, &out));
	assert_int_equal(out.len, 0);
}

static const struct {
	const char *before, *after;
} default_grubs[] = {
	{ "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet resume=/dev/a\"\nGRUB_CMDLINE_LINUX=\"\"\n",
	  "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n" },
	{ "GRUB_CMDLINE_LINUX='rd.lvm.lv=rl/root  rd.luks.uuid=x rhgb'  # why\n",
	  "GRUB_CMDLINE_LINUX='rhgb'  # why\n" },
	{ "GRUB_CMDLINE_LINUX=resume=/dev/a\nGRUB_TIMEOUT=5",
	  "GRUB_CMDLINE_LINUX=\nGRUB_TIMEOUT=5" },
	{ "#GRUB_CMDLINE_LINUX=\"resume=/dev/a\"\nX=\"resume=/dev/a\"\n",
	  "#GRUB_CMDLINE_LINUX=\"resume=/dev/a\"\nX=\"resume=/dev/a\"\n" },
	{ "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX rootflags=subvol=@ a\"\n",
	  "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX a\"\n" },
	{ "GRUB_CMDLINE_LINUX=\"a\nresume=/dev/x\nb\"\nGRUB_X=1\n",
	  "GRUB_CMDLINE_LINUX=\"a\nb\"\nGRUB_X=1\n" },
	{ "GRUB_FORCE_PARTUUID=" OLD_UUID "\n", "GRUB_FORCE_PARTUUID=" ROOT_PART "\n" },
	{ "GRUB_FORCE_PARTUUID=\"" ROOT_PART "\"\n", "GRUB_FORCE_PARTUUID=\"" ROOT_PART "\"\n" },
	{ "  GRUB_CMDLINE_LINUX=\"resume=x a\"\n\texport GRUB_CMDLINE_LINUX='resume=x b'\n",
	  "  GRUB_CMDLINE_LINUX=\"a\"\n\texport GRUB_CMDLINE_LINUX='b'\n" },
	{ "export\n \nexport  X=1\nexport", "export\n \nexport  X=1\nexport" },
	{ "GRUB_DEVICE=/dev/sda1\nGRUB_DEVICE=\"/dev/disk/by-uuid/" ROOT_UUID "\"\n",
	  "GRUB_DEVICE=/dev/disk/by-uuid/" ROOT_UUID "\nGRUB_DEVICE=\"/dev/disk/by-uuid/" ROOT_UUID
	  "\"\n" },
	{ "GRUB_DEVICE_UUID=" OLD_UUID "\nGRUB_DEVICE_BOOT=x\n",
	  "GRUB_DEVICE_UUID=" ROOT_UUID "\nGRUB_DEVICE_BOOT=x\n" },
	{ "GRUB_CMDLINE_LINUX=\"open resume=$x", "GRUB_CMDLINE_LINUX=\"open resume=$x" },
	{ "GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX" },
	{ "GRUB_CMDLINE_LINUX=", "GRUB_CMDLINE_LINUX=" },
};

static void default_grub_keeps_what_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof default_grubs / sizeof *default_grubs; i++) {
		struct cmdline c = { .names = &root_only, .has_initrd = true };
		autotext struct text out = { 0 };

		default_grub_rewrite(slice_of(default_grubs[i].before), &c, &out);
		assert_became(&out, default_grubs[i].after);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(arguments_are_taken_whole),
		TEST(without_an_initrd_the_root_is_named_by_partuuid),
		TEST(arguments_of_a_network_root_go_with_it),
		TEST(arguments_without_a_root_go_by_the_old_one),
		TEST(noresume_is_said_once_where_a_root_is_named),
		TEST(looking_finds_the_first_root_and_changes_nothing),
		TEST(debians_grub_cfg_stays_when_it_names_the_image),
		TEST(debians_grub_cfg_is_brought_in_line),
		TEST(searches_name_the_images_volumes),
		TEST(commands_are_told_apart_as_grub_does),
		TEST(entries_of_other_systems_are_left_out),
		TEST(a_subvolume_in_front_of_paths_goes),
		TEST(paths_follow_a_boot_that_came_or_went),
		TEST(what_stands_in_front_of_a_path_that_is_there_goes),
		TEST(partitions_by_number_become_the_images_volumes),
		TEST(opensuses_grub_cfg_loses_its_subvolumes),
		TEST(blscfg_gives_way_to_entries),
		TEST(entries_that_are_wanted_twice_are_made_once),
		TEST(a_menu_is_told_from_none),
		TEST(hostile_scripts_come_out_as_they_went_in),
		TEST(four_mebibytes_of_anything_take_no_more_than_memory),
		TEST(quoting_leaves_one_word),
		TEST(entries_become_menu_entries),
		TEST(a_hostile_entry_is_no_script),
		TEST(an_entry_on_another_volume_is_searched_there),
		TEST(an_entry_without_a_kernel_is_none),
		TEST(the_newest_entry_comes_first),
		TEST(entry_files_are_brought_in_line),
		TEST(the_environment_block_keeps_its_length),
		TEST(an_environment_block_that_is_full_is_left_alone),
		TEST(default_grub_keeps_what_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
