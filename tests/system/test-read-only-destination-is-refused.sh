#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A destination that cannot be written is refused before anything is read.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires jq setpriv

head -c 4M /dev/urandom >disk.raw
mount_tmpfs readonly 16m
mkdir readonly/store
mount -o remount,ro readonly
for where in "--to folder:readonly/store" "--output readonly/out.qcow2"; do
	# shellcheck disable=SC2086
	ccsnap create a --source disk.raw $where --report report.json
	expect_exit 1 4
	expect_one_line 'read-only|Read-only|readonly'
	expect_report '.status == "refused" or .status == "failed"'
done

# No permission.
mkdir -m 700 private
chmod 755 . && chmod 644 disk.raw
if setpriv --reuid 65534 --regid 65534 --clear-groups "$CCSNAP" --version >/dev/null 2>&1; then
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$CCSNAP" create a \
		--source disk.raw --output private/out.qcow2
	expect_exit 1 4
	expect_one_line 'ermission'
	expect_empty private
fi
