#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A block device is captured like a file; mounted read-write or held by another device
# it is refused, mounted read-only it is not.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires losetup jq mke2fs qemu-img

make_disk disk.raw 8
attach_loop disk.raw
create a "$loop"
expect_image_equals "$image" qcow2 disk.raw
expect_report '.source.logical_sector_size == 512'

mkdir mnt store2 store3 store4 store5
mount "$loop" mnt || skip "ext4 cannot be mounted here"
at_exit umount -l "$T/mnt"
for dry in "" --dry-run; do
	ccsnap create b --source "$loop" --to folder:store2 $dry --report report.json
	expect_exit 4
	expect_one_line 'mounted'
	expect_empty store2
	expect_report '.status == "refused"'
done
mount -o remount,ro mnt
dd if="$loop" of=expected.raw bs=1M status=none
ccsnap create c --source "$loop" --to folder:store3
expect_exit 0
expect_image_equals store3/c.qcow2 qcow2 expected.raw
umount mnt

# A partition in use makes the whole disk a disk in use.
requires sgdisk
truncate -s 64M parted.raw
sgdisk -n 1:2048:0 parted.raw >/dev/null
attach_loop parted.raw --partscan
partition=${loop}p1
if wait_until 3 test -b "$partition"; then
	mke2fs -q -t ext4 "$partition"
	mount "$partition" mnt
	ccsnap create d --source "$loop" --to folder:store4
	expect_exit 4
	expect_one_line 'mounted'
	umount mnt
	ccsnap create d --source "$loop" --to folder:store4
	expect_exit 0
	# Read through the device: the file below may lag behind.
	qemu-img compare -q -f qcow2 -F raw store4/d.qcow2 "$loop" || fail "differs"
fi

# Held by a device on top of it.
if command -v dmsetup >/dev/null && dmsetup version >/dev/null 2>&1; then
	attach_loop disk.raw
	name=ccsnap-test-$$
	if dmsetup create $name --table "0 $(blockdev --getsz "$loop") linear $loop 0"; then
		at_exit dmsetup remove $name
		ccsnap create e --source "$loop" --to folder:store5
		expect_exit 4
		expect_one_line
	fi
fi
