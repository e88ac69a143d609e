#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 1 GiB goes to a real Glance and comes back as the same bytes, proven by SHA-512 on both
# ways, directly and by an import, in little memory.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/openstack.sh"
requires qemu-img
openstack_bed
make_mixed_disk disk.raw 1024
as_ordinary_user
as_member
size=$((1 << 30))
sha512=$(sha512sum disk.raw | cut -d' ' -f1)

# Run in the background and look at its memory until it ends; sets $memory (KiB, the most).
watched() { # COMMAND...
	local now

	memory=0
	last_command=$*
	"$@" >"$out" 2>"$err" </dev/null &
	pid=$!
	until has_ended $pid; do
		now=$(awk '/^VmHWM/ { print $2 }' /proc/$pid/status 2>/dev/null) || now=
		[ "${now:-0}" -le $memory ] || memory=$now
		sleep 0.1
	done
	status=0
	wait $pid || status=$?
}

flat() {
	[ -n "${ASAN_OPTIONS:-}" ] || [ $memory -lt 32768 ] || fail "$memory KiB of memory"
}

watched "$CCSNAP" upload disk.raw big --to=glance --report report.json
expect_uploaded
flat
expect_report ".upload | .verified_by == \"sha512\" and .attempts == 1 and .sent_bytes == $size"
expect_report ".final_size_bytes == $size and .image.sha512 == \"$sha512\""
id=$(report .upload.image_id)
expect_image "$id" ".size == $size and .os_hash_value == \"$sha512\" and .min_disk == 1 and
	.disk_format == \"raw\" and .container_format == \"bare\" and
	.ccsnap_sha256 == \"$(report .image.sha256)\""

ccsnap verify "$id" --to=glance
expect_exit 0

watched "$CCSNAP" fetch big --to=glance --output back.raw
expect_exit 0
flat
[ "$(sha512sum back.raw | cut -d' ' -f1)" = "$sha512" ] || fail "other bytes came back"
rm back.raw

# A sparse file of 10 GiB takes no more memory.
if is_full; then
	rm disk.raw
	truncate -s 10G disk.raw
	watched "$CCSNAP" upload disk.raw big --to=glance --report report.json --overwrite
	expect_uploaded
	flat
fi

# What was compressed arrives as it is, also when it is staged and imported; and the disk is
# unpacked on the way back.
make_mixed_disk small.raw 48
qemu-img convert -c -f raw -O qcow2 small.raw small.qcow2
chmod 644 small.qcow2
for method in direct import; do
	upload small.qcow2 packed --overwrite --upload-method $method
	expect_uploaded
	expect_report '.upload.verified_by == "sha512"'
	expect_image_data "$(report .upload.image_id)" small.qcow2
	expect_images big packed
	expect_empty "$bed/glance/staging"
done
install -m 666 /dev/null target.raw
truncate -s 64M target.raw
ccsnap fetch packed --to=glance --to-disk target.raw --yes
expect_exit 0
head -c 48M target.raw | cmp - small.raw || fail "another disk"
ccsnap verify packed --to=glance --against small.raw
expect_exit 0
