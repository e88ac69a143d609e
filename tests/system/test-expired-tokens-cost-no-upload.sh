#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A token that is refused at any point is replaced, and the upload goes on; one that cannot
# be replaced ends it, and the user is told.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw

goes_on() { # RULE...
	fake_service "$@"
	upload "$T/disk.raw"
	expect_uploaded
	[ "$(requests auth)" -ge 2 ] || fail "no new token: $(request_lines)"
	[ "$(fake_images)" = 1 ] || fail "$(fake_images) images"
	[ "$(fake_images '.images[].size')" = 3145728 ] || fail "not whole"
}

beside post goes_on 'post#1 status=401'
beside put-start goes_on 'put#1 status=401'
beside put-end goes_on 'put#1 at=end status=401'
beside put-middle goes_on 'put#1 at=50% status=401'
beside get goes_on 'get#1 status=401'
beside schema goes_on 'schema#1 status=401' 'usage#1 status=401' 'list#1 status=401' 'post#1 status=401'
beside each goes_on 'post#1 status=401' 'put#1 at=end status=401' 'get#2 status=401'
all_hold

# In the cleaning up.
cleans_up() {
	fake_service 'put status=400' 'delete#1 status=401'
	upload "$T/disk.raw"
	expect_report '.upload.cleanup == "done"'
	expect_no_fake_images
}

# For good: no end of new tokens.
gives_up() {
	fake_service 'post status=401'
	upload "$T/disk.raw"
	expect_exit 1
	[ "$(requests auth)" -le 6 ] || fail "$(requests auth) log-ins"
	[ "$(requests post)" -le 6 ] || fail "$(requests post) times"
}

wrong_password() {
	fake_service
	OS_PASSWORD=something-else upload "$T/disk.raw"
	expect_exit 4
	expect_stderr 'OS_|fake|password|authenti'
	expect_requests auth 1
	expect_requests post 0
}

# Three seconds a token, ten seconds of sending.
short_lived() {
	fake_service --token-seconds 3
	upload "$T/disk.raw" --limit-rate 320K
	expect_uploaded
	[ "$(fake_images '.images[].size')" = 3145728 ] || fail "not whole"
}

# Their clock is not ours.
other_clock() { # SECONDS
	fake_service --clock "$1"
	upload "$T/disk.raw"
	expect_uploaded
	[ "$(requests auth)" -le 2 ] || fail "$(requests auth) log-ins"
}

by_hand() {
	unset "${!OS_@}"
	export OS_AUTH_TYPE=v3token OS_AUTH_URL=$fake/identity OS_TOKEN=$fake_token \
		OS_PROJECT_ID=$fake_project OS_REGION_NAME=RegionOne
}

given_token() {
	fake_service
	by_hand
	upload "$T/disk.raw"
	expect_uploaded
}

given_token_ends() {
	fake_service 'put#1 at=end status=401' 'put#2- status=401'
	by_hand
	upload "$T/disk.raw"
	expect_exit 1
	expect_stderr 'token'
	[ "$(requests put)" -le 2 ] || fail "sent again with the same token"
}

# It would end before the upload does.
given_token_is_short() {
	fake_service --token-seconds 20
	by_hand
	upload "$T/disk.raw" --limit-rate 64K --dry-run
	expect_stderr 'token.*(expire|second|long)|expire.*token'
	expect_requests post 0
}

beside cleaning-up cleans_up
beside for-good gives_up
beside password wrong_password
beside short-lived short_lived
beside clock-ahead other_clock 86400
beside clock-behind other_clock -86400
beside by-hand given_token
beside by-hand-ends given_token_ends
beside by-hand-short given_token_is_short
all_hold
expect_no_notes
