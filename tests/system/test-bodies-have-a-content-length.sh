#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image is sent with its length, never in chunks, and to servers that know no
# Expect: 100-continue, too; disk and container format are what was written.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
requires qemu-img
as_ordinary_user
sizes=(0 1 511 65535 65536 1048576 3145729)
! is_full || sizes+=(2147483648 4294967297)

fake_service 'put no-chunks' 'put#3- silent-expect'
count=0
for size in "${sizes[@]}"; do
	rm -f disk.raw
	truncate -s "$size" disk.raw
	[ "$size" -gt 4000000 ] || head -c "$size" /dev/urandom >disk.raw
	upload disk.raw --overwrite
	expect_uploaded
	expect_report ".upload | .sent_bytes == $size and .attempts == 1"
	count=$((count + 1))
	expect_requests put 1 ".nth == $count and .body_bytes == $size and
		.headers[\"Content-Length\"] == \"$size\" and .headers[\"Transfer-Encoding\"] == null and
		.headers[\"Content-Type\"] == \"application/octet-stream\""
done
qemu-img create -q -f qcow2 disk.qcow2 3M
chmod 644 disk.qcow2
upload disk.qcow2 packed
expect_uploaded
[ "$(fake_images '[.images[] | "\(.name) \(.disk_format) \(.container_format)"] | join(", ")')" = \
	"disk raw bare, packed qcow2 bare" ] || fail "formats: $(fake_images .)"
