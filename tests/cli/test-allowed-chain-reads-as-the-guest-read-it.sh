#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With --allow-backing a chain of overlays becomes one stand-alone image with the
# content that the guest saw; loops and missing links are still refused.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img qemu-io jq mke2fs

chain() { # BASE-FORMAT
	make_disk disk.raw 4
	qemu-img convert -f raw -O "$1" disk.raw base
	qemu-img create -q -f qcow2 -b base -F "$1" middle.qcow2
	qemu-io -f qcow2 -c 'write -P 0x11 1M 300k' -c 'write -z 3M 1M' middle.qcow2 >/dev/null
	qemu-img create -q -f qcow2 -b "$PWD/middle.qcow2" -F qcow2 top.qcow2 40M
	qemu-io -f qcow2 -c 'write -P 0x22 1200k 64k' -c 'write -P 0x33 39M 512' top.qcow2 >/dev/null
	qemu-img convert -f qcow2 -O raw top.qcow2 expected.raw
}

for format in raw qcow2; do
	chain $format
	create chain top.qcow2 --source-format qcow2 --allow-backing
	expect_image_equals "$image" qcow2 expected.raw
	expect_decoded_equals "$image" expected.raw
	rm -rf store
done

# A data file and vmdk extents are other files, too.
qemu-img convert -f raw -O qcow2 -o data_file=data.raw,data_file_raw=on disk.raw data.qcow2
create data data.qcow2 --source-format qcow2 --allow-backing
expect_image_equals "$image" qcow2 disk.raw
expect_decoded_equals "$image" disk.raw
for subformat in monolithicFlat twoGbMaxExtentSparse twoGbMaxExtentFlat; do
	qemu-img convert -f raw -O vmdk -o subformat=$subformat disk.raw extents.vmdk
	create $subformat extents.vmdk --source-format vmdk --allow-backing
	expect_image_equals "$image" qcow2 disk.raw
	rm -f extents*
done
rm -rf store && mkdir store

refused() {
	ccsnap create evil --source "$1" --source-format qcow2 --allow-backing --to folder:store
	expect_exit 4
	expect_one_line
	expect_empty store
}

# a -> b -> a
qemu-img create -q -f qcow2 -u -b b.qcow2 -F qcow2 a.qcow2 1M
qemu-img create -q -f qcow2 -u -b a.qcow2 -F qcow2 b.qcow2 1M
refused a.qcow2
qemu-img create -q -f qcow2 -u -b self.qcow2 -F qcow2 other.qcow2 1M && mv other.qcow2 self.qcow2
refused self.qcow2

# A missing link; one that is no plain path; one without a recorded format.
qemu-img create -q -f qcow2 -u -b nowhere.qcow2 -F qcow2 a.qcow2 1M
refused a.qcow2
qemu-img create -q -f qcow2 -u -b "json:{\"driver\":\"file\",\"filename\":\"$PWD/base\"}" \
	-F raw a.qcow2 1M
refused a.qcow2
qemu-img create -q -f qcow2 -u -b nbd://localhost:1/x -F raw a.qcow2 1M
refused a.qcow2
