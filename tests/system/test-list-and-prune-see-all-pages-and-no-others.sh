#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Of 60 images in pages of 10 list shows all that match; prune removes the oldest images
# that ccsnap made of that series from this source, and no other, and none that is protected.
. "$(dirname "$0")/../lib/lib.sh"
. "$test_lib/openstack.sh"
openstack_bed glance:DEFAULT.api_limit_max=10
for name in disk other; do
	head -c 64K /dev/urandom >$name.raw
done
as_ordinary_user
as_member

# --- list --------------------------------------------------------------------

token=$(new_token)
one_of_sixty() { # N
	local tags='"all"'

	[ $(($1 % 7)) != 0 ] || tags+=', "seven, \"7\""'
	make_image "image $(($1 % 30))" "\"ccsnap_series\": \"$(($1 % 4))\", \"tags\": [$tags]"
}
for ((n = 0; n < 60; n += 6)); do
	for ((k = n; k < n + 6; k++)); do
		one_of_sixty $k >>ids &
	done
	wait
done
jq -n '{name: "unfinished", disk_format: "raw", container_format: "bare"}' |
	glance POST /images -H 'Content-Type: application/json' -d @- >/dev/null

listed() { # COUNT OPTION...
	ccsnap list --to=glance --json "${@:2}"
	expect_exit 0
	[ "$(jq length "$out")" = "$1" ] || fail "$(jq length "$out") images, not $1"
}
listed 2 --name "image 3"
listed 0 --name "image"
listed 60 --tag all
listed 9 --tag 'seven, "7"'
listed 15 --series 2
listed 1 --series 2 --tag 'seven, "7"' --name "image 14"
listed 0 --name "image 0" --series 1
ccsnap list --to=glance --json
expect_exit 0
diff <(jq -r '.[] | select(.name != "unfinished") | .id' "$out" | sort) <(sort ids) || fail "not all"
jq -e 'map(.created_at) | . == sort' "$out" >/dev/null || fail "not in order"
ccsnap list --to=glance
expect_exit 0
for ((n = 0; n < 30; n++)); do
	grep -q "image $n\b" "$out" || fail "image $n is not shown"
done
as_other
listed 0
as_member
forget_images
token=

# --- prune -------------------------------------------------------------------

make() { # NAME SOURCE OPTION...
	ccsnap create "$1" --source "$2.raw" --to=glance --report report.json "${@:3}"
	expect_exit 0
	# Their times are in whole seconds.
	sleep 1.1
}
prune() { # OPTION...
	ccsnap prune --to=glance --series s "$@"
}

make old disk --series s
make guarded disk --series s --protected
make middle disk --series s
make elsewhere other --series s
make other-series disk --series t
make_image by-hand '"ccsnap_series": "s"' >/dev/null
ccsnap create as-other --source disk.raw --to=glance --series s
expect_exit 0
make new disk --series s
make newest disk --series s
all=(old guarded middle elsewhere other-series by-hand as-other new newest)
expect_images "${all[@]}"

prune --keep-last 2 --source disk.raw --dry-run
expect_exit 0
expect_stdout old
expect_stdout middle
expect_images "${all[@]}"
(as_other && prune --keep-last 1 --source disk.raw)
expect_images "${all[@]}"
prune --keep-last 9 --source disk.raw
expect_exit 0
expect_images "${all[@]}"
ccsnap prune --to=glance --series nothing --keep-last 1 --source disk.raw
expect_exit 0
prune --source disk.raw
expect_exit 2
expect_images "${all[@]}"

prune --keep-last 3 --source disk.raw
expect_exit 0
expect_images guarded elsewhere other-series by-hand as-other new newest
prune --keep-last 1 --source "$T/disk.raw"
expect_exit 0
expect_images guarded elsewhere other-series by-hand newest
prune --keep-last 1 --all-sources
expect_exit 0
expect_images guarded other-series by-hand newest

# Protected from others as well as from us.
upload disk.raw guarded --overwrite
expect_exit 4
expect_images guarded other-series by-hand newest

# More than a page goes at once: no marker may be one of the dead.
token=$(new_token)
sources=$(image_show "$(images name=newest | jq -r '.[0].id')" | jq -c '{ccsnap_source, ccsnap_version}')
for ((n = 0; n < 13; n++)); do
	[ $n -lt 11 ] || sleep 1.1
	make_image "many $n" "$(jq -r '"\"ccsnap_series\": \"s\", \"ccsnap_source\": \"\(.ccsnap_source)\",
		\"ccsnap_version\": \"\(.ccsnap_version)\""' <<<"$sources")" >/dev/null
done
prune --keep-last 2 --source disk.raw
expect_exit 0
expect_images guarded other-series by-hand "many 11" "many 12"
