#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without stdin, stdout or stderr, in any combination, the image is the same.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img

make_disk disk.raw 4
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
create reference disk.raw
cp "$image" reference.qcow2

args() {
	"$CCSNAP" create --source "$1" --source-format "$2" --output out.qcow2 --report report.json
}
check() {
	[ "$status" = 0 ] || fail "$1: exit $status"
	expect_identical reference.qcow2 out.qcow2
	expect_report '.status == "ok"'
	rm -f out.qcow2 report.json
}

for format in raw qcow2; do
	status=0
	args disk.$format $format <&- || status=$?
	check stdin
	args disk.$format $format >&- || status=$?
	check stdout
	args disk.$format $format 2>&- || status=$?
	check stderr
	args disk.$format $format <&- >&- 2>&- || status=$?
	check all
done

# What was asked for on stdout, and cannot get there, is no success.
refused() {
	status=0
	"$CCSNAP" "$@" >&- 2>"$err" </dev/null || status=$?
	expect_exit 4
	expect_one_line 'standard output is closed'
}
refused list --to folder:store
refused create --source disk.raw --output out.qcow2 --json
refused --version
expect_gone out.qcow2

# Output that nobody takes in.
if [ -w /dev/full ]; then
	ccsnap list --to folder:store
	expect_exit 0
	(LIMIT=20 && "$CCSNAP" create --source disk.raw --output out.qcow2 2>/dev/full) || true
	expect_identical reference.qcow2 out.qcow2
fi
