#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file that a running QEMU holds for writing is refused; one that is only read is not;
# and while it is captured no QEMU gets to write it.
. "$(dirname "$0")/../lib/lib.sh"
requires qemu-img qemu-nbd qemu-io jq mke2fs

make_disk disk.raw 8
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2

listening() {
	[ -S "$T/nbd" ]
}
hold() { # QEMU-NBD-OPTION...
	rm -f nbd
	qemu-nbd -t -k "$T/nbd" "$@" 2>/dev/null &
	pid=$!
	wait_until 10 listening || fail "qemu-nbd does not start"
}
release() {
	kill $pid
	wait $pid || true
}

for format in raw qcow2; do
	hold -f $format disk.$format
	for dry in "" --dry-run; do
		ccsnap create a --source disk.$format --source-format $format --to folder:store $dry
		[ -n "$dry" ] && [ "$status" = 0 ] && continue
		expect_exit 4
		expect_one_line 'disk\.'
		expect_empty store
	done
	release
	hold -r -f $format disk.$format
	create a disk.$format --source-format $format
	release
	rm -rf store && mkdir store
done

# Held against writers while it runs.
"$CCSNAP" create b --source disk.raw --to folder:store "${slow[@]}" --threads 1 --progress json \
	>progress 2>/dev/null </dev/null &
pid=$!
wait_until 20 test -s progress || fail "no progress"
! qemu-io -f raw -c 'write 0 512' disk.raw 2>/dev/null >/dev/null || fail "QEMU could write"
kill $pid
wait $pid || true
