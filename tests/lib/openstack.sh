# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# A real Keystone and Glance, for tests that have sourced lib.sh:
#
#	openstack_bed                       # or with settings, see openstack-up
#	as_member
#	upload disk.raw
#	expect_image "$(report .upload.image_id)" '.status == "active"'
#
# The services end with the test.  CCSNAP_OPENSTACK names a directory of openstack-up in
# which they run already: it is used by tests that ask for no settings, and stays.

. "$test_lib/upload.sh"

requires_openstack() {
	requires jq curl
	/usr/bin/python3 -c 'import importlib.util as u, sys
sys.exit(not (u.find_spec("keystone") and u.find_spec("glance")))' ||
		skip "python3-keystone or python3-glance is not installed"
}

# openstack_bed SETTING...: sets $bed, and what is in its env: $KEYSTONE_URL $GLANCE_URL
# $KEYSTONE_PID $GLANCE_PID $PROJECT_ID ...  Called again, it goes on with the same one.
openstack_bed() {
	requires_openstack
	if [ -n "${bed:-}" ]; then
		[ $# = 0 ] || openstack_down
	elif [ $# = 0 ] && [ -n "${CCSNAP_OPENSTACK:-}" ]; then
		bed=$CCSNAP_OPENSTACK
	else
		# Not in $T, which as_ordinary_user gives away.
		bed=$(mktemp -d "${T%/*}/ccsnap-openstack.XXXXXX")
		at_exit "$test_lib/openstack-down" "$bed" --wipe
	fi
	openstack_up "$@"
	forget_images
}

# What does not run of the two.
openstack_up() { # SETTING...
	CCSNAP_CACHE=$CCSNAP_CACHE "$test_lib/openstack-up" "$bed" "$@" >run/openstack-up 2>&1 ||
		fail "openstack-up: $(cat run/openstack-up)"
	. "$bed/env"
}

# shellcheck disable=SC2120 # for tests
openstack_down() { # [keystone|glance] [--kill]
	"$test_lib/openstack-down" "$bed" "$@"
}

# --- who we are --------------------------------------------------------------

as_member() { . "$bed/openrc"; }
as_appcred() { . "$bed/openrc-appcred"; }
as_reader() { . "$bed/openrc-reader"; }
as_other() { . "$bed/openrc-other"; }
as_admin() { . "$bed/openrc-admin"; }

as_nobody() {
	unset "${!OS_@}"
}

# A token of the member's, or of another of openrc-NAME.
new_token() { # [NAME]
	(
		. "$bed/openrc${1:+-$1}"
		curl -sS -o /dev/null -D - "$KEYSTONE_URL/auth/tokens" -H 'Content-Type: application/json' \
			-d "$(jq -n '{auth: {
				identity: {methods: ["password"], password: {user: {
					name: $ENV.OS_USERNAME, domain: {id: "default"},
					password: $ENV.OS_PASSWORD}}},
				scope: {project: {name: $ENV.OS_PROJECT_NAME, domain: {id: "default"}}}}}')" |
			tr -d '\r' | awk 'tolower($1) == "x-subject-token:" { print $2 }'
	)
}

# --- what is there -----------------------------------------------------------

# glance METHOD PATH CURL-OPTION...: a request of the member's, or of $as's (reader, other,
# admin); fails on a status of 400 and up.  $token saves a log-in each time.
glance() {
	curl -sS --fail-with-body -X "$1" "${@:3}" "$GLANCE_URL/v2$2" \
		-H "X-Auth-Token: ${token:-$(new_token "${as:-}")}"
}

# All images that the member sees, oldest first, as one array; FILTER: KEY=VALUE.
images() { # [FILTER]
	local page next="/images?sort=created_at:asc&limit=1000"

	[ -z "${1:-}" ] || next+="&${1%%=*}=$(jq -rn --arg value "${1#*=}" '$value | @uri')"
	while [ -n "$next" ]; do
		page=$(glance GET "$next") || fail "images: $page"
		jq -c '.images[]' <<<"$page"
		next=$(jq -r '.next // "" | ltrimstr("/v2")' <<<"$page")
	done | jq -s .
}

# shellcheck disable=SC2120 # for tests
images_count() { # [FILTER]
	images "$@" | jq length
}

image_show() { # ID
	glance GET "/images/$1"
}

expect_image() { # ID JQ-CONDITION
	local shown

	shown=$(image_show "$1") || fail "image $1: $shown"
	jq -e "$2" <<<"$shown" >/dev/null || fail "image does not hold '$2': $shown"
}

# Just these names and no others, in the order in which they were made.
expect_images() { # NAME...
	local names

	names=$(images | jq -r '.[].name')
	[ "$names" = "$(printf '%s\n' "$@")" ] || fail "images at the service: $names"
}

expect_no_images() {
	[ "$(images_count)" = 0 ] || fail "images at the service: $(images)"
}

# What the image service keeps, and stages, whatever its database says.
expect_empty_store() {
	expect_empty "$bed/glance/images" "$bed/glance/staging"
}

# The image's data is FILE.
expect_image_data() { # ID FILE
	glance GET "/images/$1/file" | cmp - "$2" || fail "image $1 is not $2"
}

# make_image NAME JSON-MEMBER...: an active one of a few bytes, as others make it; prints its id.
make_image() {
	local id

	id=$(jq -n --arg name "$1" \
		'{name: $name, disk_format: "raw", container_format: "bare"} + '"{${2:-}}" |
		glance POST /images -H 'Content-Type: application/json' -d @- | jq -r .id)
	glance PUT "/images/$id/file" -H 'Content-Type: application/octet-stream' -d "$1" >&2
	echo "$id"
}

# protect ID true|false
protect() {
	glance PATCH "/images/$1" -o /dev/null \
		-H 'Content-Type: application/openstack-images-v2.1-json-patch' \
		-d "[{\"op\": \"replace\", \"path\": \"/protected\", \"value\": $2}]"
}

forget_images() {
	local id token

	token=$(new_token)
	for id in $(images | jq -r '.[] | select(.protected) | .id'); do
		protect "$id" false
	done
	for id in $(images | jq -r '.[].id'); do
		glance DELETE "/images/$id"
	done
}

# The image with that name has got so far that it is being sent.
is_saving() { # NAME
	[ "$(images "name=$1" | jq -r '.[0].status')" = saving ]
}
