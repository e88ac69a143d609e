#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Paths far longer than a socket's name may be work for every kind of source.
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img

long=$(printf 'directory-of-a-long-name-%02d/' {1..12})
mkdir -p "$long/store"
head -c 1M /dev/urandom >"$long/disk.raw"
qemu-img convert -f raw -O qcow2 "$long/disk.raw" "$long/disk.qcow2"
for format in raw qcow2; do
	TMPDIR=$T/$long ccsnap create a-$format --source "$long/disk.$format" \
		--source-format $format --to "folder:$long/store" --report report.json
	expect_exit 0
	expect_image_equals "$(report .image.path)" qcow2 "$long/disk.raw"
done
[ -z "$(find "$long" -maxdepth 1 -name '*ccsnap*')" ] || fail "debris"
