// SPDX-License-Identifier: Apache-2.0
#include "boot-kit.h"
#include "system/fstab.h"
#include "system/fstab_text.h"

#define GONE	  "# ccsnap: its device is not in the image: "
#define HOST	  "# ccsnap: only the source's host serves it: "
#define SUBVOLUME "# ccsnap: its subvolume is not in the image: "
#define PART	  "# ccsnap: is part of the root filesystem in this image: "

/* A file in a tree where /home and /var have content, /data does not, and /swapfile exists. */
static void fix(struct tree *t, const char *path, const char *text, const struct names *names)
{
	const struct tree_file files[] = {
		TREE_FILE(path, text),
		TREE_FILE("home/u/notes", "x"),
		TREE_FILE("var/lib/x", "x"),
		TREE_FILE("boot/vmlinuz-6.1", "x"),
		TREE_DIR("data"),
		TREE_DIR("boot/efi"),
		TREE_FILE("swapfile", "SWAPSPACE2"),
		TREE_FILE("srv/disk.img", "x"),
		TREE_FILE(strcmp(path, "etc/crypttab") ? "etc/crypttab" : "etc/other",
			  "vault /srv/disk.img none luks\ncr_data UUID=" OTHER_UUID " none luks\n"),
		{ 0 }
	};

	tree_start(t, files);
	assert_int_equal(strcmp(path, "etc/crypttab") ? fstab_fix(&t->edit, names, &t->err)
						      : crypttab_fix(&t->edit, names, &t->err),
			 0);
}

static void check(const char *path, const char *before, const char *after,
		  const struct names *names)
{
	autotree struct tree t;

	fix(&t, path, before, names);
	assert_text(&t, path, after);
	if (strcmp(before, after) == 0)
		assert_int_equal(t.account.len, 0);
	else
		assert_non_null(tree_told(&t, ACCOUNT_EDITED, path));
}

/* --- lines ---------------------------------------------------------------------- */

static const char *const untouched[] = {
	"UUID=" ROOT_UUID " / ext4 defaults 0 1\n",
	"UUID=\"" ROOT_UUID "\" / ext4 defaults 0 1\n",
	"UUID=11111111-2222-4333-8444-555555555555\t/\text4\terrors=remount-ro\t0\t1",
	"LABEL=rootfs / auto rw\n",
	"PARTUUID=AAAAAAAA-2222-4333-8444-555555555555 / ext4 rw\n",
	"/dev/disk/by-uuid/" ROOT_UUID " / ext4 rw\n",
	"/dev/disk/by-partuuid/" ROOT_PART " / ext4 rw\n",
	"/dev/disk/by-label/rootfs / ext4 rw\n",
	"  # a comment\n\n \t \nodd\nodd line\n#UUID=x / ext4\n",
	"UUID=abcd-1234 /boot/efi vfat umask=0077 0 1\n",
	"PARTUUID=" ESP_PART " /efi vfat rw\n",
	"LABEL=ESP /boot/efi/ auto rw\n",
	"UUID=" OTHER_UUID " /data ext4 defaults,nofail 0 2\n",
	"/dev/sdb1 /data ext4 noauto,user 0 0\n",
	"/dev/sdb2 none swap sw,nofail 0 0\n",
	"/swapfile none swap sw 0 0\n",
	"/dev/zram0 none swap sw,pri=100 0 0\n",
	"proc /proc proc defaults 0 0\ntmpfs /tmp tmpfs size=1G 0 0\n",
	"/dev/foo /proc proc defaults 0 0\n",
	"nas:/export /home nfs4 defaults 0 0\n//nas/x /data cifs guest 0 0\n",
	"u@h:/x /data fuse.sshfs defaults 0 0\n/mnt/a:/mnt/b /data fuse.mergerfs rw 0 0\n",
	"/home /data none bind 0 0\n/var/lib /home none rbind 0 0\n",
	"/srv/disk.img /data ext4 loop 0 0\n",
	"/dev/mapper/vault /data ext4 defaults 0 0\n",
	"overlay /data overlay lowerdir=/home:/var,upperdir=/run/b,workdir=/run/c 0 0\n",
	"share /data virtiofs nofail 0 0\nshare /data 9p noauto,trans=virtio 0 0\n",
	"nas /data 9p trans=tcp 0 0\n",
	"nas:/x /data nfs rw\n/data/sub /srv none bind\n/run/x /srv none bind\n",
	"UUID=" ROOT_UUID " /\n",
};

static void lines_that_fit_stay_byte_for_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof untouched / sizeof *untouched; i++)
		check("etc/fstab", untouched[i], untouched[i], &root_only);
}

static const struct {
	const char *before, *after;
} changed[] = {
	/* the root's device field alone */
	{ "/dev/vda1\t/\text4 errors=remount-ro 0  1 # x\n",
	  "UUID=" ROOT_UUID "\t/\text4 errors=remount-ro 0  1 # x\n" },
	{ "/dev/mapper/vg-lv / ext4 rw", "UUID=" ROOT_UUID " / ext4 rw" },
	{ "LABEL=old / ext4 rw\n", "UUID=" ROOT_UUID " / ext4 rw\n" },
	{ "UUID=" OLD_UUID " / ext4 rw\n", "UUID=" ROOT_UUID " / ext4 rw\n" },
	{ "PARTUUID=1234abcd-01 / ext4 rw\n", "UUID=" ROOT_UUID " / ext4 rw\n" },
	{ "PARTLABEL=root / ext4 rw\n", "UUID=" ROOT_UUID " / ext4 rw\n" },
	{ "UUID=" ROOT_UUID " / ext4 rw,sb=131072,prjquota 0 1\n",
	  "UUID=" ROOT_UUID " / ext4 rw 0 1\n" },
	/* another kind of filesystem */
	{ "UUID=" ROOT_UUID " / xfs defaults,inode64,logbufs=8 0 0\n",
	  "UUID=" ROOT_UUID " / ext4 defaults 0 0\n" },
	{ "UUID=" ROOT_UUID " / ext3 errors=remount-ro,data=ordered 0 1\n",
	  "UUID=" ROOT_UUID " / ext4 errors=remount-ro,data=ordered 0 1\n" },
	{ "UUID=" ROOT_UUID " / btrfs subvol=@,compress=zstd:1 0 0\n",
	  "UUID=" ROOT_UUID " / ext4 defaults 0 0\n" },
	{ "UUID=" ROOT_UUID " / btrfs noatime,ssd,discard=async,subvol=/@,x-systemd.growfs 0 0\n",
	  "UUID=" ROOT_UUID " / ext4 noatime,x-systemd.growfs 0 0\n" },
	{ "UUID=" ROOT_UUID " / auto ssd,subvolid=256 0 0\n",
	  "UUID=" ROOT_UUID " / auto defaults 0 0\n" },
	{ "rpool/ROOT/debian / zfs rw 0 0\n", "UUID=" ROOT_UUID " / ext4 rw 0 0\n" },
	{ "UUID=" ROOT_UUID " / btrfs\n", "UUID=" ROOT_UUID " / ext4\n" },
	/* the ESP */
	{ "UUID=0000-FFFF /boot/efi vfat umask=0077 0 1\n",
	  "UUID=" ESP_SERIAL " /boot/efi vfat umask=0077 0 1\n" },
	{ "/dev/sda1 /efi vfat rw\n", "UUID=" ESP_SERIAL " /efi vfat rw\n" },
	/* what is part of the root now */
	{ "UUID=" OTHER_UUID " /home ext4 defaults 0 2\n",
	  PART "UUID=" OTHER_UUID " /home ext4 defaults 0 2\n" },
	{ "UUID=" ROOT_UUID " /home btrfs subvol=@home 0 0",
	  PART "UUID=" ROOT_UUID " /home btrfs subvol=@home 0 0" },
	{ "\tUUID=" BOOT_UUID " /boot ext4 rw\n", PART "\tUUID=" BOOT_UUID " /boot ext4 rw\n" },
	{ "UUID=1234-5678 /boot vfat rw\n", PART "UUID=1234-5678 /boot vfat rw\n" },
	/* what is nowhere */
	{ "/dev/sdb1 /data ext4 defaults 0 2\r\n", GONE "/dev/sdb1 /data ext4 defaults 0 2\r\n" },
	{ "LABEL=data /data ext4 rw\n", GONE "LABEL=data /data ext4 rw\n" },
	{ "PARTLABEL=data /da\\040ta ext4 rw\n", GONE "PARTLABEL=data /da\\040ta ext4 rw\n" },
	{ "/dev/disk/by-id/x /data xfs rw\n", GONE "/dev/disk/by-id/x /data xfs rw\n" },
	{ "ID=ata-x /data xfs rw\n", GONE "ID=ata-x /data xfs rw\n" },
	{ "/dev/mapper/cr_data /data ext4 rw\n", GONE "/dev/mapper/cr_data /data ext4 rw\n" },
	{ "rpool/data /data zfs rw\n", GONE "rpool/data /data zfs rw\n" },
	{ "/dev/sdc1 /data fuse.exfat rw\n", GONE "/dev/sdc1 /data fuse.exfat rw\n" },
	{ "/srv/none.img /data ext4 loop\n",
	  "# ccsnap: its file is not in the image: /srv/none.img /data ext4 loop\n" },
	/* fields that are not there have defaults */
	{ "/dev/sdb1 /data\n", GONE "/dev/sdb1 /data\n" },
	{ "/dev/sdb1 /home ext4\n", PART "/dev/sdb1 /home ext4\n" },
	{ "/dev/sda1\t/\n", "UUID=" ROOT_UUID "\t/\n" },
	/* what only the source's host has */
	{ "share /data virtiofs defaults 0 0\n", HOST "share /data virtiofs defaults 0 0\n" },
	{ "share /data 9p trans=virtio\n", HOST "share /data 9p trans=virtio\n" },
	{ "share /home vboxsf rw\n", HOST "share /home vboxsf rw\n" },
	{ ".host:/ /data fuse.vmhgfs-fuse allow_other\n",
	  HOST ".host:/ /data fuse.vmhgfs-fuse allow_other\n" },
	{ "efivarfs /sys/firmware/efi/efivars efivarfs rw\n",
	  "# ccsnap: is there on machines with EFI only: efivarfs /sys/firmware/efi/efivars "
	  "efivarfs rw\n" },
	{ "overlay /data overlay lowerdir=/home:/a 0 0\n",
	  "# ccsnap: a directory that it is made of is not in the image: overlay /data overlay "
	  "lowerdir=/home:/a 0 0\n" },
	{ "/mnt/disk/x /home none bind 0 0\n",
	  "# ccsnap: its directory is not in the image: /mnt/disk/x /home none bind 0 0\n" },
	/* subvolumes of what the root was, whether they may fail or not */
	{ "UUID=" ROOT_UUID " /home btrfs nofail,subvol=@home 0 0\n",
	  PART "UUID=" ROOT_UUID " /home btrfs nofail,subvol=@home 0 0\n" },
	{ "LABEL=rootfs /data btrfs subvol=@data,noauto\n",
	  SUBVOLUME "LABEL=rootfs /data btrfs subvol=@data,noauto\n" },
	{ "/dev/sda2 / btrfs\n/dev/sda2 /data btrfs nofail\n",
	  "UUID=" ROOT_UUID " / ext4\n" SUBVOLUME "/dev/sda2 /data btrfs nofail\n" },
	/* swap */
	{ "UUID=" OTHER_UUID " none swap sw 0 0\n", GONE "UUID=" OTHER_UUID " none swap sw 0 0\n" },
	{ "/swap.img none swap sw 0 0\n",
	  "# ccsnap: swap file was left out: /swap.img none swap sw 0 0\n" },
};

static void lines_that_do_not_fit_are_fixed_or_commented_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
		check("etc/fstab", changed[i].before, changed[i].after, &root_only);
}

static void what_was_fixed_is_not_fixed_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
		check("etc/fstab", changed[i].after, changed[i].after, &root_only);
}

static void a_separate_boot_is_brought_in_line(void **state)
{
	(void)state;
	check("etc/fstab", "UUID=" BOOT_UUID " /boot ext4 defaults 1 2\n",
	      "UUID=" BOOT_UUID " /boot ext4 defaults 1 2\n", &with_boot);
	check("etc/fstab", "/dev/sda1 /boot/ xfs defaults,inode64 0 0\n",
	      "UUID=" BOOT_UUID " /boot/ ext4 defaults 0 0\n", &with_boot);
}

static void an_esp_at_boot_keeps_its_line(void **state)
{
	static const char line[] = "UUID=ABCD-1234 /boot vfat umask=0077 0 1\n";
	const struct tree_file files[] = { TREE_FILE("etc/fstab", line), TREE_DIR("boot"), { 0 } };
	struct names names = root_only;
	autotree struct tree t;

	(void)state;
	names.esp_is_boot = true;
	tree_start(&t, files);
	tree_mount(&t, "boot");
	assert_int_equal(fstab_fix(&t.edit, &names, &t.err), 0);
	assert_text(&t, "etc/fstab", line);
	assert_int_equal(t.account.len, 0);
}

static void without_an_esp_its_line_is_commented_out(void **state)
{
	const struct names none = { .root = VOLUME(ROOT_UUID, "", ROOT_PART) };

	(void)state;
	check("etc/fstab", "UUID=ABCD-1234 /boot/efi vfat rw 0 1\n",
	      GONE "UUID=ABCD-1234 /boot/efi vfat rw 0 1\n", &none);
	check("etc/fstab", "LABEL= / ext4 rw\n", "UUID=" ROOT_UUID " / ext4 rw\n", &none);
}

/* --- files ---------------------------------------------------------------------- */

static void installers_fstabs_become_what_the_image_needs(void **state)
{
	static const struct {
		const char *before, *after;
	} files[] = {
		{ /* Debian cloud image */
		  "# /etc/fstab: static file system information\n"
		  "PARTUUID=" ROOT_PART
		  " / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1\n"
		  "PARTUUID=" ESP_PART " /boot/efi vfat defaults 0 0\n",
		  NULL },
		{ /* Ubuntu cloud image, another label */
		  "LABEL=cloudimg-rootfs\t/\t ext4\tdiscard,commit=30,errors=remount-ro\t0 1\n"
		  "LABEL=BOOT\t/boot\text4\tdefaults\t0 2\n"
		  "LABEL=UEFI\t/boot/efi\tvfat\tumask=0077\t0 1\n",
		  "UUID=" ROOT_UUID "\t/\t ext4\tdiscard,commit=30,errors=remount-ro\t0 1\n"
		  "UUID=" BOOT_UUID "\t/boot\text4\tdefaults\t0 2\n"
		  "UUID=" ESP_SERIAL "\t/boot/efi\tvfat\tumask=0077\t0 1\n" },
		{ /* Fedora, btrfs */
		  "\n#\n# /etc/fstab\n# Created by anaconda\n#\n"
		  "UUID=" ROOT_UUID
		  " /                       btrfs   subvol=root,compress=zstd:1 0 0\n"
		  "UUID=" BOOT_UUID " /boot                   ext4    defaults        1 2\n"
		  "UUID=ABCD-1234          /boot/efi               vfat    umask=0077,shortname=winnt 0 2\n"
		  "UUID=" ROOT_UUID
		  " /home                   btrfs   subvol=home,compress=zstd:1 0 0\n",
		  "\n#\n# /etc/fstab\n# Created by anaconda\n#\n"
		  "UUID=" ROOT_UUID " /                       ext4   defaults 0 0\n"
		  "UUID=" BOOT_UUID " /boot                   ext4    defaults        1 2\n"
		  "UUID=ABCD-1234          /boot/efi               vfat    umask=0077,shortname=winnt 0 2\n" PART
		  "UUID=" ROOT_UUID
		  " /home                   btrfs   subvol=home,compress=zstd:1 0 0\n" },
		{ /* Rocky, LVM and XFS */
		  "/dev/mapper/rl-root     /                       xfs     defaults        0 0\n"
		  "UUID=" BOOT_UUID " /boot xfs defaults 0 0\n"
		  "/dev/mapper/rl-swap     none                    swap    defaults        0 0\n",
		  "UUID=" ROOT_UUID "     /                       ext4     defaults        0 0\n"
		  "UUID=" BOOT_UUID " /boot ext4 defaults 0 0\n" GONE
		  "/dev/mapper/rl-swap     none                    swap    defaults        0 0\n" },
		{ /* openSUSE */
		  "UUID=" OLD_UUID
		  "  /                       btrfs  defaults                      0  0\n"
		  "UUID=" OLD_UUID
		  "  /var                    btrfs  subvol=/@/var                 0  0\n"
		  "UUID=" OLD_UUID
		  "  /.snapshots             btrfs  subvol=/@/.snapshots          0  0\n",
		  "UUID=" ROOT_UUID
		  "  /                       ext4  defaults                      0  0\n" PART
		  "UUID=" OLD_UUID
		  "  /var                    btrfs  subvol=/@/var                 0  0\n" GONE
		  "UUID=" OLD_UUID
		  "  /.snapshots             btrfs  subvol=/@/.snapshots          0  0\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		check("etc/fstab", files[i].before,
		      files[i].after ? files[i].after : files[i].before, &with_boot);
}

static void the_account_names_each_entry_and_why(void **state)
{
	autotree struct tree t;
	const char *told;

	(void)state;
	fix(&t, "etc/fstab", "/dev/sdb1 /data ext4 rw 0 0\n/dev/sda1 / btrfs subvol=@ 0 0\n",
	    &root_only);
	told = tree_told(&t, ACCOUNT_EDITED, "etc/fstab");
	assert_non_null(told);
	assert_string_equal(told,
			    "/data: its device is not in the image; /: its device is named by "
			    "UUID now; /: is ext4 in the image; /: options that do not go "
			    "with its filesystem left out");
}

static void no_fstab_is_never_made(void **state)
{
	const struct tree_file files[] = { TREE_DIR("etc"), { 0 } };
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	assert_int_equal(fstab_fix(&t.edit, &root_only, &t.err), 0);
	assert_int_equal(crypttab_fix(&t.edit, &root_only, &t.err), 0);
	assert_false(tree_has(&t, "etc/fstab"));
	assert_int_equal(t.account.len, 0);
}

static void an_odd_fstab_is_left_as_it_is(void **state)
{
	const struct tree_file files[] = { TREE_DIR("etc/fstab"), { 0 } };
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	assert_int_equal(fstab_fix(&t.edit, &root_only, &t.err), 0);
	assert_int_equal(t.account.len, 0);
	assert_non_null(strstr(warned, "/etc/fstab is left as it is"));
}

static void an_fstab_that_is_too_large_is_left_as_it_is(void **state)
{
	const size_t len = (4 << 20) + 1;
	autofree char *big = malloc(len + 1);
	autotree struct tree t;

	(void)state;
	assert_non_null(big);
	memset(big, '#', len);
	big[len] = '\0';
	fix(&t, "etc/fstab", big, &root_only);
	assert_int_equal(t.account.len, 0);
	assert_non_null(strstr(warned, "/etc/fstab is left as it is"));
}

static void crypttab_loses_only_what_has_no_device(void **state)
{
	(void)state;
	check("etc/crypttab",
	      "# name device key options\n"
	      "cr_root UUID=" OTHER_UUID " none luks,discard\n"
	      "cr_usb UUID=" OTHER_UUID " none luks,noauto\n"
	      "swap /dev/vda2 /dev/urandom swap\n"
	      "vault /srv/disk.img none luks\n"
	      "lost /srv/lost.img none luks\n"
	      "odd",
	      "# name device key options\n" GONE "cr_root UUID=" OTHER_UUID " none luks,discard\n"
	      "cr_usb UUID=" OTHER_UUID " none luks,noauto\n" GONE "swap /dev/vda2 /dev/urandom "
	      "swap\n"
	      "vault /srv/disk.img none luks\n" GONE "lost /srv/lost.img none luks\n"
	      "odd",
	      &root_only);
}

static void find_decodes_what_it_finds(void **state)
{
	const struct tree_file files[] = {
		TREE_FILE("etc/fstab", "# /dev/x /a ext4\nLABEL=my\\040disk //a\\040b/ ext4 rw,ro"),
		{ 0 }
	};
	struct fstab_entry entry;
	autotree struct tree t;

	(void)state;
	tree_start(&t, files);
	assert_int_equal(fstab_find(&t.edit, "/a b", &entry, &t.err), 0);
	assert_string_equal(entry.device, "LABEL=my disk");
	assert_string_equal(entry.type, "ext4");
	assert_string_equal(entry.options, "rw,ro");
	fstab_entry_free(&entry);
	assert_int_equal(fstab_find(&t.edit, "/a", &entry, &t.err), 0);
	assert_null(entry.device);
}

/* --- hostile text ----------------------------------------------------------------- */

static bool never(const void *ctx, const char *path)
{
	(void)ctx, (void)path;
	return false;
}

static void rewrite(struct slice text, struct text *out)
{
	const struct fstab_facts facts = { &root_only, never, never, never, NULL };
	autotext struct text why = { 0 };

	fstab_rewrite(text, &facts, out, &why);
	assert_true(why.len < 4096);
}

static void hostile_bytes_come_out_as_they_went_in(void **state)
{
	static const char nuls[] = "a\0b / ext4 rw\n\0\0\0\n/dev/\0x /y ext4 rw\n\n\n\\0 \\ \\77";
	autotext struct text out = { 0 };

	(void)state;
	rewrite((struct slice){ nuls, sizeof nuls - 1 }, &out);
	assert_int_equal(out.len, sizeof nuls - 1);
	assert_memory_equal(out.at, nuls, out.len);
}

static void one_line_of_four_mebibytes_stays(void **state)
{
	const size_t len = 4 << 20;
	autofree char *big = malloc(len);
	autotext struct text out = { 0 };

	(void)state;
	assert_non_null(big);
	memset(big, 'a', len);
	memcpy(big + len / 2, " / ext4 ", 8);
	rewrite((struct slice){ big, len }, &out);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.at, big, len);
}

static void many_lines_give_a_short_account(void **state)
{
	autotext struct text in = { 0 };
	autotext struct text out = { 0 };

	(void)state;
	for (int i = 0; i < 50000; i++)
		text_format(&in, "/dev/sd%d /m%d ext4 rw\n", i, i);
	rewrite(text_slice(&in), &out);
	assert_int_equal(out.len, in.len + 50000 * strlen(GONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_that_fit_stay_byte_for_byte),
		TEST(lines_that_do_not_fit_are_fixed_or_commented_out),
		TEST(what_was_fixed_is_not_fixed_again),
		TEST(a_separate_boot_is_brought_in_line),
		TEST(an_esp_at_boot_keeps_its_line),
		TEST(without_an_esp_its_line_is_commented_out),
		TEST(installers_fstabs_become_what_the_image_needs),
		TEST(the_account_names_each_entry_and_why),
		TEST(no_fstab_is_never_made),
		TEST(an_odd_fstab_is_left_as_it_is),
		TEST(an_fstab_that_is_too_large_is_left_as_it_is),
		TEST(crypttab_loses_only_what_has_no_device),
		TEST(find_decodes_what_it_finds),
		TEST(hostile_bytes_come_out_as_they_went_in),
		TEST(one_line_of_four_mebibytes_stays),
		TEST(many_lines_give_a_short_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
