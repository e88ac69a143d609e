#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packing an image anew, any way round, leaves the disk in it as it was.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq mke2fs

make_disk disk.raw 8
create start disk.raw --compression zstd
cp "$image" zstd.qcow2

steps=("zstd.qcow2 zlib.qcow2 qcow2 zlib" "zlib.qcow2 again.qcow2 qcow2 zstd"
	"again.qcow2 plain.qcow2 qcow2 none" "plain.qcow2 disk2.raw raw none")
for step in "${steps[@]}"; do
	read -r in to format compression <<<"$step"
	ccsnap convert "$in" "$to" --source-format qcow2 --format "$format" \
		--compression "$compression" --report report.json
	expect_exit 0
	expect_image_equals "$to" "$format" disk.raw
	expect_report ".image.sha256 == \"$(sha256sum "$to" | cut -d' ' -f1)\""
done
ccsnap convert disk2.raw back.qcow2 --source-format raw
expect_exit 0
expect_identical zstd.qcow2 again.qcow2
expect_identical zstd.qcow2 back.qcow2
[ "$(stat -c %a zlib.qcow2)" = 600 ] || fail "mode $(stat -c %a zlib.qcow2)"

# What exists stays, without --overwrite; what is read is never what is written.
cp zstd.qcow2 kept
ccsnap convert zlib.qcow2 zstd.qcow2 --source-format qcow2
expect_exit 4
expect_identical zstd.qcow2 kept
ccsnap convert zlib.qcow2 zstd.qcow2 --source-format qcow2 --overwrite
expect_exit 0
expect_identical zstd.qcow2 kept
ccsnap convert zstd.qcow2 zstd.qcow2 --source-format qcow2 --compression zlib
[ "$status" != 0 ] || fail "converted onto itself"
expect_identical zstd.qcow2 kept
