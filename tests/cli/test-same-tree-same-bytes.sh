#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The same tree, the same bytes: twice, with any number of threads, from a copy with
# other inode numbers and another order of names.
. "$(dirname "$0")/../lib/lib.sh"
requires python3

python3 "$top/tests/lib/make-awkward-tree" src
[ "$(id -u)" != 0 ] || chattr -R -ia src/flags
rm -r src/flags src/deep # which cp cannot copy
chmod -R u+rX src
mkdir copy
cp -a src copy/src 2>/dev/null || true
rm copy/src/kinds/* src/kinds/*
touch -d '2020-01-01 00:00:00.5' src copy/src src/kinds copy/src/kinds

# Also one that was written to an instant before.
mkdir fresh
head -c 1M /dev/urandom >fresh/z
(yes abc || true) | head -c 1M >fresh/y
for i in 1 2 3; do
	[ $i = 3 ] || touch -d "2020-01-01" fresh/y
	capture name fresh
	sha256sum <"$image" >>sums
done
[ "$(sort -u sums | wc -l)" = 1 ] || fail "different bytes: $(cat sums)"
rm sums

for options in "" "--format raw" "--compression zlib"; do
	# shellcheck disable=SC2086
	for run in "src 1" "src 8" "src 2" "copy/src 2"; do
		capture name "${run% *}" --threads "${run#* }" $options
		sha256sum <"$image" >>sums
		rm "$image" disk.raw
	done
	[ "$(sort -u sums | wc -l)" = 1 ] || fail "different bytes: $(cat sums)"
	rm sums
done
