#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The report, the image and what is read are three files; options that make two of them
# one are refused, and the file stays what it was.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 1M /dev/urandom >disk.raw
sum=$(sha256sum <disk.raw)
for args in "--output out.qcow2 --report out.qcow2" "--output out.qcow2 --report ./out.qcow2" \
	"--output out.qcow2 --report disk.raw" "--output disk.raw --overwrite"; do
	# shellcheck disable=SC2086
	ccsnap create a --source disk.raw $args
	expect_exit 1 2 4
	expect_one_line
	[ "$(sha256sum <disk.raw)" = "$sum" ] || fail "the source is gone"
	expect_gone out.qcow2
done

# Whatever ends the run, a report replaces nothing but a report: not the file that a
# refused source names, not an image of the store, not somebody's notes.
requires qemu-img
qemu-img create -q -f qcow2 -b disk.raw -F raw overlay.qcow2
create kept disk.raw
kept=$(sha256sum <"$image")
echo notes >notes.txt
for file in disk.raw overlay.qcow2 "$image" notes.txt; do
	before=$(sha256sum <"$file")
	for more in "" --dry-run; do
		# shellcheck disable=SC2086
		ccsnap create b --source overlay.qcow2 --source-format qcow2 --output out.qcow2 \
			--report "$file" $more
		expect_exit 4
		[ "$(sha256sum <"$file")" = "$before" ] || fail "$file was replaced by a report"
	done
done
[ "$(sha256sum <"$image")" = "$kept" ] || fail "the image is gone"
