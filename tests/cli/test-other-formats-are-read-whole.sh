#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sources of each format that can be named become images equal to what QEMU reads.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq mke2fs

make_disk disk.raw 8
for format in qcow2 vmdk vdi vhdx; do
	qemu-img convert -f raw -O $format disk.raw source.$format
	qemu-img convert -f $format -O raw source.$format expected.raw
	for threads in 1 2; do
		create other source.$format --source-format $format --threads $threads
		expect_image_equals "$image" qcow2 expected.raw
		expect_report ".source.format == \"$format\""
		rm -rf store
	done
	create other source.$format --source-format $format --format raw
	expect_image_equals "$image" raw expected.raw
	rm -rf store
done

# Packed either way.
for compression in zstd zlib; do
	qemu-img convert -c -f raw -O qcow2 -o compression_type=$compression disk.raw packed.qcow2
	create packed packed.qcow2 --source-format qcow2
	expect_image_equals "$image" qcow2 disk.raw
	rm -rf store
done

# Holes in the source are not read.
truncate -s 1G empty.raw
qemu-img convert -f raw -O qcow2 empty.raw empty.qcow2
create empty empty.qcow2 --source-format qcow2
expect_report '.capture.bytes_read == 0'
