#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# verify --to takes an id or name of a store, fetches it, and proves what it proves of a file.
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img

make_mixed_disk disk.raw 16
create a disk.raw
create b disk.raw --format raw
id=$(jq -r .id store/a.manifest.json)

for name in a b "$id"; do
	ccsnap verify "$name" --to folder:store
	expect_exit 0
	expect_stdout 'all of 16 MiB can be read, the store has it as it was stored \(sha512\)$'
	ccsnap verify "$name" --to folder:store --against disk.raw
	expect_exit 0
	expect_stdout 'identical to disk.raw$'
done
expect_stdout "^a \($id\): "
ccsnap verify a --to folder:store --manifest store/a.manifest.json --quiet
expect_exit 0
[ ! -s "$out" ] || fail "not quiet"
ccsnap verify a --to folder:store --manifest store/b.manifest.json
expect_exit 1
expect_one_line 'a is [0-9]+ bytes long, its manifest says 16777216'

cp disk.raw other.raw
printf X | dd of=other.raw bs=1 seek=5000000 conv=notrunc status=none
ccsnap verify a --to folder:store --against other.raw
expect_exit 1
expect_one_line '^ccsnap: a differs from other.raw at offset 5000000$'

# What ccsnap noted itself counts, too.
jq '.properties.ccsnap_sha256 = .sha256' store/a.manifest.json >new && cat new >store/a.manifest.json
ccsnap verify a --to folder:store
expect_exit 0
expect_stdout 'it is what ccsnap made \(sha256\)'
jq '.properties.ccsnap_sha256 = .sha512[0:64]' store/a.manifest.json >new
cat new >store/a.manifest.json
ccsnap verify a --to folder:store
expect_exit 1
expect_one_line 'not the image that ccsnap made'

# Damaged at the store; no image of ours at all; nothing there.
printf X | dd of=store/b.raw bs=1 seek=3000000 conv=notrunc status=none
ccsnap verify b --to folder:store
expect_exit 1
expect_one_line 'begins to differ at offset 2097152 or up to'
jq '.format = "vdi"' store/a.manifest.json >new && cat new >store/a.manifest.json
ccsnap verify a --to folder:store
expect_exit 1 4
expect_one_line
ccsnap verify nosuch --to folder:store
expect_exit 4
expect_one_line 'no image nosuch'

# What came is kept where it was asked to be, without a name.
mkdir work
ccsnap verify b --to folder:store --work-dir nosuch
expect_exit 4
expect_one_line nosuch
expect_empty work
