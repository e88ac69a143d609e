#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A reader that goes away early ("| head -1") costs no image and no hang.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img

make_disk disk.raw 16
for style in json none bar; do
	rm -f out.qcow2
	set +e
	timeout 60 "$CCSNAP" create --source disk.raw --output out.qcow2 --progress $style \
		--verbose 2>&1 </dev/null | head -n 1 >first
	codes=("${PIPESTATUS[@]}")
	set -e
	case ${codes[0]} in
	0 | 3) expect_image_equals out.qcow2 qcow2 disk.raw ;;
	124 | 137) fail "hangs" ;;
	*) expect_gone out.qcow2 ;;
	esac
done
expect_empty "$TMPDIR"
