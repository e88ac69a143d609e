#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# upload takes an image as it is, and refuses one that is not what its manifest says.
. "$(dirname "$0")/../lib/lib.sh"
requires jq qemu-img

# No zeros are added to an odd one, and none are promised.
head -c 1000001 /dev/urandom >odd.raw
ccsnap upload odd.raw --to folder:store
expect_exit 0
[ ! -s "$err" ] || fail "nothing is worth a word here"
expect_identical odd.raw store/odd.raw

ccsnap upload odd.raw other --to folder:store --manifest nosuch.json
expect_exit 4
expect_one_line 'nosuch.json'
echo '{' >odd.manifest.json
ccsnap upload odd.raw other --to folder:store
expect_exit 4
expect_one_line 'odd.manifest.json'
rm odd.manifest.json

# What is advised, the command has.
echo text >text.qcow2
ccsnap upload text.qcow2 --to folder:store
expect_exit 4
expect_one_line 'not a qcow2 image.*--format'
qemu-img create -q -f qcow2 -b odd.raw -F raw overlay.qcow2
ccsnap upload overlay.qcow2 --to folder:store
expect_exit 4
expect_one_line 'allow-backing of create or convert'
