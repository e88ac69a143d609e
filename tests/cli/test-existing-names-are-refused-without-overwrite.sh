#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is there stays, unless --overwrite says otherwise; then it is there until the
# new one is whole.
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img

head -c 1M /dev/urandom >one.raw
head -c 2M /dev/urandom >two.raw
create same one.raw
cp -a store before

ccsnap create same --source two.raw --to folder:store
expect_exit 4
expect_one_line 'overwrite'
diff -r store before || fail "the store changed"

# The same name in another format would be two images of one name.
ccsnap create same --source two.raw --to folder:store --format raw
expect_exit 0 4

ccsnap create same --source nosuch.raw --to folder:store --overwrite
[ "$status" != 0 ] || fail "captured nothing"
expect_identical "$image" before/"$(basename "$image")"

create same two.raw --overwrite
expect_image_equals "$image" qcow2 two.raw
ccsnap list --to folder:store
expect_stdout same

# A plain file as output.
ccsnap create --source one.raw --output out.qcow2
expect_exit 0
cp out.qcow2 kept
ccsnap create --source two.raw --output out.qcow2
expect_exit 4
expect_one_line 'overwrite'
expect_identical out.qcow2 kept
ccsnap create --source two.raw --output out.qcow2 --overwrite
expect_exit 0
expect_image_equals out.qcow2 qcow2 two.raw
