#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a killed run left in a tree is swept, or left out, and is no file that vanished.
. "$(dirname "$0")/../lib/lib.sh"

unfinished() { # NAME
	compgen -G "src/.$1.qcow2.*.ccsnap-tmp" >run/unfinished
}
mkdir src
head -c 8M /dev/urandom >src/data
"$CCSNAP" create x --source src --output src/out.qcow2 "${slow[@]}" --quiet &
pid=$!
wait_until 20 unfinished out || fail "no temporary file"
kill -9 $pid
wait $pid 2>/dev/null || true

# By another name: it stays, and is left out.
capture name src
[ "$status" = 0 ] || fail "exit $status"
unfinished out || fail "another name's file was swept"
expect_report '.tree.vanished == []'

# By its own name: it goes before the walk.
ccsnap create x --source src --output src/out.qcow2 --report report.json
expect_exit 0
expect_report '.tree.vanished == [] and .tree.excluded == []'
! unfinished out || fail "not swept"

# While another run writes into the tree: its file is left out, too.
"$CCSNAP" create y --source src --output src/y.qcow2 "${slow[@]}" --quiet &
pid=$!
wait_until 20 unfinished y || fail "no temporary file"
ccsnap create z --source src --output src/z.qcow2 --report report.json
expect_exit 0
expect_report '.tree.excluded | any(.path | startswith("/.y.qcow2."))'
kill $pid
wait $pid 2>/dev/null || true
