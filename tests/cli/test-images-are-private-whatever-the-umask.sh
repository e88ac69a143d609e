#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image may hold secrets: 0600 under any umask, from its first byte on.
. "$(dirname "$0")/../lib/lib.sh"
requires jq strace

head -c 1M /dev/urandom >disk.raw
for mask in 000 022 077 777; do
	umask $mask
	ccsnap create a --source disk.raw --output "$T/run/out-$mask.qcow2"
	umask 022
	expect_exit 0
	[ "$(stat -c %a "$T/run/out-$mask.qcow2")" = 600 ] || fail "$(ls -l "$T/run")"
done
umask 000
create a disk.raw
[ -z "$(find store -type f -perm /077)" ] || fail "$(ls -lA store)"

traced trace -e trace=openat,open,mkdir,mkdirat,chmod,fchmod -- \
	"$CCSNAP" create b --source disk.raw --to folder:store
! grep -E 'O_CREAT.*0(666|644|777)\)' trace | grep -v ENOENT || fail "was open to others"
