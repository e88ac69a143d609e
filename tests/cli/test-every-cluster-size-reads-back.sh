#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each cluster size from 4 KiB to 2 MiB gives a sound image that equals its disk.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq mke2fs

make_disk disk.raw 16
make_mixed_disk mixed.raw 11 # ends within a cluster of the larger sizes
for size in 4K 8K 64K 256K 1M 2M; do
	for compression in zstd zlib none; do
		for disk in disk.raw mixed.raw; do
			create clusters $disk --cluster-size $size --compression $compression
			expect_report ".image.cluster_size == $(numfmt --from=iec $size)"
			expect_image_equals "$image" qcow2 $disk
			expect_decoded_equals "$image" $disk
			rm -rf store
		done
	done
done

# Outside of that: a usage error with the accepted range.
mkdir store
for size in 512 2K 4M 5000 0; do
	ccsnap create bad --source disk.raw --to folder:store --cluster-size $size
	expect_exit 2
	expect_one_line 'cluster-size'
	expect_empty store
done
