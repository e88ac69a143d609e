#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# list tells each image of a store with its size and time; broken manifests are named
# and spoil no other.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 1M /dev/urandom >disk.raw
ccsnap list --to folder:nosuch
expect_exit 0 1 4
expect_gone nosuch

ccsnap list --to folder:store
expect_exit 0
create zstd disk.raw --property purpose=test
create raw disk.raw --format raw
ccsnap list --to folder:store
expect_exit 0
expect_stdout zstd
expect_stdout raw
ccsnap list --to folder:store --json
expect_exit 0
jq -e . "$out" >/dev/null || fail "no JSON"
[ "$(jq '[.. | objects | select(has("sha256"))] | length' "$out")" = 2 ] || fail "not two"
grep -q purpose "$out" || fail "no property"

for text in '' '{' '[]' 'null' '{"schema": "ccsnap.manifest/1", "name": 3}' \
	'{"schema": "ccsnap.manifest/1", "file": "../../etc/passwd"}'; do
	printf '%s' "$text" >store/broken.manifest.json
	cp store/raw.raw store/broken.raw
	ccsnap list --to folder:store
	expect_exit 0 1 3
	expect_stdout zstd
	expect_stdout raw
done
