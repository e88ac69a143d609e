#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the service refuses the data at /file and offers glance-direct, the image is staged
# and imported; or when that was asked for; and never when the direct way was.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw

imported() { # OPTION...
	upload disk.raw --overwrite "$@"
	expect_uploaded
	expect_report '.upload.verified_by == "sha512"'
	expect_requests import 1
	expect_requests stage 1 '.body_bytes == 3145728'
	[ "$(fake_images '[.images[] | select(.status != "active")] | length')" = 0 ] || fail "left"
}

fake_service 'put status=403'
imported
fake_service
imported --upload-method import
expect_requests put 0
fake_service
upload disk.raw
expect_uploaded
expect_requests stage 0

fake_service 'put status=403'
upload disk.raw --upload-method direct
expect_cleaned_up_or_refused
expect_requests stage 0
expect_no_fake_images
fake_service --no-import 'put status=403'
upload disk.raw
expect_cleaned_up_or_refused
expect_stderr 403
expect_requests stage 0
fake_service --no-import
upload disk.raw --upload-method import
expect_exit 4
expect_stderr 'import'
expect_no_fake_images

# What was staged does not stay.
fake_service 'import status=400'
upload disk.raw --upload-method import
expect_cleaned_up_or_refused
expect_no_fake_images
fake_service 'stage at=50% reset'
upload disk.raw --upload-method import
expect_cleaned_up_or_refused
expect_no_fake_images
