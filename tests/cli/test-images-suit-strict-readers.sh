#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What image services check: header of 112 bytes, the compression bit and nothing else,
# length a multiple of 512, no backing or data file; readable without zstd when zlib
# was chosen.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq mke2fs xxd

make_disk disk.raw 8
field() { # OFFSET LENGTH
	echo $((0x$(xxd -s "$1" -l "$2" -p "$image")))
}
for compression in zstd zlib none; do
	for cluster in 4K 64K 2M; do
		rm -rf store
		create strict disk.raw --compression $compression --cluster-size $cluster
		bit=0 type=0
		[ $compression != zstd ] || bit=8 type=1
		[ "$(field 4 4)" = 3 ] || fail "version"
		[ "$(field 8 8)" = 0 ] || fail "backing file"
		[ "$(field 72 8)" = $bit ] || fail "incompatible features $(field 72 8)"
		[ "$(field 80 8)" = 0 ] && [ "$(field 88 8)" = 0 ] || fail "feature bits"
		[ "$(field 96 4)" = 4 ] || fail "refcount order"
		[ "$(field 100 4)" = 112 ] || fail "header length"
		[ "$(field 104 1)" = $type ] || fail "compression type"
		[ $(($(stat -c %s "$image") % 512)) = 0 ] || fail "length"
		qemu-img check -q -f qcow2 "$image" || fail "qemu-img check"
	done
done
