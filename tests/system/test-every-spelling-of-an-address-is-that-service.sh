#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Keystone and Glance are found with and without a version, a slash, a path in front;
# region and interface are matched exactly; and a redirect keeps method and body, but
# carries no token to another host.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
as_ordinary_user
head -c 1M /dev/urandom >disk.raw

catalog() { # URL-OF-GLANCE
	jq -n --arg url "$1" '[
		{type: "compute", name: "nova", endpoints: [
			{interface: "public", region: "one", region_id: "one", url: "http://127.0.0.1:1/"}]},
		{type: "image", name: "glance", endpoints: [
			{interface: "admin", region: "one", region_id: "one", url: "http://127.0.0.1:1/"},
			{interface: "internal", region: "two", region_id: "two", url: $url},
			{interface: "public", region: "ONE", region_id: "ONE", url: "http://127.0.0.1:1/"},
			{interface: "public", region: "one", region_id: "one", url: $url}]}]' >catalog.json
}

uploads() { # ENVIRONMENT...
	run env "$@" timeout -k 5 60 "$CCSNAP" upload disk.raw --to=glance --report report.json --overwrite
	expect_uploaded
	rm -f report.json
}

fake_service --prefix /some/cloud
for url in /identity /identity/ /identity/v3 /identity/v3/ /identity/v3/auth/tokens; do
	uploads OS_AUTH_URL="$fake/some/cloud$url"
done
for url in /image /image/ /image/v2 /image/v2/ /image/v2.0; do
	catalog "@BASE@$url"
	fake_service --prefix /p --catalog catalog.json
	export OS_AUTH_URL=$fake/p/identity/v3
	uploads OS_REGION_NAME=one
done
uploads OS_REGION_NAME=two OS_INTERFACE=internal
uploads OS_REGION_NAME=one OS_IMAGE_ENDPOINT_OVERRIDE="$fake/p/image"

refused() { # STDERR-REGEX ENVIRONMENT...
	run env "${@:2}" timeout -k 5 60 "$CCSNAP" upload disk.raw --to=glance --report report.json
	expect_exit 4
	expect_stderr "$1"
}
refused 'one.*two|two.*one' OS_REGION_NAME=three
refused 'one' OS_REGION_NAME=o
refused 'internal|two' OS_REGION_NAME=one OS_INTERFACE=internal

# Sent on within the same server: method, body and token go along.
fake_service 'put#1 redirect=/elsewhere/..' 'post#1 redirect=/elsewhere/..' \
	'get#1 redirect=/elsewhere/.. status=302' 'auth#1 redirect=/elsewhere/.. status=308'
uploads OS_AUTH_URL="$fake/identity"
expect_requests put 1 '.status == 204 and .body_bytes == 1048576'
expect_requests post 1 '.status == 201 and .token != null'

# Sent on to another one: it gets no token, and no password.
elsewhere() { # EXIT KIND OPTION...
	fake_server 'put status=400' 'stage status=400'
	other_log=$fake_log
	fake_server "$2 redirect=$fake"
	as_fake_user
	upload "$T/disk.raw" "${@:3}"
	expect_exit "$1"
	! grep -qE "fake-token|$fake_password" "$other_log" ||
		fail "a secret went there: $(cat "$other_log")"
}
followed() { # EXIT KIND OPTION...
	elsewhere "$@"
	[ -s "$other_log" ] || fail "it was not followed: $(request_lines)"
}
not_followed() { # EXIT KIND OPTION...
	elsewhere "$@"
	[ ! -s "$other_log" ] || fail "it was followed: $(cat "$other_log")"
}
beside to-auth not_followed 4 auth
beside to-identity followed 0 identity
beside to-usage followed 0 usage
beside to-schema followed 4 schema
beside to-list followed 4 list
beside to-methods followed 4 methods --upload-method=import
for kind in post put get; do
	beside to-$kind followed 1 $kind
done
for kind in stage import; do
	beside to-$kind followed 1 $kind --upload-method=import
done
all_hold
