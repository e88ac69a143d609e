#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A tree of all that is awkward to copy, mounted from its image, equals the source in
# every attribute.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires python3 setfacl

many=()
if is_full; then many=(--many); fi
changeable() {
	chattr -R -ia "$T/src/flags"
}
at_exit changeable
python3 "$top/tests/lib/make-awkward-tree" src "${many[@]}"

capture name src
[ "$status" = 0 ] || expect_report '.tree.attributes | length > 0'
attach_loop disk.raw --offset "$(partition_offset disk.raw 1)" --read-only
mkdir mnt
mount -o ro "$loop" mnt
at_exit umount "$T/mnt"
python3 "$top/tests/lib/compare-trees" src mnt || fail "differences"
umount mnt

# What an ordinary user can read of it arrives as well.
changeable
chmod -R a+rX src
rm -r store
mkdir store
as_ordinary_user
capture name src
[ "$status" = 0 ] || expect_report '.tree.attributes | length > 0'
attach_loop disk.raw --offset "$(partition_offset disk.raw 1)" --read-only
mount -o ro "$loop" mnt
setpriv --reuid=65534 --regid=65534 --clear-groups \
	/usr/bin/python3 - src mnt <"$top/tests/lib/compare-trees" || fail "differences"
