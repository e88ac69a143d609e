#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the service refuses the data at /file and offers glance-direct, the image is staged
# and imported; or when that was asked for; and never when the direct way was.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw

imported() { # UPLOAD-OPTION -- FAKE-OPTION-OR-RULE...
	local option=$1

	shift 2
	fake_service "$@"
	upload "$T/disk.raw" "$option"
	expect_uploaded
	expect_report '.upload.verified_by == "sha512"'
	expect_requests import 1
	expect_requests stage 1 '.body_bytes == 3145728'
	[ "$(fake_images '.images | map(.status) | join(" ")')" = active ] || fail "left: $(fake_images .)"
}

direct() {
	fake_service
	upload "$T/disk.raw"
	expect_uploaded
	expect_requests stage 0
}

never_staged() { # UPLOAD-OPTION -- FAKE-OPTION-OR-RULE...
	local option=$1

	shift 2
	fake_service "$@"
	upload "$T/disk.raw" "$option"
	expect_cleaned_up
	expect_stderr 403
	expect_requests stage 0
	expect_no_fake_images
}

not_to_be_had() {
	fake_service --no-import
	upload "$T/disk.raw" --upload-method import
	expect_exit 4
	expect_one_line 'import'
	expect_requests post 0
}

# What was staged does not stay.
cleaned_up() { # RULE...
	fake_service "$@"
	upload "$T/disk.raw" --upload-method import
	expect_cleaned_up
	expect_no_fake_images
}

beside refused imported --upload-method=auto -- 'put status=403'
beside asked-for imported --upload-method=import -- 'put status=500'
beside direct direct
beside only-direct never_staged --upload-method=direct -- 'put status=403'
beside not-offered never_staged --upload-method=auto -- --no-import 'put status=403'
beside not-to-be-had not_to_be_had
beside import-refused cleaned_up 'import status=400'
beside stage-cut cleaned_up 'stage at=50% reset'
all_hold
expect_no_notes
