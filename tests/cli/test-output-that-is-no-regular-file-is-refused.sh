#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A device, link, directory, pipe or socket in the output's place is refused and
# stays what it is, with --overwrite too.
. "$(dirname "$0")/../lib/lib.sh"
requires mkfifo jq

head -c 1M /dev/urandom >disk.raw
echo precious >victim
mkdir directory
mkfifo pipe
ln -s victim link
ln -s nowhere dangling
[ "$(id -u)" != 0 ] || mknod null c 1 3
ls -l --ignore=run >run/before

for output in directory pipe link dangling /dev/null null; do
	[ -e $output ] || [ -L $output ] || continue
	for overwrite in "" --overwrite; do
		LIMIT=20 ccsnap create --source disk.raw --output $output $overwrite
		expect_exit 4
		expect_one_line
	done
done
ls -l --ignore=run >run/after
diff run/before run/after || fail "something changed"
[ "$(cat victim)" = precious ] || fail "wrote through a link"
[ -c /dev/null ] || fail "/dev/null is gone"
[ ! -e nowhere ] || fail "followed a dangling link"

# In a folder store, too.
create name disk.raw
rm "$image"
ln -s "$T/victim" "$image"
ccsnap create name --source disk.raw --to folder:store --overwrite
expect_exit 4
[ "$(cat victim)" = precious ] || fail "wrote through a link"
[ -L "$image" ] || fail "the link was replaced"
