#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An empty disk of 16 or 64 TiB is a small file, quickly made.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq

# Larger than ext4's largest file: on tmpfs where there is one.
place=.
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ]; then
	place=$(mktemp -d /dev/shm/ccsnap-test.XXXXXX)
	at_exit rm -rf "$place"
fi

for tib in 16 64; do
	truncate -s ${tib}T "$place/huge.raw" 2>/dev/null ||
		skip "no file of $tib TiB to be had here"
	create huge "$place/huge.raw"
	[ "$(virtual_size "$image" qcow2)" = $((tib << 40)) ] || fail "wrong virtual size"
	[ "$(stat -c %s "$image")" -lt $((1024 * 1024 * tib / 16)) ] || fail "$(ls -l "$image")"
	qemu-img check -q -f qcow2 "$image" || fail "qemu-img check"
	rm -rf store
done

# A few bytes at far ends are there, and only they take room.
printf begin | dd of="$place/huge.raw" conv=notrunc status=none
printf end | dd of="$place/huge.raw" bs=1M seek=$((63 << 20)) conv=notrunc status=none
create far "$place/huge.raw"
qemu-io -r -f qcow2 -c "read -v $((63 << 40)) 512" "$image" | grep -q 'end' || fail "end is lost"
qemu-io -r -f qcow2 -c "read -v 0 512" "$image" | grep -q 'begin' || fail "begin is lost"
qemu-img check -q -f qcow2 "$image" || fail "qemu-img check"

# What 4 KiB clusters cannot hold is refused before anything is done.
rm -rf store && mkdir store
ccsnap create small --source "$place/huge.raw" --to folder:store --cluster-size 4K
expect_exit 4
expect_one_line '8 TiB|cluster'
expect_empty store
