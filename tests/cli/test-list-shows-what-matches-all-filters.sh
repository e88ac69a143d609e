#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# list takes a name, a series and tags; an image has to match all that is given.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 1M /dev/urandom >disk.raw
create one disk.raw --series nightly
create two disk.raw --series nightly
create three disk.raw

listed() { # NAMES-IN-ORDER OPTION...
	ccsnap list --to folder:store --json "${@:2}"
	expect_exit 0
	[ "$(jq -r 'map(.name) | sort | join(" ")' "$out")" = "$1" ] || fail "not: $1"
}

listed "one three two"
listed "one two" --series nightly
listed "two" --name two
listed "two" --name two --series nightly
listed "" --name three --series nightly
listed "" --series night
listed "" --tag nightly
listed "" --name 'tw*'
jq -e '. == []' "$out" >/dev/null || fail "no list at all"

# The table has what the folder knows, fits a terminal, and no line ends in spaces.
ccsnap list --to folder:store --series nightly
expect_exit 0
expect_stdout '^NAME +FORMAT +SIZE +VIRTUAL +CREATED$'
expect_stdout '^two +qcow2/zstd +[0-9.]+ MiB +1 MiB +20[0-9-]+T[0-9:]+Z$'
[ "$(wc -l <"$out")" = 3 ] || fail "not two images"
[ "$(wc -L <"$out")" -le 80 ] || fail "too wide"
ccsnap list --to folder:store --name nosuch
expect_exit 0
expect_one_line 'no such images in store'
