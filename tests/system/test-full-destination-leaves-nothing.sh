#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Too little space is told before the work starts; space that runs out in mid-run ends
# it with the reason.  Nothing is left either way.
. "$(dirname "$0")/../lib/lib.sh"
requires_root
requires jq mke2fs fallocate

make_disk disk.raw 32
head -c 24M /dev/urandom >noise.raw

mount_tmpfs small 1m
for format in qcow2 raw; do
	ccsnap create a --source noise.raw --to folder:small --format $format --report report.json
	expect_exit 4
	expect_one_line 'space|free'
	expect_empty small
	expect_report '.status == "refused"'
	ccsnap create --source noise.raw --output small/out.qcow2 --format $format
	expect_exit 4
	expect_empty small
done
ccsnap create a --dry-run --source noise.raw --to folder:small --report report.json
expect_exit 4
expect_empty small

# Somebody else fills the disk meanwhile.
mount_tmpfs shared 64m
for output in "--to folder:shared/store" "--output shared/out.qcow2"; do
	mkdir -p shared/store
	: >progress
	# shellcheck disable=SC2086
	"$CCSNAP" create a --source disk.raw $output "${slow[@]}" --threads 2 --progress json \
		--report report.json >progress 2>"$err" </dev/null &
	pid=$!
	wait_until 20 test -s progress || fail "no progress"
	fallocate -l 64M shared/full 2>/dev/null || head -c 64M /dev/zero >shared/full 2>/dev/null || true
	status=0
	wait $pid || status=$?
	last_command="create $output on a file system that fills up"
	expect_exit 1
	expect_one_line 'space'
	expect_report '.status == "failed"'
	rm shared/full
	[ -z "$(find shared -type f)" ] || fail "left behind: $(find shared -type f)"
done

# With room again, the same name succeeds.
create b disk.raw
mount_tmpfs inodes 8m,nr_inodes=2
head -c 1M /dev/urandom >little.raw
ccsnap create a --source little.raw --to folder:inodes
expect_exit 1 4
expect_one_line
expect_empty inodes
