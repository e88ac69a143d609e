#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTML, garbage and endless bodies in place of answers end a run with one readable line, in
# little memory, and without the token that they repeat.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 1M /dev/urandom >disk.raw

# In 256 MiB of address space beyond what a program has anyway.
harmless() { # EXIT RULE...
	local code=$1

	fake_service "${@:2}"
	(
		[ -n "${ASAN_OPTIONS:-}" ] || ulimit -v 700000
		upload "$T/disk.raw" --upload-stall-timeout 10
		expect_exit "$code"
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
beside auth-garbage harmless 4 'auth garbage status=201'
beside auth-huge harmless 4 "auth huge=$huge status=201"
beside auth-no-token harmless 4 'auth status=201 body={}'
beside auth-odd harmless 4 $'auth status=201 \'body={"token": []}\' header.X-Subject-Token=t'
beside auth-html harmless 4 'auth status=418 html'
beside identity-huge harmless 4 "identity huge=$huge status=300" 'auth status=404'
all_hold
beside post-garbage harmless 1 'post garbage status=201' 'get garbage status=200'
beside post-huge harmless 1 "post huge=$huge status=201" "get huge=$huge status=200"
beside put-echo harmless 1 'put status=403 echo-token' 'import status=403 echo-token'
beside put-huge harmless 1 "put huge=$huge status=400"
beside put-control harmless 1 $'put status=400 body=\e[31m\x07red\x01'
beside get-odd harmless 1 'get set.size=x set.status=1'
beside get-negative harmless 1 'get set.size=-1'
beside get-large harmless 1 'get set.size=99999999999999999999999'
all_hold

# A list without end: each page names the same next one.
endless() {
	local image='{"id": "00000000-0000-0000-0000-000000000001", "name": "a",
		"status": "active", "created_at": "2026-01-01T00:00:00Z"}'

	fake_service 'list top.next=/v2/images?marker=x' "list 'top.images=[$image]'"
	LIMIT=60 ccsnap list --to=glance
	expect_exit 1
	expect_one_line 'does not end'
	[ "$(requests list)" -gt 100 ] || fail "it was the page: $(request_lines)"
}

# The next page is asked for where the first one was.
elsewhere() {
	fake_server
	local other=$fake other_log=$fake_log

	fake_server "list#1 top.next=$other/image/v2/images?marker=x"
	as_fake_user
	ccsnap list --to=glance
	expect_exit 0
	expect_requests list 1 '.nth == 2 and .query == "marker=x"'
	[ ! -s "$other_log" ] || fail "asked elsewhere: $(cat "$other_log")"
}
beside endless-list endless
beside list-elsewhere elsewhere
all_hold
