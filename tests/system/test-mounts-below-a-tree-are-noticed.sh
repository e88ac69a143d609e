#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Mounts below a tree: those that belong to the system are followed, /boot and the EFI
# system partition stay partitions of their own, all others are named and left out.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires mke2fs mkfs.vfat blkid

on_loop() { # DIRECTORY MKFS-COMMAND...
	local file=run/${1//\//_}.img

	truncate -s 64M "$file"
	"${@:2}" "$file" >/dev/null
	mkdir -p "$1"
	mount -o loop "$file" "$1"
	at_exit umount -l "$PWD/$1"
}

mkdir -p src/{a,b,data,home,tmp,usr/bin,m}
chmod 1777 src/tmp
chmod 700 src/m
echo plain >src/a/file
boot=6fe2c2fb-1b5f-4f5c-9d3e-000000000001
on_loop src/boot mke2fs -q -t ext4 -L bootlabel -U $boot
mkdir src/boot/efi
on_loop src/home mke2fs -q -t ext4
on_loop src/data mke2fs -q -t ext4
# Where the kernel has no vfat, a directory stands for the mount.
has_vfat=yes
grep -qw vfat /proc/filesystems || has_vfat=no
[ $has_vfat = no ] || on_loop src/boot/efi mkfs.vfat -i ABCD1234 -n EFI
echo kernel >src/boot/vmlinuz-1.0
mkdir -p src/boot/efi/EFI/vendor
echo loader >src/boot/efi/EFI/vendor/some.efi
echo mine >src/home/file
echo other >src/data/file
mount --bind src/a src/b
at_exit umount -l "$PWD/src/b"
mount -t tmpfs -o mode=755 t src/m
at_exit umount -l "$PWD/src/m"
echo gone >src/m/file
mkdir -p src/etc
cat >src/etc/fstab <<-END
	UUID=11111111-2222-3333-4444-555555555555 / ext4 defaults 0 1
	UUID=$boot /boot ext4 defaults 0 2
	UUID=ABCD-1234 /boot/efi vfat umask=0077 0 1
	/dev/vdb1 /home ext4 defaults 0 2
	UUID=99999999-2222-3333-4444-555555555555 /data ext4 defaults 0 2
END
cp /bin/true src/usr/bin/env

capture name src
expect_content /a/file plain
expect_content /home/file mine
expect_inside /boot /data /b /m /tmp
expect_not_inside /boot/vmlinuz-1.0 /data/file /b/file /m/file
look 'stat /m' | grep -q 'Mode: *0700' || fail "/m has not the mode of what is underneath"
look 'stat /tmp' | grep -q 'Mode: *01777' || fail "/tmp"
expect_report '[.tree.skipped_mounts[].path] | contains(["/data", "/b", "/m"])'
expect_report '[.tree.folded_mounts[].path] | contains(["/home"])'
look 'cat /etc/fstab' >run/fstab
grep -q '^UUID=11111111' run/fstab && grep -q "^UUID=$boot" run/fstab &&
	grep -q '^UUID=ABCD-1234' run/fstab || fail "$(cat run/fstab)"
grep -q '^#.*/home' run/fstab && grep -q '^#.*/data' run/fstab || fail "$(cat run/fstab)"

fs="$PWD/disk.raw?offset=$(partition_offset disk.raw 16)"
e2fsck -fn "$fs" >/dev/null 2>&1 || fail "/boot"
[ "$(dumpe2fs -h "$fs" 2>/dev/null | sed -n 's/^Filesystem UUID: *//p')" = $boot ] || fail "UUID"
[ "$(dumpe2fs -h "$fs" 2>/dev/null | sed -n 's/^Filesystem volume name: *//p')" = bootlabel ] ||
	fail "label"
expect_content /vmlinuz-1.0 kernel
esp=$(partition_offset disk.raw 15)
[ $has_vfat = yes ] || echo 'the kernel has no vfat: its ESP is a plain directory here'
blkid -p --offset "$esp" disk.raw >run/blkid
grep -q 'UUID="ABCD-1234"' run/blkid || fail "$(cat run/blkid)"
[ "$(mtype -i "disk.raw@@$esp" ::/EFI/vendor/some.efi)" = loader ] || fail "the ESP's content"

capture name src --include-mount src/data
expect_content /data/file other
capture name src --one-file-system
expect_not_inside /home/file

# An image without what boots would be of no use.
[ $has_vfat = no ] || umount src/boot/efi
umount src/boot
mount -t tmpfs t src/boot
at_exit umount -l "$PWD/src/boot"
ccsnap create lacks --source src --to folder:store
expect_exit 4
expect_one_line '/boot'
