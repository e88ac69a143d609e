#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What somebody writes to a block device, or to the partition that is captured, while it
# is read fails the run; the file below a loop device is no place for the image.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires losetup jq qemu-img sgdisk partx

head -c 24M /dev/urandom >disk.raw
attach_loop disk.raw

capture_while() { # EXPECTED-STATUS SOURCE COMMAND...
	local wanted=$1 source=$2

	: >progress
	rm -rf store report.json
	mkdir store
	"$CCSNAP" create a --source "$source" --to folder:store "${slow[@]}" --threads 1 \
		--progress json --report report.json >progress 2>"$err" </dev/null &
	pid=$!
	wait_until 20 test -s progress || fail "no progress"
	"${@:3}"
	status=0
	wait $pid || status=$?
	last_command="create from $source, while: ${*:3}"
	expect_exit "$wanted"
	[ "$wanted" = 0 ] || expect_empty store
}
write_direct() { # DEVICE
	dd if=/dev/zero of="$1" bs=4096 count=1 seek=100 oflag=direct conv=notrunc status=none
}
write_buffered() { # DEVICE
	dd if=/dev/zero of="$1" bs=4096 count=1 seek=200 conv=notrunc status=none
}
only_read() {
	dd if="$1" of=/dev/null bs=1M count=4 iflag=direct status=none
}

capture_while 0 "$loop" only_read "$loop"
for way in write_direct write_buffered; do
	capture_while 1 "$loop" $way "$loop"
	expect_one_line 'changed while it was read'
	expect_report '.status == "failed"'
done

cp disk.raw before.raw
ccsnap create --source "$loop" --output disk.raw --overwrite
expect_exit 2 4
expect_one_line
expect_identical disk.raw before.raw

truncate -s 40M parted.raw
sgdisk -n 1:2048:+16M -n 2:40960:0 parted.raw >/dev/null
attach_loop parted.raw
partx -a "$loop" || skip "no partitions on loop devices here"
wait_until 3 test -b "${loop}p2" || skip "no partitions on loop devices here"
at_exit partx -d "$loop"
dd if=disk.raw of="${loop}p1" bs=1M count=16 oflag=direct status=none
capture_while 0 "${loop}p1" write_direct "${loop}p2"
capture_while 1 "${loop}p1" write_direct "${loop}p1"
expect_one_line 'changed while it was read'
capture_while 1 "$loop" write_direct "${loop}p2"
expect_one_line 'changed while it was read'
ccsnap create --source "${loop}p1" --output parted.raw --overwrite
expect_exit 2 4
expect_one_line
