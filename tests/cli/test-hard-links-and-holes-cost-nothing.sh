#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Many names of one inode, directories with many entries, files of a TiB: all small.
. "$(dirname "$0")/../lib/lib.sh"

mkdir src src/names src/hundred
head -c 50M /dev/urandom >src/inode
for i in $(seq 100); do
	ln src/inode "src/names/l$i"
done
truncate -s 1T src/sparse
printf data | dd of=src/sparse bs=1 seek=$((1 << 39)) conv=notrunc status=none
(cd src/hundred && seq -f 'entry-with-a-longer-name-%g' 3000 | xargs touch)

capture name src
expect_report '.tree.files == 3002 and .tree.hard_links == 100'
[ "$(stat -c %s "$image")" -lt $((60 << 20)) ] || fail "the inode's data is there twice"
[ "$(look 'stat /inode' | sed -n 's/.*Links: \([0-9]*\).*/\1/p')" = 101 ] || fail "links"
[ "$(look 'stat /inode' | head -1 | cut -d' ' -f2)" = \
	"$(look 'stat /names/l100' | head -1 | cut -d' ' -f2)" ] || fail "two inodes"
[ "$(look 'stat /sparse' | sed -n 's/^User:.*Size: \([0-9]*\).*/\1/p')" = $((1 << 40)) ] || fail "size"
expect_inside /hundred/entry-with-a-longer-name-3000
look "dump -p /inode run/inode"
expect_identical run/inode src/inode

# One name excluded: the other keeps the data.
mkdir pair
echo data >pair/a
ln pair/a pair/b
capture name pair --exclude pair/a
expect_not_inside /a
expect_content /b data
