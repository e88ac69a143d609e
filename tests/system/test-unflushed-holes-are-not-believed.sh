#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On XFS a file just written through a loop mount claims holes where data is still on
# its way; captured at once, the image holds the data all the same.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires mkfs.xfs losetup mke2fs jq qemu-img

truncate -s 400M xfs.raw
mkfs.xfs -q -m reflink=1 xfs.raw
mkdir xfs mnt
mount -o loop xfs.raw xfs || skip "XFS cannot be mounted here"
at_exit umount -l "$T/xfs"

make_disk disk.raw 8
cp --sparse=always disk.raw xfs/base.raw
sync -f xfs
rounds=3
! is_full || rounds=20
for ((i = 0; i < rounds; i++)); do
	rm -rf store
	cp --reflink=always xfs/base.raw xfs/disk.raw
	mount -o loop xfs/disk.raw mnt
	head -c 8M /dev/urandom >mnt/fresh
	umount mnt
	create a xfs/disk.raw
	expect_image_equals "$image" qcow2 xfs/disk.raw

	# The same without a file system in between: written, not flushed.
	truncate -s 16M xfs/written.raw
	dd if=/dev/urandom of=xfs/written.raw bs=1M seek=5 count=4 conv=notrunc status=none
	create b xfs/written.raw
	expect_image_equals "$image" qcow2 xfs/written.raw
	rm xfs/written.raw
done
