#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Temporary files are made exclusively in a private directory; names planted in
# advance are not touched; a TMPDIR that is no good is said or not needed.
. "$(dirname "$0")/../lib/lib.sh"
requires strace jq qemu-img

head -c 1M /dev/urandom >disk.raw
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
traced trace -e trace=openat,open,mkdir,mkdirat,bind,rename,renameat,renameat2 -- \
	"$CCSNAP" create a --source disk.qcow2 --source-format qcow2 --to folder:store
expect_exit 0
! grep -E 'mkdir(at)?\(.*tmp' trace | grep -vE '0700|EEXIST' || fail "a directory is open to others"
! grep -E "$TMPDIR.*O_CREAT" trace | grep -v O_EXCL || fail "made without O_EXCL"
! grep -E "store/.*O_CREAT" trace | grep -vE 'O_EXCL|O_TMPFILE|lock' || fail "made without O_EXCL"
expect_empty "$TMPDIR"

for tmp in /nosuch relative /proc "$(printf '/%.0s' {1..90})"; do
	TMPDIR=$tmp ccsnap create b --source disk.qcow2 --source-format qcow2 --to folder:store \
		--overwrite
	expect_exit 0 1 4
	[ "$status" = 0 ] || expect_one_line
done
