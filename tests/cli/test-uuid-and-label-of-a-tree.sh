#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# UUID and label: of the tree's fstab, or derived from the image's name; LABEL= overrides.
. "$(dirname "$0")/../lib/lib.sh"

header() { # NAME
	dumpe2fs -h "$fs" 2>/dev/null | sed -n "s/^$1:[[:space:]]*//p"
}

mkdir -p src/etc
uuid=6fe2c2fb-1b5f-4f5c-9d3e-1c3b6a2d4e5f
capture name src
derived=$(header 'Filesystem UUID')
rm store/*
capture name src
[ "$(header 'Filesystem UUID')" = "$derived" ] || fail "not the same"
capture another src
[ "$(header 'Filesystem UUID')" != "$derived" ] || fail "the same for another name"

echo "UUID=$uuid / ext4 defaults 0 1" >src/etc/fstab
capture name src
[ "$(header 'Filesystem UUID')" = $uuid ] || fail "not fstab's"
expect_report ".tree.uuid == \"$uuid\""
echo 'LABEL=cloudimg-rootfs / ext4 defaults 0 1' >src/etc/fstab
capture name src
[ "$(header 'Filesystem volume name')" = cloudimg-rootfs ] || fail "not fstab's"
LABEL=mine capture name src
[ "$(header 'Filesystem volume name')" = mine ] || fail "not LABEL"
LABEL=$(printf 'x%.0s' {1..17}) ccsnap create long --source src --to folder:store
expect_exit 2
