#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two runs for one name: one works, the other exits 75 (or waits, if asked); the lock
# dies with its process.  Runs for different names do not meet.
. "$(dirname "$0")/../lib/lib.sh"
requires jq mke2fs qemu-img

make_disk disk.raw 32
head -c 1M /dev/urandom >small.raw

slow_run() {
	rm -f progress
	"$CCSNAP" create same --source disk.raw --to folder:store "${slow[@]}" --progress json \
		>progress 2>/dev/null </dev/null &
	pid=$!
	wait_until 20 test -s progress || fail "no progress"
}

slow_run
ccsnap create same --source small.raw --to folder:store --report report.json
expect_exit 75
expect_one_line
expect_report '.status == "busy" and .exit_code == 75'
ccsnap create other --source small.raw --to folder:store
expect_exit 0
ccsnap create same --source small.raw --to folder:store --overwrite --lock-wait 1
expect_exit 75

# Dies with its process.
kill -9 $pid
wait $pid 2>/dev/null || true
ccsnap create same --source small.raw --to folder:store
expect_exit 0

# Waiting is rewarded.
rm -rf store && mkdir store
slow_run
(sleep 1 && kill -9 $pid) &
ccsnap create same --source small.raw --to folder:store --lock-wait 60
expect_exit 0
wait 2>/dev/null || true
rm -f store/*

# Twenty at once: one image, and everybody ends as one of three.
for n in {1..20}; do
	(
		status=0
		timeout 120 "$CCSNAP" create same --source small.raw --to folder:store --threads 1 \
			>/dev/null 2>&1 </dev/null || status=$?
		echo $status >"run/status.$n"
	) &
done
wait
sort run/status.* | uniq -c >run/statuses
[ "$(grep -c ' 0$' run/statuses)" = 1 ] && [ "$(awk '$2 == 0 { print $1 }' run/statuses)" = 1 ] ||
	fail "$(cat run/statuses)"
! grep -vE ' (0|4|75)$' run/statuses || fail "$(cat run/statuses)"
[ "$(find store -name '*.qcow2' ! -name '.*' | wc -l)" = 1 ] || fail "$(ls -lA store)"
qemu-img check -q -f qcow2 store/same.qcow2 || fail "not whole"

# And twenty names, all of which get there.
for n in {1..20}; do
	timeout 120 "$CCSNAP" create "n$n" --source small.raw --to folder:store --threads 1 \
		>/dev/null 2>&1 </dev/null &
done
wait
[ "$(find store -name 'n*.qcow2' | wc -l)" = 20 ] || fail "$(ls -lA store)"
