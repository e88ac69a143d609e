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
	expect_exit 1
	expect_report '.upload | (.verified | not) and .cleanup == "done" and .attempts >= 1'
	only_others
}

# What could not be deleted is so by the next run.
left_to_the_next() { # RULE...
	fake_service 'put#1 status=400' "$@"
	others_image
	upload "$T/disk.raw" left
	expect_exit 1
	expect_report '.upload | .cleanup == "failed" and .image_id != null'
	expect_stderr "$(report .upload.image_id)"
	[ "$(fake_images '.images[-1].id')" = "$(report .upload.image_id)" ] || fail "it is gone"
	upload "$T/disk.raw" next
	expect_uploaded
	[ "$(fake_images '[.images[].name] | join(", ")')" = "of others, next" ] || fail "$(fake_images .)"
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
	ends_clean 0.3
}

# The same when the token has ended, and the metadata service, which gave it, has another.
interrupted_with_metadata() {
	fake_service --token-seconds 3 'put slow=100000' --metadata ". '$PWD/metadata'"
	unset "${!OS_@}"
	export CCSNAP_METADATA_URL=$fake
	cat >metadata <<-END
		[ "\${1##*/}" = vendor_data2.json ] || exit 0
		token=\$(curl -sS -o /dev/null -D - "$fake/identity/v3/auth/tokens" -d '{"auth":
			{"identity": {"methods": ["password"], "password": {"user": {"password":
			"$fake_password"}}}}}' | tr -d '\r' | awk '/^X-Subject-Token:/ { print \$2 }')
		jq -n --arg token "\$token" '{chameleon: {site: "x", region: "RegionOne",
			project_id: "$fake_project", service_token: \$token,
			auth_url_v3: "$fake/identity/v3"}}'
	END
	ends_clean 4
	[ "$(requests metadata)" -ge 2 ] || fail "no other token: $(request_lines)"
}

ends_clean() { # SECONDS-OF-SENDING
	others_image
	start_upload "$T/disk.raw"
	wait_until 20 in_flight || fail "never sent: $(cat "$err")"
	sleep "$1"
	kill -TERM "$pid"
	begin=$SECONDS
	end_upload
	[ $((SECONDS - begin)) -le 10 ] || fail "took $((SECONDS - begin)) s"
	expect_exit 143
	expect_report '.status == "interrupted" and .exit_code == 143 and .upload.cleanup == "done"'
	only_others
}

# Of a request under way nothing is logged yet: the image is all there is to be seen.
# One while the image is being made, which goes on.
interrupted_in_making() { # SIGNAL
	export XDG_STATE_HOME=$PWD/state # not the notes of other cases
	fake_service 'post#1 late=4'
	others_image
	start_upload "$T/disk.raw"
	wait_until 20 noted || fail "never asked for: $(cat "$err")"
	sleep 0.5
	kill -"$1" "$pid"
	end_upload
}

terminated_in_making() {
	interrupted_in_making TERM
	expect_exit 143
	expect_report '.upload.cleanup == "done"'
	only_others
}

killed_in_making() {
	interrupted_in_making KILL
	upload "$T/disk.raw" next
	expect_uploaded
	wait_until 20 has_come || fail "never made: $(fake_images .)"
	upload "$T/disk.raw" second
	expect_uploaded
	[ "$(fake_images '[.images[].name] | sort | join(", ")')" = "next, of others, second" ] ||
		fail "$(fake_images .)"
}

noted() {
	compgen -G "$XDG_STATE_HOME/ccsnap/uploads/*.json" >/dev/null
}

has_come() {
	[ "$(fake_images)" = 3 ]
}

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
beside delete-refused left_to_the_next 'delete#1 status=403'
beside delete-ignored left_to_the_next 'delete#1 status=409'
beside lost-post made_once 'post#1 lost'
beside busy-post made_once 'post#1 status=503'
beside lost-put made_once 'put#1 lost'
beside signal interrupted 'put slow=100000'
beside signal-no-answer interrupted 'put at=end hang'
beside signal-busy-delete interrupted 'put slow=100000' 'delete#1 status=503 header.Retry-After=1'
beside signal-in-making terminated_in_making
beside killed-in-making killed_in_making
beside signal-metadata interrupted_with_metadata
all_hold
expect_no_notes
