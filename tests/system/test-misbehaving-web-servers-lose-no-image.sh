#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image that is PUT to a plain HTTP server is there whole, or the run says that it is
# not and removes what the server says that it made; whatever the server does.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 3M /dev/urandom >disk.raw
sum=$(sha256sum disk.raw | cut -d' ' -f1)

put() { # OPTION...
	rm -f report.json
	ccsnap upload "$T/disk.raw" image --to="$fake/dav/" --report report.json "$@"
}

# What is there now; it is no request that counts.
there() { # [SERVER]
	curl -sS -f -H "X-Auth-Token: fake-inspector" "${1:-$fake}/dav/image.raw" -o now 2>/dev/null
}

expect_arrived() { # [SERVER]
	expect_exit 0
	expect_report '.status == "ok" and .upload.verified_by == "size" and .upload.cleanup == null'
	there "$@" || fail "nothing is there: $(request_lines)"
	[ "$(sha256sum now | cut -d' ' -f1)" = "$sum" ] || fail "something else is there"
}

expect_nothing_there() {
	! there || fail "something is there: $(request_lines)"
}

again() { # PUTS RULE...
	fake_server "${@:2}"
	put
	expect_arrived
	expect_requests dav_put "$1"
	expect_report ".upload.attempts == $1"
}

once() { # STATUS
	fake_server "dav_put status=$1 body=because"
	put --limit-rate 500K
	expect_exit "$((${1:0:1} == 4 ? 4 : 1))"
	expect_stderr "$1.*because"
	expect_requests dav_put 1
	expect_requests dav_put 1 '.body_bytes < 3000000'
	expect_nothing_there
}

# The answer was lost: what is there is ours, and sent anew, since nobody knows how much.
lost() {
	again 2 'dav_put#1 lost'
	expect_requests dav_put 1 '.nth == 1 and .headers["If-None-Match"] == "*"'
	expect_requests dav_put 1 '.nth == 2 and .headers["If-None-Match"] == null'
}

redirected() {
	fake_server
	elsewhere=$fake
	elsewhere_log=$fake_log
	fake_server "dav_put redirect=$elsewhere" "dav_get redirect=$elsewhere"
	fake=${fake/\/\////user:password@}
	put
	expect_arrived "$elsewhere"
	jq -se 'all(.headers.Authorization == null)' "$elsewhere_log" >/dev/null ||
		fail "the password went to another server"
	jq -se 'all(.headers.Authorization != null)' "$fake_log" >/dev/null || fail "no password"
}

# 1 is the look before, 2 that before the PUT, 3 the one behind it.
wrong_size() {
	fake_server 'dav_get#3 status=200 body=short'
	put
	expect_exit 1
	expect_one_line 'has 5 bytes of it and not 3145728'
	expect_report '.status == "failed" and .upload.verified_by == null
		and .upload.cleanup == "done"'
	expect_nothing_there
}

wrong_size_kept() {
	fake_server 'dav_get#3 status=200 body=short'
	put --keep-failed
	expect_exit 1
	expect_report '.upload.cleanup == "kept"'
	there || fail "not kept"
}

swallowed() {
	fake_server 'dav_put status=201 at=end' 'dav_delete status=403'
	put
	expect_exit 1
	expect_one_line 'nothing there.*403'
	expect_report '.upload.cleanup == "failed"'
}

# Somebody else was faster, and the server heeds If-None-Match.
overtaken() {
	fake_server 'dav_put status=412'
	put
	expect_exit 4
	expect_one_line 'exists; use --overwrite'
	expect_requests dav_delete 0
}

without_head() {
	fake_server "dav_get#1 status=501" "dav_get#3 status=405" "dav_get#5 status=405"
	put
	expect_arrived
	expect_requests dav_get 3 '.method == "GET" and .headers.Range == "bytes=0-0"'
}

# Such a server would send all of it each time.
without_head_or_ranges() {
	fake_server "dav_get#1 status=405" "dav_get#3 status=405" "dav_get#5 status=405" \
		"dav_get no-range"
	put
	expect_arrived
}

silent() {
	fake_server 'dav_get status=403'
	put
	expect_exit 3
	expect_stderr 'does not tell the size'
	expect_report '.status == "warnings" and .upload.verified_by == null'
	there || fail "nothing is there"
}

refuses() { # STDERR-REGEX OPTION...
	fake_server
	put "${@:2}"
	expect_exit 2
	expect_one_line "$1"
	expect_requests dav_put 0
}

has_no_list() {
	fake_server
	ccsnap list --to="$fake/dav/"
	expect_exit 2
	expect_one_line 'accepted: folder:PATH, glance'
	ccsnap fetch image --to="$fake/dav/"
	expect_exit 2
	expect_one_line 'accepted: folder:PATH, glance'
}

beside 503-twice again 3 'dav_put#1-2 status=503 header.Retry-After=1'
beside 500-late again 2 'dav_put#1 at=end status=500'
beside 429 again 2 'dav_put#1 status=429'
beside reset-at-99 again 2 'dav_put#1 at=99% reset'
beside ended again 2 'dav_put#1 at=10% close'
beside looks-again again 1 'dav_get#1 status=503' 'dav_get#3 reset' 'dav_get#5 status=502'
beside silent-expect again 1 'dav_put silent-expect'
beside no-chunks again 1 'dav_put no-chunks'
beside lost lost
all_hold
beside redirected redirected
beside wrong-size wrong_size
beside wrong-size-kept wrong_size_kept
beside swallowed swallowed
beside overtaken overtaken
beside without-head without_head
beside without-ranges without_head_or_ranges
beside silent silent
all_hold
for status in 400 403 405 413 507; do
	beside no-$status once $status
done
beside no-tags refuses '--tag' --tag a
beside no-visibility refuses '--visibility' --visibility private
beside no-protection refuses '--protected' --protected
beside no-series refuses '--series' --series nightly
beside no-list has_no_list
all_hold
