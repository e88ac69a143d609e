#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk of zeros, stored or not, is a tiny image that reads as zeros, to its very end.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq

head -c 32M /dev/zero >stored-zeros.raw
truncate -s 32M holes.raw
head -c 1M /dev/urandom >ends-in-a-hole.raw
truncate -s 32M ends-in-a-hole.raw
(truncate -s 31M begins-with-a-hole.raw && head -c 1000 /dev/urandom >>begins-with-a-hole.raw)

for disk in stored-zeros holes ends-in-a-hole begins-with-a-hole; do
	pad_to_sectors $disk.raw expected.raw
	for format in qcow2 raw; do
		create $disk $disk.raw --format $format
		expect_image_equals "$image" $format expected.raw
		expect_report ".image.sha256 == \"$(sha256sum "$image" | cut -d' ' -f1)\""
		[ "$(du -k "$image" | cut -f1)" -le 1500 ] || fail "$disk: $(du -k "$image")"
		rm -rf store
	done
done

create zeros stored-zeros.raw
expect_report '.capture.data_bytes == 0'
create holes holes.raw
expect_report '.capture.bytes_read == 0'
