#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# prune removes the oldest of one series from one source, and nothing else.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 1M /dev/urandom >disk.raw
cp disk.raw other.raw

# made NAME SECOND SOURCE OPTION...: an image as if it had been made in that second.
made() {
	create "$1" "$3" "${@:4}"
	jq --arg time "2026-01-31T23:59:$2Z" '.created_at = $time' "store/$1.manifest.json" >run/new
	cat run/new >"store/$1.manifest.json"
}

# The images of the store that are still there, by name.
left() {
	ccsnap list --to folder:store --json
	jq -r 'map(.name) | sort | join(" ")' "$out"
}

expect_left() {
	[ "$(left)" = "$1" ] || fail "left: $(left), expected: $1"
}

fill_store() {
	rm -rf store
	made c 13 disk.raw --series s
	made a 11 disk.raw --series s
	made d 14 disk.raw --series s
	made b 12 disk.raw --series s
	made other-series 10 disk.raw --series S
	made other-source 10 other.raw --series s
	made no-series 10 disk.raw
	# Somebody else's, who uses our words.
	made foreign 10 disk.raw --series s
	jq 'del(.properties.ccsnap_version)' store/foreign.manifest.json >run/new
	cat run/new >store/foreign.manifest.json
}
rest="foreign no-series other-series"
here=(--to folder:store --source disk.raw)

fill_store
all=$(left)
for incomplete in "--series s" "--keep-last 2" ""; do
	# shellcheck disable=SC2086 # two words each
	ccsnap prune "${here[@]}" $incomplete
	expect_exit 2
	expect_one_line 'both --series=SERIES and --keep-last=N'
done
ccsnap prune "${here[@]}" --series s --keep-last 0
expect_exit 2
expect_left "$all"

ccsnap prune "${here[@]}" --series s --keep-last 2 --dry-run
expect_exit 0
expect_stdout '^would remove a \([0-9a-f-]{36}\), [0-9.]+ MiB, of 2026-01-31T23:59:11Z$'
[ "$(wc -l <"$out")" = 2 ] || fail "not two lines"
expect_left "$all"

ccsnap prune "${here[@]}" --series s --keep-last 2
expect_exit 0
[ "$(sed 's/ (.*//' "$out" | xargs)" = "removed a removed b" ] || fail "not the two oldest"
expect_left "c d $rest other-source"
expect_gone store/a.*
ccsnap prune "${here[@]}" --series s --keep-last 2
expect_exit 0
[ ! -s "$out" ] || fail "again?"
expect_one_line 'nothing to remove: of the 4 images of series s, 2 count and are of this source; .*--all-sources'
ccsnap prune --to folder:store --source nosuch --series s --keep-last 1
expect_exit 4
expect_one_line '--source: cannot find nosuch'
ccsnap prune --to folder:store --series s --keep-last 1
expect_exit 0
expect_left "c d $rest other-source" # nothing here came from /

ccsnap prune "${here[@]}" --series s --keep-last 1 --all-sources --json
expect_exit 0
jq -e 'map(.name) == ["other-source", "c"]' "$out" >/dev/null || fail "wrong list"
expect_left "d $rest"

# Of the same second, the name decides, whatever the order in the directory.
rm -rf store
for name in p q r; do
	made $name 10 disk.raw --series s
done
ccsnap prune "${here[@]}" --series s --keep-last 1 --quiet
expect_exit 0
[ ! -s "$out" ] || fail "not quiet"
expect_left r

# One that cannot go keeps no other from going.
fill_store
make_mixed_disk slow.raw 32
timeout 100 "$CCSNAP" create a --overwrite --source slow.raw --to folder:store "${slow[@]}" &
busy=$!
wait_until 10 eval 'compgen -G "store/.a.*" >/dev/null' || fail "the other run does not begin"
ccsnap prune "${here[@]}" --series s --keep-last 1
kill $busy
wait $busy || true
expect_exit 1
expect_stderr 'a \([0-9a-f-]{36}\) stays: another run'
expect_stderr '1 of 3 images could not be removed$'
expect_left "a d $rest other-source"
