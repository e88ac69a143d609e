// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "walk/mounts.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct err err;
static char *directory; /* of its own for each test */
static char *table;	/* a file in it */
static struct mounts *m;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int make_directory(void **state)
{
	char template[] = "/tmp/test-mounts-XXXXXX";

	(void)state;
	directory = realpath(mkdtemp(template), NULL);
	table = directory ? str_format("%s/mountinfo", directory) : NULL;
	err = (struct err){ 0 };
	return table ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	mounts_free(m);
	m = NULL;
	nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(directory);
	free(table);
	return 0;
}

static void write_table(const char *text, size_t len)
{
	autoclose int fd = open(table, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
}

static int read_mounts(const char *text, const struct mounts_config *cfg)
{
	struct mounts_config with_table = *cfg;

	write_table(text, strlen(text));
	with_table.mountinfo = table;
	mounts_free(m);
	m = mounts_read(&with_table, &err);
	return m ? 0 : -1;
}

/* Of the whole machine, whose root has mount id 1. */
static int read_machine(const char *text)
{
	return read_mounts(text, &(struct mounts_config){ .source = "/", .source_id = 1 });
}

static void accept_machine(const char *text)
{
	int ok = read_machine(text);

	if (ok < 0)
		print_error("%s\n", err.text);
	assert_int_equal(ok, 0);
}

static void assert_says(enum err_kind kind, const char *words)
{
	if (err.kind != kind || !strstr(err.text, words))
		print_error("kind %d: %s (wanted: %s)\n", err.kind, err.text, words);
	assert_int_equal(err.kind, kind);
	assert_non_null(strstr(err.text, words));
}

static const struct mount *mount_at_point(const char *point)
{
	const struct mount *mount;

	for (size_t i = 0; (mount = mounts_at(m, i)); i++)
		if (str_equal(mount->point, point))
			return mount;
	return NULL;
}

static void assert_role(const char *point, enum mount_role role)
{
	const struct mount *mount = mount_at_point(point);

	if (!mount || mount->role != role)
		print_error("%s: role %d, %s\n", point, mount ? (int)mount->role : -1,
			    mount && mount->why ? mount->why : "");
	assert_non_null(mount);
	assert_int_equal(mount->role, role);
	assert_int_equal(mount->why != NULL, role == MOUNT_SKIP);
}

static void assert_skipped(const char *point, const char *why)
{
	assert_role(point, MOUNT_SKIP);
	if (!strstr(mount_at_point(point)->why, why))
		print_error("%s: %s (wanted: %s)\n", point, mount_at_point(point)->why, why);
	assert_non_null(strstr(mount_at_point(point)->why, why));
}

static size_t count_listed(void)
{
	size_t n = 0;

	while (mounts_at(m, n))
		n++;
	return n;
}

#define ROOT "1 0 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n"

static void a_usual_machine_is_sorted_by_the_table(void **state)
{
	(void)state;
	accept_machine("2 1 0:21 / /proc rw shared:2 - proc proc rw\n"
		       "3 1 0:22 / /sys rw shared:3 - sysfs sysfs rw\n"
		       "4 3 0:7 / /sys/kernel/security rw - securityfs securityfs rw\n" ROOT
		       "5 1 0:5 / /dev rw shared:4 - devtmpfs udev rw,size=1k\n"
		       "6 5 0:24 / /dev/pts rw shared:5 - devpts devpts rw\n"
		       "7 1 8:1 / /boot rw shared:6 - ext4 /dev/sda1 rw\n"
		       "8 7 8:3 / /boot/efi rw shared:7 - vfat /dev/sda3 rw,fmask=0077\n"
		       "9 1 253:0 / /home rw shared:8 - xfs /dev/mapper/vg-home rw\n"
		       "10 1 8:17 / /srv/data rw shared:9 - ext4 /dev/sdb1 rw\n"
		       "11 1 8:33 / /data rw shared:10 - ext4 /dev/sdc1 rw\n"
		       "12 1 0:40 / /tmp rw shared:11 - tmpfs tmpfs rw\n"
		       "13 9 0:50 / /home/nfs rw shared:12 - nfs4 server:/export rw\n"
		       "14 1 0:60 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n"
		       "15 1 0:61 / /opt/fuse rw - fuse.sshfs me@there: rw\n"
		       "16 1 8:49 / /usr/local rw - fuseblk /dev/sdd1 rw\n");
	assert_role("", MOUNT_SOURCE);
	assert_role("boot", MOUNT_BOOT);
	assert_role("boot/efi", MOUNT_ESP);
	assert_role("home", MOUNT_FOLD);
	assert_role("srv/data", MOUNT_FOLD);
	assert_skipped("data", "not part of the system by its place; --include-mount=/data adds");
	assert_skipped("proc", "not a local disk's filesystem (proc)");
	assert_skipped("sys", "(sysfs)");
	assert_skipped("dev", "(devtmpfs)");
	assert_skipped("tmp", "(tmpfs)");
	assert_skipped("home/nfs", "(nfs4)");
	assert_skipped("var/lib/docker/overlay2/x/merged", "(overlay)");
	assert_skipped("opt/fuse", "(fuse.sshfs)");
	assert_skipped("usr/local", "(fuseblk)");
	assert_ptr_equal(mounts_at(m, 0), mounts_find(m, 1));
}

static void what_the_table_says_of_a_mount_is_kept(void **state)
{
	const struct mount *mount;

	(void)state;
	accept_machine(ROOT "4294967297 1 259:17 /@home /home rw,noatime master:1 propagate_from:2 "
			    "unbindable - btrfs /dev/nvme0n1p2 rw,subvolid=257,subvol=/@home\n");
	mount = mounts_find(m, UINT64_C(4294967297));
	assert_non_null(mount);
	assert_int_equal(mount->major, 259);
	assert_int_equal(mount->minor, 17);
	assert_string_equal(mount->fstype, "btrfs");
	assert_string_equal(mount->device, "/dev/nvme0n1p2");
	assert_string_equal(mount->fs_root, "/@home");
	assert_string_equal(mount->point, "home");
	assert_string_equal(mount->options, "rw,subvolid=257,subvol=/@home");
	assert_null(mounts_find(m, 3));
}

static void escapes_and_empty_fields_are_understood(void **state)
{
	(void)state;
	accept_machine(ROOT
		       "2 1 8:9 / /mnt/a\\040b\\011c\\012d\\134e\\043 rw - ext4 /dev/x\\040y rw\n"
		       "4 1 0:9 / /mnt/empty rw - tmpfs  rw\n"
		       "5 1 0:9 / /mnt/blanks rw - fuse.x dev rw,a=b c - d\n"
		       "6 1 0:4 net:[4026532] /run/netns/n rw - nsfs nsfs rw\n"
		       "7 1 8:9 / /mnt/odd\\9\\08\\x rw - ext4 /dev/y rw");
	assert_non_null(mount_at_point("mnt/a b\tc\nd\\e#"));
	assert_string_equal(mount_at_point("mnt/a b\tc\nd\\e#")->device, "/dev/x y");
	assert_string_equal(mount_at_point("mnt/empty")->device, "");
	assert_string_equal(mount_at_point("mnt/blanks")->options, "rw,a=b c - d");
	assert_string_equal(mount_at_point("run/netns/n")->fs_root, "net:[4026532]");
	assert_non_null(mount_at_point("mnt/odd\\9\\08\\x"));
}

static void garbage_is_an_error_with_its_line(void **state)
{
	static const char *const lines[] = {
		"",
		"x",
		"2",
		"2 1 8:1",
		"2 1 8:1 / /x rw",
		"2 1 8:1 / /x rw ext4 /dev/x rw",
		"2 1 8:1 / /x rw -",
		"2 1 8:1 / /x rw - ext4",
		"2 1 8:1 / /x rw - ext4 /dev/x",
		"2 1 8:1 / /x rw -  /dev/x rw",
		"2 1 81 / /x rw - ext4 /dev/x rw",
		"2 1 8: / /x rw - ext4 /dev/x rw",
		"2 1 :1 / /x rw - ext4 /dev/x rw",
		"2 1 8:1: / /x rw - ext4 /dev/x rw",
		"2 1 8:-1 / /x rw - ext4 /dev/x rw",
		"2 1 8:4294967296 / /x rw - ext4 /dev/x rw",
		"-2 1 8:1 / /x rw - ext4 /dev/x rw",
		"+2 1 8:1 / /x rw - ext4 /dev/x rw",
		"2x 1 8:1 / /x rw - ext4 /dev/x rw",
		"99999999999999999999 1 8:1 / /x rw - ext4 /dev/x rw",
		" 2 1 8:1 / /x rw - ext4 /dev/x rw",
		"2  1 8:1 / /x rw - ext4 /dev/x rw",
		"2 1 8:1 / x rw - ext4 /dev/x rw",
		"2 1 8:1  /x rw - ext4 /dev/x rw",
		"2 1 8:1 / /x\\000y rw - ext4 /dev/x rw",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		autofree char *text = str_format(ROOT "%s\n" ROOT, lines[i]);

		if (read_machine(text) == 0)
			print_error("accepted: %s\n", lines[i]);
		assert_null(m);
		assert_says(ERR_FAILED, "line 2 of ");
	}
	write_table("1 0 8:2 / / rw - ext4 a\0b rw\n", 29);
	m = mounts_read(
		&(struct mounts_config){ .source = "/", .source_id = 1, .mountinfo = table }, &err);
	assert_null(m);
	assert_says(ERR_FAILED, "NUL");
	m = mounts_read(&(struct mounts_config){ .source = "/", .mountinfo = "/nonexistent" },
			&err);
	assert_null(m);
	assert_says(ERR_FAILED, "/nonexistent");
}

static void long_lines_and_long_tables_are_read(void **state)
{
	size_t size = 64 << 20, len = 0;
	char *text = malloc(size), *layer = malloc(1 << 20);

	(void)state;
	assert_true(text && layer);
	memset(layer, 'l', (1 << 20) - 1);
	layer[(1 << 20) - 1] = '\0';
	len += (size_t)snprintf(
		text, size, ROOT "2 1 0:9 / /var/x rw - overlay overlay rw,lowerdir=%s\n", layer);
	for (unsigned i = 3; i < 20000; i++)
		len += (size_t)snprintf(text + len, size - len,
					"%u 1 8:%u / /mnt/%u rw - ext4 /dev/x rw\n", i, i, i);
	accept_machine(text);
	assert_int_equal(count_listed(), 19999);
	assert_string_equal(mounts_find(m, 19999)->point, "mnt/19999");
	assert_int_equal(strlen(mounts_find(m, 2)->options),
			 (1 << 20) - 1 + strlen("rw,lowerdir="));
	free(text);
	free(layer);
}

static void the_last_mount_on_a_point_is_the_one_there(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 0:30 / /home rw - autofs systemd-1 rw\n"
			    "3 2 8:5 / /home rw - ext4 /dev/sda5 rw\n"
			    "4 3 8:6 / /home/u rw - ext4 /dev/sda6 rw\n");
	assert_int_equal(count_listed(), 3);
	assert_int_equal(mount_at_point("home")->id, 3);
	assert_role("home", MOUNT_FOLD);
	assert_role("home/u", MOUNT_FOLD);
	assert_null(mounts_find(m, 2));
	accept_machine(ROOT "2 1 0:30 / /var rw - tmpfs t rw\n"
			    "3 1 8:5 / /var rw - ext4 /dev/sda5 rw\n");
	assert_int_equal(mount_at_point("var")->id, 3);
	assert_int_equal(count_listed(), 2);
}

static void what_is_mounted_over_is_not_there(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 8:5 / /home/u rw - ext4 /dev/sda5 rw\n"
			    "3 2 8:7 / /home/u/deep rw - ext4 /dev/sda7 rw\n"
			    "4 1 8:6 / /home rw - ext4 /dev/sda6 rw\n"
			    "6 5 8:8 / /srv rw - xfs /dev/top rw\n" /* above 5, but before it */
			    "5 1 0:9 / /srv rw - tmpfs tmpfs rw\n"
			    "7 5 8:9 / /srv/below rw - ext4 /dev/hidden rw\n"
			    "8 99 8:10 / /opt rw - ext4 /dev/orphan rw\n"
			    "9 10 8:11 / /usr rw - ext4 /dev/circle rw\n"
			    "10 9 8:12 / /usr rw - ext4 /dev/circle rw\n");
	assert_int_equal(count_listed(), 3);
	assert_role("home", MOUNT_FOLD);
	assert_int_equal(mount_at_point("srv")->id, 6);
	assert_null(mounts_find(m, 2));
	assert_null(mounts_find(m, 3));
	assert_null(mounts_find(m, 5));
	assert_null(mounts_find(m, 7));
	assert_null(mounts_find(m, 8));
}

static void a_boot_that_was_mounted_over_does_not_count(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 0:30 / /boot rw - autofs systemd-1 rw\n"
			    "3 2 8:5 / /boot rw - ext4 /dev/sda5 rw\n");
	assert_role("boot", MOUNT_BOOT);
}

static void mounts_are_in_the_order_of_paths(void **state)
{
	static const char *const order[] = { "", "a", "a/x", "a/x/y", "a-b", "a.c", "a0" };

	(void)state;
	accept_machine("7 1 8:7 / /a0 rw - ext4 d rw\n"
		       "3 2 8:3 / /a/x rw - ext4 d rw\n"
		       "5 1 8:5 / /a-b rw - ext4 d rw\n"
		       "2 1 8:8 / /a rw - ext4 d rw\n"
		       "6 1 8:6 / /a.c rw - ext4 d rw\n" ROOT "4 3 8:4 / /a/x/y rw - ext4 d rw\n");
	assert_int_equal(count_listed(), 5); /* what is below a skipped one is not told again */
	assert_string_equal(mounts_at(m, 1)->point, "a");
	assert_string_equal(mounts_at(m, 2)->point, "a-b");
	assert_string_equal(mounts_at(m, 3)->point, "a.c");
	assert_string_equal(mounts_at(m, 4)->point, "a0");
	for (size_t id = 2; id < 7; id++)
		assert_string_equal(mounts_find(m, id)->point, order[id - 1]);
}

static void below_a_skipped_mount_all_is_skipped(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 0:9 / /home rw - tmpfs tmpfs rw\n"
			    "3 2 8:3 / /home/u rw - ext4 /dev/sda3 rw\n"
			    "4 3 8:4 / /home/u/x rw - ext4 /dev/sda4 rw\n");
	assert_int_equal(count_listed(), 2);
	assert_int_equal(mounts_find(m, 3)->role, MOUNT_SKIP);
	assert_int_equal(mounts_find(m, 4)->role, MOUNT_SKIP);
	assert_non_null(mounts_find(m, 4)->why);
}

static void a_boot_that_cannot_be_followed_is_refused(void **state)
{
	static const struct {
		const char *line, *words;
	} bad[] = {
		{ "2 1 0:9 / /boot rw - tmpfs tmpfs rw\n", "(tmpfs)" },
		{ "2 1 0:9 / /boot rw - nfs4 server:/boot rw\n", "(nfs4)" },
		{ "2 1 0:9 / /boot rw - autofs systemd-1 rw\n", "automount" },
		{ "2 1 8:2 /other/boot /boot rw - ext4 /dev/sda2 rw\n",
		  "a bind mount of /other/boot" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		autofree char *text = str_format(ROOT "%s", bad[i].line);

		assert_int_equal(read_machine(text), -1);
		assert_says(ERR_REFUSED, "the image would lack /boot");
		assert_says(ERR_REFUSED, bad[i].words);
		assert_says(ERR_REFUSED, "--include-mount=/boot");
		assert_int_equal(
			read_mounts(text,
				    &(struct mounts_config){
					    .source = "/",
					    .source_id = 1,
					    .include = (const char *const[]){ "/boot", NULL } }),
			0);
		assert_role("boot", MOUNT_FOLD);
	}
	accept_machine(ROOT "2 1 0:9 / /boot/x rw - tmpfs tmpfs rw\n"
			    "3 1 0:9 / /bootstrap rw - tmpfs tmpfs rw\n"
			    "4 1 0:9 / /srv/boot rw - tmpfs tmpfs rw\n");
}

static void the_first_of_several_esps_counts(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 8:1 / /efi rw - vfat /dev/sda1 rw\n"
			    "3 1 8:3 / /boot rw - vfat /dev/sda3 rw\n"
			    "4 3 8:4 / /boot/efi rw - vfat /dev/sda4 rw\n");
	assert_role("boot", MOUNT_ESP);
	assert_role("boot/efi", MOUNT_FOLD);
	assert_role("efi", MOUNT_FOLD);
	accept_machine(ROOT "2 1 8:1 / /efi rw - vfat /dev/sda1 rw\n"
			    "3 1 8:3 / /usr/boot/efi rw - vfat /dev/sda3 rw\n");
	assert_role("efi", MOUNT_ESP);
	assert_role("usr/boot/efi", MOUNT_FOLD);
	accept_machine(ROOT "2 1 8:1 / /boot/efi rw - ext4 /dev/sda1 rw\n");
	assert_role("boot/efi", MOUNT_FOLD);
}

static void a_part_of_an_esp_at_boot_is_no_esp(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 8:1 / /efi rw - vfat /dev/sda1 rw\n"
			    "3 1 8:1 /EFI/arch /boot rw - vfat /dev/sda1 rw\n");
	assert_role("boot", MOUNT_FOLD);
	assert_role("efi", MOUNT_ESP);
}

static void a_boot_that_is_a_part_of_the_root_disk_is_no_partition(void **state)
{
	(void)state;
	accept_machine(
		"1 0 0:30 /@ / rw - btrfs /dev/sda2 rw,subvolid=256,subvol=/@\n"
		"2 1 0:30 /@boot /boot rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@boot\n");
	assert_role("boot", MOUNT_FOLD);
	accept_machine(
		ROOT "2 1 0:30 /@boot /boot rw - btrfs /dev/sda3 rw,subvolid=257,subvol=/@boot\n");
	assert_role("boot", MOUNT_BOOT);
	accept_machine(ROOT "2 1 8:3 /sub/dir /boot rw - ext4 /dev/sda3 rw\n");
	assert_role("boot", MOUNT_FOLD);
}

static void subvolumes_are_content_and_bind_mounts_are_not(void **state)
{
	(void)state;
	accept_machine(
		"1 0 0:30 /@ / rw - btrfs /dev/sda2 rw,subvolid=256,subvol=/@\n"
		"2 1 0:30 /@home /home rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@home\n"
		"3 1 0:30 /@/srv/a /srv/b rw - btrfs /dev/sda2 rw,subvolid=256,subvol=/@\n"
		"4 1 0:30 /@home/u /var/u rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@home\n"
		"5 1 0:30 /@snap /snap rw - btrfs /dev/sda2 rw,subvolid=258,subvol=/@snap\n"
		"6 1 0:31 / /opt rw - btrfs none rw,subvolid=5,subvol=/\n"
		"7 1 0:32 / /usr rw - zfs rpool/usr rw,xattr\n");
	assert_role("home", MOUNT_FOLD);
	assert_skipped("srv/b", "a bind mount of /srv/a");
	assert_skipped("var/u", "a bind mount of /home/u");
	assert_skipped("snap", "by its place");
	assert_skipped("opt", "(btrfs)");
	assert_role("usr", MOUNT_FOLD);
	accept_machine("1 0 0:30 / / rw - btrfs /dev/sda2 rw,subvolid=5,subvol=/\n"
		       "2 1 0:30 /@home /home rw - btrfs /dev/sda2 rw,subvolid=257,subvol=/@home\n"
		       "3 1 0:30 /srv/a /srv/b rw - btrfs /dev/sda2 rw,subvolid=5,subvol=/\n");
	assert_role("home", MOUNT_FOLD);
	assert_skipped("srv/b", "a bind mount of /srv/a");
}

static void a_bind_mount_is_content_unless_the_tree_has_it_already(void **state)
{
	(void)state;
	accept_machine(ROOT "2 1 8:2 /a /b rw - ext4 /dev/sda2 rw\n"
			    "3 1 8:2 / /home/root rw - ext4 /dev/sda2 rw\n"
			    "4 1 8:9 / /mnt/disk rw - ext4 /dev/sdb1 rw\n"
			    "5 1 8:9 /home /home/x rw - ext4 /dev/sdb1 rw\n"
			    "6 1 8:9 /opt /opt rw - ext4 /dev/sdb1 rw\n"
			    "7 1 8:9 /opt/in /srv rw - ext4 /dev/sdb1 rw\n"
			    "8 1 8:9 /optical /var/o rw - ext4 /dev/sdb1 rw\n");
	assert_skipped("b", "a bind mount of /a");
	assert_skipped("home/root", "a bind mount of /");
	assert_skipped("mnt/disk", "by its place");
	assert_role("home/x", MOUNT_FOLD);
	assert_role("opt", MOUNT_FOLD);
	assert_skipped("srv", "a bind mount of /opt/in");
	assert_role("var/o", MOUNT_FOLD);
}

static void a_tree_within_a_mount_has_paths_of_its_own(void **state)
{
	static const char text[] = ROOT "2 1 8:3 / /srv rw - ext4 /dev/sda3 rw\n"
					"3 2 8:4 / /srv/tree/boot rw - ext4 /dev/loop0 rw\n"
					"4 2 8:3 /tree/a /srv/tree/home rw - ext4 /dev/sda3 rw\n"
					"5 2 8:3 /elsewhere /srv/tree/opt rw - ext4 /dev/sda3 rw\n"
					"6 2 0:9 / /srv/tree/m rw - tmpfs t rw\n"
					"7 2 8:7 / /srv/trees rw - ext4 /dev/sda7 rw\n"
					"8 1 8:8 / /boot rw - ext4 /dev/sda8 rw\n"
					"9 2 8:9 / /srv/tree/usr rw - ext4 /dev/sda9 rw\n";
	struct mounts_config cfg = { .source = "/srv/tree", .source_id = 2 };

	(void)state;
	assert_int_equal(read_mounts(text, &cfg), 0);
	assert_int_equal(count_listed(), 6);
	assert_int_equal(mounts_at(m, 0)->id, 2);
	assert_string_equal(mounts_at(m, 0)->point, "");
	assert_role("", MOUNT_SOURCE);
	assert_role("boot", MOUNT_BOOT);
	assert_skipped("home", "a bind mount of /a");
	assert_role("opt", MOUNT_FOLD); /* of the same disk, but not in the tree */
	assert_skipped("m", "(tmpfs)");
	assert_role("usr", MOUNT_FOLD);
	cfg.source_id = 4711;
	assert_int_equal(read_mounts(text, &cfg), -1);
	assert_says(ERR_FAILED, "/srv/tree lies on is not in");
}

static void one_file_system_follows_boot_and_the_esp_only(void **state)
{
	(void)state;
	assert_int_equal(read_mounts(ROOT "2 1 8:3 / /boot rw - ext4 /dev/sda3 rw\n"
					  "3 2 8:4 / /boot/efi rw - vfat /dev/sda4 rw\n"
					  "4 1 8:5 / /home rw - ext4 /dev/sda5 rw\n"
					  "5 1 8:6 / /usr rw - ext4 /dev/sda6 rw\n"
					  "6 1 8:7 / /data rw - ext4 /dev/sda7 rw\n",
				     &(struct mounts_config){
					     .source = "/",
					     .source_id = 1,
					     .include = (const char *const[]){ "/usr", NULL },
					     .one_file_system = true }),
			 0);
	assert_role("boot", MOUNT_BOOT);
	assert_role("boot/efi", MOUNT_ESP);
	assert_skipped("home", "--one-file-system");
	assert_role("usr", MOUNT_FOLD);
	assert_skipped("data", "by its place");
}

/* A table for a source that is there, with mounts that are not. */
static int read_included(const char *include)
{
	autofree char *text = str_format(ROOT "2 1 8:3 / %1$s/data rw - ext4 /dev/sda3 rw\n"
					      "3 1 0:9 / %1$s/m rw - tmpfs t rw\n"
					      "4 3 0:10 / %1$s/m/below rw - tmpfs t rw\n"
					      "5 1 8:5 / %1$s/boot rw - ext4 /dev/sda5 rw\n",
					 directory);

	return read_mounts(
		text, &(struct mounts_config){ .source = directory,
					       .source_id = 1,
					       .include = (const char *const[]){ include, NULL } });
}

static void a_mount_is_included_by_any_spelling_of_its_point(void **state)
{
	static const char *const spellings[] = { "data", "/data", "data/", "//data//", "./data/." };

	(void)state;
	for (size_t i = 0; i < 2 * (sizeof spellings / sizeof *spellings); i++) {
		autofree char *full = str_format("%s/%s", directory, spellings[i / 2]);

		assert_int_equal(read_included(i % 2 ? full : spellings[i / 2]), 0);
		assert_role("data", MOUNT_FOLD);
		assert_role("m", MOUNT_SKIP);
	}
	assert_int_equal(read_included("/m"), 0);
	assert_role("m", MOUNT_FOLD);
	assert_skipped("m/below", "(tmpfs)");
	assert_skipped("data", "by its place");
	assert_int_equal(read_included("/boot"), 0);
	assert_role("boot", MOUNT_BOOT);
}

static void an_include_that_is_no_mount_is_refused(void **state)
{
	static const char *const bad[] = {
		"nosuch", "/data/below", "dat", "", "/", ".", "../data"
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(read_included(bad[i]), -1);
		assert_says(ERR_USAGE, "is no mount point below");
	}
	assert_int_equal(read_included("/m/below"), -1);
	assert_says(ERR_USAGE, "/m/below lies below /m, which is left out");
}

static void this_machines_table_is_read(void **state)
{
	struct statx stx;

	(void)state;
	assert_int_equal(statx(AT_FDCWD, directory, 0, STATX_MNT_ID, &stx), 0);
	if (!(stx.stx_mask & STATX_MNT_ID))
		skip();
	m = mounts_read(&(struct mounts_config){ .source = directory,
						 .source_id = stx.stx_mnt_id,
						 .mountinfo = "/proc/self/mountinfo" },
			&err);
	assert_non_null(m);
	assert_int_equal(count_listed(), 1);
	assert_int_equal(mounts_at(m, 0)->role, MOUNT_SOURCE);
	assert_ptr_equal(mounts_find(m, stx.stx_mnt_id), mounts_at(m, 0));
}

static void make_swap_file(const char *name, off_t size, struct stat *st)
{
	autofree char *path = str_format("%s/%s", directory, name);
	autoclose int fd = open(path, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fstat(fd, st), 0);
}

#define SWAPS_HEADING "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

static void swap_files_in_use_are_found(void **state)
{
	struct mount_swap *swaps;
	struct stat plain, blank, odd, st;
	size_t count;
	autofree char *text = str_format(
		SWAPS_HEADING "/dev/sda5                               partition\t1048572"
			      "\t\t0\t\t-2\n"
			      "%1$s/swap.img\t\tfile\t\t1020\t\t0\t\t-3\n"
			      "%1$s/a\\040b\\012 file 1020 0 -4\n"
			      "%1$s/gone\\040(deleted) file 1020 0 -5\n"
			      "%1$s/replaced\\040(deleted) file 1020 0 -5\n"
			      "%1$s/odd\\040(deleted) file 1020 0 -5\n"
			      "%1$s/small file 1020 0 -6\n"
			      "%1$s file 0 0 -7\n"
			      "/dev/zram0 partition 99 0 100\n",
		directory);

	(void)state;
	make_swap_file("swap.img", 1024 * 1024, &plain);
	make_swap_file("a b\n", 1024 * 1024, &blank);
	make_swap_file("odd (deleted)", 1024 * 1024, &odd);
	make_swap_file("replaced", 1024 * 1024, &st); /* a new file in its place */
	make_swap_file("small", 1000, &st);	      /* another system's path */
	write_table(text, strlen(text));
	assert_int_equal(mounts_read_swaps(table, &swaps, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_true(swaps[0].ino == plain.st_ino && swaps[0].dev == plain.st_dev);
	assert_true(str_ends(swaps[0].path, "/swap.img"));
	assert_true(swaps[1].ino == blank.st_ino);
	assert_true(str_ends(swaps[1].path, "/a b\n"));
	assert_true(swaps[2].ino == odd.st_ino);
	mounts_free_swaps(swaps, count);
}

static void without_swap_there_are_no_swap_files(void **state)
{
	struct mount_swap *swaps;
	size_t count = 1;

	(void)state;
	write_table(SWAPS_HEADING, strlen(SWAPS_HEADING));
	assert_int_equal(mounts_read_swaps(table, &swaps, &count, &err), 0);
	assert_int_equal(count, 0);
	mounts_free_swaps(swaps, count);
	assert_int_equal(mounts_read_swaps("/nonexistent/swaps", &swaps, &count, &err), 0);
	assert_int_equal(count, 0);
}

static void garbage_among_swaps_is_an_error(void **state)
{
	static const char *const lines[] = { "x",
					     "/swap",
					     "/swap file",
					     "swap file 1 0 0",
					     "/swap file x 0 0",
					     "/s\\000 file 1 0 0",
					     "/swap file -1 0",
					     "\n",
					     "/swap file 99999999999999999999 0 0" };
	struct mount_swap *swaps;
	size_t count;

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		autofree char *text = str_format(SWAPS_HEADING "%s\n", lines[i]);

		write_table(text, strlen(text));
		assert_int_equal(mounts_read_swaps(table, &swaps, &count, &err), -1);
		assert_says(ERR_FAILED, "no swap space");
		assert_null(swaps);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
	const struct CMUnitTest tests[] = {
		TEST(a_usual_machine_is_sorted_by_the_table),
		TEST(what_the_table_says_of_a_mount_is_kept),
		TEST(escapes_and_empty_fields_are_understood),
		TEST(garbage_is_an_error_with_its_line),
		TEST(long_lines_and_long_tables_are_read),
		TEST(the_last_mount_on_a_point_is_the_one_there),
		TEST(what_is_mounted_over_is_not_there),
		TEST(a_boot_that_was_mounted_over_does_not_count),
		TEST(mounts_are_in_the_order_of_paths),
		TEST(below_a_skipped_mount_all_is_skipped),
		TEST(a_boot_that_cannot_be_followed_is_refused),
		TEST(the_first_of_several_esps_counts),
		TEST(a_part_of_an_esp_at_boot_is_no_esp),
		TEST(a_boot_that_is_a_part_of_the_root_disk_is_no_partition),
		TEST(subvolumes_are_content_and_bind_mounts_are_not),
		TEST(a_bind_mount_is_content_unless_the_tree_has_it_already),
		TEST(a_tree_within_a_mount_has_paths_of_its_own),
		TEST(one_file_system_follows_boot_and_the_esp_only),
		TEST(a_mount_is_included_by_any_spelling_of_its_point),
		TEST(an_include_that_is_no_mount_is_refused),
		TEST(this_machines_table_is_read),
		TEST(swap_files_in_use_are_found),
		TEST(without_swap_there_are_no_swap_files),
		TEST(garbage_among_swaps_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
