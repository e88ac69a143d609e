#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A report that was asked for and cannot be written is an error, not a silence.
. "$(dirname "$0")/../lib/lib.sh"

head -c 1M /dev/urandom >disk.raw
for place in nosuch/report.json . /dev/full/x; do
	ccsnap create a --source disk.raw --to folder:store --report $place
	[ "$status" != 0 ] || fail "$place: exit 0"
	[ -s "$err" ] || fail "$place: no message"
done

# A link is not followed to somebody's file, nor is a device replaced.
echo precious >victim
ln -s victim link.json
ccsnap create b --source disk.raw --to folder:store --report link.json
[ "$(cat victim)" = precious ] || fail "wrote through a link"
