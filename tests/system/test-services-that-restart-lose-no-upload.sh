#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Glance or Keystone that ends in the middle of an upload and comes back costs time, but
# no upload, and leaves no second image; one that stays away is told, and what is left there
# goes with the next run.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/openstack.sh"
CCSNAP_OPENSTACK='' openstack_bed
head -c 6M /dev/urandom >disk.raw
as_ordinary_user
as_member

# The upload of disk.raw takes this long, more or less.
in_four_seconds=(--limit-rate 1500K)

begin() { # NAME
	start_upload disk.raw "$1" "${in_four_seconds[@]}"
	wait_until 20 is_saving "$1" || fail "never began"
	sleep 1
}

arrives_once() { # NAME...
	end_upload
	expect_uploaded
	expect_images "$@"
	expect_image_data "$(report .upload.image_id)" disk.raw
}

begin one
openstack_down glance
openstack_up
arrives_once one
expect_report '.upload.attempts >= 2 and .upload.sent_bytes > 6291456'

begin two
openstack_down glance --kill
openstack_up
end_upload
expect_uploaded
expect_images one two

# Keystone is needed for what comes after the data.
begin three
openstack_down keystone
sleep 4
openstack_up
end_upload
expect_uploaded
expect_images one two three

# Both are away for good: nothing can be deleted, and that is said.
begin four
openstack_down
kill -TERM "$pid"
end_upload
expect_exit 143
expect_report '.upload | .cleanup == "failed" and .image_id != null'
left=$(report .upload.image_id)
expect_stderr "$left"
openstack_up
image_show "$left" >/dev/null || fail "there was nothing to be deleted"
upload disk.raw five
expect_uploaded
expect_images one two three five
expect_no_notes
