#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A nested btrfs subvolume is content, a snapshot is none, and a swap file in use neither.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires mkfs.btrfs btrfs mkswap swapon

truncate -s 256M run/btrfs.img
mkfs.btrfs -q run/btrfs.img
mkdir m
mount -o loop run/btrfs.img m || skip "btrfs cannot be mounted here"
at_exit umount -l "$PWD/m"
btrfs -q subvolume create m/sv
echo 1 >m/sv/f
setfattr -n user.k -v v m/sv/f
mkdir m/.snapshots
btrfs -q subvolume snapshot m/sv m/.snapshots/1

capture name m
expect_content /sv/f 1
expect_inside /.snapshots
expect_not_inside /.snapshots/1/f
expect_report '.tree.excluded | any(.path == "/.snapshots/1")'
expect_report ".tree.uuid == \"$(blkid -p -s UUID -o value run/btrfs.img)\""

mkdir src
fallocate -l 16M src/swap.img
chmod 600 src/swap.img
mkswap src/swap.img >/dev/null
if swapon src/swap.img 2>run/swapon; then
	at_exit swapoff "$PWD/src/swap.img"
	capture name src
	expect_not_inside /swap.img
	expect_report '.tree.excluded | any(.path == "/swap.img")'
else
	echo "swapon: $(cat run/swapon): that part is left out"
fi
