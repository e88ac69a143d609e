#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# qemu-nbd that dies in mid-run, cannot start or is not there ends the run with one
# clear line, and nothing is left.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img pgrep

make_disk disk.raw 16
qemu-img convert -f raw -O qcow2 disk.raw disk.qcow2

: >progress
"$CCSNAP" create a --source disk.qcow2 --source-format qcow2 --to folder:store "${slow[@]}" \
	--report report.json --progress json >progress 2>"$err" </dev/null &
pid=$!
wait_until 20 test -s progress || fail "no progress"
child=$(pgrep -P $pid qemu-nbd) || fail "no qemu-nbd"
kill -9 $child
status=0
wait $pid || status=$?
last_command="create, its qemu-nbd killed"
expect_exit 1
expect_one_line
expect_empty store
expect_report '.status == "failed"'

mkdir bin
timeout=$(command -v timeout)
run "$timeout" 60 env PATH="$T/bin" "$CCSNAP" create a --source disk.qcow2 \
	--source-format qcow2 --to folder:store
expect_exit 1 4
expect_one_line 'qemu-nbd'
expect_empty store

for text in 'exit 0' 'exit 1' 'echo "no luck" >&2; exit 1' 'kill -9 $$'; do
	printf '#!/bin/sh\n%s\n' "$text" >bin/qemu-nbd
	chmod +x bin/qemu-nbd
	PATH=$T/bin:$PATH LIMIT=60 ccsnap create a --source disk.qcow2 --source-format qcow2 \
		--to folder:store
	expect_exit 1 4
	expect_one_line 'qemu-nbd|NBD'
	expect_empty store
done
