#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A destination that cannot be is refused before anything is read.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

truncate -s 64M disk.raw
echo text >file
refused() {
	ccsnap "$@" --report report.json
	expect_exit 1 4
	expect_one_line
	expect_report '.capture == null or .capture.bytes_read == 0 or .capture.bytes_read == null'
	rm -f report.json
}

refused create a --source disk.raw --output nosuch/out.qcow2
refused create a --source disk.raw --output file/out.qcow2
refused create a --source disk.raw --to folder:nosuch
refused create a --source disk.raw --to folder:file
refused create a --source disk.raw --to folder:file/store
refused create a --source disk.raw --to folder:/proc/nosuch/store
expect_gone nosuch
[ "$(cat file)" = text ] || fail "file changed"

for to in store folder folder: nosuch:x ftp://localhost:1/; do
	ccsnap create a --source disk.raw --to "$to"
	expect_exit 2
	expect_one_line 'to'
	expect_empty store
done
