#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# While uploads of a minute outlive three tokens of 20 seconds, others beside them are ended
# by signals: TERM, INT and HUP leave no image at all, and what kill -9 leaves is gone after
# the next run, which touches neither the living ones nor those of others.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/fake.sh"
. "$test_lib/openstack.sh"
openstack_bed keystone:token.expiration=20
head -c 6M /dev/urandom >disk.raw
head -c 6M /dev/urandom >long.raw
as_ordinary_user

# --- the minute --------------------------------------------------------------

lives() { # OPTION...
	begin=$SECONDS
	LIMIT=150 upload "$T/long.raw" "$@" --limit-rate 100K
	expect_uploaded
	[ $((SECONDS - begin)) -ge 50 ] || fail "only $((SECONDS - begin)) s"
	expect_report '.upload | .attempts == 1 and .sent_bytes == 6291456 and .verified_by == "sha512"'
	expect_image_data "$(report .upload.image_id)" "$T/long.raw"
}
with_password() {
	as_member
	lives password
}
with_credential() {
	as_appcred
	lives credential --upload-method import
}

# It gives a new token each time.
with_metadata() {
	as_nobody
	cat >answer <<-END
		bed='$bed'
		. "\$bed/env"
		$(declare -f new_token)
		jq -n --arg token "\$(new_token)" '{chameleon: {site: "x", region: "RegionOne",
			project_id: "$PROJECT_ID", service_token: \$token, auth_url_v3: "$KEYSTONE_URL"}}'
	END
	fake_server --metadata ". '$PWD/answer'"
	CCSNAP_METADATA_URL=$fake lives metadata
}

# A token by hand ends before that, and this is said at once.
with_token() {
	as_nobody
	export OS_AUTH_TYPE=v3token OS_AUTH_URL=$KEYSTONE_URL OS_PROJECT_ID=$PROJECT_ID
	OS_TOKEN=$(new_token) upload "$T/long.raw" token --limit-rate 100K
	expect_exit 4
	expect_one_line 'token.*expire'
}

beside password with_password
beside credential with_credential
beside metadata with_metadata
beside token with_token

# --- meanwhile ---------------------------------------------------------------

as_member
in_flight() { # NAME
	start_upload disk.raw "$1" --limit-rate 500K "${@:2}"
	wait_until 20 is_saving "$1" || fail "never began: $(cat "$err")"
}
is_gone() { # NAME
	[ "$(images_count "name=$1")" = 0 ] || fail "image $1 is there: $(images "name=$1")"
}

for signal in TERM INT HUP; do
	in_flight $signal
	kill -$signal "$pid"
	end_upload
	expect_exit $((128 + $(kill -l $signal)))
	expect_report '.status == "interrupted" and .upload.cleanup == "done" and .upload.image_id != null'
	is_gone $signal
done

in_flight kept --keep-failed
kill -TERM "$pid"
end_upload
expect_exit 143
expect_report '.upload.cleanup == "kept"'
kept=$(report .upload.image_id)

# kill -9, of which nobody can tell.
in_flight killed
killed=$(images name=killed | jq -r '.[0].id')
kill -9 "$pid"
end_upload
image_show "$killed" >/dev/null || fail "there was nothing to be swept"
others=$(make_image killed '"ccsnap_version": "0"')
upload disk.raw next
expect_uploaded
! image_show "$killed" >/dev/null 2>&1 || fail "an orphan"
expect_image "$others" '.status == "active"'
image_show "$kept" >/dev/null || fail "what was to be kept is gone"
glance DELETE "/images/$kept"
glance DELETE "/images/$others"

# At any moment.
count=6
! is_full || count=60
for ((n = 0; n < count; n++)); do
	signal=TERM
	[ $((n % 2)) = 0 ] || signal=KILL
	start_upload disk.raw "moment $n" --limit-rate 6M
	sleep "$(printf '%d.%03d' $((n * 1700 / count / 1000)) $((n * 1700 / count % 1000)))"
	kill -$signal "$pid" 2>/dev/null || true
	end_upload
	[ "$status" != 0 ] || continue
	[ $signal = KILL ] || is_gone "moment $n"
done
upload disk.raw last
expect_uploaded
images | jq -e 'map(select(.status != "active") | .name) - ["password", "credential", "metadata"] |
	. == []' >run/orphans || fail "orphans: $(images)"
all_hold
[ "$(images | jq '[.[] | select(.status != "active")] | length')" = 0 ] || fail "$(images)"
expect_no_notes
