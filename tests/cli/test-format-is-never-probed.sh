#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A raw source that looks like something else is taken as raw, with a warning;
# no byte of a file that it names gets out.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img jq

head -c 4096 /dev/urandom >secret
cp secret victim
truncate -s 1M victim
qemu-img create -q -f qcow2 -b "$PWD/victim" -F raw evil.img 1M
pad_to_sectors evil.img expected.raw

ccsnap create evil --source evil.img --to folder:store --report report.json
expect_exit 0
expect_stderr 'qcow2'
expect_report '.warnings | length > 0'
expect_report '.source.format == "raw"'
image=$(report .image.path)
expect_image_equals "$image" qcow2 expected.raw

# Every other magic likewise.
for format in vmdk vdi vhdx vpc; do
	qemu-img create -q -f $format other.img 1M
	pad_to_sectors other.img expected.raw
	rm -rf store
	create other other.img
	expect_image_equals "$image" qcow2 expected.raw
done

# And what is no qcow2 is not read as something else when qcow2 was said.
truncate -s 1M plain.raw
mkdir store2
ccsnap create plain --source plain.raw --source-format qcow2 --to folder:store2
expect_exit 1 4
expect_one_line
expect_empty store2
