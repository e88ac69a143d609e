#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An upload has succeeded when the image is active with our size and our hash.  What cannot
# be proven is a warning; what is wrong, or never becomes active, fails and is removed.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw

proven() { # BY RULE...
	fake_service "${@:2}"
	upload "$T/disk.raw"
	expect_uploaded
	expect_report ".upload | .verified_by == \"$1\" and .attempts == 1 and
		.sent_bytes == 3145728 and .destination != \"\""
	[ "$(fake_images '.images[] | .status')" = active ] || fail "not active"
}

unproven() { # RULE...
	fake_service "$@"
	upload "$T/disk.raw"
	expect_exit 3
	expect_report ".status == \"warnings\" and (.warnings | length) == 1 and
		(.upload | (.verified | not) and .verified_by == null and .cleanup == null)"
	[ "$(fake_images)" = 1 ] || fail "the image is gone"
}

# STDERR-REGEX RULE...
wrong() {
	fake_service "${@:2}"
	upload "$T/disk.raw" --upload-stall-timeout 3
	expect_cleaned_up
	expect_stderr "$1"
	expect_no_fake_images
}

# Deleted now, its data would stay in the service's store: the next run looks again.
left_importing() { # RULE...
	export XDG_STATE_HOME=$PWD/state # its note stays
	fake_service "$@"
	upload "$T/disk.raw" --upload-stall-timeout 3
	expect_exit 1
	expect_report '.upload | .cleanup == "failed" and (.verified | not)'
	expect_stderr 'still being imported.*, the next run will delete it'
	expect_requests delete 0
	[ "$(fake_images '.images[].id')" = "$(report .upload.image_id)" ] || fail "it is gone"
}

keeps_what_failed() {
	fake_service 'get set.size=7'
	upload "$T/disk.raw" --keep-failed
	expect_exit 1
	expect_report '.upload.cleanup == "kept" and (.upload.verified | not)'
	[ "$(fake_images '.images[].id')" = "$(report .upload.image_id)" ] || fail "not kept"
}

beside sha512 proven sha512
beside capitals proven sha512 'get set.os_hash_value=upper'
beside other-algorithm proven md5 'get set.os_hash_algo=blake9 set.os_hash_value=abcdef'
beside md5-only proven md5 'get set.os_hash_algo=null set.os_hash_value=null'
beside no-hashes unproven \
	'get set.os_hash_algo=null set.os_hash_value=null set.checksum=null'
all_hold

beside size wrong 'size|7 bytes' 'get set.size=7'
beside hash wrong 'sha512|SHA-512|hash' \
	"get set.os_hash_value=$(printf '0%.0s' {1..128}) set.os_hash_algo=sha512"
beside checksum wrong 'md5|MD5|checksum' \
	'get set.os_hash_algo=null set.os_hash_value=null set.checksum=d41d8cd98f00b204e9800998ecf8427e'
beside killed wrong killed 'get set.status=killed'
beside deactivated wrong deactivated 'get set.status=deactivated'
beside kept keeps_what_failed
all_hold
beside saving wrong saving 'get set.status=saving'
beside importing left_importing 'get set.status=importing'
beside queued wrong queued 'get set.status=queued'
beside never-imported left_importing 'import keep' 'put status=403'
all_hold
expect_no_notes
