#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A source that gives EIO in mid-read fails the run with the offset, and nothing is left.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires jq

head -c 16M /dev/urandom >disk.raw
# Every read that touches the sector at 9 MiB fails.
serve_file disk.raw file '[ $4 -gt 9437184 ] || [ $(($4 + $3)) -le 9437184 ] ||
	{ echo "EIO bad sector" >&2 && exit 1; }'

for threads in 1 2; do
	ccsnap create a --source file --to folder:store --threads $threads --report report.json
	expect_exit 1
	expect_one_line '94[0-9]{5}|9437184'
	expect_report '.status == "failed" and (.error | tostring | test("Input/output error"))'
	expect_empty store
done
ccsnap create --source file --output out.qcow2
expect_exit 1
expect_gone out.qcow2
