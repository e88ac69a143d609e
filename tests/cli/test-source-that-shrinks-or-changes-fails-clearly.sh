#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A source cut short in mid-read fails with the offset, and leaves nothing.  One that
# was written meanwhile is not passed off as one point in time.
. "$(dirname "$0")/../lib/lib.sh"
requires jq

begun() {
	[ "$(wc -l <progress)" -ge "$1" ]
}
slow_run() {
	cp --sparse=always kept.raw disk.raw
	: >progress
	"$CCSNAP" create a --source disk.raw --to folder:store --report report.json "${slow[@]}" \
		--threads 2 --progress json >progress 2>"$err" </dev/null &
	pid=$!
	last_command="create"
	wait_until 20 begun 2 || fail "no progress"
}
await() {
	status=0
	wait $pid || status=$?
}

(find /usr/share /usr/lib -xdev -type f -readable -size -500k -print0 2>/dev/null |
	LC_ALL=C sort -z | xargs -0 cat 2>/dev/null | head -c 16M) >kept.raw || true

slow_run
truncate -s 1M disk.raw
await
expect_exit 1
expect_stderr '[0-9]{6,}'
expect_empty store
expect_report '.status == "failed" and (.error | tostring | test("[0-9]{6,}"))'

# Removed: we hold it open, so it can still be read to its end.
slow_run
rm disk.raw
await
expect_exit 0 1
[ "$status" = 0 ] || expect_one_line
[ "$status" = 0 ] || expect_empty store
rm -rf store && mkdir store

slow_run
printf changed | dd of=disk.raw bs=1 seek=15M conv=notrunc status=none
await
expect_exit 1 3
[ "$status" = 3 ] || expect_empty store
