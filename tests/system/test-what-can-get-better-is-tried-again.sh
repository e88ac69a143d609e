#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 408, 429, 500, 502, 503, 504 and broken connections are tried again, from the first byte,
# when the service is ready for it (Retry-After); what cannot get better is not.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw
truncate -s 32M large.raw

again() { # PUTS RULE...
	fake_service "${@:2}"
	upload "$T/disk.raw"
	expect_uploaded
	expect_requests put "$1"
	expect_report ".upload.attempts >= $1 - ${reused:-0} and .upload.attempts <= $1"
	[ "$(fake_images)" = 1 ] || fail "$(fake_images) images"
	[ "$(fake_images '.images[].size')" = 3145728 ] || fail "not whole"
}

# The status is looked at between two attempts.
asks_first() {
	again 2 'put#1 at=50% reset'
	jq -se '(map(.kind == "put") | indices(true)) as $puts |
		.[$puts[0]:$puts[1]] | any(.kind == "get")' "$fake_log" >/dev/null ||
		fail "not asked: $(request_lines)"
}

# An image that is no longer queued is made anew, not sent to again.
anew() {
	fake_service 'put#1 at=10% close' 'get#1 set.status=saving'
	upload "$T/large.raw"
	expect_uploaded
	expect_requests post 2
	expect_requests put 2
	[ "$(jq -r 'select(.kind == "put") | .path' "$fake_log" | sort -u | wc -l)" = 2 ] ||
		fail "sent again to the same: $(request_lines)"
	[ "$(fake_images)" = 1 ] || fail "$(fake_images) images"
}

waits() {
	again 2 'put#1 status=503 header.Retry-After=4'
	jq -se 'map(select(.kind == "put")) | .[1].begin - .[0].end >= 3.9' "$fake_log" >/dev/null ||
		fail "did not wait"
}

# ... and refused at once: before the body has gone.
once() { # STATUS
	fake_service --no-import "put status=$1 body=because"
	upload "$T/disk.raw" --limit-rate 500K
	expect_exit 1
	expect_stderr "$1.*because|because.*$1"
	expect_requests put 1
	expect_requests put 1 '.body_bytes < 3000000'
	expect_no_fake_images
}

# The other requests, too.
others() {
	fake_service 'auth#1 status=503' 'identity#1 reset' 'schema#1 status=502' \
		'usage#1 status=504' 'post#1 reset' 'get#1 status=500' 'list#1 status=503'
	upload "$T/disk.raw"
	expect_uploaded
}

beside 408 again 2 'put#1 status=408'
beside 429 again 2 'put#1 status=429'
beside 500 again 2 'put#1 status=500'
beside 502 again 2 'put#1 status=502'
beside 503-twice again 3 'put#1-2 status=503 header.Retry-After=1'
beside 504-late again 2 'put#1 at=end status=504'
beside reset-at-99 again 2 'put#1 at=99% reset'
beside ended again 2 'put#1 at=1% close'
# A connection that is used again may have been closed meanwhile: libcurl knows.
reused=1 beside reset-first again 2 'put#1 reset'
beside asks asks_first
all_hold
beside anew anew
beside waits waits
beside others others
for status in 400 403 404 410 413 415 422 501; do
	beside no-$status once $status
done
all_hold
expect_no_notes
