#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch writes an image of the store to a file: whole and proven, or not at all.
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img

make_mixed_disk disk.raw 16
create a disk.raw
create b disk.raw --format raw
id=$(jq -r .id store/a.manifest.json)
sha=$(sha256sum store/a.qcow2 | cut -d' ' -f1)

# By name and id, in any case; NAME and the suffix of its format, here.
ccsnap fetch a --to folder:store
expect_exit 0
expect_identical a.qcow2 store/a.qcow2
expect_stdout 'a\.qcow2$'
expect_stdout "sha256 $sha"
expect_stdout 'verified by sha512'
[ "$(stat -c %a a.qcow2)" = 600 ] || fail "not private"
ccsnap fetch "${id^^}" --to folder:store --output by-id.qcow2
expect_exit 0
expect_identical by-id.qcow2 store/a.qcow2
ccsnap fetch b --to folder:store
expect_exit 0
expect_identical b.raw disk.raw
[ "$(stat -c %b b.raw)" -lt $((10 * 2048)) ] || fail "holes are filled"

ccsnap fetch b --to folder:store --output c.raw --json
expect_exit 0
jq -e --arg sha "$(sha256sum disk.raw | cut -d' ' -f1)" '.path == "c.raw" and .sha256 == $sha and
	.size_bytes == 16777216 and .verified_by == "sha512" and .name == "b"' "$out" >/dev/null ||
	fail "wrong result"

# What is there stays, unless it may be replaced.
echo mine >a.qcow2
ccsnap fetch a --to folder:store
expect_exit 4
expect_one_line 'a.qcow2 exists; use --overwrite'
[ "$(cat a.qcow2)" = mine ] || fail "replaced"
ccsnap fetch a --to folder:store --overwrite --quiet
expect_exit 0
[ ! -s "$out" ] || fail "not quiet"
expect_identical a.qcow2 store/a.qcow2
mkfifo fifo
ccsnap fetch a --to folder:store --output fifo --overwrite
expect_exit 4
[ -p fifo ] || fail "replaced"
ccsnap fetch a --to folder:store --output store/nosuch/a.qcow2
expect_exit 4
expect_one_line
ccsnap fetch nosuch --to folder:store
expect_exit 4
expect_one_line 'no image nosuch'
ccsnap fetch a --to folder:store --output x --to-disk y
expect_exit 2
ccsnap fetch a --to file:store/a.qcow2 --output x
expect_exit 2
expect_one_line 'accepted: folder:PATH, glance'
expect_gone x

# Where the image's name comes from elsewhere, it makes no file that a program obeys, or
# that is not seen.
renamed() { # NAME FORMAT
	rm -f store/*
	create b disk.raw --format raw
	jq --arg name "$1" --arg format "$2" '.name = $name | .format = $format
		| .file = $name + "." + $format' store/b.manifest.json >"store/$1.manifest.json"
	cp store/b.raw "store/$1.$2"
	rm store/b.*
	mkdir here
	cd here || exit 2
	ccsnap fetch "$1" --to folder:../store
	cd ..
}
for pair in "clouds yaml" ".bash_profile raw" "a"$'\e'"[2J raw" "a"$'\u202e'"b raw"; do
	renamed "${pair% *}" "${pair##* }"
	expect_exit 4
	expect_one_line 'say --output$'
	expect_empty here
	rmdir here
done
renamed clouds.yaml raw
expect_exit 0
expect_identical here/clouds.yaml.raw disk.raw
rm -r here

ccsnap fetch clouds.yaml --to folder:store --output lines.raw --json --progress json
expect_exit 0
tail -n 1 "$out" | jq -e '.path == "lines.raw"' >/dev/null || fail "the result is no line"
rm store/*
create a disk.raw
create b disk.raw --format raw

# A damaged image is no image; a signal leaves nothing.
mkdir there
printf X | dd of=store/a.qcow2 bs=1 seek=3000000 conv=notrunc status=none
ccsnap fetch a --to folder:store --output there/a.qcow2
expect_exit 1
expect_one_line 'begins to differ at offset 2097152 or up to'
expect_empty there

truncate -s 2G large.raw
create large large.raw --format raw
: >"$out"
env --default-signal "$CCSNAP" fetch large --to folder:store --output there/large.raw --progress json \
	>"$out" 2>"$err" </dev/null &
wait_until 10 test -s "$out" || fail "no progress"
kill -TERM $!
status=0
wait $! || status=$?
expect_exit 143
expect_empty there
