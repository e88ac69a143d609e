#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The report's and the manifest's hashes are those of the finished file, byte for byte.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs

make_disk disk.raw 8
truncate -s 64M zeros.raw
(cat disk.raw && head -c 1M /dev/urandom) >ends-in-data.raw
for disk in disk zeros ends-in-data; do
	for format in qcow2 raw; do
		create $disk-$format $disk.raw --format $format
		[ "$(report .image.sha256)" = "$(sha256sum "$image" | cut -d' ' -f1)" ] || fail sha256
		[ "$(report .image.sha512)" = "$(sha512sum "$image" | cut -d' ' -f1)" ] || fail sha512
		[ "$(report .image.size_bytes)" = "$(stat -c %s "$image")" ] || fail size
	done
done

# A file that is named is treated no differently.
ccsnap create --source disk.raw --output out.qcow2 --report report.json
expect_exit 0
[ "$(report .image.sha256)" = "$(sha256sum out.qcow2 | cut -d' ' -f1)" ] || fail sha256
