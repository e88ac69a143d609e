#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The report, the image and what is read are three files; options that make two of them
# one are refused, and the file stays what it was.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 1M /dev/urandom >disk.raw
sum=$(sha256sum <disk.raw)
for args in "--output out.qcow2 --report out.qcow2" "--output out.qcow2 --report ./out.qcow2" \
	"--output out.qcow2 --report disk.raw" "--output disk.raw --overwrite"; do
	# shellcheck disable=SC2086
	ccsnap create a --source disk.raw $args
	expect_exit 1 2 4
	expect_one_line
	[ "$(sha256sum <disk.raw)" = "$sum" ] || fail "the source is gone"
	expect_gone out.qcow2
done
