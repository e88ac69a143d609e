#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A source of any length becomes a disk of whole sectors: zeros behind its end, said so.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq

formats=("qcow2 zstd" "qcow2 zlib" "qcow2 none" "raw none")
for bytes in 0 1 511 512 513 65535 65536 65537 2097151 2097153; do
	head -c $bytes /dev/urandom >source.raw
	pad_to_sectors source.raw expected.raw
	for pair in "${formats[@]}"; do
		read -r format compression <<<"$pair"
		create odd source.raw --format "$format" --compression "$compression"
		padding=$(((512 - bytes % 512) % 512))
		expect_report ".source.padding_bytes == $padding"
		[ $padding = 0 ] || expect_report '.warnings | length > 0'
		[ $format = raw ] || expect_decoded_equals "$image" expected.raw
		[ $format = qcow2 ] || expect_identical "$image" expected.raw
		expect_image_equals "$image" $format expected.raw
		rm -rf store
	done
done
