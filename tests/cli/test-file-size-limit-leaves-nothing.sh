#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# "ulimit -f" reached, or a quota: a clear error and no debris, never a dead process.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

head -c 8M /dev/urandom >disk.raw
for format in qcow2 raw; do
	(
		ulimit -f 2048
		ccsnap create a --source disk.raw --to folder:store --format $format
		echo "$status" >run/status
	)
	status=$(cat run/status)
	last_command="create under ulimit -f"
	expect_exit 1 4
	expect_one_line
	expect_empty store
done

# Few descriptors are no reason to hang either.
(
	ulimit -n 12
	ccsnap create a --source disk.raw --to folder:store --threads 8
	echo "$status" >run/status
)
status=$(cat run/status)
expect_exit 0 1 4
[ "$status" = 0 ] || expect_empty store
