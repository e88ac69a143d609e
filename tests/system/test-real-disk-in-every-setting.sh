#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk of real files, in each format, codec, cluster size and number of threads: sound,
# identical for QEMU and for our own decoder, and the same bytes for any threads.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img

mib=300 sizes=(64K)
if is_full; then
	mib=2300 sizes=(4K 64K 2M)
fi
[ "$(df -m --output=avail . | tail -n 1)" -gt $((mib * 6)) ] || skip "needs $((mib * 6)) MiB here"
make_disk disk.raw $mib

every_thread_count() { # FORMAT OPTION...
	local threads first=

	for threads in 1 2 3 8; do
		rm -rf store
		create real disk.raw --format "$1" --threads $threads "${@:2}"
		[ -z "$first" ] || cmp "$first" "$image" || fail "$threads threads, other bytes"
		[ -n "$first" ] || { first=first.image && cp --sparse=always "$image" $first; }
	done
	expect_image_equals "$image" "$1" disk.raw
	[ "$1" = raw ] || expect_decoded_equals "$image" disk.raw
	[ "$(report .image.sha256)" = "$(sha256sum "$image" | cut -d' ' -f1)" ] || fail sha256
	rm -rf store first.image
}

every_thread_count raw
for size in "${sizes[@]}"; do
	for compression in zstd zlib none; do
		every_thread_count qcow2 --compression $compression --cluster-size $size
	done
done
