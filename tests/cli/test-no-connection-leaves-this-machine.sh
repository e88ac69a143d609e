#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nothing is connected to but private unix sockets of our own.
. "$(dirname "$0")/../lib/lib.sh"
requires strace jq qemu-img

head -c 1M /dev/urandom >disk.raw
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2
for format in raw qcow2; do
	traced trace -e trace=connect,bind,sendto,socket -- "$CCSNAP" create $format \
		--source disk.$format --source-format $format --to folder:store
	expect_exit 0
	! grep -E 'AF_INET|AF_VSOCK' trace || fail "an internet socket"
done
traced trace -e trace=connect,socket -- "$CCSNAP" verify store/raw.qcow2
expect_exit 0
! grep -E 'AF_INET' trace || fail "an internet socket"
