#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# verify proves an image against its manifest and against a disk, and names the
# first offset that differs.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq mke2fs xxd

make_disk disk.raw 8
for format in qcow2 raw; do
	create good-$format disk.raw --format $format
	ccsnap verify "$image" --format $format
	expect_exit 0
	ccsnap verify "$image" --format $format --against disk.raw
	expect_exit 0

	# The disk has moved on at 5 MiB + 7 and later.
	cp disk.raw other.raw
	printf X | dd of=other.raw bs=1 seek=$((5 * 1048576 + 7)) conv=notrunc status=none
	printf X | dd of=other.raw bs=1 seek=$((9 * 1048576)) conv=notrunc status=none
	ccsnap verify "$image" --format $format --against other.raw
	expect_exit 1
	expect_one_line 'differs from other.raw at offset 5242887$'

	# Longer, shorter.
	cp disk.raw other.raw && truncate -s +1M other.raw
	ccsnap verify "$image" --format $format --against other.raw
	[ "$status" != 0 ] || fail "a longer disk is equal?"
	truncate -s 1M other.raw
	ccsnap verify "$image" --format $format --against other.raw
	[ "$status" != 0 ] || fail "a shorter disk is equal?"

	# One bit of the image, anywhere.
	size=$(stat -c %s "$image")
	for at in 30 $((size / 2)) $((size - 600)); do
		cp "$image" "$image.kept"
		chmod 600 "$image"
		byte=$((0x$(xxd -s $at -l 1 -p "$image") ^ 1))
		printf '%b' "\\x$(printf %x $byte)" |
			dd of="$image" bs=1 seek=$at conv=notrunc status=none
		ccsnap verify "$image" --format $format
		expect_exit 1 4
		expect_one_line "differ at offset $((at / 1048576 * 1048576)) or up to"
		mv "$image.kept" "$image"
	done
done

# A manifest by name; none at all; one that is damaged.
create named disk.raw
manifest=store/named.manifest.json
cp "$image" elsewhere.qcow2
ccsnap verify elsewhere.qcow2 --manifest "$manifest"
expect_exit 0
head -c 100 "$manifest" >broken.json
ccsnap verify elsewhere.qcow2 --manifest broken.json
expect_exit 1 4
expect_one_line
echo '{"schema": "ccsnap.manifest/1"}' >broken.json
ccsnap verify elsewhere.qcow2 --manifest broken.json
expect_exit 1 4
ccsnap verify nosuch.qcow2
expect_exit 1 4
expect_one_line nosuch.qcow2

# Against a disk of another format.
qemu-img convert -f raw -O vmdk disk.raw disk.vmdk
ccsnap verify "$image" --against disk.vmdk --source-format vmdk
expect_exit 0
