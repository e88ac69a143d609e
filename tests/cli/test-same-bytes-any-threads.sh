#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The image's bytes depend on neither the number of threads nor the run.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs

make_disk disk.raw 16
make_mixed_disk mixed.raw 24

capture_all() { # DISK OPTION...
	local threads first=

	for threads in 1 2 3 8 1; do
		rm -rf store
		create same "$1" --threads $threads "${@:2}"
		[ -n "$first" ] || { first=yes && cp "$image" first && continue; }
		expect_identical first "$image"
	done
}

for disk in disk.raw mixed.raw; do
	capture_all $disk
	capture_all $disk --compression zlib
	capture_all $disk --cluster-size 4K
done
capture_all mixed.raw --compression none
capture_all mixed.raw --format raw
