#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What cannot be read stops the run; with --keep-going it is left out and named.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/closed src/open
echo k >src/open/keep
echo s >src/open/secret
echo s >src/closed/inside
chmod 000 src/open/secret src/closed
at_exit chmod 700 "$T/src/closed"
as_ordinary_user

ccsnap create name --source src --to folder:store --report report.json
expect_exit 1
expect_one_line '/(closed|open/secret).*keep-going'
expect_empty store

capture name src --keep-going
[ "$status" = 3 ] || fail "exit $status"
expect_report '.status == "warnings" and .exit_code == 3'
expect_report '[.tree.unreadable[].path] | sort == ["/closed", "/open/secret"]'
expect_content /open/keep k
expect_inside /closed
expect_not_inside /open/secret /closed/inside
