#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTML, garbage and endless bodies in place of answers end a run with one readable line, in
# little memory, and without the token that they repeat.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 1M /dev/urandom >disk.raw

# In 256 MiB of address space beyond what a program has anyway.
harmless() { # RULE...
	fake_service "$@"
	(
		[ -n "${ASAN_OPTIONS:-}" ] || ulimit -v 700000
		upload "$T/disk.raw" --upload-stall-timeout 10
		expect_exit 1 4
		[ "$(wc -l <"$err")" -le 2 ] || fail "not told shortly"
		[ "$(wc -c <"$err")" -lt 2000 ] || fail "not told shortly"
		expect_stderr .
		! grep -qP '[^\x20-\x7e\n]' "$err" || fail "control characters"
		! grep -rqE 'fake-token|fake-password' "$err" "$out" report.json ||
			fail "a secret: $(cat "$err")"
		expect_report '.error != null'
	)
}

huge=99999999999
beside auth-garbage harmless 'auth garbage status=201'
beside auth-huge harmless "auth huge=$huge status=201"
beside auth-no-token harmless 'auth status=201 body={}'
beside auth-odd harmless $'auth status=201 \'body={"token": []}\' header.X-Subject-Token=t'
beside auth-html harmless 'auth status=418 html'
beside identity-huge harmless "identity huge=$huge status=300" 'auth status=404'
all_hold
beside post-garbage harmless 'post garbage status=201' 'get garbage status=200'
beside post-huge harmless "post huge=$huge status=201" "get huge=$huge status=200"
beside put-echo harmless 'put status=403 echo-token' 'import status=403 echo-token'
beside put-huge harmless "put huge=$huge status=400"
beside put-control 'harmless' $'put status=400 body=\e[31m\x07red\x01'
beside get-odd harmless 'get set.size=x set.status=1'
beside get-negative harmless 'get set.size=-1'
beside get-large harmless 'get set.size=99999999999999999999999'
all_hold

# A list without end: each page names the same next one.
endless() {
	local image=00000000-0000-0000-0000-000000000001

	fake_service 'list top.next=/v2/images?marker=x' \
		"list 'top.images=[{\"id\": \"$image\", \"name\": \"a\", \"status\": \"active\"}]'"
	run timeout -k 5 30 "$CCSNAP" list --to=glance
	[ "$status" != 124 ] || fail "it does not end"
	expect_exit 1 4
}
elsewhere() {
	fake_service 'list top.next=http://127.0.0.1:1/v2/images'
	run timeout -k 5 30 "$CCSNAP" list --to=glance
	expect_exit 1 4
}
beside endless-list endless
beside list-elsewhere elsewhere
all_hold
