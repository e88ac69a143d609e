#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sector size of a source is in the report, its table stays readable at that size,
# and --sector-size refuses a disk with another.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires losetup jq sgdisk qemu-img

truncate -s 64M disk.raw
attach_loop disk.raw --sector-size 4096
[ "$(blockdev --getss "$loop")" = 4096 ] || skip "loop devices of 4096-byte sectors do not work here"
sgdisk -n 1:256:0 "$loop" >/dev/null
blockdev --flushbufs "$loop"
table=$(sgdisk -p "$loop" | grep -E 'Disk identifier|^ +1 ')

create a "$loop" --format raw
expect_report '.source.logical_sector_size == 4096'
cp "$image" back.raw
attach_loop back.raw --sector-size 4096
[ "$(sgdisk -p "$loop" | grep -E 'Disk identifier|^ +1 ')" = "$table" ] || fail "the table is lost"

mkdir -p store2
ccsnap create b --source "$loop" --to folder:store2 --sector-size 512 --report report.json
expect_exit 4
expect_stderr '4096-byte.*--sector-size asks for 512'
expect_empty store2
ccsnap create b --source "$loop" --to folder:store2 --sector-size 4096
expect_exit 0
truncate -s 8M plain.raw
ccsnap create c --source plain.raw --to folder:store2 --sector-size 4096
expect_exit 4
