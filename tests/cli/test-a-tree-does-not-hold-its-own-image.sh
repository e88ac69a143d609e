#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The image, the store, the report and our output may lie in the tree: they are left
# out, by device and inode, and named.
. "$(dirname "$0")/../lib/lib.sh"

mkdir -p src/images src/d
echo k >src/d/keep
head -c 3M /dev/urandom >src/images/old
echo '{}' >src/other.json

ccsnap create name --source src --output src/out.qcow2 --report src/report.json
expect_exit 0
unpack src/out.qcow2
expect_content /d/keep k
expect_inside /images/old
expect_not_inside /out.qcow2 /report.json

# Again: now both are there.
ccsnap create name --source src --output src/out.qcow2 --report src/report.json --overwrite
expect_exit 0
expect_report '[.tree.excluded[].path] | sort == ["/out.qcow2", "/report.json"]' src/report.json
unpack src/out.qcow2
expect_not_inside /out.qcow2 /report.json

# A store: its images are left out, whatever else lies there is not.
ccsnap create name --source src --to folder:src/images --report report.json
expect_exit 0
unpack src/images/name.qcow2
expect_inside /images
expect_inside /images/old
expect_not_inside /images/name.qcow2
ccsnap create again --source src --to folder:src/images --report report.json
expect_exit 0
expect_report '[.tree.excluded[].path] | sort == ["/images/name.manifest.json", "/images/name.qcow2"]'
unpack src/images/again.qcow2
expect_inside /images/old
expect_not_inside /images/name.qcow2 /images/name.manifest.json

# Where our output goes.
timeout 100 "$CCSNAP" create name --source src --to folder:store --report report.json \
	>src/log 2>&1 </dev/null
unpack store/name.qcow2
expect_not_inside /log
