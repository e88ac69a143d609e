#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch goes on where the connection broke, proves what it got, and leaves no file that is
# not whole.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
requires qemu-img
as_ordinary_user
head -c 8M /dev/urandom >disk.raw
truncate -s 64M large.raw

# with RULE...: an image of disk.raw, whose download then misbehaves so; sets $id.
with() {
	fake_service "$@"
	upload "$T/disk.raw"
	expect_exit 0
	id=$(report .upload.image_id)
}

fetch() {
	ccsnap fetch "$id" --to=glance --output got.raw
}

whole() { # DOWNLOADS RULE...
	with "${@:2}"
	fetch
	expect_exit 0
	expect_identical got.raw "$T/disk.raw"
	expect_requests download "$1"
}

resumed() {
	whole 3 'download#1 cut=30%' 'download#2 cut=50%'
	expect_requests download 2 '.headers.Range | . != null and startswith("bytes=")'
}

nothing_stays() { # EXIT RULE...
	with "${@:2}"
	fetch
	expect_exit "$1"
	expect_gone got.raw
	[ -z "$(find . -name '*got*')" ] || fail "left: $(ls -A)"
}

interrupted() {
	fake_service
	upload "$T/large.raw"
	# libcurl takes the first megabytes without a limit.
	"$CCSNAP" fetch large --to=glance --output got.raw --limit-rate 2M >"$out" 2>"$err" </dev/null &
	pid=$!
	sleep 2
	kill -TERM $pid
	end_upload
	expect_exit 143
	expect_gone got.raw
	[ -z "$(find . -name '*got*')" ] || fail "left: $(ls -A)"
}

beside whole whole 1
beside resumed resumed
beside busy whole 2 'download#1 status=503'
beside no-range whole 2 'download#1 cut=4000000' 'download#2 no-range'
beside flipped nothing_stays 1 'download flip'
beside gone nothing_stays 4 'download status=404'
beside no-content nothing_stays 1 'download status=204'
beside interrupted interrupted
all_hold

# By name, to a disk, from a folder.
fake_service
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
chmod 644 disk.qcow2
upload disk.qcow2
expect_uploaded
install -m 666 /dev/null target.raw
truncate -s 16M target.raw
ccsnap fetch disk --to=glance --to-disk target.raw --yes
expect_exit 0
head -c 8M target.raw | cmp - disk.raw || fail "the disk holds something else"
ccsnap fetch disk --to=glance --output got.qcow2
expect_exit 0
expect_identical got.qcow2 disk.qcow2
ccsnap fetch disk --to=glance --output got.qcow2
expect_exit 4
ccsnap fetch disk --to=glance --output got.qcow2 --overwrite
expect_exit 0
ccsnap fetch nothing --to=glance --output none.qcow2
expect_exit 4
expect_one_line nothing
expect_gone none.qcow2
truncate -s 4M target.raw
ccsnap fetch disk --to=glance --to-disk target.raw --yes
expect_exit 4

mkdir -m 777 shelf
run timeout 60 "$CCSNAP" create a --source disk.raw --to "folder:$T/shelf"
expect_exit 0
ccsnap fetch a --to "folder:$T/shelf" --output back.qcow2
expect_exit 0
expect_image_equals back.qcow2 qcow2 disk.raw
