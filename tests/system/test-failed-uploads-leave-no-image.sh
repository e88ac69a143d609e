#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever fails after the image was made: it is deleted, it and no other; and the report
# says when that could not be done.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw
truncate -s 32M large.raw

others_image() {
	curl -sS -o /dev/null "$fake/image/v2/images" -H "X-Auth-Token: fake-inspector" \
		-d '{"name": "of others", "disk_format": "raw", "container_format": "bare"}'
}

only_others() {
	[ "$(fake_images '.images[].name')" = "of others" ] || fail "$(fake_images .)"
}

cleaned_up() { # RULE...
	fake_service "$@"
	others_image
	upload "$T/large.raw"
	expect_exit 1 4
	expect_report '.upload | (.verified | not) and .cleanup == "done" and .attempts >= 1'
	only_others
}

not_cleaned_up() { # RULE...
	fake_service 'put status=400' "$@"
	upload "$T/disk.raw"
	expect_exit 1 4
	expect_report '.upload | .cleanup == "failed" and .image_id != null'
	expect_stderr "$(report .upload.image_id)"
}

# The image is made once, though the answer to that was lost; and found again.
made_once() { # RULE...
	fake_service "$@"
	upload "$T/disk.raw"
	expect_uploaded
	[ "$(fake_images)" = 1 ] || fail "$(fake_images) images"
	[ "$(fake_images '.images[].status')" = active ] || fail "not active"
	[ "$(fake_images '.images[].id')" = "$(report .upload.image_id)" ] || fail "another one"
}

# A signal, whatever the service does just then.
interrupted() { # RULE...
	fake_service "$@"
	others_image
	start_upload "$T/disk.raw"
	wait_until 20 in_flight || fail "never sent"
	sleep 0.3
	kill -TERM "$pid"
	begin=$SECONDS
	end_upload
	[ $((SECONDS - begin)) -le 10 ] || fail "took $((SECONDS - begin)) s"
	expect_exit 143
	expect_report '.status == "interrupted" and .exit_code == 143 and .upload.cleanup == "done"'
	only_others
}

# Of a request under way nothing is logged yet: the image is all there is to be seen.
in_flight() {
	[ "$(fake_images '[.images[] | select(.status == "saving")] | length')" = 1 ]
}

beside cut cleaned_up 'put at=50% close'
beside reset cleaned_up 'put at=99% reset'
beside 500 cleaned_up 'put status=500'
beside late-500 cleaned_up 'put at=end status=500'
beside 503 cleaned_up 'put status=503 header.Retry-After=1'
beside refused cleaned_up 'put status=400'
beside too-large cleaned_up 'put at=70% status=413'
beside stuck cleaned_up 'put at=10% close' 'get set.status=saving'
beside lost-in-cleaning cleaned_up 'put status=400' 'delete#1 lost'
beside busy-in-cleaning cleaned_up 'put status=400' 'delete#1 status=503 header.Retry-After=1'
all_hold
beside delete-refused not_cleaned_up 'delete status=403'
beside delete-ignored not_cleaned_up 'delete status=409'
beside lost-post made_once 'post#1 lost'
beside busy-post made_once 'post#1 status=503'
beside lost-put made_once 'put#1 lost'
beside signal interrupted 'put slow=100000'
beside signal-no-answer interrupted 'put at=end hang'
beside signal-busy-delete interrupted 'put slow=100000' 'delete#1 status=503 header.Retry-After=1'
all_hold

# What could not be deleted is so by the next run.
as_before=$(find home -name '*.json' | wc -l)
[ "$as_before" = 2 ] || fail "$as_before notes of two images that are still there"
