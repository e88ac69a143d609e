#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# More data than the limit: asked for on a terminal, refused elsewhere unless agreed to.
. "$(dirname "$0")/../lib/lib.sh"

mkdir src
head -c 3M /dev/urandom >src/data
export CC_SNAPSHOT_MAX_TARBALL_SIZE=2
ccsnap create name --source src --to folder:store --report report.json
expect_exit 4
expect_stderr 'CC_SNAPSHOT_MAX_TARBALL_SIZE'
expect_stderr '--yes'
expect_empty store
expect_report '.status == "refused" and .exit_code == 4'
capture name src -y
capture name src -f
expect_inside /data
CC_SNAPSHOT_MAX_TARBALL_SIZE=4 capture name src
CC_SNAPSHOT_MAX_TARBALL_SIZE=four ccsnap create name --source src --to folder:store
expect_exit 2
expect_one_line 'CC_SNAPSHOT_MAX_TARBALL_SIZE'

# A terminal that says yes, and one that says no.
requires script
answer() {
	echo "$1" | timeout 60 script -qec "'$CCSNAP' create asked --source src --to folder:store" \
		/dev/null >run/terminal 2>&1
}
status=0
answer n || status=$?
expect_exit 4
answer y || fail "$(cat run/terminal)"
[ -e store/asked.qcow2 ] || fail "asked.qcow2 is missing"
