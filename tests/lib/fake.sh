# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Small servers that misbehave, for tests that have sourced lib.sh:
#
#	fake_service 'put#1 status=503'
#	upload disk.raw
#	expect_requests put 2
#
# See fake-image-service for its rules; and certificates for its TLS.

. "$test_lib/upload.sh"

# What the service's own password is; the other one is for application credentials.
fake_password="fake-password"
fake_appcred_secret="fake-appcred-secret"
fake_token="fake-token-by-hand"
fake_project=0123456789abcdef0123456789abcdef

# fake_server OPTION-OR-RULE...: another one; sets $fake (its URL), $fake_log and $fake_pid.
fake_server() {
	requires /usr/bin/python3 jq curl
	fake_log=$(mktemp "$T/run/fake.XXXXXX")
	"$test_lib/fake-image-service" --log "$fake_log" "$@" >"$fake_log.url" \
		2>"$fake_log.err" </dev/null &
	fake_pid=$!
	at_exit kill "$fake_pid"
	wait_until 20 test -s "$fake_log.url" || fail "fake-image-service: $(cat "$fake_log.err")"
	fake=$(cat "$fake_log.url")
}

# fake_service OPTION-OR-RULE...: the same in place of the one before it, and OS_* lead there.
fake_service() {
	[ -z "${fake_pid:-}" ] || kill "$fake_pid" 2>/dev/null || true
	fake_server "$@"
	as_fake_user
}

as_fake_user() {
	unset "${!OS_@}"
	export OS_AUTH_URL=$fake/identity OS_USERNAME=fake OS_PASSWORD=$fake_password \
		OS_PROJECT_NAME=fake OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default \
		OS_REGION_NAME=RegionOne
}

# requests KIND [JQ-CONDITION]: how many there were.
requests() {
	jq -s --arg kind "$1" "map(select(.kind == \$kind and (${2:-true}))) | length" "$fake_log"
}

# expect_requests KIND COUNT [JQ-CONDITION]
expect_requests() {
	local count

	count=$(requests "$1" "${3:-true}")
	[ "$count" = "$2" ] || fail "$count requests '$1' ${3:-}, not $2: $(request_lines)"
}

# The requests in short.
request_lines() {
	jq -r '"\(.kind)#\(.nth) \(.method) \(.path) \(.body_bytes) -> \(.status)"' "$fake_log"
}

# What the service has now, whatever its rules make it say: how many images, or a filter's
# result.  It is no request that counts.
fake_images() { # [JQ-FILTER]
	curl -sSk -H "X-Auth-Token: fake-inspector" "$fake/image/v2/images?limit=100" |
		jq -r "${1:-.images | length}"
}

expect_no_fake_images() {
	[ "$(fake_images)" = 0 ] || fail "images at the service: $(fake_images .)"
}

# --- certificates ------------------------------------------------------------

# make_ca NAME: NAME.pem and NAME.key.
make_ca() {
	requires openssl
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.pem" -days 30 \
		-subj "/CN=$1" -addext basicConstraints=critical,CA:TRUE \
		-addext keyUsage=critical,keyCertSign 2>run/openssl || fail "openssl: $(cat run/openssl)"
}

# make_certificate CA NAME SUBJECT-ALT-NAMES [DAYS]: NAME.pem and NAME.key.  With DAYS
# below 0 it has expired.
make_certificate() {
	openssl req -newkey rsa:2048 -nodes -keyout "$2.key" -out "$2.csr" -subj "/CN=$2" \
		2>run/openssl || fail "openssl: $(cat run/openssl)"
	openssl x509 -req -in "$2.csr" -CA "$1.pem" -CAkey "$1.key" -CAcreateserial \
		-out "$2.pem" -days "${4:-30}" -extfile <(echo "subjectAltName=$3") \
		2>run/openssl || fail "openssl: $(cat run/openssl)"
}
